/* SPDX-License-Identifier: MIT */
/*
 * peers.c - what holds between any library's lock and ours on one node.
 */
#include "peers.h"

#include <stdlib.h>

#include "interop/peer.h"
#include "live/zookeeper/zookeeper.h"

enum { X = HF_EXCLUSIVE, S = HF_SHARED };

struct proc *zk_peer(const char *variable, bool java)
{
    const char *arguments[] = {NULL, NULL};
    const char *python_argv[] = {"python3", NULL, NULL, NULL};

    if (!getenv(variable))
        FAIL("%s is not set", variable);
    ensemble();
    arguments[0] = test_text("%d", ensemble_port(0));
    if (java)
        return peer_start_java(variable, /* option= */ NULL, arguments);
    python_argv[1] = test_text("%s/peer.py", getenv(variable));
    python_argv[2] = arguments[0];
    return peer_start(python_argv);
}

hf_client *zk_ours(const char *dialect)
{
    char query[64];

    (void)snprintf(query, sizeof(query), "ttl=3s&dialect=%s", dialect);
    return client_open(ensemble_url(query));
}

void exclude_and_wake(struct proc *peer, hf_client *client, const char *kind,
                      const char *name)
{
    hf_request *request;
    hf_hold *hold;

    /* We hold: it waits, and is woken by our release. */
    hold = peer_take(client, name, X, 0);
    (void)peer_ask(peer, "a busy", "a lock %s /locks/%s 300", kind, name);
    peer_tell(peer, "b lock %s /locks/%s 15000", kind, name);
    EVENTUALLY(client_count(client, name, HF_WAITER) == 1);
    client_release(hold);
    (void)proc_expect(peer, "b ok");

    /* It holds: we wait, and are woken by its release. */
    ASSERT_EQ(peer_try(client, name, X, 0), HF_EBUSY);
    request = peer_await(client, name, X, 0);
    EVENTUALLY(client_count(client, name, HF_WAITER) == 1);
    ASSERT_TRUE(peer_is_waiting(request));
    (void)peer_ask(peer, "b ok", "b unlock %s /locks/%s", kind, name);
    hold = peer_awaited(request, 15000);
    (void)peer_ask(peer, "a busy", "a lock %s /locks/%s 300", kind, name);
    client_release(hold);
    ASSERT_EQ(client_count(client, name, HF_HOLDER), 0);
}

void survive_its_death(struct proc *peer, hf_client *client, const char *kind,
                       const char *name)
{
    hf_request *request;

    (void)peer_ask(peer, "a ok", "a lock %s /locks/%s 5000", kind, name);
    request = peer_await(client, name, X, 0);
    EVENTUALLY(client_count(client, name, HF_WAITER) == 1);
    proc_kill(peer);
    client_release(peer_awaited(request, 15000));
}

/* ---- our death ---------------------------------------------------------- */

struct victim {
    const char *dialect;
    const char *name;
};

static void hold_until_killed(struct proc *self, void *arg)
{
    const struct victim *victim = arg;
    hf_client *client = zk_ours(victim->dialect);

    (void)peer_take(client, victim->name, X, 0);
    proc_tell(self, "holds");
    (void)proc_hear(self);
}

void survive_our_death(struct proc *peer, const char *dialect, const char *kind,
                       const char *name)
{
    struct victim victim = {dialect, name};
    struct proc *proc = proc_start(hold_until_killed, &victim);

    (void)proc_expect(proc, "holds");
    (void)peer_ask(peer, "a busy", "a lock %s /locks/%s 200", kind, name);
    peer_tell(peer, "b lock %s /locks/%s 20000", kind, name);
    proc_kill(proc);
    (void)proc_expect(peer, "b ok");
    (void)peer_ask(peer, "b ok", "b unlock %s /locks/%s", kind, name);
}

void share_and_exclude(struct proc *peer, hf_client *client, const char *name)
{
    hf_request *request;
    hf_hold *hold = peer_take(client, name, S, 0);

    /* Two readers, one of each; no writer of either. */
    (void)peer_ask(peer, "a ok", "a lock read /locks/%s 5000", name);
    (void)peer_ask(peer, "b busy", "b lock write /locks/%s 200", name);
    request = peer_await(client, name, X, 0);
    EVENTUALLY(client_count(client, name, HF_WAITER) == 1);
    client_release(hold);
    ASSERT_TRUE(peer_is_waiting(request));
    (void)peer_ask(peer, "a ok", "a unlock read /locks/%s", name);

    /* Our writer keeps its readers out, and lets them in. */
    hold = peer_awaited(request, 15000);
    (void)peer_ask(peer, "a busy", "a lock read /locks/%s 200", name);
    peer_tell(peer, "b lock read /locks/%s 15000", name);
    EVENTUALLY(client_count(client, name, HF_WAITER) == 1);
    client_release(hold);
    (void)proc_expect(peer, "b ok");
    (void)peer_ask(peer, "b ok", "b unlock read /locks/%s", name);
}

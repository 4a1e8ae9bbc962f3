/* SPDX-License-Identifier: MIT */
/* go_test.c - Go's concurrency.Mutex and we take turns. */
#include <stdlib.h>

#include "ours.h"

static struct proc *start_go(struct etcd *etcd)
{
    static char program[512];
    static char endpoint[64];
    static const char *const words[] = {program, endpoint, "jobs", "2", NULL};
    const char *dir = getenv("ETCD_GO_DIR");
    struct proc *peer;

    (void)snprintf(program, sizeof(program), "%s/peer", dir ? dir : ".");
    (void)snprintf(endpoint, sizeof(endpoint), "127.0.0.1:%d",
                   server_port(etcd->members[0]));
    peer = ours_peer(words);
    (void)proc_expect(peer, "ready");
    return peer;
}

static uint64_t locked(struct proc *peer)
{
    unsigned long long revision = 0;

    ASSERT_EQ(sscanf(proc_expect(peer, "locked"), "locked %llu", &revision), 1);
    return revision;
}

TEST(go, excludes_us_and_is_excluded)
{
    struct etcd *etcd = etcd_start(1);
    struct proc *peer = start_go(etcd);
    hf_client *client = etcd_open(etcd, "ttl=20s");
    hf_hold *hold;
    hf_error err;

    proc_say(peer, "lock");
    (void)locked(peer);
    ASSERT_EQ(client_try(client, "jobs", &err), HF_EBUSY);
    proc_say(peer, "unlock");
    (void)proc_expect(peer, "unlocked");
    hold = client_acquire(client, "jobs");
    proc_say(peer, "try");
    (void)proc_expect(peer, "busy");
    ASSERT_OK(hf_verify(hold, &err), &err);
    client_release(hold);
    proc_say(peer, "try");
    (void)locked(peer);
    proc_say(peer, "unlock");
    (void)proc_expect(peer, "unlocked");
    ASSERT_EQ(etcd_keys(etcd, ""), 0);
}

TEST(go, wakes_us_and_is_woken_with_growing_tokens)
{
    struct etcd *etcd = etcd_start(1);
    struct proc *peer = start_go(etcd);
    hf_client *client = etcd_open(etcd, "ttl=20s");
    hf_request *request;
    hf_hold *hold;
    uint64_t first;

    proc_say(peer, "lock");
    first = locked(peer);
    request = client_start(client, "jobs");
    EVENTUALLY(etcd_keys(etcd, "jobs") == 2);
    proc_say(peer, "unlock");
    (void)proc_expect(peer, "unlocked");
    hold = client_finish(request);
    ASSERT_GT(hf_token(hold), first);
    proc_say(peer, "lock");
    EVENTUALLY(etcd_keys(etcd, "jobs") == 2);
    ASSERT_TRUE(proc_is_silent(peer, 100));
    first = hf_token(hold);
    client_release(hold);
    ASSERT_GT(locked(peer), first);
}

TEST(go, killed_as_a_holder_frees_us)
{
    struct etcd *etcd = etcd_start(1);
    struct proc *peer = start_go(etcd);
    hf_client *client = etcd_open(etcd, "ttl=20s");
    hf_request *request;

    proc_say(peer, "lock");
    (void)locked(peer);
    request = client_start(client, "jobs");
    EVENTUALLY(etcd_keys(etcd, "jobs") == 2);
    proc_kill(peer);
    client_release(client_finish(request));
}

TEST(go, gets_the_lock_of_our_killed_holder)
{
    struct etcd *etcd = etcd_start(1);
    struct proc *holder = ours_holder(etcd);
    struct proc *peer = start_go(etcd);

    proc_say(holder, "go");
    (void)proc_expect(holder, "holds");
    proc_say(peer, "lock");
    EVENTUALLY(etcd_keys(etcd, "jobs") == 2);
    proc_kill(holder);
    (void)locked(peer);
}

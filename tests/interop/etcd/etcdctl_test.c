/* SPDX-License-Identifier: MIT */
/*
 * etcdctl_test.c - etcdctl lock and we take turns.
 *
 * etcdctl says its key when it has the lock, and keeps it until it is killed.
 */
#include <stdlib.h>

#include "ours.h"

/* It asks for "jobs" as soon as it is started. */
static struct proc *start_etcdctl(struct etcd *etcd)
{
    static char endpoint[64];
    static const char *const words[] = {
        "env",  "ETCDCTL_API=3", "etcdctl", endpoint,
        "lock", "--ttl=2",       "jobs",    NULL};

    (void)snprintf(endpoint, sizeof(endpoint), "--endpoints=127.0.0.1:%d",
                   server_port(etcd->members[0]));
    return ours_peer(words);
}

TEST(etcdctl, excludes_us_and_its_death_wakes_us)
{
    struct etcd *etcd = etcd_start(1);
    struct proc *peer = start_etcdctl(etcd);
    hf_client *client;
    hf_request *request;
    hf_error err;

    (void)proc_expect(peer, "jobs/");
    client = etcd_open(etcd, "ttl=20s");
    ASSERT_EQ(client_try(client, "jobs", &err), HF_EBUSY);
    ASSERT_HAS(err.text, "lease");
    request = client_start(client, "jobs");
    EVENTUALLY(etcd_keys(etcd, "jobs") == 2);
    ASSERT_EQ(hf_request_pending(request), 1);
    proc_kill(peer);
    client_release(client_finish(request));
    EVENTUALLY(etcd_keys(etcd, "") == 0);
}

/* An etcdctl that waits for our holder. */
static struct proc *start_behind_us(struct proc **ret_holder)
{
    struct etcd *etcd = etcd_start(1);
    struct proc *peer;

    *ret_holder = ours_holder(etcd);
    proc_say(*ret_holder, "go");
    (void)proc_expect(*ret_holder, "holds");
    peer = start_etcdctl(etcd);
    EVENTUALLY(etcd_keys(etcd, "jobs") == 2);
    return peer;
}

TEST(etcdctl, waits_for_us_and_our_release_wakes_it)
{
    struct proc *holder;
    struct proc *peer = start_behind_us(&holder);

    ASSERT_TRUE(proc_is_silent(peer, 100));
    proc_say(holder, "end"); /* and its client is closed */
    (void)proc_expect(peer, "jobs/");
    proc_join(holder);
    proc_kill(peer);
}

TEST(etcdctl, gets_the_lock_of_our_killed_holder)
{
    struct proc *holder;
    struct proc *peer = start_behind_us(&holder);

    proc_kill(holder);
    (void)proc_expect(peer, "jobs/");
    proc_kill(peer);
}

TEST(etcdctl, is_shown_among_holders_and_waiters)
{
    struct etcd *etcd = etcd_start(1);
    struct proc *peer = start_etcdctl(etcd);
    hf_client *client;
    hf_error err;
    uint64_t token;

    (void)proc_expect(peer, "jobs/");
    client = etcd_open(etcd, "ttl=20s");
    token =
        (uint64_t)strtoull(strstr(etcd_ctl(etcd, "get --prefix jobs/ -w json"),
                                  "\"create_revision\":") +
                               strlen("\"create_revision\":"),
                           NULL, 10);
    ASSERT_OK(hf_check_token(client, "jobs", token, &err), &err);
    ASSERT_EQ(hf_check_token(client, "jobs", token + 1, &err), HF_ECONFLICT);
    proc_kill(peer);
}

/* SPDX-License-Identifier: MIT */
/*
 * etcd_condition_test.c - what networks and administrators do to those who wait
 * on a condition.
 */
#include <stdlib.h>

#include "etcd.h"
#include "event.h"

#define QUICK "retry.base=5ms&retry.max_interval=100ms&ttl=10s"

static struct client_wait park(struct etcd *etcd, hf_client *client,
                               const char *cond)
{
    return client_park(client, "jobs", cond, etcd_open(etcd, QUICK));
}

/* Neither records nor wake-ups. */
static bool nothing_left(struct etcd *etcd)
{
    return etcd_keys(etcd, "") == 0 && etcd_keys(etcd, "~cond") == 0 &&
           etcd_keys(etcd, "~wake") == 0;
}

TEST(condition, that_was_used_leaves_nothing_behind)
{
    struct etcd *etcd = etcd_start(1);
    hf_client *client = etcd_open(etcd, QUICK);
    hf_client *other = etcd_open(etcd, QUICK);
    struct client_wait first = park(etcd, client, "a/b");
    struct client_wait second = park(etcd, other, "a/b");

    ASSERT_EQ(client_signal(other, "jobs", "a/b"), 1);
    client_woken(&first);
    ASSERT_EQ(client_signal(client, "jobs", "a/b"), 1);
    client_woken(&second);
    EVENTUALLY(nothing_left(etcd));
}

TEST(condition, whose_record_is_deleted_ends_the_wait)
{
    struct etcd *etcd = etcd_start(1);
    struct client_wait waiter = park(etcd, etcd_open(etcd, QUICK), "ready");

    (void)etcd_ctl(etcd, "del --prefix '~cond/'");
    client_woken(&waiter);
    EVENTUALLY(nothing_left(etcd));
}

/* The lease of a waiter ends: it may have missed a signal, so it returns. */
TEST(condition, whose_lease_is_revoked_ends_the_wait)
{
    struct etcd *etcd = etcd_start(1);
    struct client_wait waiter = park(etcd, etcd_open(etcd, QUICK), "ready");
    const char *key = etcd_ctl(etcd, "get --prefix --keys-only '~cond/'");
    char hex[32] = "";

    ASSERT_EQ(sscanf(key, "~cond/jobs/ready/%31[0-9a-f]", hex), 1);
    ASSERT_HAS(etcd_ctl(etcd, "lease revoke %s", hex), "revoked");
    client_woken(&waiter);
    EVENTUALLY(nothing_left(etcd));
}

TEST(condition, is_signalled_while_its_waiter_is_cut_off)
{
    struct etcd_detour at = etcd_detour(QUICK);
    hf_client *other = etcd_open(at.etcd, QUICK);
    struct client_wait waiter = park(at.etcd, at.client, "ready");

    proxy_refuse(at.proxy, true);
    proxy_reset(at.proxy);
    ASSERT_EQ(client_signal(other, "jobs", "ready"), 1);
    proxy_pass(at.proxy);
    client_woken(&waiter);
    EVENTUALLY(nothing_left(at.etcd));
}

/* Behind the history that is left: the watch has to go on, or begin anew. */
TEST(condition, outlasts_a_compaction)
{
    struct etcd_detour at = etcd_detour(QUICK);
    hf_client *other = etcd_open(at.etcd, QUICK);
    struct client_wait waiter = park(at.etcd, at.client, "ready");

    for (int i = 0; i < 20; i++)
        client_release(client_acquire(other, "jobs"));
    ASSERT_HAS(etcd_ctl(at.etcd, "compaction 30"), "compacted");
    proxy_reset(at.proxy);
    ASSERT_EQ(client_signal(other, "jobs", "ready"), 1);
    client_woken(&waiter);
    EVENTUALLY(nothing_left(at.etcd));
}

/* A wake-up whose bearer and all others died has no lease that ends it. */
TEST(doctor, removes_wake_ups_that_nobody_is_left_for)
{
    struct etcd *etcd = etcd_start(1);
    hf_client *client = etcd_open(etcd, QUICK);
    struct client_wait waiter = park(etcd, client, "busy");

    (void)etcd_ctl(etcd, "put '~wake/jobs/ready' s5");
    (void)etcd_ctl(etcd, "put '~wake/jobs/busy' s1");
    ASSERT_EQ(client_finding(client, "wake-ups"), HF_FINDING_OK);
    ASSERT_STREQ(etcd_ctl(etcd, "get --keys-only '~wake/jobs/ready'"), "");
    ASSERT_HAS(etcd_ctl(etcd, "get --keys-only '~wake/jobs/busy'"), "busy");
    ASSERT_EQ(client_signal(client, "jobs", "busy"), 1);
    client_woken(&waiter);
    EVENTUALLY(nothing_left(etcd));
}

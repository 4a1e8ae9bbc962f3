/* SPDX-License-Identifier: MIT */
/*
 * etcd_condition_test.c - what networks and administrators do to those who wait
 * on a condition.
 */
#include <stdlib.h>

#include "etcd.h"
#include "event.h"

#define QUICK "retry.base=5ms&retry.max_interval=100ms&ttl=10s"

struct waiter {
    hf_hold *hold;
    hf_request *request;
};

static struct waiter park(struct etcd *etcd, hf_client *client,
                          const char *cond)
{
    hf_client *looks = etcd_open(etcd, QUICK);
    struct waiter waiter = {.hold = client_acquire(client, "jobs")};
    int parked = client_count(looks, "jobs", HF_PARKED);
    hf_error err;

    ASSERT_OK(hf_cond_wait_start(waiter.hold, cond, HF_FOREVER, NULL, NULL,
                                 &waiter.request, &err),
              &err);
    EVENTUALLY(client_count(looks, "jobs", HF_PARKED) == parked + 1);
    return waiter;
}

/* It returns 0, and holds the lock. */
static void finish(struct waiter *waiter)
{
    hf_error err;

    ASSERT_OK(hf_request_wait(waiter->request, EVENT_PATIENCE_MS, NULL, &err),
              &err);
    ASSERT_EQ(hf_check(waiter->hold), HF_HELD);
    hf_request_free(waiter->request);
    client_release(waiter->hold);
}

static int signal_one(hf_client *client, const char *cond)
{
    hf_hold *hold = client_acquire(client, "jobs");
    hf_error err;
    int n = hf_cond_signal(hold, cond, &err);

    client_release(hold);
    return n;
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
    struct waiter first = park(etcd, client, "a/b");
    struct waiter second = park(etcd, other, "a/b");

    ASSERT_EQ(signal_one(other, "a/b"), 1);
    finish(&first);
    ASSERT_EQ(signal_one(client, "a/b"), 1);
    finish(&second);
    EVENTUALLY(nothing_left(etcd));
}

TEST(condition, whose_record_is_deleted_ends_the_wait)
{
    struct etcd *etcd = etcd_start(1);
    struct waiter waiter = park(etcd, etcd_open(etcd, QUICK), "ready");

    (void)etcd_ctl(etcd, "del --prefix '~cond/'");
    finish(&waiter);
    EVENTUALLY(nothing_left(etcd));
}

/* The lease of a waiter ends: it may have missed a signal, so it returns. */
TEST(condition, whose_lease_is_revoked_ends_the_wait)
{
    struct etcd *etcd = etcd_start(1);
    struct waiter waiter = park(etcd, etcd_open(etcd, QUICK), "ready");
    const char *key = etcd_ctl(etcd, "get --prefix --keys-only '~cond/'");
    char hex[32] = "";

    ASSERT_EQ(sscanf(key, "~cond/jobs/ready/%31[0-9a-f]", hex), 1);
    ASSERT_HAS(etcd_ctl(etcd, "lease revoke %s", hex), "revoked");
    finish(&waiter);
    EVENTUALLY(nothing_left(etcd));
}

TEST(condition, is_signalled_while_its_waiter_is_cut_off)
{
    struct etcd *etcd = etcd_start(1);
    struct proxy *proxy = proxy_start(server_port(etcd->members[0]));
    hf_client *client = etcd_open_port(proxy_port(proxy), QUICK);
    hf_client *other = etcd_open(etcd, QUICK);
    struct waiter waiter = park(etcd, client, "ready");

    proxy_refuse(proxy, true);
    proxy_reset(proxy);
    ASSERT_EQ(signal_one(other, "ready"), 1);
    proxy_pass(proxy);
    finish(&waiter);
    EVENTUALLY(nothing_left(etcd));
}

/* Behind the history that is left: the watch has to go on, or begin anew. */
TEST(condition, outlasts_a_compaction)
{
    struct etcd *etcd = etcd_start(1);
    struct proxy *proxy = proxy_start(server_port(etcd->members[0]));
    hf_client *client = etcd_open_port(proxy_port(proxy), QUICK);
    hf_client *other = etcd_open(etcd, QUICK);
    struct waiter waiter = park(etcd, client, "ready");

    for (int i = 0; i < 20; i++)
        client_release(client_acquire(other, "jobs"));
    ASSERT_HAS(etcd_ctl(etcd, "compaction 30"), "compacted");
    proxy_reset(proxy);
    ASSERT_EQ(signal_one(other, "ready"), 1);
    finish(&waiter);
    EVENTUALLY(nothing_left(etcd));
}

/* A wake-up whose bearer and all others died has no lease that ends it. */
TEST(doctor, removes_wake_ups_that_nobody_is_left_for)
{
    struct etcd *etcd = etcd_start(1);
    hf_client *client = etcd_open(etcd, QUICK);
    struct waiter waiter = park(etcd, client, "busy");

    (void)etcd_ctl(etcd, "put '~wake/jobs/ready' s5");
    (void)etcd_ctl(etcd, "put '~wake/jobs/busy' s1");
    ASSERT_EQ(client_finding(client, "wake-ups"), HF_FINDING_OK);
    ASSERT_STREQ(etcd_ctl(etcd, "get --keys-only '~wake/jobs/ready'"), "");
    ASSERT_HAS(etcd_ctl(etcd, "get --keys-only '~wake/jobs/busy'"), "busy");
    ASSERT_EQ(signal_one(client, "busy"), 1);
    finish(&waiter);
    EVENTUALLY(nothing_left(etcd));
}

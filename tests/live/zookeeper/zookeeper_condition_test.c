/* SPDX-License-Identifier: MIT */
/*
 * zookeeper_condition_test.c - what networks and servers do to those who wait
 * on a condition, on an ensemble of three.
 */
#include "zookeeper.h"

#define QUICK "ttl=30s&retry.base=1ms&retry.max_interval=50ms"

struct waiter {
    hf_hold *hold;
    hf_request *request;
};

static struct waiter park(hf_client *client, hf_client *looks, const char *name)
{
    struct waiter waiter = {.hold = client_acquire(client, name)};
    int parked = client_count(looks, name, HF_PARKED);
    hf_error err;

    ASSERT_OK(hf_cond_wait_start(waiter.hold, "a/b", HF_FOREVER, NULL, NULL,
                                 &waiter.request, &err),
              &err);
    EVENTUALLY(client_count(looks, name, HF_PARKED) == parked + 1);
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

static int signal_one(hf_client *client, const char *name)
{
    hf_hold *hold = client_acquire(client, name);
    hf_error err;
    int n = hf_cond_signal(hold, "a/b", &err);

    client_release(hold);
    return n;
}

/* True: it woke one. False: nobody waited, or the lock is held. */
static bool try_signal(hf_client *client, const char *name)
{
    hf_hold *hold;
    int n;

    if (hf_try(client, name, &hold, NULL) != 0)
        return false;
    n = hf_cond_signal(hold, "a/b", NULL);
    client_release(hold);
    return n == 1;
}

static bool nothing_left(hf_client *client, const char *name)
{
    return client_count(client, name, HF_PARKED) == 0 &&
           client_count(client, name, HF_WAITER) == 0 &&
           client_count(client, name, HF_HOLDER) == 0;
}

/* The containers go some time after their last child, and the wake-ups with
 * them: the next wait makes them again. */
TEST(condition, whose_node_is_reaped_is_made_again)
{
    hf_client *client;
    hf_client *other;

    ensemble();
    client = client_open(ensemble_url(QUICK));
    other = client_open(ensemble_url(QUICK));
    for (int i = 0; i < 3; i++) {
        struct waiter waiter = park(client, other, "reaped");

        ASSERT_EQ(signal_one(other, "reaped"), 1);
        finish(&waiter);
        EVENTUALLY(nothing_left(client, "reaped"));
        EVENTUALLY(zk_nodes(client) == 0);
    }
}

TEST(condition, outlasts_the_death_of_the_leader)
{
    hf_client *client;
    hf_client *other;
    struct waiter first;
    struct waiter second;

    ensemble();
    client = client_open(ensemble_url(QUICK));
    other = client_open(ensemble_url(QUICK));
    first = park(client, other, "led");
    second = park(other, client, "led");
    ASSERT_EQ(signal_one(other, "led"), 1);
    ensemble_kill(ensemble_leader());
    finish(&first);
    /* A return without a signal is allowed when a server dies. */
    EVENTUALLY(hf_check(second.hold) == HF_HELD || try_signal(client, "led"));
    finish(&second);
    EVENTUALLY(nothing_left(client, "led"));
}

TEST(condition, is_signalled_while_its_waiter_is_cut_off)
{
    struct detour detour;
    hf_client *client;
    hf_client *other;
    struct waiter waiter;

    ensemble();
    detour_start(&detour);
    client = client_open(detour_url(&detour, QUICK));
    other = client_open(ensemble_url(QUICK));
    waiter = park(client, other, "missed");
    for (int i = 0; i < SERVERS; i++) {
        proxy_refuse(detour.proxies[i], true);
        proxy_reset(detour.proxies[i]);
    }
    ASSERT_EQ(signal_one(other, "missed"), 1);
    for (int i = 0; i < SERVERS; i++)
        proxy_pass(detour.proxies[i]);
    finish(&waiter);
    EVENTUALLY(nothing_left(other, "missed"));
}

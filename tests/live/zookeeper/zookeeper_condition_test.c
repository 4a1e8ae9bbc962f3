/* SPDX-License-Identifier: MIT */
/*
 * zookeeper_condition_test.c - what networks and servers do to those who wait
 * on a condition, on an ensemble of three.
 */
#include "zookeeper.h"

#define QUICK "ttl=30s&retry.base=1ms&retry.max_interval=50ms"

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
        struct client_wait waiter = client_park(client, "reaped", "a/b", other);

        ASSERT_EQ(client_signal(other, "reaped", "a/b"), 1);
        client_woken(&waiter);
        EVENTUALLY(nothing_left(client, "reaped"));
        EVENTUALLY(zk_nodes(client) == 0);
    }
}

TEST(condition, outlasts_the_death_of_the_leader)
{
    hf_client *client;
    hf_client *other;
    struct client_wait first;
    struct client_wait second;

    ensemble();
    client = client_open(ensemble_url(QUICK));
    other = client_open(ensemble_url(QUICK));
    first = client_park(client, "led", "a/b", other);
    second = client_park(other, "led", "a/b", client);
    ASSERT_EQ(client_signal(other, "led", "a/b"), 1);
    ensemble_kill(ensemble_leader());
    client_woken(&first);
    /* A return without a signal is allowed when a server dies. */
    EVENTUALLY(hf_check(second.hold) == HF_HELD || try_signal(client, "led"));
    client_woken(&second);
    EVENTUALLY(nothing_left(client, "led"));
}

TEST(condition, is_signalled_while_its_waiter_is_cut_off)
{
    struct detour detour;
    hf_client *client;
    hf_client *other;
    struct client_wait waiter;

    ensemble();
    detour_start(&detour);
    client = client_open(detour_url(&detour, QUICK));
    other = client_open(ensemble_url(QUICK));
    waiter = client_park(client, "missed", "a/b", other);
    for (int i = 0; i < SERVERS; i++) {
        proxy_refuse(detour.proxies[i], true);
        proxy_reset(detour.proxies[i]);
    }
    ASSERT_EQ(client_signal(other, "missed", "a/b"), 1);
    for (int i = 0; i < SERVERS; i++)
        proxy_pass(detour.proxies[i]);
    client_woken(&waiter);
    EVENTUALLY(nothing_left(other, "missed"));
}

/* SPDX-License-Identifier: MIT */
/* condition_end.c - how waits on conditions end, also if answers are lost. */
#include <pthread.h>

#include "condition.h"

/* ---- time, cancel, close --------------------------------------------------- */

TEST(condition, a_wait_that_runs_out_holds_the_lock)
{
    struct rivals f;
    struct condition_wait wait;
    hf_hold *hold;

    NEEDS(HF_CAP_CONDITIONS);
    f = contract_rivals("jobs");
    wait = condition_start(f.client, f.name, READY, 50);
    condition_finish(&wait, HF_ETIMEOUT);
    ASSERT_EQ(condition_signal(f.rival, f.name, READY), 0);
    /* Others hold it when the time is over. */
    wait = condition_start(f.client, f.name, READY, 300);
    hold = condition_acquire(f.rival, f.name);
    EVENTUALLY(client_count(f.rival, f.name, HF_WAITER) == 1);
    ASSERT_EQ(hf_cond_signal(hold, READY, NULL), 0);
    client_release(hold);
    condition_finish(&wait, HF_ETIMEOUT);
    condition_nothing_left(f.client, f.name);
}

/* The end of a wait crosses a signal: if the signal says that it woke, it did. */
TEST(condition, a_timeout_swallows_no_wake_up)
{
    struct rivals f;
    hf_error err;
    int woken = 0;

    NEEDS(HF_CAP_CONDITIONS);
    f = contract_rivals("jobs");
    for (int i = 0; i < 40; i++) {
        hf_hold *hold = condition_acquire(f.client, f.name);
        hf_request *next = client_start(f.rival, f.name);
        hf_request *wait;
        hf_hold *signaller;
        int rc;
        int n;

        /* In line, or the one whose time is over gets the lock first. */
        EVENTUALLY(client_count(f.client, f.name, HF_WAITER) == 1);
        ASSERT_OK(
            hf_cond_wait_start(hold, READY, i % 8, NULL, NULL, &wait, &err),
            &err);
        signaller = client_finish(next);
        n = hf_cond_signal(signaller, READY, &err);
        client_release(signaller);
        rc = hf_request_wait(wait, EVENT_PATIENCE_MS, NULL, &err);
        ASSERT_TRUE(rc == 0 || rc == HF_ETIMEOUT);
        if (n == 1)
            ASSERT_RC(rc, 0, &err);
        woken += n;
        ASSERT_EQ(hf_check(hold), HF_HELD);
        hf_request_free(wait);
        client_release(hold);
    }
    test_note("%d of 40 were woken in time", woken);
    condition_nothing_left(f.client, f.name);
}

TEST(condition, a_cancelled_wait_holds_nothing)
{
    hf_client *client;
    const char *name = contract_name("jobs");
    struct condition_wait first;
    struct condition_wait second;

    NEEDS(HF_CAP_CONDITIONS);
    client = contract_open(NULL);
    first = condition_park(client, name, READY, 1);
    second = condition_park(client, name, READY, 2);
    hf_cancel(first.request);
    condition_finish_without(&first, HF_ECANCELED, HF_RELEASED);
    EVENTUALLY(client_count(client, name, HF_PARKED) == 1);
    ASSERT_EQ(condition_signal(client, name, READY), 1);
    condition_finish(&second, 0);
    condition_nothing_left(client, name);
}

/* One wait of each of two clients. */
static struct rivals park_both(struct condition_wait waits[2])
{
    struct rivals f = contract_rivals("jobs");

    waits[0] = condition_park(f.client, f.name, READY, 1);
    waits[1] = condition_park(f.rival, f.name, READY, 2);
    return f;
}

TEST(condition, a_cancelled_wait_passes_its_wake_up_on)
{
    struct rivals f;
    struct condition_wait waits[2];
    hf_hold *hold;

    NEEDS(HF_CAP_CONDITIONS);
    f = park_both(waits);
    hold = condition_acquire(f.rival, f.name);
    ASSERT_EQ(hf_cond_signal(hold, READY, NULL), 1);
    hf_cancel(waits[0].request);
    condition_finish_without(&waits[0], HF_ECANCELED, HF_RELEASED);
    client_release(hold);
    condition_finish(&waits[1], 0);
    condition_nothing_left(f.client, f.name);
}

TEST(condition, a_closed_client_waits_no_more)
{
    struct rivals f;
    struct condition_wait waits[2];

    NEEDS(HF_CAP_CONDITIONS);
    f = park_both(waits);
    contract_close(f.client);
    condition_finish_without(&waits[0], HF_ECLOSED, HF_RELEASED);
    EVENTUALLY(client_count(f.rival, f.name, HF_PARKED) == 1);
    ASSERT_EQ(condition_signal(f.rival, f.name, READY), 1);
    condition_finish(&waits[1], 0);
    condition_nothing_left(f.rival, f.name);
}

struct blocked {
    hf_hold *hold;
    pthread_t thread;
    int rc;
};

static void *wait_blocking(void *arg)
{
    struct blocked *blocked = arg;

    blocked->rc = hf_cond_wait(blocked->hold, READY, HF_FOREVER, NULL);
    return NULL;
}

TEST(condition, a_release_by_another_thread_ends_the_wait)
{
    hf_client *client;
    const char *name = contract_name("jobs");
    struct blocked blocked;
    hf_error err;

    NEEDS(HF_CAP_CONDITIONS);
    client = contract_open(NULL);
    blocked.hold = condition_acquire(client, name);
    ASSERT_EQ(pthread_create(&blocked.thread, NULL, wait_blocking, &blocked),
              0);
    EVENTUALLY(client_count(client, name, HF_PARKED) == 1);
    ASSERT_OK(hf_release(blocked.hold, &err), &err);
    ASSERT_EQ(pthread_join(blocked.thread, NULL), 0);
    ASSERT_EQ(blocked.rc, HF_ECANCELED);
    condition_nothing_left(client, name);
}

/* Which of @n has the lock; -1: none. */
static int holder_of(const struct blocked *blocked, int n)
{
    for (int i = 0; i < n; i++)
        if (blocked[i].hold && hf_check(blocked[i].hold) == HF_HELD)
            return i;
    return -1;
}

static void end_holder(struct blocked *blocked)
{
    ASSERT_EQ(pthread_join(blocked->thread, NULL), 0);
    ASSERT_EQ(blocked->rc, 0);
    client_release(blocked->hold);
    blocked->hold = NULL;
}

TEST(condition, many_threads_wait_and_all_are_woken)
{
    enum { N = 16 };
    hf_client *client;
    const char *name = contract_name("jobs");
    struct blocked blocked[N];

    NEEDS(HF_CAP_CONDITIONS);
    client = contract_open(NULL);
    for (int i = 0; i < N; i++) {
        blocked[i].hold = condition_acquire(client, name);
        ASSERT_EQ(pthread_create(&blocked[i].thread, NULL, wait_blocking,
                                 &blocked[i]),
                  0);
        EVENTUALLY(client_count(client, name, HF_PARKED) == i + 1);
    }
    ASSERT_EQ(condition_broadcast(client, name, READY), N);
    for (int i = 0; i < N; i++) {
        EVENTUALLY(holder_of(blocked, N) >= 0);
        end_holder(&blocked[holder_of(blocked, N)]);
    }
    condition_nothing_left(client, name);
}

static void on_done(int rc, hf_hold *hold, const hf_error *err, void *ctx)
{
    (void)hold;
    (void)err;
    event_tell(ctx, rc);
}

TEST(condition, callbacks_tell_the_outcome)
{
    struct event waited = EVENT_INIT;
    struct event signalled = EVENT_INIT;
    hf_client *client;
    const char *name = contract_name("jobs");
    hf_request *requests[2];
    hf_hold *hold;
    hf_hold *other;
    hf_error err;

    NEEDS(HF_CAP_CONDITIONS);
    client = contract_open(NULL);
    hold = condition_acquire(client, name);
    ASSERT_OK(hf_cond_wait_start(hold, READY, HF_FOREVER, on_done, &waited,
                                 &requests[0], &err),
              &err);
    EVENTUALLY(client_count(client, name, HF_PARKED) == 1);
    other = condition_acquire(client, name);
    ASSERT_OK(hf_cond_signal_start(other, READY, 1, on_done, &signalled,
                                   &requests[1], &err),
              &err);
    event_await(&signalled, 1, EVENT_PATIENCE_MS);
    ASSERT_EQ(signalled.values[0], 1);
    client_release(other);
    event_await(&waited, 1, EVENT_PATIENCE_MS);
    ASSERT_EQ(waited.values[0], 0);
    ASSERT_EQ(hf_check(hold), HF_HELD);
    hf_request_free(requests[0]);
    hf_request_free(requests[1]);
    client_release(hold);
    condition_nothing_left(client, name);
}

/* ---- lost answers ----------------------------------------------------------- */

/* @script befalls a waiter and a signaller that shares its client. */
static void wait_under(const char *script)
{
    char query[128];
    hf_client *faulty;
    hf_client *client = contract_open(NULL);
    const char *name = contract_name("jobs");
    struct condition_wait wait;
    hf_hold *hold;
    hf_error err;

    (void)snprintf(query, sizeof(query), "fault=%s", script);
    faulty = contract_open_url(contract_wrapped_url("fault", query));
    wait = condition_start(faulty, name, READY, HF_FOREVER);
    EVENTUALLY(client_count(client, name, HF_PARKED) == 1);
    hold = condition_acquire(faulty, name);
    ASSERT_TRUE(hf_cond_signal(hold, READY, &err) >= 0);
    client_release(hold);
    condition_finish(&wait, 0);
    condition_nothing_left(client, name);
    /* And once more, with a time that is over. */
    wait = condition_start(faulty, name, READY, 20);
    condition_finish(&wait, HF_ETIMEOUT);
    condition_nothing_left(client, name);
    contract_close(faulty);
    contract_close(client);
}

TEST(condition, lost_answers_are_asked_for_again)
{
    static const char *const scripts[] = {
        "park:drop@1",   "park:cut@1",      "unpark:drop@1",    "unpark:cut@1",
        "signal:drop@1", "signal:cut@1",    "park:down@1",      "unpark:down@1",
        "signal:down@1", "signal:drop@1-2", "park:delay=100ms",
    };

    NEEDS(HF_CAP_CONDITIONS);
    for (size_t i = 0; i < sizeof(scripts) / sizeof(*scripts); i++) {
        test_note("%s", scripts[i]);
        wait_under(scripts[i]);
    }
}

TEST(condition, a_park_that_is_refused_leaves_the_lock_held)
{
    hf_client *client;
    const char *name = contract_name("jobs");
    hf_hold *hold;
    hf_error err;

    NEEDS(HF_CAP_CONDITIONS);
    client = contract_open_url(
        contract_wrapped_url("fault", "fault=park:fail=ENOSPACE@1"));
    hold = condition_acquire(client, name);
    ASSERT_RC(hf_cond_wait(hold, READY, HF_FOREVER, &err), HF_ENOSPACE, &err);
    ASSERT_EQ(hf_check(hold), HF_HELD);
    ASSERT_OK(hf_verify(hold, &err), &err);
    ASSERT_RC(hf_cond_wait(hold, READY, 1, &err), HF_ETIMEOUT, &err);
    client_release(hold);
    condition_nothing_left(client, name);
}

TEST(condition, a_release_of_unknown_outcome_loses_no_wake_up)
{
    hf_client *client;
    hf_client *faulty;
    const char *name = contract_name("jobs");
    struct condition_wait first;
    struct condition_wait second;
    hf_error err;

    NEEDS(HF_CAP_CONDITIONS);
    client = contract_open(NULL);
    faulty =
        contract_open_url(contract_wrapped_url("fault", "fault=release:cut@2"));
    client_release(condition_acquire(faulty, name));
    first = condition_park(faulty, name, READY, 1);
    second = condition_park(client, name, READY, 2);
    ASSERT_EQ(condition_signal(client, name, READY), 1);
    ASSERT_OK(hf_request_wait(first.request, EVENT_PATIENCE_MS, NULL, &err),
              &err);
    (void)hf_release(first.hold, NULL); /* cut: a withdrawal follows */
    hf_request_free(first.request);
    condition_finish(&second,
                     0); /* which passes the wake-up on: nobody knows better */
    condition_nothing_left(client, name);
}

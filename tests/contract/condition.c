/* SPDX-License-Identifier: MIT */
/* condition.c - waits on conditions: what they mean, and what is refused. */
#include "condition.h"

hf_hold *condition_acquire(hf_client *client, const char *name)
{
    hf_opts opts = HF_OPTS_INIT;
    hf_hold *hold;
    hf_error err;

    opts.flags = HF_NEW_OWNER;
    opts.ttl_ms = 5000;
    ASSERT_OK(hf_acquire(client, name, &opts, &hold, &err), &err);
    return hold;
}

/* ---- waits that were started --------------------------------------------- */

struct condition_wait condition_start(hf_client *client, const char *name,
                                      const char *cond, int64_t wait_ms)
{
    struct condition_wait wait = {.hold = condition_acquire(client, name)};
    hf_error err;

    wait.token = hf_token(wait.hold);
    ASSERT_OK(hf_cond_wait_start(wait.hold, cond, wait_ms, NULL, NULL,
                                 &wait.request, &err),
              &err);
    return wait;
}

/* The same, and it is the @n-th that is parked. */
struct condition_wait condition_park(hf_client *client, const char *name,
                                     const char *cond, int n)
{
    struct condition_wait wait =
        condition_start(client, name, cond, HF_FOREVER);

    EVENTUALLY(client_count(client, name, HF_PARKED) == n);
    ASSERT_EQ(hf_check(wait.hold), HF_WAITING);
    return wait;
}

/* It ends with @rc, and holds the lock, which is released. */
void condition_finish(struct condition_wait *wait, int rc)
{
    hf_error err;

    ASSERT_RC(hf_request_wait(wait->request, EVENT_PATIENCE_MS, NULL, &err), rc,
              &err);
    ASSERT_EQ(hf_check(wait->hold), HF_HELD);
    if (contract_can(HF_CAP_FENCED))
        ASSERT_GT(hf_token(wait->hold), wait->token);
    hf_request_free(wait->request);
    client_release(wait->hold);
}

/* One of @n that has its outcome; -1: none has. */
static int one_that_ended(const struct condition_wait *waits, int n)
{
    for (int i = 0; i < n; i++) {
        if (waits[i].request && !hf_request_pending(waits[i].request))
            return i;
    }
    return -1;
}

/* All @n are woken. Which of them gets the lock first is not promised. */
static void finish_all(struct condition_wait *waits, int n)
{
    for (int left = n; left > 0; left--) {
        int i;

        EVENTUALLY(one_that_ended(waits, n) >= 0);
        i = one_that_ended(waits, n);
        condition_finish(&waits[i], 0);
        waits[i].request = NULL;
    }
}

/* It ends with @rc, without the lock. */
void condition_finish_without(struct condition_wait *wait, int rc, int state)
{
    hf_error err;

    ASSERT_RC(hf_request_wait(wait->request, EVENT_PATIENCE_MS, NULL, &err), rc,
              &err);
    ASSERT_EQ(hf_check(wait->hold), state);
    hf_request_free(wait->request);
    hf_hold_unref(wait->hold);
}

typedef int wake_fn(hf_hold *hold, const char *cond, hf_error *err);

static int wake(hf_client *client, const char *name, const char *cond,
                wake_fn *fn)
{
    hf_hold *hold = condition_acquire(client, name);
    hf_error err;
    int n = fn(hold, cond, &err);

    if (n < 0)
        FAIL("a signal: %s", err.text);
    client_release(hold);
    return n;
}

int condition_signal(hf_client *client, const char *name, const char *cond)
{
    return wake(client, name, cond, hf_cond_signal);
}

int condition_broadcast(hf_client *client, const char *name, const char *cond)
{
    return wake(client, name, cond, hf_cond_broadcast);
}

void condition_nothing_left(hf_client *client, const char *name)
{
    EVENTUALLY(client_count(client, name, HF_PARKED) == 0);
    EVENTUALLY(client_count(client, name, HF_WAITER) == 0);
    EVENTUALLY(client_count(client, name, HF_HOLDER) == 0);
}

/* Somebody else has had the lock meanwhile, and the wait goes on. */
void condition_sleeps_on(hf_client *client, const char *name,
                         const struct condition_wait *wait)
{
    client_release(condition_acquire(client, name));
    ASSERT_EQ(hf_request_pending(wait->request), 1);
    ASSERT_EQ(hf_check(wait->hold), HF_WAITING);
}

/* ---- what it means --------------------------------------------------------- */

TEST(condition, engines_without_conditions_say_so)
{
    hf_client *client = contract_open(NULL);
    hf_hold *hold = contract_acquire(client, contract_name("jobs"));
    hf_error err;

    if (!contract_can(HF_CAP_CONDITIONS)) {
        ASSERT_RC(hf_cond_wait(hold, READY, 0, &err), HF_EUNSUPPORTED, &err);
        ASSERT_HAS(err.text, "mode=table of PostgreSQL and MySQL have them");
        ASSERT_RC(hf_cond_signal(hold, READY, &err), HF_EUNSUPPORTED, &err);
        ASSERT_EQ(hf_check(hold), HF_HELD);
    }
    client_release(hold);
}

TEST(condition, nobody_parked_holds_the_lock)
{
    struct rivals f;
    struct condition_wait wait;
    hf_error err;

    NEEDS(HF_CAP_CONDITIONS);
    f = contract_rivals("jobs");
    wait = condition_park(f.client, f.name, READY, 1);
    ASSERT_EQ(hf_remaining_ms(wait.hold), 0);
    ASSERT_EQ(hf_token(wait.hold), wait.token);
    ASSERT_RC(hf_verify(wait.hold, &err), HF_EINVAL, &err);
    ASSERT_RC(hf_cond_signal(wait.hold, READY, &err), HF_EINVAL, &err);
    condition_sleeps_on(f.rival, f.name, &wait);
    condition_sleeps_on(f.client, f.name, &wait);
    ASSERT_EQ(condition_signal(f.rival, f.name, READY), 1);
    condition_finish(&wait, 0);
    condition_nothing_left(f.client, f.name);
}

TEST(condition, a_signal_of_the_same_client_wakes)
{
    hf_client *client;
    const char *name = contract_name("jobs");
    struct condition_wait wait;

    NEEDS(HF_CAP_CONDITIONS);
    client = contract_open(NULL);
    wait = condition_park(client, name, READY, 1);
    ASSERT_EQ(condition_signal(client, name, READY), 1);
    condition_finish(&wait, 0);
    ASSERT_EQ(condition_signal(client, name, READY), 0);
    condition_nothing_left(client, name);
}

TEST(condition, signals_wake_the_earliest_and_no_other)
{
    enum { N = 5, K = 2 };
    hf_client *clients[2];
    const char *name = contract_name("jobs");
    struct condition_wait waits[N];
    hf_hold *hold;
    hf_error err;

    NEEDS(HF_CAP_CONDITIONS);
    clients[0] = contract_open(NULL);
    clients[1] = contract_open(NULL);
    for (int i = 0; i < N; i++)
        waits[i] = condition_park(clients[i % 2], name, READY, i + 1);
    hold = condition_acquire(clients[0], name);
    for (int i = 0; i < K; i++)
        ASSERT_RC(hf_cond_signal(hold, READY, &err), 1, &err);
    EVENTUALLY(client_count(clients[0], name, HF_PARKED) == N - K);
    ASSERT_EQ(hf_request_pending(waits[0].request), 1);
    client_release(hold);
    finish_all(waits, K);
    for (int i = K; i < N; i++)
        condition_sleeps_on(clients[i % 2], name, &waits[i]);
    ASSERT_EQ(condition_broadcast(clients[1], name, READY), N - K);
    finish_all(waits + K, N - K);
    condition_nothing_left(clients[0], name);
}

TEST(condition, a_signal_before_the_wait_is_forgotten)
{
    hf_client *client;
    const char *name = contract_name("jobs");
    struct condition_wait wait;

    NEEDS(HF_CAP_CONDITIONS);
    client = contract_open(NULL);
    ASSERT_EQ(condition_signal(client, name, READY), 0);
    ASSERT_EQ(condition_broadcast(client, name, READY), 0);
    wait = condition_park(client, name, READY, 1);
    condition_sleeps_on(client, name, &wait);
    ASSERT_EQ(condition_signal(client, name, READY), 1);
    condition_finish(&wait, 0);
    condition_nothing_left(client, name);
}

TEST(condition, conditions_and_locks_are_apart)
{
    hf_client *client;
    const char *name = contract_name("jobs");
    const char *other = contract_name("jobs/other");
    struct condition_wait empty;
    struct condition_wait full;

    NEEDS(HF_CAP_CONDITIONS);
    client = contract_open(NULL);
    empty = condition_park(client, name, "not/empty", 1);
    full = condition_park(client, name, "not:full' {", 2);
    ASSERT_EQ(condition_signal(client, other, "not/empty"), 0);
    ASSERT_EQ(condition_signal(client, name, "not"), 0);
    ASSERT_EQ(condition_signal(client, name, "not:full' {"), 1);
    condition_finish(&full, 0);
    condition_sleeps_on(client, name, &empty);
    ASSERT_EQ(condition_signal(client, name, "not/empty"), 1);
    condition_finish(&empty, 0);
    condition_nothing_left(client, name);
}

TEST(condition, the_woken_stand_behind_those_who_wait)
{
    struct rivals f;
    struct condition_wait wait;
    hf_request *request;
    hf_hold *hold;

    NEEDS(HF_CAP_CONDITIONS | HF_CAP_FIFO);
    f = contract_rivals("jobs");
    wait = condition_park(f.client, f.name, READY, 1);
    hold = condition_acquire(f.client, f.name);
    request = client_start(f.rival, f.name);
    EVENTUALLY(client_count(f.client, f.name, HF_WAITER) == 1);
    ASSERT_EQ(hf_cond_signal(hold, READY, NULL), 1);
    client_release(hold);
    hold = client_finish(request);
    ASSERT_EQ(hf_request_pending(wait.request), 1);
    client_release(hold);
    condition_finish(&wait, 0);
    condition_nothing_left(f.client, f.name);
}

/* The second sleeps on, and so does the first, which has been woken once. */
TEST(condition, a_wait_after_a_wake_up_uses_that_up)
{
    struct rivals f;
    struct condition_wait waits[2];
    hf_error err;

    NEEDS(HF_CAP_CONDITIONS);
    f = contract_rivals("jobs");
    waits[0] = condition_park(f.client, f.name, READY, 1);
    waits[1] = condition_park(f.rival, f.name, READY, 2);
    ASSERT_EQ(condition_signal(f.rival, f.name, READY), 1);
    ASSERT_OK(hf_request_wait(waits[0].request, EVENT_PATIENCE_MS, NULL, &err),
              &err);
    hf_request_free(waits[0].request);
    ASSERT_OK(hf_cond_wait_start(waits[0].hold, READY, HF_FOREVER, NULL, NULL,
                                 &waits[0].request, &err),
              &err);
    EVENTUALLY(client_count(f.client, f.name, HF_PARKED) == 2);
    condition_sleeps_on(f.client, f.name, &waits[0]);
    condition_sleeps_on(f.rival, f.name, &waits[1]);
    ASSERT_EQ(condition_broadcast(f.client, f.name, READY), 2);
    finish_all(waits, 2);
    condition_nothing_left(f.client, f.name);
}

/* "condition place" of each that is parked, with an owner. */
struct lines {
    char text[256];
    size_t len;
};

static int add_line(const hf_lock_info *info, void *ctx)
{
    struct lines *lines = ctx;

    if (info->role != HF_PARKED)
        return 0;
    ASSERT_NE(info->owner[0], 0);
    ASSERT_EQ(info->mode, HF_EXCLUSIVE);
    lines->len += (size_t)snprintf(lines->text + lines->len,
                                   sizeof(lines->text) - lines->len, "%s %u\n",
                                   info->cond, info->place);
    return 0;
}

TEST(condition, the_parked_are_listed_by_condition_and_place)
{
    struct rivals f;
    struct lines lines = {.len = 0};
    struct condition_wait waits[3];
    hf_error err;

    NEEDS(HF_CAP_CONDITIONS | HF_CAP_LIST);
    f = contract_rivals("jobs");
    waits[0] = condition_park(f.client, f.name, READY, 1);
    waits[1] = condition_park(f.client, f.name, "zero", 2);
    waits[2] = condition_park(f.rival, f.name, READY, 3);
    ASSERT_OK(hf_show(f.rival, f.name, add_line, &lines, &err), &err);
    ASSERT_HAS(lines.text, READY " 1\n");
    ASSERT_HAS(lines.text, READY " 2\n");
    ASSERT_HAS(lines.text, "zero 1\n");
    ASSERT_EQ(condition_broadcast(f.client, f.name, READY), 2);
    hf_cancel(waits[1].request);
    condition_finish_without(&waits[1], HF_ECANCELED, HF_RELEASED);
    waits[1] = waits[2];
    finish_all(waits, 2);
    condition_nothing_left(f.client, f.name);
}

TEST(condition, tokens_grow_over_waits)
{
    hf_client *client;
    const char *name = contract_name("jobs");
    hf_hold *hold;
    hf_error err;
    uint64_t token;

    NEEDS(HF_CAP_CONDITIONS | HF_CAP_FENCED);
    client = contract_open(NULL);
    hold = condition_acquire(client, name);
    for (int i = 0; i < 3; i++) {
        token = hf_token(hold);
        ASSERT_RC(hf_cond_wait(hold, READY, 1, &err), HF_ETIMEOUT, &err);
        ASSERT_EQ(hf_check(hold), HF_HELD);
        ASSERT_GT(hf_token(hold), token);
        ASSERT_OK(hf_verify(hold, &err), &err);
    }
    client_release(hold);
    condition_nothing_left(client, name);
}

/* ---- what is refused ------------------------------------------------------- */

static void assert_refused(hf_hold *hold)
{
    hf_request *request;
    hf_error err;

    ASSERT_RC(hf_cond_wait(hold, READY, 0, &err), HF_EINVAL, &err);
    ASSERT_RC(hf_cond_wait_start(hold, READY, 0, NULL, NULL, &request, &err),
              HF_EINVAL, &err);
    ASSERT_EQ(hf_check(hold), HF_HELD);
}

TEST(condition, holds_of_another_kind_are_refused)
{
    const char *names[2] = {contract_name("a"), contract_name("b")};
    hf_client *client;
    hf_hold *hold;
    hf_hold *inner;
    hf_error err;

    NEEDS(HF_CAP_CONDITIONS);
    client = contract_open(NULL);
    hold = contract_acquire(client, names[0]);
    inner = contract_acquire(client, names[0]);
    assert_refused(hold);
    assert_refused(inner);
    client_release(inner);
    ASSERT_RC(hf_cond_wait(hold, READY, 1, &err), HF_ETIMEOUT, &err);
    client_release(hold);
    if (contract_can(HF_CAP_SHARED)) {
        hold = contract_acquire_mode(client, names[0], HF_SHARED, 0);
        assert_refused(hold);
        client_release(hold);
    }
    if (contract_can(HF_CAP_SLOTS)) {
        hold = contract_acquire_mode(client, names[0], HF_SLOT, 2);
        assert_refused(hold);
        client_release(hold);
    }
    ASSERT_OK(hf_acquire_many(client, names, 2, NULL, &hold, &err), &err);
    assert_refused(hold);
    ASSERT_RC(hf_cond_signal(hold, READY, &err), HF_EINVAL, &err);
    client_release(hold);
}

TEST(condition, wrong_names_are_refused)
{
    static const char *const wrong[] = {
        "", "new\nline",
        "0123456789012345678901234567890123456789012345678901234567890123"};
    hf_client *client;
    hf_hold *hold;
    hf_error err;

    NEEDS(HF_CAP_CONDITIONS);
    client = contract_open(NULL);
    hold = contract_acquire(client, contract_name("jobs"));
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        ASSERT_RC(hf_cond_wait(hold, wrong[i], 0, &err), HF_EINVAL, &err);
        ASSERT_RC(hf_cond_signal(hold, wrong[i], &err), HF_EINVAL, &err);
    }
    ASSERT_RC(hf_cond_wait(hold, READY, -2, &err), HF_EINVAL, &err);
    ASSERT_RC(hf_cond_wait(NULL, READY, 0, &err), HF_EINVAL, &err);
    ASSERT_EQ(hf_check(hold), HF_HELD);
    client_release(hold);
}

TEST(condition, a_bearer_is_not_downgraded)
{
    hf_client *client;
    const char *name = contract_name("jobs");
    struct condition_wait wait;
    hf_error err;

    NEEDS(HF_CAP_CONDITIONS | HF_CAP_DOWNGRADE);
    client = contract_open(NULL);
    wait = condition_park(client, name, READY, 1);
    ASSERT_EQ(condition_signal(client, name, READY), 1);
    ASSERT_OK(hf_request_wait(wait.request, EVENT_PATIENCE_MS, NULL, &err),
              &err);
    ASSERT_RC(hf_downgrade(wait.hold, &err), HF_EUNSUPPORTED, &err);
    condition_finish(&wait, 0);
}

TEST(condition, a_lost_hold_wakes_nobody)
{
    struct rivals f;
    struct condition_wait wait;
    hf_hold *hold;
    hf_error err;

    NEEDS(HF_CAP_CONDITIONS | HF_CAP_BREAK | HF_CAP_FENCED);
    f = contract_rivals("jobs");
    wait = condition_park(f.client, f.name, READY, 1);
    hold = condition_acquire(f.client, f.name);
    ASSERT_OK(hf_break(f.rival, f.name, hf_token(hold), NULL, &err), &err);
    ASSERT_RC(hf_cond_signal(hold, READY, &err), HF_ELOST, &err);
    ASSERT_EQ(hf_check(hold), HF_LOST);
    ASSERT_RC(hf_cond_wait(hold, READY, 0, &err), HF_ELOST, &err);
    hf_hold_unref(hold);
    condition_sleeps_on(f.rival, f.name, &wait);
    hold = condition_acquire(f.client, f.name);
    ASSERT_OK(hf_break(f.rival, f.name, hf_token(hold), NULL, &err), &err);
    ASSERT_RC(hf_cond_wait(hold, READY, HF_FOREVER, &err), HF_ELOST, &err);
    ASSERT_EQ(hf_check(hold), HF_LOST);
    hf_hold_unref(hold);
    ASSERT_EQ(client_count(f.rival, f.name, HF_PARKED), 1);
    ASSERT_EQ(condition_signal(f.rival, f.name, READY), 1);
    condition_finish(&wait, 0);
    condition_nothing_left(f.client, f.name);
}

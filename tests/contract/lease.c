/* SPDX-License-Identifier: MIT */
/*
 * lease.c - a lock is kept, or its loss is told in time.
 *
 * Renewals are made to fail by the fault engine around the engine under test.
 */
#include <pthread.h>

#include "contract.h"

/* The longer one is for who must not lose it on a busy machine. */
enum { TTL_MS = 400, LONG_TTL_MS = 1500 };

static hf_hold *acquire_for(hf_client *client, const char *name, int64_t ttl_ms,
                            uint32_t flags, int64_t max_hold_ms,
                            struct event *events)
{
    return client_acquire_with(
        client, name,
        OPTS(HF_CONFIGURED, .flags = flags, .ttl_ms = ttl_ms,
             .max_hold_ms = max_hold_ms, .owner = "the tested one",
             .on_event = events ? client_on_event : NULL, .ctx = events));
}

static hf_hold *acquire(hf_client *client, const char *name, uint32_t flags,
                        int64_t max_hold_ms, struct event *events)
{
    return acquire_for(client, name, TTL_MS, flags, max_hold_ms, events);
}

struct rival {
    hf_client *client;
    const char *name;
    const hf_hold *hold; /* the one that is lost */
    int state;           /* what it said when we had the lock */
    int64_t got_ms;
    struct event got;
};

static void *rival_thread(void *arg)
{
    struct rival *rival = arg;
    hf_hold *hold = contract_acquire(rival->client, rival->name);

    rival->state = hf_check(rival->hold);
    rival->got_ms = clock_ms();
    event_tell(&rival->got, 0);
    client_release(hold);
    return NULL;
}

/* How late the running may be because threads do not run at once. */
enum { BUSY_MACHINE_MS = 2000 };

/* Loses @hold to a rival, who must find it LOST; that is told, too. */
static void assert_lost_in_time(hf_hold *hold, const char *name,
                                struct event *events, int lost_is)
{
    struct rival rival = {.client = contract_open(NULL),
                          .name = name,
                          .hold = hold,
                          .got = EVENT_INIT};
    uint64_t token = hf_token(hold);
    pthread_t thread;

    ASSERT_EQ(pthread_create(&thread, NULL, rival_thread, &rival), 0);
    event_await(events, lost_is, 5000);
    ASSERT_EQ(events->values[lost_is - 1], HF_LOST);
    event_await(&rival.got, 1, 5000);
    (void)pthread_join(thread, NULL);
    ASSERT_EQ(rival.state, HF_LOST);
    ASSERT_LE(events->at_ms, rival.got_ms + BUSY_MACHINE_MS);

    ASSERT_EQ(hf_check(hold), HF_LOST);
    ASSERT_EQ(hf_remaining_ms(hold), 0);
    ASSERT_EQ(hf_token(hold), token);
    ASSERT_EQ(hf_verify(hold, NULL), HF_ELOST);
    ASSERT_EQ(hf_beat(hold), HF_ELOST);
    ASSERT_EQ(hf_release(hold, NULL), HF_ELOST);
    ASSERT_EQ(event_count(events), lost_is);
}

TEST(lease, is_renewed_as_long_as_it_is_held)
{
    struct event events = EVENT_INIT;
    struct rivals at = contract_rivals("jobs");
    hf_hold *hold = acquire_for(at.client, at.name, LONG_TTL_MS, 0, 0, &events);

    ASSERT_TRUE(event_is_silent(&events, 1, LONG_TTL_MS * 3 / 2));
    ASSERT_EQ(hf_check(hold), HF_HELD);
    ASSERT_EQ(contract_try(at.rival, at.name, HF_EXCLUSIVE, 0), HF_EBUSY);
    client_release(hold);
}

TEST(lease, without_renewal_the_loss_is_told_in_time)
{
    struct event events = EVENT_INIT;
    const char *name = contract_name("jobs");
    hf_hold *hold;

    NEEDS(HF_CAP_LEASED);
    hold = acquire(contract_open(NULL), name, HF_NO_RENEW, 0, &events);
    event_await(&events, 1,
                EVENT_PATIENCE_MS); /* JEOPARDY comes first, or LOST at once */
    assert_lost_in_time(hold, name, &events,
                        events.values[0] == HF_LOST ? 1 : 2);
}

TEST(lease, of_one_hold_is_not_renewed_with_another)
{
    struct event events = EVENT_INIT;
    struct event others = EVENT_INIT;
    hf_client *client = contract_open(NULL);
    hf_hold *kept;
    hf_hold *hold;

    NEEDS(HF_CAP_LEASED);
    kept = acquire(client, contract_name("kept"), 0, 0, &others);
    hold = acquire(client, contract_name("jobs"), HF_NO_RENEW, 0, &events);
    EVENTUALLY(hf_check(hold) == HF_LOST);
    ASSERT_EQ(hf_release(hold, NULL), HF_ELOST);
    (void)hf_release(kept, NULL); /* a slow machine may have lost it, too */
}

TEST(lease, max_hold_ends_the_renewals)
{
    struct event events = EVENT_INIT;
    const char *name = contract_name("jobs");
    int64_t max_hold_ms = LONG_TTL_MS + TTL_MS;
    int64_t before = clock_ms();
    hf_hold *hold;

    NEEDS(HF_CAP_LEASED);
    hold = acquire_for(contract_open(NULL), name, LONG_TTL_MS, 0, max_hold_ms,
                       &events);
    ASSERT_EQ(hf_max_hold_ms(hold), max_hold_ms);
    EVENTUALLY(hf_check(hold) == HF_LOST);
    ASSERT_GE(clock_ms() - before, max_hold_ms);
    ASSERT_EQ(hf_release(hold, NULL), HF_ELOST);
}

TEST(lease, max_hold_ends_a_hold_that_has_no_lease)
{
    const char *name = contract_name("jobs");
    hf_client *client = contract_open("lease=process");
    int64_t before = clock_ms();
    hf_hold *hold;

    if (hf_capabilities(client) & HF_CAP_LEASED)
        return; /* this engine does not know of processes */
    hold = acquire_for(client, name, LONG_TTL_MS, 0, /* max_hold_ms= */ 300,
                       /* events= */ NULL);
    client_release(contract_acquire(contract_open(NULL), name));
    ASSERT_GE(clock_ms() - before, 300);
    ASSERT_EQ(hf_check(hold), HF_LOST);
    ASSERT_EQ(hf_release(hold, NULL), HF_ELOST);
}

TEST(lease, with_renew_beat_it_lives_by_its_beats)
{
    hf_client *client;
    hf_hold *hold;
    int64_t until;

    NEEDS(HF_CAP_LEASED);
    client = contract_open("renew=beat");
    hold = acquire_for(client, contract_name("jobs"), LONG_TTL_MS, 0, 0, NULL);
    until = clock_ms() + LONG_TTL_MS * 3 / 2;
    while (clock_ms() < until) {
        ASSERT_EQ(hf_beat(hold), 0);
        event_breathe();
    }
    ASSERT_EQ(hf_check(hold), HF_HELD);
    EVENTUALLY(hf_check(hold) == HF_LOST);
    ASSERT_EQ(hf_release(hold, NULL), HF_ELOST);
}

TEST(lease, lost_answers_make_jeopardy_and_then_loss)
{
    struct event events = EVENT_INIT;
    const char *name = contract_name("jobs");
    hf_client *client;
    hf_hold *hold;

    NEEDS(HF_CAP_LEASED);
    client =
        contract_open_url(contract_wrapped_url("fault", "fault=renew:cut"));
    hold = acquire_for(client, name, LONG_TTL_MS, 0, 0, &events);
    event_await(&events, 1, EVENT_PATIENCE_MS);
    ASSERT_EQ(events.values[0], HF_JEOPARDY);
    ASSERT_EQ(hf_check(hold), HF_JEOPARDY);
    ASSERT_GT(hf_remaining_ms(hold), 0);
    assert_lost_in_time(hold, name, &events, 2);
}

TEST(lease, jeopardy_ends_when_a_renewal_is_confirmed)
{
    struct event events = EVENT_INIT;
    hf_client *client;
    hf_hold *hold;

    NEEDS(HF_CAP_LEASED);
    client =
        contract_open_url(contract_wrapped_url("fault", "fault=renew:cut@1-3"));
    hold =
        acquire_for(client, contract_name("jobs"), LONG_TTL_MS, 0, 0, &events);
    event_await(&events, 2, EVENT_PATIENCE_MS);
    ASSERT_EQ(events.values[0], HF_JEOPARDY);
    ASSERT_EQ(events.values[1], HF_HELD);
    ASSERT_EQ(hf_check(hold), HF_HELD);
    client_release(hold);
}

TEST(lease, a_lock_that_is_taken_away_is_lost)
{
    struct event events = EVENT_INIT;
    const char *name = contract_name("jobs");
    hf_client *client = contract_open_url(
        contract_wrapped_url("fault", "fault=hold:expire=100ms"));
    hf_hold *hold = acquire(client, name, 0, 0, &events);

    event_await(&events, 1, EVENT_PATIENCE_MS);
    ASSERT_EQ(events.values[0], HF_LOST);
    ASSERT_EQ(contract_try(contract_open(NULL), name, HF_EXCLUSIVE, 0), 0);
    ASSERT_EQ(hf_release(hold, NULL), HF_ELOST);
}

TEST(lease, a_lost_answer_to_an_acquire_is_asked_for_again)
{
    hf_client *client = contract_open_url(
        contract_wrapped_url("fault", "fault=acquire:drop@1"));
    const char *name = contract_name("jobs");
    hf_hold *hold = contract_acquire(client, name);

    ASSERT_EQ(hf_check(hold), HF_HELD);
    if (contract_can(HF_CAP_LIST))
        ASSERT_EQ(client_count(client, name, HF_HOLDER), 1);
    client_release(hold);
}

TEST(lease, a_try_whose_answer_is_lost_leaves_nothing_behind)
{
    hf_client *client = contract_open_url(
        contract_wrapped_url("fault", "io_timeout=200ms&fault=acquire:drop"));
    const char *name = contract_name("jobs");
    hf_client *rival = contract_open(NULL);

    ASSERT_EQ(contract_try(client, name, HF_EXCLUSIVE, 0), HF_EUNKNOWN);
    EVENTUALLY(contract_try(rival, name, HF_EXCLUSIVE, 0) == 0);
}

TEST(lease, a_release_whose_answer_is_lost_is_carried_through)
{
    hf_client *client = contract_open_url(
        contract_wrapped_url("fault", "io_timeout=2s&fault=release:cut@1"));
    const char *name = contract_name("jobs");
    hf_hold *hold = contract_acquire(client, name);
    hf_client *rival = contract_open(NULL);
    int rc = hf_release(hold, NULL);

    ASSERT_TRUE(rc == 0 || rc == HF_EUNKNOWN);
    EVENTUALLY(contract_try(rival, name, HF_EXCLUSIVE, 0) == 0);
}

TEST(lease, a_broken_connection_is_made_again)
{
    hf_client *client = contract_open_url(
        contract_wrapped_url("fault", "fault=acquire:down=100ms@2"));
    const char *name = contract_name("jobs");

    client_release(contract_acquire(client, name));
    client_release(contract_acquire(client, name));
    ASSERT_GE(contract_metric(client, "holdfast_reconnects_total{"), 1);
}

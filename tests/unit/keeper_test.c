/* SPDX-License-Identifier: MIT */
/* What the keeper promises about time; ttl is 3 s in all of these, so the claim
 * ends 2 % and 2 ms earlier: at 2,938 ms. */
#include "core_fixture.h"

static struct core_ask ask; /* of the running test */

static int events[8];
static int n_events;

static void on_event(hf_hold *hold, int state, void *ctx)
{
    (void)hold;
    (void)ctx;
    ASSERT_LT(n_events, 8);
    events[n_events++] = state;
}

static hf_hold *take(uint32_t flags, int64_t max_hold_ms)
{
    hf_opts opts = HF_OPTS_INIT;

    n_events = 0;
    opts.flags = flags;
    opts.max_hold_ms = max_hold_ms;
    opts.on_event = on_event;
    core_ask_with(&ask, "jobs", &opts);
    core_granted(core_last(CORE_ACQUIRE), 7, 1);
    ASSERT_EQ(ask.rc, 0);
    return ask.hold;
}

static hf_hold *open_and_take(const char *query, uint32_t flags,
                              int64_t max_hold_ms)
{
    core_open(query);
    return take(flags, max_hold_ms);
}

static void is_lost_after_ms(const hf_hold *hold, int64_t ms)
{
    core_advance_ms(ms - 1);
    ASSERT_EQ(hf_check(hold), HF_HELD);
    core_advance_ms(1);
    ASSERT_EQ(hf_check(hold), HF_LOST);
    core_end(&ask);
}

TEST(keeper, renews_at_a_third_of_the_lease)
{
    hf_hold *hold = open_and_take("ttl=3s", 0, 0);

    core_comes_after_ms(CORE_RENEW, 1000);
    core_renewed(core_last(CORE_RENEW));
    ASSERT_EQ(hf_check(hold), HF_HELD);
    ASSERT_EQ(hf_remaining_ms(hold), 2938);
    core_end(&ask);
}

TEST(keeper, counts_the_lease_from_the_sending_of_the_request)
{
    struct hf__ticket *ticket = core_open_asking(&ask, "ttl=3s");

    core_advance_ms(1500); /* the answer took its time */
    core_granted(ticket, 7, 1);
    ASSERT_EQ(hf_remaining_ms(ask.hold), 1438);
    core_end(&ask);
}

TEST(keeper, tells_jeopardy_and_then_loss_before_the_lease_ends)
{
    hf_hold *hold = open_and_take("ttl=3s", 0, 0);

    core_advance_ms(1999);
    ASSERT_EQ(hf_check(hold), HF_HELD);
    core_advance_ms(1);
    ASSERT_EQ(hf_check(hold), HF_JEOPARDY);
    core_advance_ms(937);
    ASSERT_EQ(hf_check(hold), HF_JEOPARDY);
    core_advance_ms(1);
    ASSERT_EQ(hf_check(hold), HF_LOST);
    ASSERT_EQ(hf_remaining_ms(hold), 0);
    ASSERT_EQ(hf_token(hold), 7);
    ASSERT_EQ(n_events, 2);
    ASSERT_EQ(events[0], HF_JEOPARDY);
    ASSERT_EQ(events[1], HF_LOST);
    core_end(&ask);
}

TEST(keeper, check_says_lost_past_the_deadline_though_nobody_has_noticed)
{
    hf_hold *hold = open_and_take("ttl=3s", 0, 0);

    core_stop_ms(5000); /* the process was stopped: nothing ran */
    ASSERT_EQ(hf_check(hold), HF_LOST);
    ASSERT_EQ(hf_remaining_ms(hold), 0);
    ASSERT_EQ(n_events, 0);
    ask.hold = NULL;
    ASSERT_EQ(hf_release(hold, NULL), HF_ELOST);
    ASSERT_EQ(core_count(CORE_RELEASE), 0);
    ASSERT_EQ(core_count(CORE_WITHDRAW), 1);
    core_end(&ask);
}

TEST(keeper, a_confirmed_renewal_ends_the_jeopardy)
{
    hf_hold *hold = open_and_take("ttl=3s", 0, 0);

    core_advance_ms(2100);
    ASSERT_EQ(hf_check(hold), HF_JEOPARDY);
    core_renewed(core_last(CORE_RENEW));
    ASSERT_EQ(hf_check(hold), HF_HELD);
    ASSERT_EQ(events[n_events - 1], HF_HELD);
    core_end(&ask);
}

TEST(keeper, a_renewal_that_comes_after_the_deadline_revives_nothing)
{
    hf_hold *hold = open_and_take("ttl=3s", 0, 0);
    struct hf__ticket *ticket;

    core_advance_ms(2000);
    ticket = core_last(CORE_RENEW);
    core_advance_ms(938);
    ASSERT_EQ(hf_check(hold), HF_LOST);
    ASSERT_EQ(core_count(CORE_WITHDRAW), 1);
    core_renewed(ticket);
    ASSERT_EQ(hf_check(hold), HF_LOST);
    core_left(ticket, 0);
    core_end(&ask);
}

TEST(keeper, what_a_check_has_called_lost_is_not_held_again)
{
    struct core_ask other;
    hf_client *client = core_open("ttl=3s");
    struct hf__ticket *ticket;
    hf_hold *hold = take(0, 0);

    core_advance_ms(2900);
    ticket = core_last(CORE_RENEW);
    ASSERT_EQ(hf__monitor_enter_any(client, NULL), 0);
    core_stop_ms(100); /* inside, between the clock and the report */
    ASSERT_EQ(hf_check(hold), HF_LOST);
    struct hf__grant renewed = {.lease_ms = 3000, .sent_ns = ticket->sent_ns};
    hf__up_renewed(core_engine(), ticket, &renewed);
    hf__monitor_leave(client);
    ASSERT_EQ(hf_check(hold), HF_LOST);
    core_advance_ms(0);
    ASSERT_EQ(events[n_events - 1], HF_LOST);
    ASSERT_EQ(core_count(CORE_WITHDRAW), 1);
    core_end(&ask);
    core_ask(&other, "jobs", HF_FOREVER, NULL);
    core_end(&other);
}

TEST(keeper, tries_again_while_the_engine_is_silent)
{
    core_open("ttl=3s");
    (void)take(0, 0);
    core_advance_ms(2900);
    ASSERT_EQ(core_count(CORE_RENEW), 4); /* at 1/3, 1/2, 2/3 and 5/6 */
    core_end(&ask);
}

TEST(keeper, stops_renewing_at_max_hold)
{
    hf_hold *hold = open_and_take("ttl=3s", 0, 1500);

    core_advance_ms(1000);
    core_renewed(core_last(CORE_RENEW)); /* the claim now ends at 3,938 */
    core_advance_ms(2000);
    ASSERT_EQ(core_count(CORE_RENEW), 1);
    ASSERT_LE(hf_check(hold), HF_JEOPARDY);
    core_advance_ms(938);
    ASSERT_EQ(hf_check(hold), HF_LOST);
    core_end(&ask);
}

/* As the engine does it for another thread. */
static void renew(struct hf__ticket *ticket, int64_t lease_ms)
{
    hf_client *client = ticket->gate->client;
    struct hf__grant renewed = {.lease_ms = lease_ms, .sent_ns = core_now_ns()};

    ASSERT_EQ(hf__monitor_enter_any(client, NULL), 0);
    hf__up_renewed(core_engine(), ticket, &renewed);
    hf__monitor_leave(client);
}

/* hf_verify() as a thread makes it: with an answer at once. */
static void verify(struct hf__ticket *ticket)
{
    renew(ticket, 3000);
}

TEST(keeper, a_verification_does_not_extend_the_claim_beyond_max_hold)
{
    struct hf__ticket *ticket;
    hf_hold *hold;

    core_open("ttl=3s");
    hold = take(0, 1500);
    ticket = core_last(CORE_ACQUIRE);
    core_advance_ms(1400);
    verify(ticket); /* the claim now ends at 4,338 */
    core_advance_ms(1400);
    ASSERT_EQ(hf_remaining_ms(hold), 4338 - 2800);
    verify(ticket);
    ASSERT_EQ(hf_remaining_ms(hold), 4338 - 2800);
    core_advance_ms(4338 - 2800);
    ASSERT_EQ(hf_check(hold), HF_LOST);
    ASSERT_EQ(core_count(CORE_WITHDRAW), 1);
    core_end(&ask);
}

TEST(keeper, max_hold_ends_a_hold_that_has_no_lease)
{
    hf_opts opts = HF_OPTS_INIT;
    struct hf__grant grant = {.token = 7, .tokens = 1};
    hf_client *client = core_open("ttl=3s");

    n_events = 0;
    opts.max_hold_ms = 1500;
    opts.on_event = on_event;
    core_ask_with(&ask, "jobs", &opts);
    ASSERT_EQ(hf__monitor_enter_any(client, NULL), 0);
    hf__up_granted(core_engine(), core_last(CORE_ACQUIRE), &grant);
    hf__monitor_leave(client);
    core_advance_ms(1499);
    ASSERT_EQ(hf_check(ask.hold), HF_HELD);
    ASSERT_EQ(core_count(CORE_RENEW), 0);
    core_advance_ms(1);
    ASSERT_EQ(hf_check(ask.hold), HF_LOST);
    ASSERT_EQ(events[n_events - 1], HF_LOST);
    ASSERT_EQ(core_count(CORE_WITHDRAW), 1);
    core_end(&ask);
}

/* As of a transaction that the owner has borrowed. */
static void lose_the_lease(struct hf__ticket *ticket)
{
    renew(ticket, 0);
}

TEST(keeper, a_hold_that_needs_no_lease_any_more_does_not_end)
{
    hf_hold *hold = open_and_take("ttl=3s", 0, 0);

    lose_the_lease(core_last(CORE_ACQUIRE));
    core_advance_ms(60000);
    ASSERT_EQ(hf_check(hold), HF_HELD);
    core_end(&ask);
}

TEST(keeper, a_hold_that_needs_no_lease_any_more_ends_at_max_hold)
{
    hf_hold *hold = open_and_take("ttl=3s", 0, 9000);

    lose_the_lease(core_last(CORE_ACQUIRE));
    is_lost_after_ms(hold, 9000);
}

TEST(keeper, a_hold_that_loses_its_lease_ends_at_a_max_hold_within_it)
{
    hf_hold *hold = open_and_take("ttl=30s", 0, 20000);

    lose_the_lease(core_last(CORE_ACQUIRE));
    ASSERT_EQ(hf_remaining_ms(hold), 20000);
    is_lost_after_ms(hold, 20000);
    ASSERT_EQ(core_count(CORE_RENEW), 0);
}

TEST(keeper, does_not_renew_what_asked_not_to_be)
{
    hf_hold *hold = open_and_take("ttl=3s", HF_NO_RENEW, 0);

    is_lost_after_ms(hold, 2938);
    ASSERT_EQ(core_count(CORE_RENEW), 0);
}

TEST(keeper, renews_with_renew_beat_only_after_a_beat)
{
    hf_hold *hold = open_and_take("ttl=3s&renew=beat", 0, 0);

    core_advance_ms(1000); /* the grant counts as a beat */
    ASSERT_EQ(core_count(CORE_RENEW), 1);
    core_renewed(core_last(CORE_RENEW));
    core_advance_ms(1500);
    ASSERT_EQ(core_count(CORE_RENEW), 1);
    ASSERT_EQ(hf_beat(hold), 0);
    core_advance_ms(500); /* a late beat is still heard */
    ASSERT_EQ(core_count(CORE_RENEW), 2);
    core_renewed(core_last(CORE_RENEW));
    core_advance_ms(2938);
    ASSERT_EQ(hf_check(hold), HF_LOST);
    ASSERT_EQ(hf_beat(hold), HF_ELOST);
    core_end(&ask);
}

TEST(keeper, sends_what_is_due_together_in_one_trip)
{
    struct core_ask asks[3];
    char name[16];
    hf_client *client = core_open("ttl=3s");

    core_auto();
    for (int i = 0; i < 3; i++) {
        (void)snprintf(name, sizeof(name), "n%d", i);
        core_ask(&asks[i], name, 0, NULL);
        ASSERT_EQ(asks[i].rc, 0);
    }
    core_advance_ms(1000);
    ASSERT_EQ(core_count(CORE_RENEW), 3);
    ASSERT_EQ(client->owed, 3);
    for (int i = 0; i < 3; i++)
        core_end(&asks[i]);
    ASSERT_EQ(client->owed, 0);
}

TEST(keeper, renews_many_locks_in_few_turns)
{
    enum { LOCKS = 200 };
    static struct core_ask asks[LOCKS];
    char name[16];
    int turns = 0;

    (void)core_open("ttl=30s");
    core_auto();
    for (int i = 0; i < LOCKS; i++) {
        (void)snprintf(name, sizeof(name), "n%d", i);
        core_ask(&asks[i], name, 0, NULL);
        core_advance_ms(5);
    }
    /* All are due within the second in which they were taken. */
    for (int ms = 0; ms < 11000; ms++) {
        int before = core_count(CORE_RENEW);

        core_advance_ms(1);
        turns += core_count(CORE_RENEW) > before;
    }
    ASSERT_GE(core_count(CORE_RENEW), LOCKS);
    /* The first ones were not many yet. */
    ASSERT_LE(turns, 64 + 4);
    for (int i = 0; i < LOCKS; i++)
        core_end(&asks[i]);
}

TEST(keeper, an_engine_that_says_no_means_lost_at_once)
{
    hf_hold *hold = open_and_take("ttl=3s", 0, 0);
    hf_error err;

    core_advance_ms(1000);
    core_lost(core_last(CORE_RENEW));
    ASSERT_EQ(hf_check(hold), HF_LOST);
    ASSERT_EQ(core_count(CORE_WITHDRAW), 0); /* nothing is left there */
    ask.hold = NULL;
    ASSERT_RC(hf_release(hold, &err), HF_ELOST, &err);
    ASSERT_EQ(core_count(CORE_RELEASE), 0);
    core_end(&ask);
}

TEST(keeper, beats_for_waiters_where_the_engine_wants_it)
{
    core_traits(HF_CAP_PUSH, HF__BEATS_WAITERS);
    core_queued(core_open_asking(&ask, "ttl=3s"));
    core_advance_ms(1000);
    ASSERT_EQ(core_count(CORE_RENEW), 1);
    core_renewed(core_last(CORE_RENEW));
    core_advance_ms(1000);
    ASSERT_EQ(core_count(CORE_RENEW), 2);
    core_end(&ask);
}

TEST(keeper, a_loss_that_a_check_saw_first_is_told_by_a_shutdown)
{
    hf_client *client = core_open("ttl=3s");
    hf_hold *hold = take(HF_NO_RENEW, 0);
    hf_error err;

    core_auto();
    hf__timer_stop(&client->loop, &hold->ticket->timer); /* it is late */
    core_stop_ms(3000);
    ASSERT_EQ(hf_check(hold), HF_LOST);
    ASSERT_OK(hf_shutdown(client, 1000, &err), &err);
    core_advance_ms(1);
    ASSERT_EQ(n_events, 1);
    ASSERT_EQ(events[0], HF_LOST);
    core_end(&ask);
}

/* SPDX-License-Identifier: MIT */
/* Three outcomes, never two: what becomes of a request whose answer was busy,
 * late, lost or wrong; and the reaper, which takes back what is left. */
#include "core_fixture.h"

static struct core_ask ask; /* of the running test */

TEST(ticket, a_busy_engine_without_push_is_asked_again)
{
    struct hf__ticket *ticket = core_open_asking(&ask, "");

    core_busy(ticket, core_now_ns() + 40 * HF_MS, NULL);
    core_comes_after_ms(CORE_ACQUIRE, 40);
    core_granted(core_last(CORE_ACQUIRE), 4, 1);
    ASSERT_EQ(ask.rc, 0);
    core_end(&ask);
}

/* Polls of one second, in which a grant is as long as @grant_ms. */
static int polls_of_a_second(int64_t grant_ms)
{
    int64_t start_ns;
    int polls;

    core_open("retry.jitter=0");
    start_ns = core_now_ns();
    core_ask(&ask, "jobs", HF_FOREVER, NULL);
    for (int ms = 0; ms < 1000; ms++) {
        struct hf__ticket *ticket = core_last(CORE_ACQUIRE);

        if (ticket->state == HF__TICKET_ASKING) {
            hf__up_rival(ticket, 1 + (uint64_t)((core_now_ns() - start_ns) /
                                                HF_MS / grant_ms));
            core_busy(ticket, 0, NULL);
        }
        core_advance_ms(1);
    }
    polls = core_count(CORE_ACQUIRE) - 1; /* the first one asked */
    core_end(&ask);
    core_close();
    return polls;
}

TEST(ticket,
     a_lock_that_changes_hands_is_polled_for_often_and_a_kept_one_is_not)
{
    int often = polls_of_a_second(1);
    int now_and_then = polls_of_a_second(100);
    int rarely = polls_of_a_second(1000000);

    ASSERT_TRUE(often >= 100 && often <= 200);
    ASSERT_TRUE(now_and_then >= 100 && now_and_then <= often);
    ASSERT_TRUE(rarely >= 20 && rarely <= 40);
}

TEST(ticket, an_unknown_outcome_is_asked_about_again_under_the_same_identity)
{
    uint64_t id = core_open_asking(&ask, "")->id;

    core_unknown(core_last(CORE_ACQUIRE));
    ASSERT_EQ(ask.outcomes, 0);
    core_advance_ms(100);
    ASSERT_EQ(core_count(CORE_ACQUIRE), 2);
    ASSERT_EQ(core_last(CORE_ACQUIRE)->id, id);
    core_granted(core_last(CORE_ACQUIRE), 4, 1);
    ASSERT_EQ(ask.rc, 0);
    core_end(&ask);
}

static void is_withdrawn_after_500_ms(int rc)
{
    core_advance_ms(500);
    ASSERT_EQ(ask.rc, rc);
    ASSERT_EQ(core_count(CORE_WITHDRAW), 1);
    core_end(&ask);
}

TEST(ticket, a_wait_that_ends_unknown_says_so_and_is_withdrawn)
{
    core_open("retry.base=1s");
    core_ask(&ask, "jobs", 500, NULL);
    core_unknown(core_last(CORE_ACQUIRE));
    is_withdrawn_after_500_ms(HF_EUNKNOWN);
}

TEST(ticket, no_answer_at_all_is_unavailable_and_withdrawn)
{
    core_open("");
    core_ask(&ask, "jobs", 500, NULL);
    is_withdrawn_after_500_ms(HF_EUNAVAILABLE);
}

TEST(ticket, a_try_waits_for_its_answer_up_to_io_timeout)
{
    core_open("io_timeout=200ms");
    core_ask(&ask, "jobs", 0, NULL);
    core_advance_ms(199);
    ASSERT_EQ(ask.outcomes, 0);
    core_advance_ms(1);
    ASSERT_EQ(ask.rc, HF_EUNAVAILABLE);
    core_end(&ask);
}

TEST(ticket, a_push_may_overtake_the_answer_that_it_is_queued)
{
    struct hf__ticket *ticket = core_open_asking(&ask, "");

    core_granted(ticket, 4, 1);
    core_queued(ticket);
    ASSERT_EQ(hf_check(ask.hold), HF_HELD);
    core_granted(ticket, 5, 1); /* answered as well as pushed */
    ASSERT_EQ(hf_token(ask.hold), 4);
    core_end(&ask);
}

TEST(ticket, a_grant_that_is_dead_on_arrival_is_withdrawn_and_asked_anew)
{
    uint64_t id = core_open_asking(&ask, "ttl=1s")->id;

    core_advance_ms(1000);
    core_granted(core_last(CORE_ACQUIRE), 4, 1);
    ASSERT_EQ(ask.outcomes, 0);
    ASSERT_EQ(core_count(CORE_WITHDRAW), 1);
    ASSERT_EQ(core_count(CORE_ACQUIRE), 2);
    ASSERT_NE(core_last(CORE_ACQUIRE)->id, id);
    core_end(&ask);
}

TEST(ticket, a_refusal_is_told_and_leaves_nothing)
{
    hf_client *client = core_open("");

    core_refuse(CORE_ACQUIRE, HF_ENOSPACE);
    core_ask(&ask, "jobs", HF_FOREVER, NULL);
    ASSERT_EQ(ask.rc, HF_ENOSPACE);
    ASSERT_HAS(ask.err.text, "acquire 'jobs'");
    ASSERT_EQ(core_count(CORE_WITHDRAW), 0);
    core_end(&ask);
    ASSERT_NOT_NULL(client->idle_gate);
}

TEST(ticket, a_failure_reported_later_is_told_too)
{
    core_failed(core_open_asking(&ask, ""), HF_EAUTH);
    ASSERT_EQ(ask.rc, HF_EAUTH);
    core_end(&ask);
}

TEST(ticket, an_engine_that_is_away_is_asked_again_by_the_policy)
{
    core_failed(
        core_open_asking(
            &ask, "retry.policy=forever&retry.interval=50ms&retry.jitter=0"),
        HF_EUNAVAILABLE);
    ASSERT_EQ(ask.outcomes, 0);
    core_advance_ms(50);
    ASSERT_EQ(core_count(CORE_ACQUIRE), 2);
    core_end(&ask);
}

TEST(ticket, a_queued_one_that_lost_its_place_asks_anew)
{
    core_queued(core_open_asking(&ask, ""));
    core_lost(core_last(CORE_ACQUIRE));
    core_advance_ms(0);
    ASSERT_EQ(core_count(CORE_ACQUIRE), 2);
    ASSERT_EQ(ask.outcomes, 0);
    core_end(&ask);
}

static void keep_text(const char *text, size_t len, void *ctx)
{
    (void)snprintf(ctx, 8192, "%.*s", (int)len, text);
}

/* After a reconnect no acquire() begins: the engine has its old place still. */
TEST(ticket, one_in_line_that_cannot_be_asked_for_again_is_withdrawn)
{
    core_open("");
    core_ask(&ask, "jobs", 500, NULL);
    core_queued(core_last(CORE_ACQUIRE));
    core_down(HF_EUNAVAILABLE);
    core_refuse(CORE_ACQUIRE, HF_EUNAVAILABLE);
    core_connected();
    core_advance_ms(500);
    ASSERT_EQ(ask.rc, HF_ETIMEOUT);
    ASSERT_EQ(core_count(CORE_WITHDRAW), 1);
    core_refuse(CORE_ACQUIRE, 0);
    core_end(&ask);
}

TEST(ticket, one_that_lost_its_place_while_asking_asks_anew)
{
    struct hf__ticket *ticket = core_open_asking(&ask, "");

    core_lost(ticket);
    core_advance_ms(0);
    ASSERT_EQ(core_count(CORE_ACQUIRE), 2);
    ASSERT_EQ(core_last(CORE_ACQUIRE), ticket);
    core_granted(ticket, 3, 1);
    ASSERT_EQ(ask.rc, 0);
    core_end(&ask);
}

/* Give each place that is asked for in the next @ms, and take it at once. */
static void lose_places(int ms)
{
    int seen = 0;

    for (int i = 0; i < ms; i++) {
        if (core_count(CORE_ACQUIRE) != seen) {
            seen = core_count(CORE_ACQUIRE);
            core_queued(core_last(CORE_ACQUIRE));
            core_lost(core_last(CORE_ACQUIRE));
        }
        core_advance_ms(1);
    }
}

TEST(ticket, one_that_loses_each_place_at_once_asks_by_the_policy)
{
    int asked;

    core_open("retry.base=50ms&retry.jitter=0&retry.max_interval=400ms");
    core_ask(&ask, "jobs", HF_FOREVER, NULL);
    lose_places(1000); /* at 0, 0, 50, 150, 350, 750 */
    asked = core_count(CORE_ACQUIRE);
    ASSERT_EQ(asked, 6);
    core_advance_ms(400); /* this place lasts */
    ASSERT_EQ(core_count(CORE_ACQUIRE), asked + 1);
    core_queued(core_last(CORE_ACQUIRE));
    core_advance_ms(1000);
    core_lost(core_last(CORE_ACQUIRE));
    core_advance_ms(0);
    ASSERT_EQ(core_count(CORE_ACQUIRE), asked + 2);
    core_end(&ask);
}

TEST(leaving, shows_in_the_metrics_what_is_not_confirmed)
{
    hf_client *client = core_open("");
    char text[8192];

    (void)core_take(&ask, "jobs", 3, 1);
    core_end(&ask);
    ASSERT_EQ(hf_metrics_write(client, keep_text, text), 0);
    ASSERT_HAS(text, "holdfast_reaping{engine=\"test\"} 1\n");
    core_left(core_last(CORE_RELEASE), 0);
    ASSERT_EQ(hf_metrics_write(client, keep_text, text), 0);
    ASSERT_HAS(text, "holdfast_reaping{engine=\"test\"} 0\n");
}

TEST(leaving, withdraws_until_the_engine_has_confirmed)
{
    hf_client *client = core_open("retry.base=50ms&retry.jitter=0");

    core_ask(&ask, "jobs", HF_FOREVER, NULL);
    hf_cancel(ask.request);
    core_advance_ms(0);
    ASSERT_EQ(ask.rc, HF_ECANCELED);
    ASSERT_EQ(core_count(CORE_WITHDRAW), 1);
    core_unknown(core_last(CORE_WITHDRAW));
    core_advance_ms(50);
    ASSERT_EQ(core_count(CORE_WITHDRAW), 2);
    core_unknown(core_last(CORE_WITHDRAW));
    core_advance_ms(100);
    ASSERT_EQ(core_count(CORE_WITHDRAW), 3);
    ASSERT_NULL(client->idle_gate);
    core_left(core_last(CORE_WITHDRAW), 0);
    ASSERT_NOT_NULL(client->idle_gate);
    ASSERT_EQ(client->metrics.reaped, 1);
    core_end(&ask);
}

TEST(leaving, a_release_that_is_unknown_becomes_a_withdrawal)
{
    core_open("retry.base=50ms&retry.jitter=0");
    (void)core_take(&ask, "jobs", 3, 1);
    core_end(&ask);
    ASSERT_EQ(core_count(CORE_RELEASE), 1);
    core_unknown(core_last(CORE_RELEASE));
    core_advance_ms(50);
    ASSERT_EQ(core_count(CORE_RELEASE), 1);
    ASSERT_EQ(core_count(CORE_WITHDRAW), 1);
}

/* Release a lock of 3 s while the first answer is lost, and the withdrawal is
 * answered @after_ms later: what hf_release() says. */
static int release_in_doubt(int64_t after_ms)
{
    struct hf__waiter waiter;
    hf_client *client = core_open("ttl=3s&retry.base=50ms&retry.jitter=0");
    struct hf__ticket *ticket;

    (void)core_take(&ask, "jobs", 3, 1);
    ticket = core_last(CORE_ACQUIRE);
    hf__waiter_init(&waiter);
    ASSERT_EQ(hf__monitor_enter_any(client, NULL), 0);
    hf__hold_part(ask.hold, HF_RELEASED);
    (void)hf__gate_release(ticket, &waiter);
    hf__monitor_leave(client);
    core_unknown(ticket);
    core_advance_ms(after_ms);
    ASSERT_EQ(core_count(CORE_RELEASE), 1);
    ASSERT_GE(core_count(CORE_WITHDRAW), 1);
    core_left(ticket, 0);
    core_end(&ask);
    return waiter.rc;
}

TEST(leaving, a_doubtful_release_is_one_while_a_lease_covers_it)
{
    ASSERT_EQ(release_in_doubt(1000), 0);
}

TEST(leaving, a_doubtful_release_is_unknown_after_the_lease)
{
    ASSERT_EQ(release_in_doubt(3000), HF_EUNKNOWN);
}

TEST(leaving, a_doubtful_release_is_unknown_where_a_session_carried_it)
{
    core_traits(HF_CAP_PUSH | HF_CAP_LEASED, 0);
    ASSERT_EQ(release_in_doubt(1000), HF_EUNKNOWN);
}

TEST(leaving, a_lost_lock_stays_closed_for_lock_delay)
{
    core_open("ttl=3s&lock_delay=8s");
    (void)core_take(&ask, "jobs", 3, 1);
    core_stop_ms(5000); /* the claim ended at 2,938 ms */
    ASSERT_EQ(hf_check(ask.hold), HF_LOST);
    core_end(&ask);
    ASSERT_EQ(core_count(CORE_WITHDRAW), 0);
    core_advance_ms(2938 + 8000 - 5000 - 1);
    ASSERT_EQ(core_count(CORE_WITHDRAW), 0);
    core_advance_ms(1);
    ASSERT_EQ(core_count(CORE_WITHDRAW), 1);
}

TEST(leaving, a_new_connection_does_not_shorten_lock_delay)
{
    core_open("ttl=3s&lock_delay=8s");
    (void)core_take(&ask, "jobs", 3, 1);
    core_advance_ms(3000);
    ASSERT_EQ(hf_check(ask.hold), HF_LOST);
    core_hold_connection(true);
    core_down(HF_EUNAVAILABLE);
    core_connected();
    ASSERT_EQ(core_count(CORE_WITHDRAW), 0);
    core_end(&ask);
    core_advance_ms(8000);
    ASSERT_EQ(core_count(CORE_WITHDRAW), 1);
}

TEST(leaving, closing_does_not_open_a_lost_lock_in_its_lock_delay)
{
    int64_t closed_ns;

    core_open("ttl=3s&lock_delay=1m&io_timeout=5s");
    (void)core_take(&ask, "jobs", 3, 1);
    core_advance_ms(3000);
    core_end(&ask);
    core_auto();
    closed_ns = core_now_ns();
    core_close();
    ASSERT_EQ(core_now_ns(), closed_ns); /* nothing to wait for */
    ASSERT_EQ(core_count(CORE_WITHDRAW), 0);
    ASSERT_EQ(core_count(CORE_FINISH), 0);
}

TEST(query, a_commit_without_an_answer_is_unknown)
{
    hf_client *client = core_open("io_timeout=1s");
    uint64_t version;
    hf_error err;

    ASSERT_RC(hf_version_read(client, "v", &version, &err), HF_EUNAVAILABLE,
              &err);
    ASSERT_FALSE(hf__query_wanted(core_query()));
    ASSERT_RC(hf_version_commit(client, "v", 1, &version, &err), HF_EUNKNOWN,
              &err);
}

TEST(leaving, a_grant_that_meets_the_withdrawal_is_not_delivered)
{
    struct hf__ticket *ticket;

    core_open("");
    core_ask(&ask, "jobs", 10, NULL);
    ticket = core_last(CORE_ACQUIRE);
    core_queued(ticket);
    core_advance_ms(10);
    ASSERT_EQ(ask.rc, HF_ETIMEOUT);
    core_granted(ticket, 3, 1);
    ASSERT_EQ(ask.outcomes, 1);
    core_left(ticket, 0);
    core_end(&ask);
}

TEST(connection, what_rests_and_holds_is_asked_about_when_it_is_back)
{
    struct core_ask held;
    struct core_ask waiting;
    struct core_ask leaving;
    hf_client *client =
        core_open("retry.policy=forever&retry.interval=50ms&retry.jitter=0");

    (void)core_take(&held, "held", 1, 1);
    core_ask(&waiting, "waiting", HF_FOREVER, NULL);
    core_queued(core_last(CORE_ACQUIRE));
    (void)core_take(&leaving, "leaving", 2, 1);
    core_hold_connection(true);
    core_down(HF_EUNAVAILABLE);
    core_end(&leaving);
    ASSERT_EQ(core_count(CORE_RELEASE), 0);
    core_advance_ms(50);
    ASSERT_EQ(core_count(CORE_CONNECT), 2);
    core_connected();
    ASSERT_EQ(core_count(CORE_RENEW), 1);
    ASSERT_EQ(core_count(CORE_ACQUIRE), 4);
    ASSERT_EQ(core_count(CORE_RELEASE), 1);
    ASSERT_EQ(client->metrics.reconnects, 1);
    core_end(&held);
    core_end(&waiting);
}

TEST(connection, a_hold_survives_an_outage_shorter_than_its_lease)
{
    hf_hold *hold;

    core_open("ttl=3s");
    hold = core_take(&ask, "jobs", 1, 1);
    core_hold_connection(true);
    core_down(HF_EUNAVAILABLE);
    core_advance_ms(1500);
    core_connected();
    core_renewed(core_last(CORE_RENEW));
    ASSERT_EQ(hf_check(hold), HF_HELD);
    ASSERT_EQ(hf_remaining_ms(hold), 2938);
    core_end(&ask);
}

TEST(connection, a_session_in_doubt_is_jeopardy_at_once)
{
    hf_hold *hold;

    core_traits(HF_CAP_PUSH | HF_CAP_FENCED, HF__SESSION);
    core_open("ttl=3s");
    hold = core_take(&ask, "jobs", 1, 1);
    core_hold_connection(true);
    core_down(HF_EUNAVAILABLE);
    ASSERT_EQ(hf_check(hold), HF_JEOPARDY);
    core_end(&ask);
}

TEST(connection, a_policy_that_gives_up_tells_the_waiters)
{
    core_open("retry.policy=ntimes&retry.max_attempts=3&retry.interval=10ms&"
              "retry.jitter=0");
    core_ask(&ask, "jobs", HF_FOREVER, NULL);
    core_failed(core_last(CORE_ACQUIRE), HF_EUNAVAILABLE);
    core_refuse(CORE_CONNECT, HF_EUNAVAILABLE);
    core_down(HF_EUNAVAILABLE);
    core_advance_ms(100);
    ASSERT_EQ(ask.rc, HF_EUNAVAILABLE);
    ASSERT_EQ(core_count(CORE_CONNECT), 3);  /* the first was at the opening */
    ASSERT_EQ(core_count(CORE_WITHDRAW), 0); /* there was nothing to take */
    core_end(&ask);
}

TEST(connection, refused_credentials_are_final)
{
    core_open("");
    core_ask(&ask, "jobs", HF_FOREVER, NULL);
    core_down(HF_EAUTH);
    ASSERT_EQ(ask.rc, HF_EAUTH);
    core_end(&ask);
}

TEST(connection, the_next_ask_tries_again_after_the_policy_gave_up)
{
    struct core_ask first;
    struct core_ask second;

    core_open("");
    core_ask(&first, "jobs", HF_FOREVER, NULL);
    core_down(HF_EAUTH);
    core_auto();
    core_ask(&second, "jobs", HF_FOREVER, NULL);
    ASSERT_EQ(second.rc, 0);
    core_end(&first);
    core_end(&second);
}

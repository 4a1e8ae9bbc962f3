/* SPDX-License-Identifier: MIT */
/*
 * wrap_test.c - trace and fault around an engine that obeys the test.
 *
 * What the inner engine sees and says is the test's; what the core makes of
 * it is seen in the outcome of requests and the state of holds.
 */
#include "core_fixture.h"
#include "engines/wrap/wrap.h"

static struct core_ask ask; /* of the running test */

static hf_hold *hold_behind(const char *wrappers, const char *query,
                            const char *name, uint64_t token, uint32_t tokens)
{
    (void)core_open_behind(wrappers, query);
    return core_take(&ask, name, token, tokens);
}

static char lines[8192];

static void keep_line(int level, const char *text, void *ctx)
{
    (void)ctx;
    if (level > HF_LOG_INFO)
        return;
    if (strlen(lines) + strlen(text) + 2 < sizeof(lines)) {
        strcat(lines, text);
        strcat(lines, "\n");
    }
}

static void silence(void *arg)
{
    (void)arg;
    hf_set_log(NULL, 0, NULL);
}

static void listen(void)
{
    lines[0] = '\0';
    hf_set_log(keep_line, HF_LOG_INFO, NULL);
    test_defer(silence, NULL);
}

/* ---- trace -------------------------------------------------------------- */

TEST(trace, tells_calls_and_reports)
{
    listen();
    (void)core_open_behind("trace+", "");
    ASSERT_HAS(lines, "connect\n");
    ASSERT_HAS(lines, "connect → connected, in ");
    core_ask(&ask, "jobs", HF_FOREVER, NULL);
    ASSERT_HAS(lines, "acquire 'jobs' #1, exclusive, ttl 30 s\n");
    core_queued(core_last(CORE_ACQUIRE));
    ASSERT_HAS(lines, "acquire 'jobs' #1 → queued, in ");
    core_granted(core_last(CORE_ACQUIRE), 17, 1);
    core_advance_ms(0);
    ASSERT_HAS(lines, "acquire 'jobs' #1 → granted token 17, lease ");
    core_advance_ms(10001);
    ASSERT_HAS(lines, "renew 'jobs' #1\n");
    core_renewed(core_last(CORE_RENEW));
    ASSERT_HAS(lines, "renew 'jobs' #1 → renewed, lease ");
    core_lost(core_last(CORE_RENEW));
    ASSERT_HAS(lines, "renew 'jobs' #1 → lost: ");
    core_end(&ask);
}

TEST(trace, tells_refusals_and_failures)
{
    hf_opts opts = HF_OPTS_INIT;

    listen();
    (void)core_open_behind("trace+", "");
    opts.wait_ms = 0;
    core_ask_with(&ask, "jobs", &opts);
    ASSERT_HAS(lines, "acquire 'jobs' #1, exclusive, once, ttl 30 s\n");
    core_busy(core_last(CORE_ACQUIRE), 0, "db1:4211");
    core_advance_ms(0);
    ASSERT_HAS(lines, "acquire 'jobs' #1 → busy: held by db1:4211, in ");
    core_end(&ask);
    core_ask(&ask, "jobs", HF_FOREVER, NULL);
    core_failed(core_last(CORE_ACQUIRE), HF_ENOSPACE);
    core_advance_ms(0);
    ASSERT_HAS(lines, "acquire 'jobs' #2 → failed: HF_ENOSPACE: ");
    core_end(&ask);
    core_refuse(CORE_ACQUIRE, HF_EINVAL);
    core_ask(&ask, "jobs", HF_FOREVER, NULL);
    ASSERT_HAS(lines, "acquire → not made: HF_EINVAL: ");
    core_end(&ask);
}

TEST(trace, tells_of_the_connection)
{
    listen();
    (void)core_open_behind("trace+", "");
    core_down(HF_EUNAVAILABLE);
    core_advance_ms(0);
    ASSERT_HAS(lines, "connect → down: ");
}

TEST(trace, has_what_the_engine_inside_has)
{
    hf_client *client;

    core_traits(HF_CAP_FENCED | HF_CAP_PUSH, HF__SESSION);
    client = core_open_behind("trace+", "");
    ASSERT_EQ(hf_capabilities(client), HF_CAP_FENCED | HF_CAP_PUSH);
    ASSERT_STREQ(hf_engine_name(client), core_engine()->ops->name);
    ASSERT_EQ(client->engine->ops->flags, HF__SESSION);
    ASSERT_EQ(client->engine->ops->wait == NULL,
              core_engine()->ops->wait == NULL);
    core_traits(HF_CAP_FENCED | HF_CAP_PUSH, 0);
}

TEST(trace, finds_its_client_behind_another)
{
    hf_client *client;

    listen();
    client = core_open_behind("fault+trace+", "");
    ASSERT_PTR_EQ(hf__wrap_client(client->engine), client);
    ASSERT_PTR_EQ(hf__wrap_client(client->engine->inner), client);
    ASSERT_PTR_EQ(hf__wrap_client(core_engine()), client);
    ASSERT_HAS(lines, "connect → connected");
}

/* ---- fault -------------------------------------------------------------- */

TEST(fault, a_failed_acquire_never_reaches_the_engine)
{
    (void)core_open_behind("fault+", "fault=acquire:fail=ENOSPACE@1");
    core_ask(&ask, "jobs", HF_FOREVER, NULL);
    core_advance_ms(0);
    ASSERT_EQ(core_count(CORE_ACQUIRE), 0);
    ASSERT_EQ(ask.outcomes, 1);
    ASSERT_EQ(ask.rc, HF_ENOSPACE);
    ASSERT_HAS(ask.err.text, "fault");
    core_end(&ask);
}

/* The last acquire succeeds, and its caller hears of it. */
static void is_granted(void)
{
    core_granted(core_last(CORE_ACQUIRE), 9, 1);
    core_advance_ms(0);
    ASSERT_EQ(ask.rc, 0);
    core_auto();
    core_end(&ask);
}

TEST(fault, a_delayed_acquire_is_made_later)
{
    (void)core_open_behind("fault+", "fault=acquire:delay=200ms");
    core_ask(&ask, "jobs", HF_FOREVER, NULL);
    core_advance_ms(199);
    ASSERT_EQ(core_count(CORE_ACQUIRE), 0);
    core_advance_ms(2);
    ASSERT_EQ(core_count(CORE_ACQUIRE), 1);
    is_granted();
}

/* Ask an engine that answers by itself, behind the fault. */
static void ask_automatically(const char *query)
{
    (void)core_open_behind("fault+", query);
    core_auto();
    core_ask(&ask, "jobs", HF_FOREVER, NULL);
}

TEST(fault, a_withdrawal_ends_a_delayed_acquire)
{
    ask_automatically("fault=acquire:delay=200ms");
    core_advance_ms(100);
    hf_cancel(ask.request);
    core_advance_ms(0);
    core_advance_ms(1000);
    ASSERT_EQ(ask.rc, HF_ECANCELED);
    ASSERT_EQ(core_count(CORE_ACQUIRE), 0);
    ASSERT_EQ(core_count(CORE_WITHDRAW), 1);
    core_end(&ask);
}

TEST(fault, a_cut_acquire_is_asked_again)
{
    ask_automatically("fault=acquire:cut@1");
    ASSERT_EQ(core_count(CORE_ACQUIRE), 0);
    core_advance_ms(1000);
    ASSERT_EQ(core_count(CORE_ACQUIRE), 1);
    ASSERT_EQ(ask.outcomes, 1);
    ASSERT_EQ(ask.rc, 0);
    core_end(&ask);
}

TEST(fault, a_dropped_grant_is_asked_for_again)
{
    ask_automatically("fault=acquire:drop@1");
    ASSERT_EQ(core_count(CORE_ACQUIRE), 1);
    ASSERT_EQ(ask.outcomes, 0);
    core_advance_ms(1000);
    ASSERT_EQ(core_count(CORE_ACQUIRE), 2);
    ASSERT_EQ(ask.rc, 0);
    core_end(&ask);
}

TEST(fault, a_silent_ticket_hears_no_pushes)
{
    (void)core_open_behind("fault+", "fault=acquire:drop@1");
    core_ask(&ask, "jobs", HF_FOREVER, NULL);
    core_queued(core_last(CORE_ACQUIRE));
    core_granted(core_last(CORE_ACQUIRE), 9, 1);
    core_advance_ms(0);
    ASSERT_EQ(ask.outcomes, 0);
    core_advance_ms(1000);
    ASSERT_EQ(core_count(CORE_ACQUIRE), 2);
    is_granted();
}

TEST(fault, dropped_renewals_lose_the_lock)
{
    hf_hold *hold =
        hold_behind("fault+", "ttl=3s&fault=renew:drop@2%2b", "jobs", 5, 1);

    core_advance_ms(1001);
    core_renewed(core_last(CORE_RENEW));
    for (int i = 0; i < 4; i++) {
        core_advance_ms(500);
        if (core_last(CORE_RENEW))
            core_renewed(core_last(CORE_RENEW));
    }
    ASSERT_EQ(hf_check(hold), HF_JEOPARDY);
    core_advance_ms(1000);
    ASSERT_EQ(hf_check(hold), HF_LOST);
    core_auto();
    core_end(&ask);
}

/* A hold whose first renewal is due, and does not reach the engine. */
static hf_hold *hold_unrenewed(const char *query)
{
    hf_hold *hold = hold_behind("fault+", query, "jobs", 5, 1);

    core_advance_ms(1001);
    ASSERT_EQ(core_count(CORE_RENEW), 0);
    return hold;
}

TEST(fault, a_renewal_may_find_the_lock_lost)
{
    hf_hold *hold = hold_unrenewed("ttl=3s&fault=renew:lost@1");

    ASSERT_EQ(core_count(CORE_WITHDRAW), 1);
    ASSERT_EQ(hf_check(hold), HF_HELD); /* it is ours until that is answered */
    core_left(core_last(CORE_WITHDRAW), 0);
    core_advance_ms(0);
    ASSERT_EQ(hf_check(hold), HF_LOST);
    core_end(&ask);
}

TEST(fault, a_hold_expires_when_it_is_told_to)
{
    hf_hold *hold = hold_behind("fault+", "fault=hold:expire=5s", "jobs", 5, 1);

    core_advance_ms(4999);
    ASSERT_EQ(core_count(CORE_WITHDRAW), 0);
    core_advance_ms(2);
    ASSERT_EQ(core_count(CORE_WITHDRAW), 1);
    core_unknown(core_last(CORE_WITHDRAW)); /* tried again */
    ASSERT_EQ(hf_check(hold), HF_HELD);
    core_advance_ms(101);
    ASSERT_EQ(core_count(CORE_WITHDRAW), 2);
    core_left(core_last(CORE_WITHDRAW), 0);
    core_advance_ms(0);
    ASSERT_EQ(hf_check(hold), HF_LOST);
    core_end(&ask);
}

TEST(fault, a_release_during_the_taking_says_lost)
{
    hf_hold *hold = hold_behind("fault+", "release=post&fault=hold:expire=5s",
                                "jobs", 5, 1);

    core_advance_ms(5001);
    ASSERT_EQ(core_count(CORE_WITHDRAW), 1);
    ask.hold = NULL;
    (void)hf_release(hold, NULL); /* posted */
    ASSERT_EQ(core_count(CORE_RELEASE), 0);
    core_left(core_last(CORE_WITHDRAW), 0);
    core_end(&ask);
}

TEST(fault, a_dropped_release_is_withdrawn)
{
    hf_hold *hold =
        hold_behind("fault+", "release=post&fault=release:drop", "jobs", 5, 1);

    core_auto();
    ask.hold = NULL;
    ASSERT_EQ(hf_release(hold, NULL), 0);
    ASSERT_EQ(core_count(CORE_RELEASE), 1);
    core_advance_ms(1000);
    ASSERT_EQ(core_count(CORE_WITHDRAW), 1);
    core_end(&ask);
}

TEST(fault, a_broken_connection_refuses_calls_until_it_is_back)
{
    hf_client *client = core_open_behind("fault+", "fault=acquire:down=2s@1");

    core_auto();
    core_ask(&ask, "jobs", HF_FOREVER, NULL);
    core_advance_ms(0);
    ASSERT_EQ(core_count(CORE_ACQUIRE), 0);
    ASSERT_FALSE(hf__client_is_up(client));
    core_advance_ms(1900);
    ASSERT_FALSE(hf__client_is_up(client));
    core_advance_ms(10000);
    ASSERT_TRUE(hf__client_is_up(client));
    ASSERT_EQ(ask.rc, 0);
    ASSERT_EQ(core_count(CORE_CONNECT), 1); /* the inner one never broke */
    core_end(&ask);
}

TEST(fault, connections_fail_and_are_late)
{
    hf_client *client;
    hf_error err;

    (void)core_open_behind("fault+", ""); /* registers the engine */
    ASSERT_RC(hf_open("fault+test:?drive=app&fault=connect:fail=EAUTH", NULL,
                      &client, &err),
              HF_EAUTH, &err);
    ASSERT_OK(hf_open("fault+test:?drive=app&fault=connect:delay=50ms", NULL,
                      &client, &err),
              &err);
    hf_close(client);
}

static int no_row(const hf_lock_info *info, void *ctx)
{
    (void)info;
    (void)ctx;
    return 0;
}

TEST(fault, questions_fail_too)
{
    hf_client *client = core_open_behind("fault+", "fault=query:fail=EAUTH");
    hf_error err;

    ASSERT_RC(hf_list(client, NULL, no_row, NULL, &err), HF_EAUTH, &err);
    ASSERT_EQ(core_count(CORE_QUERY), 0);
}

TEST(fault, a_downgrade_passes_or_is_cut)
{
    hf_hold *hold;

    core_traits(HF_CAP_FENCED | HF_CAP_PUSH | HF_CAP_SHARED | HF_CAP_DOWNGRADE,
                0);
    (void)core_open_behind("fault+", "io_timeout=1s&fault=downgrade:cut@1");
    hold = core_take(&ask, "jobs", 5, 1);
    ASSERT_EQ(hf_downgrade(hold, NULL), HF_EUNKNOWN);
    ASSERT_EQ(core_count(CORE_DOWNGRADE), 0);
    core_auto();
    core_end(&ask);
}

TEST(fault, a_delayed_call_may_fail_at_last)
{
    hf_hold *hold;

    (void)core_open_behind(
        "fault+", "release=post&fault=release:delay=10ms;release:fail@1");
    hold = core_take(&ask, "jobs", 5, 1);
    core_auto();
    ask.hold = NULL;
    ASSERT_EQ(hf_release(hold, NULL), 0);
    core_advance_ms(11);
    ASSERT_EQ(core_count(CORE_RELEASE), 0);
    core_advance_ms(1000);
    ASSERT_EQ(core_count(CORE_WITHDRAW), 1);
    core_end(&ask);
}

TEST(fault, a_delayed_acquire_may_be_refused_by_the_engine)
{
    (void)core_open_behind("fault+", "fault=acquire:delay=10ms");
    core_refuse(CORE_ACQUIRE, HF_ENOSPACE);
    core_ask(&ask, "jobs", HF_FOREVER, NULL);
    core_advance_ms(11);
    ASSERT_EQ(ask.rc, HF_ENOSPACE);
    core_end(&ask);
}

TEST(fault, a_taking_that_is_refused_is_tried_again)
{
    hf_hold *hold = hold_behind("fault+", "fault=hold:expire=1s", "jobs", 5, 1);

    core_refuse(CORE_WITHDRAW, HF_EUNAVAILABLE);
    core_advance_ms(1050);
    ASSERT_EQ(hf_check(hold), HF_HELD);
    core_refuse(CORE_WITHDRAW, 0);
    core_auto();
    core_advance_ms(200);
    ASSERT_EQ(hf_check(hold), HF_LOST);
    core_end(&ask);
}

TEST(fault, calls_under_way_are_unknown_when_the_connection_breaks)
{
    struct core_ask first = {0};
    struct core_ask second = {0};
    hf_client *client = core_open_behind("fault+", "fault=acquire:down@2");

    core_ask(&first, "one", HF_FOREVER, NULL);
    ASSERT_EQ(core_count(CORE_ACQUIRE), 1);
    core_ask(&second, "two", HF_FOREVER, NULL); /* breaks it for both */
    ASSERT_FALSE(hf__client_is_up(client));
    core_granted(core_last(CORE_ACQUIRE), 5, 1); /* nobody hears it */
    core_advance_ms(0);
    ASSERT_EQ(first.outcomes, 0);
    core_auto();
    core_advance_ms(1000);
    ASSERT_EQ(first.rc, 0);
    ASSERT_EQ(second.rc, 0);
    ASSERT_EQ(core_count(CORE_ACQUIRE), 3);
    core_end(&first);
    core_end(&second);
}

TEST(fault, a_renewal_of_a_broken_connection_is_silence)
{
    hf_hold *hold = hold_unrenewed("ttl=3s&fault=renew:down=200ms@1");

    core_auto();
    core_advance_ms(1500);
    ASSERT_GE(core_count(CORE_RENEW), 1);
    ASSERT_EQ(hf_check(hold) == HF_LOST, 0);
    core_end(&ask);
}

TEST(fault, the_engine_inside_may_go_down_by_itself)
{
    hf_client *client = core_open_behind("fault+", "");

    core_auto();
    core_down(HF_EUNAVAILABLE);
    ASSERT_FALSE(hf__client_is_up(client));
    core_ask(&ask, "jobs", HF_FOREVER, NULL);
    core_advance_ms(1000);
    ASSERT_TRUE(hf__client_is_up(client));
    ASSERT_EQ(core_count(CORE_CONNECT), 2);
    ASSERT_EQ(ask.rc, 0);
    core_end(&ask);
}

TEST(fault, busy_failed_unknown_and_lost_pass)
{
    hf_opts opts = HF_OPTS_INIT;
    hf_hold *hold;

    (void)core_open_behind("fault+", "ttl=3s&fault=query:fail");
    opts.wait_ms = 0;
    core_ask_with(&ask, "jobs", &opts);
    core_busy(core_last(CORE_ACQUIRE), 0, "another");
    core_advance_ms(0);
    ASSERT_EQ(ask.rc, HF_EBUSY);
    core_end(&ask);
    core_ask(&ask, "jobs", HF_FOREVER, NULL);
    core_failed(core_last(CORE_ACQUIRE), HF_EAUTH);
    core_advance_ms(0);
    ASSERT_EQ(ask.rc, HF_EAUTH);
    core_end(&ask);
    memset(&ask, 0, sizeof(ask));
    core_ask(&ask, "jobs", HF_FOREVER, NULL);
    core_unknown(core_last(CORE_ACQUIRE));
    core_advance_ms(1000);
    core_granted(core_last(CORE_ACQUIRE), 9, 1);
    core_advance_ms(0);
    ASSERT_EQ(ask.rc, 0);
    hold = ask.hold;
    core_advance_ms(1001);
    core_lost(core_last(CORE_RENEW));
    core_advance_ms(0);
    ASSERT_EQ(hf_check(hold), HF_LOST);
    core_end(&ask);
}

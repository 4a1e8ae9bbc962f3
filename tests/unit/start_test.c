/* SPDX-License-Identifier: MIT */
/* How asynchronous releases, verifications, lists and openings end; and the
 * lost hold once more. */
#include "core_fixture.h"

#include "api/request.h"

static void on_outcome(int rc, hf_hold *hold, const hf_error *err, void *ctx)
{
    struct core_ask *ask = ctx;

    ask->outcomes++;
    ask->rc = rc;
    if (err)
        ask->err = *err;
    if (hold)
        ask->hold = hold;
}

static hf_request *release_start(hf_hold *hold, struct core_ask *told)
{
    hf_request *request;
    hf_error err;

    memset(told, 0, sizeof(*told));
    ASSERT_OK(hf_release_start(hold, on_outcome, told, &request, &err), &err);
    return request;
}

TEST(start, a_release_is_told_when_the_engine_has_confirmed)
{
    hf_client *client = core_open("");
    struct core_ask ask;
    struct core_ask told;
    hf_request *request;

    (void)core_take(&ask, "a", 7, 1);
    request = release_start(HF_STEAL(ask.hold), &told);
    ASSERT_EQ(core_count(CORE_RELEASE), 1);
    ASSERT_GE(hf_dispatch(client), 0);
    ASSERT_EQ(told.outcomes, 0);
    ASSERT_EQ(client->awaited, 1);
    core_left(core_last(CORE_RELEASE), HF_ELOST);
    ASSERT_EQ(told.outcomes, 1);
    ASSERT_EQ(told.rc, HF_ELOST);
    ASSERT_EQ(client->awaited, 0);
    hf_request_free(request);
    core_end(&ask);
}

TEST(start, a_release_without_an_answer_is_unknown_in_time_and_goes_on)
{
    struct core_ask ask;
    struct core_ask told;
    hf_request *request;

    core_open("io_timeout=2s");
    (void)core_take(&ask, "a", 7, 1);
    request = release_start(HF_STEAL(ask.hold), &told);
    core_advance_ms(1999);
    ASSERT_EQ(told.outcomes, 0);
    core_advance_ms(1);
    ASSERT_EQ(told.rc, HF_EUNKNOWN);
    core_left(core_last(CORE_RELEASE), 0);
    ASSERT_EQ(told.outcomes, 1);
    hf_request_free(request);
    core_end(&ask);
}

TEST(start, a_release_that_is_freed_is_not_told)
{
    struct core_ask ask;
    struct core_ask told;

    core_open("");
    (void)core_take(&ask, "a", 7, 1);
    hf_request_free(release_start(HF_STEAL(ask.hold), &told));
    core_left(core_last(CORE_RELEASE), 0);
    ASSERT_EQ(told.outcomes, 0);
    core_end(&ask);
}

TEST(start, close_waits_for_a_release_and_ends_a_verification)
{
    hf_client *client = core_open("");
    struct core_ask asks[2];
    struct core_ask told[2];
    hf_request *requests[2];
    hf_error err;

    (void)core_take(&asks[0], "a", 7, 1);
    (void)core_take(&asks[1], "b", 8, 1);
    memset(&told[1], 0, sizeof(told[1]));
    requests[0] = release_start(HF_STEAL(asks[0].hold), &told[0]);
    ASSERT_OK(
        hf_verify_start(asks[1].hold, on_outcome, &told[1], &requests[1], &err),
        &err);
    /* Nobody confirms: the shutdown's time passes. */
    ASSERT_RC(hf_shutdown(client, 500, &err), HF_ETIMEOUT, &err);
    ASSERT_GE(hf_dispatch(client), 0);
    ASSERT_EQ(told[0].rc, HF_EUNKNOWN);
    ASSERT_EQ(told[1].rc, HF_ECLOSED);
    for (int i = 0; i < 2; i++) {
        hf_request_free(requests[i]);
        core_end(&asks[i]);
    }
}

TEST(start, a_verification_ends_by_answer_time_and_cancel)
{
    hf_client *client = core_open("io_timeout=2s");
    struct core_ask ask;
    struct core_ask told = {0};
    hf_hold *hold = core_take(&ask, "a", 7, 1);
    hf_request *request;
    hf_error err;

    ASSERT_OK(hf_verify_start(hold, on_outcome, &told, &request, &err), &err);
    ASSERT_EQ(core_count(CORE_RENEW), 1);
    core_renewed(core_last(CORE_RENEW));
    ASSERT_EQ(told.outcomes, 1);
    ASSERT_EQ(told.rc, 0);
    hf_request_free(request);
    ASSERT_OK(hf_verify_start(hold, on_outcome, &told, &request, &err), &err);
    core_advance_ms(2000);
    ASSERT_EQ(told.rc, HF_EUNKNOWN);
    hf_request_free(request);
    ASSERT_OK(hf_verify_start(hold, on_outcome, &told, &request, &err), &err);
    hf_cancel(request);
    ASSERT_GE(hf_dispatch(client), 0);
    ASSERT_EQ(told.rc, HF_ECANCELED);
    core_renewed(core_last(CORE_RENEW)); /* the answer meets nobody */
    ASSERT_EQ(told.outcomes, 3);
    hf_request_free(request);
    core_refuse(CORE_RENEW, HF_EUNAVAILABLE);
    ASSERT_OK(hf_verify_start(hold, on_outcome, &told, &request, &err), &err);
    ASSERT_GE(hf_dispatch(client), 0);
    ASSERT_EQ(told.rc, HF_EUNAVAILABLE);
    ASSERT_HAS(told.err.text, "refused by the test");
    core_refuse(CORE_RENEW, 0);
    hf_request_free(request);
    core_end(&ask);
}

static int no_row(const hf_lock_info *info, void *ctx)
{
    (void)info;
    (void)ctx;
    return 0;
}

TEST(start, a_list_ends_by_time_refusal_and_loss_of_the_connection)
{
    hf_client *client = core_open("io_timeout=2s");
    struct core_ask told = {0};
    hf_request *request;
    hf_error err;

    ASSERT_OK(hf_list_start(client, NULL, 0, no_row, on_outcome, &told,
                            &request, &err),
              &err);
    core_advance_ms(2000);
    ASSERT_EQ(told.rc, HF_EUNAVAILABLE);
    hf__up_answer(core_engine(), core_query(), 0, NULL); /* freed by that */
    hf_request_free(request);
    core_refuse(CORE_QUERY, HF_EUNAVAILABLE);
    ASSERT_OK(
        hf_list_start(client, NULL, 0, no_row, NULL, &told, &request, &err),
        &err);
    ASSERT_RC(hf_request_wait(request, 0, NULL, &err), HF_EUNAVAILABLE, &err);
    ASSERT_HAS(err.text, "refused by the test");
    hf_request_free(request);
    core_refuse(CORE_QUERY, 0);
    core_down(HF_EUNAVAILABLE);
    ASSERT_OK(
        hf_list_start(client, NULL, 0, no_row, NULL, &told, &request, &err),
        &err);
    ASSERT_RC(hf_request_wait(request, 0, NULL, &err), HF_EUNAVAILABLE, &err);
    hf_request_free(request);
}

static void count_event(hf_hold *hold, int state, void *ctx)
{
    (void)hold;
    (void)state;
    ++*(int *)ctx;
}

/* The loss is found by the release itself, while another has a reference. */
TEST(start, no_event_begins_after_a_release_of_either_form)
{
    hf_client *client = core_open("ttl=4s&renew=off");

    for (int form = 0; form < 2; form++) {
        hf_opts opts = HF_OPTS_INIT;
        struct core_ask ask;
        struct core_ask told = {0};
        hf_request *request = NULL;
        hf_hold *second;
        int events = 0;

        opts.on_event = count_event;
        opts.ctx = &events;
        core_ask_with(&ask, "a", &opts);
        core_granted(core_last(CORE_ACQUIRE), 7, 1);
        second = hf_hold_ref(ask.hold);
        core_stop_ms(5000);
        ASSERT_EQ(hf_check(second), HF_LOST);
        core_stop_ms(-4000); /* a thread that read its clock before that */
        if (form == 0)
            ASSERT_EQ(hf_release(HF_STEAL(ask.hold), NULL), HF_ELOST);
        else
            request = release_start(HF_STEAL(ask.hold), &told);
        ASSERT_GE(hf_dispatch(client), 0);
        ASSERT_EQ(events, 0);
        ASSERT_EQ(hf_check(second), HF_LOST);
        ASSERT_EQ(told.rc, form == 0 ? 0 : HF_ELOST);
        hf_hold_unref(second);
        hf_request_free(request);
        core_left(core_last(CORE_WITHDRAW), 0);
        core_end(&ask);
    }
}

struct in_event {
    hf_request *request;
    struct core_ask told;
    int events;
};

static void release_inside(hf_hold *hold, int state, void *ctx)
{
    struct in_event *seen = ctx;

    (void)state;
    seen->events++;
    seen->request = release_start(hold, &seen->told);
    ASSERT_EQ(seen->told.outcomes, 0);
}

TEST(start, a_release_inside_the_holds_own_callback_is_told_after_it)
{
    hf_client *client = core_open("ttl=4s");
    struct in_event seen = {0};
    hf_opts opts = HF_OPTS_INIT;
    struct core_ask ask;

    opts.on_event = release_inside;
    opts.ctx = &seen;
    core_ask_with(&ask, "a", &opts);
    core_granted(core_last(CORE_ACQUIRE), 7, 1);
    ask.hold = NULL;       /* the callback has it */
    core_advance_ms(2700); /* JEOPARDY: nobody confirms renewals */
    ASSERT_EQ(seen.events, 1);
    core_left(core_last(CORE_RELEASE), 0);
    core_advance_ms(3000);
    ASSERT_EQ(seen.events, 1);
    ASSERT_EQ(seen.told.outcomes, 1);
    ASSERT_EQ(seen.told.rc, 0);
    hf_request_free(seen.request);
    ASSERT_GE(hf_dispatch(client), 0);
    core_end(&ask);
}

TEST(start, a_client_that_turns_out_unfit_refuses_every_call)
{
    hf_client *client;
    hf_request *request;
    struct core_ask told = {0};
    hf_hold *hold;
    hf_error err;

    (void)core_open("");
    core_hold_connection(true);
    ASSERT_OK(hf_open_start("test:?drive=app&require=fifo", NULL, on_outcome,
                            &told, &client, &request, &err),
              &err);
    ASSERT_GE(hf_dispatch(client), 0);
    ASSERT_EQ(told.outcomes, 0);
    client->engine->caps &= ~HF_CAP_FIFO; /* what the server says */
    hf__up_connected(client->engine);
    ASSERT_GE(hf_dispatch(client), 0);
    ASSERT_EQ(told.rc, HF_EUNSUPPORTED);
    ASSERT_HAS(told.err.text, "fifo");
    ASSERT_RC(hf_acquire(client, "a", NULL, &hold, &err), HF_EUNSUPPORTED,
              &err);
    ASSERT_EQ(hf_capabilities(client) & HF_CAP_FIFO, 0);
    hf_request_free(request);
    hf_close(client);
}

TEST(reacquire, keeps_the_options_and_finds_only_what_is_lost)
{
    hf_client *client = core_open("max_hold=90s&ttl=9s");
    hf_opts opts = HF_OPTS_INIT;
    struct core_ask ask;
    hf_hold *hold;
    hf_error err;

    core_auto();
    opts.mode = HF_SLOT;
    opts.slots = 3;
    opts.ttl_ms = 4000;
    opts.max_hold_ms = HF_FOREVER;
    opts.flags = HF_NO_RENEW | HF_NEW_OWNER;
    opts.owner = "an owner whose name is longer than fits";
    opts.note = "a note";
    core_ask_with(&ask, "a", &opts);
    hold = ask.hold;
    ASSERT_RC(hf_reacquire(hold, 0, &err), HF_EINVAL, &err);
    ASSERT_RC(hf_reacquire(NULL, 0, &err), HF_EINVAL, &err);
    core_stop_ms(5000); /* nobody has noticed */
    ASSERT_OK(hf_reacquire(hold, 0, &err), &err);
    ASSERT_EQ(hf_check(hold), HF_HELD);
    ASSERT_EQ(hf_ttl_ms(hold), 4000);
    ASSERT_EQ(hf_max_hold_ms(hold), 0);
    ASSERT_EQ(core_last(CORE_ACQUIRE)->slots, 3);
    ASSERT_EQ(core_last(CORE_ACQUIRE)->mode, HF_SLOT);
    ASSERT_STREQ(core_last(CORE_ACQUIRE)->note, "a note");
    ASSERT_STREQ(core_last(CORE_ACQUIRE)->owner, opts.owner);
    core_advance_ms(3800);
    ASSERT_EQ(core_count(CORE_RENEW), 0);
    core_advance_ms(1200);
    ASSERT_EQ(hf_check(hold), HF_LOST);
    core_refuse(CORE_ACQUIRE, HF_ENOSPACE);
    ASSERT_RC(hf_reacquire(hold, 0, &err), HF_ENOSPACE, &err);
    ASSERT_EQ(hf_check(hold), HF_LOST);
    core_refuse(CORE_ACQUIRE, 0);
    ASSERT_OK(hf_reacquire(hold, 0, &err), &err);
    ASSERT_OK(hf_release(HF_STEAL(ask.hold), &err), &err);
    ASSERT_EQ(client->metrics.held, 0);
    core_end(&ask);
}

/* As a caller does that entered before hf_close(), and has waited since. */
TEST(reacquire, asks_nothing_for_a_client_that_was_closed_meanwhile)
{
    hf_client *client = core_open("");
    hf_hold *hold;
    hf_error err;

    core_auto();
    ASSERT_OK(hf__monitor_enter(client, &err), &err);
    client->closing = true;
    ASSERT_RC(hf__request_acquire(client, "a", NULL, &hold, &err), HF_ECLOSED,
              &err);
    client->closing = false;
    hf__monitor_leave(client);
    ASSERT_EQ(core_count(CORE_ACQUIRE), 0);
    ASSERT_OK(hf_acquire(client, "a", NULL, &hold, &err), &err);
    ASSERT_OK(hf_release(hold, &err), &err);
}

struct leader {
    int held;
    int lost;
};

static void lead_again(hf_hold *hold, int state, void *ctx)
{
    struct leader *leader = ctx;

    if (state == HF_HELD)
        leader->held++;
    if (state == HF_LOST) {
        leader->lost++;
        ASSERT_EQ(hf_reacquire(hold, 0, NULL), 0);
    }
}

TEST(reacquire, of_a_leader_keeps_its_election)
{
    hf_client *client = core_open("ttl=4s&renew=off");
    struct leader leader = {0};
    hf_election *election;
    hf_error err;

    core_auto();
    ASSERT_OK(
        hf_elect_start(client, "a", NULL, lead_again, &leader, &election, &err),
        &err);
    ASSERT_GE(hf_dispatch(client), 0);
    ASSERT_EQ(leader.held, 1);
    core_advance_ms(4500);
    ASSERT_GE(hf_dispatch(client), 0);
    ASSERT_EQ(leader.lost, 1);
    ASSERT_EQ(hf_elect_check(election), HF_HELD);
    ASSERT_EQ(leader.held, 1); /* it went on, and was not elected anew */
    ASSERT_EQ(core_count(CORE_RELEASE), 0);
    ASSERT_OK(hf_elect_stop(election, &err), &err);
}

/* SPDX-License-Identifier: MIT */
/* What the public calls check, and how requests end. */
#include <stdlib.h>

#include "core_fixture.h"

TEST(request, wrong_options_are_refused_with_a_reason)
{
    hf_client *client = core_open("");
    hf_request *request;
    hf_hold *hold;
    hf_error err;
    hf_opts opts;
    static const struct {
        size_t offset;
        size_t size;
        int64_t value;
        const char *says;
    } wrong[] = {
        {offsetof(hf_opts, size), 4, 8, "HF_OPTS_INIT"},
        {offsetof(hf_opts, flags), 4, 1 << 20, "flags"},
        {offsetof(hf_opts, mode), 4, 9, "mode"},
        {offsetof(hf_opts, wait_ms), 8, -3, "wait_ms"},
        {offsetof(hf_opts, wait_ms), 8, INT64_MAX, "wait_ms"},
        {offsetof(hf_opts, ttl_ms), 8, 1, "ttl_ms"},
        {offsetof(hf_opts, ttl_ms), 8, -5, "ttl_ms"},
        {offsetof(hf_opts, max_hold_ms), 8, -2, "max_hold_ms"},
    };

    for (size_t i = 0; i < HF_COUNT_OF(wrong); i++) {
        hf_opts_init(&opts, sizeof(opts));
        memcpy((char *)&opts + wrong[i].offset, &wrong[i].value, wrong[i].size);
        ASSERT_RC(hf_acquire(client, "a", &opts, &hold, &err), HF_EINVAL, &err);
        ASSERT_HAS(err.text, wrong[i].says);
        ASSERT_RC(
            hf_acquire_start(client, "a", &opts, NULL, NULL, &request, &err),
            HF_EINVAL, &err);
    }
    hf_opts_init(&opts, sizeof(opts));
    opts.mode = HF_SLOT;
    ASSERT_RC(hf_acquire(client, "a", &opts, &hold, &err), HF_EINVAL, &err);
    opts.mode = HF_EXCLUSIVE;
    opts.owner = "";
    ASSERT_RC(hf_acquire(client, "a", &opts, &hold, &err), HF_EINVAL, &err);
    opts.owner = NULL;
    opts.note = "line\nbreak";
    ASSERT_RC(hf_acquire(client, "a", &opts, &hold, &err), HF_EINVAL, &err);
    ASSERT_RC(hf_acquire(client, "", NULL, &hold, &err), HF_EINVAL, &err);
    ASSERT_RC(hf_acquire(client, NULL, NULL, &hold, &err), HF_EINVAL, &err);
    ASSERT_RC(hf_acquire(NULL, "a", NULL, &hold, &err), HF_EINVAL, &err);
    ASSERT_EQ(core_count(CORE_ACQUIRE), 0);
}

TEST(request, options_of_a_later_header_must_be_unset)
{
    hf_client *client = core_open("");
    struct {
        hf_opts opts;
        uint64_t later;
    } bigger = {HF_OPTS_INIT, 0};
    hf_hold *hold;
    hf_error err;

    core_auto();
    bigger.opts.size = sizeof(bigger);
    ASSERT_OK(hf_acquire(client, "a", &bigger.opts, &hold, &err), &err);
    ASSERT_OK(hf_release(hold, &err), &err);
    bigger.later = 1;
    ASSERT_RC(hf_acquire(client, "a", &bigger.opts, &hold, &err),
              HF_EUNSUPPORTED, &err);
}

/* The struct of a program that was built with the first header. */
struct first_opts {
    uint32_t size, flags;
    int32_t mode, slots;
    int64_t wait_ms, ttl_ms, max_hold_ms;
    const char *owner, *note;
    void (*on_event)(hf_hold *hold, int state, void *ctx);
    void *ctx;
};

/* In memory that ends where they end, so that a sanitizer sees who reads on. */
static const hf_opts *old_opts(void)
{
    struct first_opts *opts = malloc(sizeof(*opts));

    ASSERT_NOT_NULL(opts);
    test_defer(free, opts);
    *opts = (struct first_opts){
        .size = sizeof(*opts), .wait_ms = 700, .owner = "alice"};
    return (const hf_opts *)(const void *)opts;
}

TEST(request, options_of_the_first_header_are_taken_everywhere)
{
    hf_client *client = core_open("");
    static const char *const names[] = {"a", "b"};
    const hf_opts *opts = old_opts();
    struct core_ask ask;
    hf_hold *hold;
    hf_error err;

    core_auto();
    ASSERT_EQ(sizeof(struct first_opts), offsetof(hf_opts, owner_id));
    ASSERT_OK(hf_acquire(client, "a", opts, &hold, &err), &err);
    ASSERT_STREQ(core_last(CORE_ACQUIRE)->owner, "alice");
    ASSERT_EQ(hf_hold_owner(hold), 0);
    ASSERT_OK(hf_release(hold, &err), &err);
    ASSERT_OK(hf_acquire_many(client, names, 2, opts, &hold, &err), &err);
    ASSERT_OK(hf_release(hold, &err), &err);
    core_ask_with(&ask, "a", opts);
    ASSERT_EQ(ask.rc, 0);
    core_end(&ask);
}

static void on_change(hf_hold *hold, int state, void *ctx)
{
    (void)hold;
    *(int *)ctx = state;
}

TEST(request, an_election_takes_the_options_of_the_first_header)
{
    hf_client *client = core_open("");
    hf_election *election;
    int state = -1;
    hf_error err;

    core_auto();
    ASSERT_OK(hf_elect_start(client, "a", old_opts(), on_change, &state,
                             &election, &err),
              &err);
    ASSERT_GE(hf_dispatch(client), 0);
    ASSERT_EQ(state, HF_HELD);
    ASSERT_OK(hf_elect_stop(election, &err), &err);
}

TEST(request, owners_are_ids_texts_or_threads_in_this_order)
{
    hf_client *client = core_open("");
    hf_opts opts = HF_OPTS_INIT;
    hf_hold *hold;
    hf_hold *again;
    hf_error err;

    core_auto();
    opts.wait_ms = 0;
    ASSERT_OK(hf_acquire(client, "a", &opts, &hold, &err), &err);
    opts.owner_id = hf_hold_owner(hold); /* the thread, named */
    opts.owner = "label";
    ASSERT_OK(hf_acquire(client, "a", &opts, &again, &err), &err);
    ASSERT_OK(hf_release(again, &err), &err);
    opts.owner_id = 0;
    ASSERT_RC(hf_acquire(client, "a", &opts, &again, &err), HF_EBUSY, &err);
    ASSERT_OK(hf_release(hold, &err), &err);
    opts.flags = HF_NEW_OWNER;
    ASSERT_OK(hf_acquire(client, "a", &opts, &hold, &err), &err);
    ASSERT_STREQ(core_last(CORE_ACQUIRE)->owner, "label");
    ASSERT_NE(hf_hold_owner(hold), 0);
    opts.flags = 0;
    ASSERT_RC(hf_acquire(client, "a", &opts, &again, &err), HF_EBUSY, &err);
    ASSERT_OK(hf_release(hold, &err), &err);
}

TEST(request, a_configured_wait_is_the_clients)
{
    struct core_ask ask;
    hf_opts opts = HF_OPTS_INIT;

    core_open("wait=700ms&max_hold=90s&ttl=4s");
    opts.wait_ms = HF_CONFIGURED;
    core_ask_with(&ask, "jobs", &opts);
    core_queued(core_last(CORE_ACQUIRE));
    core_advance_ms(699);
    ASSERT_EQ(ask.outcomes, 0);
    core_advance_ms(1);
    ASSERT_EQ(ask.rc, HF_ETIMEOUT);
    core_end(&ask);
    (void)core_take(&ask, "other", 1, 1);
    ASSERT_EQ(hf_ttl_ms(ask.hold), 4000);
    ASSERT_EQ(hf_max_hold_ms(ask.hold), 90000);
    core_end(&ask);
}

TEST(request, no_options_and_the_standard_ones_wait_alike)
{
    hf_opts opts = HF_OPTS_INIT;
    const hf_opts *const ways[] = {NULL, &opts};

    core_open("wait=700ms");
    for (size_t i = 0; i < 2; i++) {
        struct core_ask ask;

        core_ask_with(&ask, "jobs", ways[i]);
        core_queued(core_last(CORE_ACQUIRE));
        core_advance_ms(700);
        ASSERT_EQ(ask.rc, HF_ETIMEOUT);
        core_end(&ask);
    }
}

TEST(request, a_mode_that_the_engine_lacks_is_refused)
{
    hf_client *client;
    hf_opts opts = HF_OPTS_INIT;
    hf_hold *hold;
    hf_error err;

    core_traits(HF_CAP_FENCED, 0);
    client = core_open("");
    opts.mode = HF_SHARED;
    ASSERT_RC(hf_acquire(client, "a", &opts, &hold, &err), HF_EUNSUPPORTED,
              &err);
    opts.mode = HF_SLOT;
    opts.slots = 2;
    ASSERT_RC(hf_acquire(client, "a", &opts, &hold, &err), HF_EUNSUPPORTED,
              &err);
}

TEST(request, a_missing_capability_that_is_required_refuses_the_open)
{
    hf_client *client;
    hf_error err;

    (void)core_open("");
    ASSERT_RC(
        hf_open("test:?drive=app&require=distributed", NULL, &client, &err),
        HF_EUNSUPPORTED, &err);
    ASSERT_HAS(err.text, "distributed");
}

TEST(request, cancel_meets_the_grant_with_exactly_one_outcome)
{
    struct core_ask ask;

    core_open("");
    core_ask(&ask, "jobs", HF_FOREVER, NULL);
    hf_cancel(ask.request);
    hf_cancel(ask.request);                      /* twice is once */
    core_granted(core_last(CORE_ACQUIRE), 3, 1); /* too late by an instant */
    ASSERT_EQ(ask.outcomes, 1);
    ASSERT_EQ(ask.rc, HF_ECANCELED);
    core_end(&ask);

    core_ask(&ask, "other", HF_FOREVER, NULL);
    core_granted(core_last(CORE_ACQUIRE), 4, 1);
    hf_cancel(ask.request);
    core_advance_ms(0);
    ASSERT_EQ(ask.outcomes, 1);
    ASSERT_EQ(ask.rc, 0);
    ASSERT_EQ(hf_check(ask.hold), HF_HELD);
    core_end(&ask);
}

TEST(request, freeing_an_open_one_cancels_it_without_a_callback)
{
    struct core_ask ask;

    core_open("");
    core_ask(&ask, "jobs", HF_FOREVER, NULL);
    hf_request_free(ask.request);
    core_advance_ms(0);
    ASSERT_EQ(ask.outcomes, 0);
    ASSERT_EQ(core_count(CORE_WITHDRAW), 1);
}

TEST(request, an_outcome_that_nobody_took_is_released)
{
    hf_client *client = core_open("");
    hf_request *request;
    hf_error err;

    core_auto();
    ASSERT_OK(
        hf_acquire_start(client, "jobs", NULL, NULL, NULL, &request, &err),
        &err);
    ASSERT_EQ(hf_request_pending(request), 0);
    hf_request_free(request);
    ASSERT_EQ(core_count(CORE_RELEASE), 1);
}

TEST(request, wait_gives_the_hold_to_the_first_who_asks)
{
    hf_client *client = core_open("");
    hf_request *request;
    hf_hold *hold;
    hf_error err;

    core_auto();
    ASSERT_OK(
        hf_acquire_start(client, "jobs", NULL, NULL, NULL, &request, &err),
        &err);
    ASSERT_OK(hf_request_wait(request, 0, &hold, &err), &err);
    ASSERT_RC(hf_request_wait(request, 0, &hold, &err), HF_EINVAL, &err);
    ASSERT_OK(hf_release(hold, &err), &err);
    hf_request_free(request);
}

TEST(request, a_wait_that_runs_out_leaves_the_request_alive)
{
    hf_client *client = core_open("");
    hf_request *request;
    hf_hold *hold;
    hf_error err;

    ASSERT_OK(
        hf_acquire_start(client, "jobs", NULL, NULL, NULL, &request, &err),
        &err);
    ASSERT_RC(hf_request_wait(request, 0, &hold, &err), HF_ETIMEOUT, &err);
    ASSERT_EQ(hf_request_pending(request), 1);
    core_granted(core_last(CORE_ACQUIRE), 8, 1);
    ASSERT_OK(hf_request_wait(request, 0, &hold, &err), &err);
    core_auto();
    ASSERT_OK(hf_release(hold, &err), &err);
    hf_request_free(request);
}

TEST(request, owner_and_note_reach_the_engine_and_long_ones_are_kept)
{
    struct core_ask ask;
    hf_opts opts = HF_OPTS_INIT;
    char owner[HF_OWNER_MAX + 1];

    core_open("note=standard");
    memset(owner, 'o', sizeof(owner));
    owner[HF_OWNER_MAX] = '\0';
    opts.owner = owner;
    opts.note = "nightly";
    core_ask_with(&ask, "jobs", &opts);
    memset(owner, 'x', HF_OWNER_MAX); /* borrowed for the call only */
    ASSERT_EQ(strlen(core_last(CORE_ACQUIRE)->owner), HF_OWNER_MAX);
    ASSERT_TRUE(core_last(CORE_ACQUIRE)->owner[0] == 'o');
    ASSERT_STREQ(core_last(CORE_ACQUIRE)->note, "nightly");
    core_end(&ask);
    core_ask(&ask, "other", HF_FOREVER, NULL);
    ASSERT_STREQ(core_last(CORE_ACQUIRE)->note, "standard");
    ASSERT_HAS(core_last(CORE_ACQUIRE)->owner, "thread ");
    core_end(&ask);
}

/* ---- why a wait was in vain ------------------------------------------------- */

TEST(reason, a_timeout_names_the_holder_that_the_engine_named_last)
{
    struct core_ask ask;

    core_open("");
    core_ask(&ask, "a", 700, NULL);
    core_busy(core_last(CORE_ACQUIRE), 0, "db1:7 (first)");
    core_advance_ms(600);
    core_busy(core_last(CORE_ACQUIRE), core_now_ns() + HF_SECOND,
              "db2:9 (second)");
    core_advance_ms(100);
    ASSERT_EQ(ask.rc, HF_ETIMEOUT);
    ASSERT_HAS(ask.err.text, "'a' is still held by db2:9 (second)");
    core_end(&ask);
}

TEST(reason, a_wait_without_an_answer_tells_what_went_wrong_last)
{
    struct core_ask ask;

    core_open("");
    core_ask(&ask, "a", 700, NULL);
    core_failed(core_last(CORE_ACQUIRE), HF_EUNAVAILABLE);
    core_advance_ms(700);
    ASSERT_EQ(ask.rc, HF_EUNAVAILABLE);
    ASSERT_HAS(ask.err.text, "acquire 'a': reported by the test");
    core_end(&ask);
    core_ask(&ask, "a", 700, NULL);
    core_busy(core_last(CORE_ACQUIRE), 0, NULL);
    core_advance_ms(600);
    core_failed(core_last(CORE_ACQUIRE), HF_EUNAVAILABLE);
    core_advance_ms(100);
    ASSERT_EQ(ask.rc, HF_ETIMEOUT);
    ASSERT_HAS(ask.err.text, "reported by the test");
    core_end(&ask);
}

static void start_to_wait(struct core_ask *ask)
{
    core_ask(ask, "a", 700, NULL);
    core_queued(core_last(CORE_ACQUIRE));
    core_advance_ms(700);
    ASSERT_EQ(ask->outcomes, 0); /* it asks who keeps it */
}

static void answer_list(int rc)
{
    static const hf_lock_info rows[] = {
        {.role = HF_WAITER, .name = "a", .owner = "w", .host = "db3"},
        {.role = HF_HOLDER,
         .name = "a",
         .owner = "h",
         .host = "db4",
         .pid = 4,
         .note = "vacuum"},
    };

    for (size_t i = 0; rc == 0 && i < HF_COUNT_OF(rows); i++)
        ASSERT_EQ(hf__query_add_lock(core_query(), &rows[i]), 0);
    core_answer(rc);
}

TEST(reason, an_engine_that_lists_is_asked_when_the_time_is_over)
{
    hf_client *client;
    struct core_ask ask;

    core_traits(HF_CAP_FENCED | HF_CAP_LEASED | HF_CAP_LIST, 0);
    client = core_open("");
    start_to_wait(&ask);
    answer_list(0);
    ASSERT_EQ(ask.rc, HF_ETIMEOUT);
    ASSERT_HAS(ask.err.text, "'a' is still held by db4:4 (h), \"vacuum\"");
    core_left(core_last(CORE_WITHDRAW), 0);
    core_end(&ask);
    start_to_wait(&ask);
    answer_list(HF_EUNAVAILABLE);
    ASSERT_EQ(ask.rc, HF_ETIMEOUT);
    core_left(core_last(CORE_WITHDRAW), 0);
    core_end(&ask);
    start_to_wait(&ask);
    core_advance_ms(200);
    ASSERT_EQ(ask.rc, HF_ETIMEOUT);
    answer_list(0); /* nobody waits for it any more */
    core_left(core_last(CORE_WITHDRAW), 0);
    core_end(&ask);
    start_to_wait(&ask);
    hf_cancel(ask.request);
    ASSERT_GE(hf_dispatch(client), 0);
    ASSERT_EQ(ask.rc, HF_ECANCELED);
    answer_list(0);
    core_left(core_last(CORE_WITHDRAW), 0);
    core_end(&ask);
    ASSERT_EQ(core_count(CORE_QUERY), 4);
}

TEST(reason, a_grant_while_it_is_asked_for_is_a_grant)
{
    struct core_ask ask;

    core_traits(HF_CAP_FENCED | HF_CAP_LEASED | HF_CAP_LIST, 0);
    core_open("");
    start_to_wait(&ask);
    core_granted(core_last(CORE_ACQUIRE), 7, 1);
    ASSERT_EQ(ask.rc, 0);
    ASSERT_EQ(hf_check(ask.hold), HF_HELD);
    answer_list(0);
    core_advance_ms(300);
    ASSERT_EQ(ask.outcomes, 1);
    core_end(&ask);
}

TEST(hold, a_second_reference_sees_that_it_was_released)
{
    struct core_ask ask;
    hf_hold *hold;
    hf_hold *second;

    core_open("");
    core_auto();
    core_ask(&ask, "jobs", HF_FOREVER, NULL);
    hold = ask.hold;
    ask.hold = NULL;
    second = hf_hold_ref(hold);
    ASSERT_EQ(hf_release(hold, NULL), 0);
    ASSERT_EQ(hf_check(second), HF_RELEASED);
    ASSERT_EQ(hf_remaining_ms(second), 0);
    ASSERT_EQ(hf_release(second, NULL), 0);
    ASSERT_EQ(core_count(CORE_RELEASE), 1);
    core_end(&ask);
}

TEST(hold, verify_asks_the_engine)
{
    struct core_ask ask;
    hf_error err;

    core_open("ttl=3s&io_timeout=20ms");
    (void)core_take(&ask, "jobs", 3, 1);
    core_refuse(CORE_RENEW, HF_EUNAVAILABLE);
    ASSERT_RC(hf_verify(ask.hold, &err), HF_EUNAVAILABLE, &err);
    ASSERT_EQ(core_count(CORE_RENEW), 1);
    core_stop_ms(4000);
    ASSERT_RC(hf_verify(ask.hold, &err), HF_ELOST, &err);
    core_end(&ask);
}

TEST(hold, downgrade_is_refused_where_there_is_nothing_to_downgrade)
{
    struct core_ask ask;
    hf_opts opts = HF_OPTS_INIT;
    hf_error err;

    core_open("");
    core_auto();
    opts.mode = HF_SHARED;
    core_ask_with(&ask, "jobs", &opts);
    ASSERT_OK(hf_downgrade(ask.hold, &err), &err); /* it is shared */
    core_end(&ask);
    opts.mode = HF_SLOT;
    opts.slots = 2;
    core_ask_with(&ask, "jobs", &opts);
    ASSERT_RC(hf_downgrade(ask.hold, &err), HF_EUNSUPPORTED, &err);
    core_end(&ask);
}

TEST(many, takes_all_or_nothing_in_one_order)
{
    hf_client *client = core_open("");
    static const char *const names[] = {"c", "a", "b"};
    static const char *const twice[] = {"a", "b", "a"};
    hf_hold *hold;
    hf_error err;

    core_auto();
    ASSERT_OK(hf_acquire_many(client, names, 3, NULL, &hold, &err), &err);
    ASSERT_EQ(hf_token(hold), 0);
    ASSERT_LT(hf_token_at(hold, 1), hf_token_at(hold, 2));
    ASSERT_LT(hf_token_at(hold, 2), hf_token_at(hold, 0));
    ASSERT_EQ(hf_token_at(hold, 3), 0);
    ASSERT_STREQ(hf_hold_name(hold), "c");
    ASSERT_EQ(hf_check(hold), HF_HELD);
    ASSERT_OK(hf_release(hold, &err), &err);
    ASSERT_EQ(core_count(CORE_RELEASE), 3);
    ASSERT_RC(hf_acquire_many(client, twice, 3, NULL, &hold, &err), HF_EINVAL,
              &err);
    ASSERT_RC(hf_acquire_many(client, names, 0, NULL, &hold, &err), HF_EINVAL,
              &err);
    ASSERT_EQ(core_count(CORE_ACQUIRE), 3);
}

TEST(many, is_lost_when_one_member_is)
{
    hf_client *client = core_open("");
    static const char *const names[] = {"a", "b"};
    hf_hold *hold;
    hf_error err;

    core_auto();
    ASSERT_OK(hf_acquire_many(client, names, 2, NULL, &hold, &err), &err);
    core_lost(core_last(CORE_ACQUIRE));
    ASSERT_EQ(hf_check(hold), HF_LOST);
    ASSERT_RC(hf_release(hold, &err), HF_ELOST, &err);
    ASSERT_EQ(core_count(CORE_RELEASE), 1);
}

TEST(shutdown, by_close_says_farewell_to_the_engine)
{
    (void)core_open("");
    core_close();
    ASSERT_EQ(core_count(CORE_FINISH), 1);
}

TEST(shutdown, by_close_says_no_farewell_to_an_engine_that_does_not_answer)
{
    struct core_ask ask;
    int64_t before_ns;

    (void)core_open("io_timeout=3s");
    (void)core_take(&ask, "jobs", 7, 1);
    before_ns = core_now_ns();
    core_close();
    ASSERT_EQ(core_count(CORE_RELEASE), 1);
    ASSERT_EQ(core_count(CORE_FINISH), 0);
    ASSERT_EQ((core_now_ns() - before_ns) / HF_MS, 3000);
    core_end(&ask);
}

TEST(shutdown, ends_every_gate_that_it_meets)
{
    struct core_ask asks[40];
    hf_client *client = core_open("");
    char name[24];
    hf_error err;

    core_auto();
    for (int i = 0; i < 40; i++) {
        (void)snprintf(name, sizeof(name), "name %d", i);
        core_ask(&asks[i], name, 0, NULL);
        ASSERT_EQ(asks[i].rc, 0);
    }
    core_end(&asks[7]); /* its gate stays, idle, among the others */
    ASSERT_OK(hf_shutdown(client, 1000, &err), &err);
    ASSERT_EQ(client->gates_count, 0);
    ASSERT_EQ(core_count(CORE_RELEASE), 40);
    for (int i = 0; i < 40; i++) {
        if (i != 7)
            ASSERT_EQ(hf_check(asks[i].hold), HF_RELEASED);
        core_end(&asks[i]);
    }
}

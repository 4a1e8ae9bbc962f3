/* SPDX-License-Identifier: MIT */
/* async.c - release, verify, open and list without waiting; and what else a
 * binding needs: one attempt, no cap, the lost hold once more. */
#include <poll.h>
#include <pthread.h>

#include "contract.h"

struct told {
    struct event done;
    hf_hold *hold;
    int rows;
    int rows_before; /* when done was called */
    int stop_after;  /* rows; 0: never */
    char text[256];
};

static void on_done(int rc, hf_hold *hold, const hf_error *err, void *ctx)
{
    struct told *told = ctx;

    told->hold = hold;
    told->rows_before = told->rows;
    if ((rc == 0) != (err == NULL) || (err && err->code != rc))
        rc = 1234;
    if (err)
        (void)snprintf(told->text, sizeof(told->text), "%s", err->text);
    event_tell(&told->done, rc);
}

static int on_row(const hf_lock_info *info, void *ctx)
{
    struct told *told = ctx;

    told->rows++;
    if (info->alive > HF_ALIVE_UNKNOWN)
        return 77;
    return told->stop_after && told->rows == told->stop_after ? 42 : 0;
}

#define TOLD                                                                   \
    {                                                                          \
        .done = EVENT_INIT                                                     \
    }

static hf_request *release_start(hf_hold *hold, hf_done_cb *done, void *ctx)
{
    hf_request *request;
    hf_error err;

    ASSERT_OK(hf_release_start(hold, done, ctx, &request, &err), &err);
    return request;
}

static hf_request *verify_start(hf_hold *hold, hf_done_cb *done, void *ctx)
{
    hf_request *request;
    hf_error err;

    ASSERT_OK(hf_verify_start(hold, done, ctx, &request, &err), &err);
    return request;
}

/* ---- release ------------------------------------------------------------- */

TEST(async, a_started_release_is_told_and_the_lock_is_free)
{
    struct told told = TOLD;
    struct rivals at = contract_rivals("jobs");
    hf_hold *hold = contract_acquire(at.client, at.name);
    hf_hold *second = hf_hold_ref(hold);
    hf_request *request = release_start(hold, on_done, &told);

    ASSERT_EQ(hf_check(second), HF_RELEASED); /* at once, for everybody */
    event_await(&told.done, 1, EVENT_PATIENCE_MS);
    ASSERT_EQ(told.done.values[0], 0);
    ASSERT_NULL(told.hold);
    ASSERT_EQ(hf_request_pending(request), 0);
    hf_request_free(request);
    ASSERT_EQ(contract_try(at.rival, at.name, HF_EXCLUSIVE, 0), 0);
    hf_hold_unref(second);
}

TEST(async, a_started_release_can_be_waited_for)
{
    hf_client *client = contract_open(NULL);
    const char *name = contract_name("jobs");
    hf_error err;

    for (int i = 0; i < 20; i++) {
        hf_request *request =
            release_start(contract_acquire(client, name), NULL, NULL);

        ASSERT_OK(hf_request_wait(request, EVENT_PATIENCE_MS, NULL, &err),
                  &err);
        hf_request_free(request);
    }
}

TEST(async, a_release_that_nobody_waits_for_arrives)
{
    struct rivals at = contract_rivals("jobs");

    for (int i = 0; i < 5; i++) {
        hf_request_free(
            release_start(contract_acquire(at.client, at.name), NULL, NULL));
        client_release(contract_acquire(at.rival, at.name));
    }
}

TEST(async, a_cancelled_release_is_unknown_and_goes_on)
{
    hf_client *client = contract_open_url(
        contract_wrapped_url("fault", "fault=release:delay=700ms@1"));
    hf_client *rival = contract_open(NULL);
    const char *name = contract_name("jobs");
    hf_request *request =
        release_start(contract_acquire(client, name), NULL, NULL);
    hf_error err;

    hf_cancel(request);
    ASSERT_RC(hf_request_wait(request, EVENT_PATIENCE_MS, NULL, &err),
              HF_EUNKNOWN, &err);
    hf_request_free(request);
    client_release(contract_acquire(rival, name));
}

TEST(async, a_release_of_a_multi_lock_frees_every_name)
{
    struct told told = TOLD;
    hf_client *client = contract_open(NULL);
    const char *names[3] = {contract_name("c"), contract_name("a"),
                            contract_name("b")};
    hf_request *request;
    hf_hold *hold;
    hf_error err;

    ASSERT_OK(hf_acquire_many(client, names, 3, NULL, &hold, &err), &err);
    request = verify_start(hold, on_done, &told);
    event_await(&told.done, 1, EVENT_PATIENCE_MS);
    ASSERT_EQ(told.done.values[0], 0);
    hf_request_free(request);
    request = release_start(hold, on_done, &told);
    event_await(&told.done, 2, EVENT_PATIENCE_MS);
    ASSERT_EQ(told.done.values[1], 0);
    hf_request_free(request);
    for (int i = 0; i < 3; i++)
        ASSERT_EQ(contract_try(client, names[i], HF_EXCLUSIVE, 0), 0);
}

TEST(async, a_release_of_a_lost_hold_says_so)
{
    struct told told = TOLD;
    hf_client *client = contract_open("ttl=1500ms&renew=off");
    hf_hold *hold;
    hf_request *request;

    NEEDS(HF_CAP_LEASED);
    if (contract_can(HF_CAP_SESSION_BOUND))
        return; /* one lease for all is renewed all the same */
    hold = contract_acquire(client, contract_name("jobs"));
    EVENTUALLY(hf_check(hold) == HF_LOST);
    request = release_start(hold, on_done, &told);
    event_await(&told.done, 1, EVENT_PATIENCE_MS);
    ASSERT_EQ(told.done.values[0], HF_ELOST);
    ASSERT_HAS(told.text, "lost");
    hf_request_free(request);
}

TEST(async, a_release_that_cannot_be_started_releases_all_the_same)
{
    hf_client *client = contract_open(NULL);
    const char *name = contract_name("jobs");
    hf_hold *hold = contract_acquire(client, name);
    hf_request *request;

    ASSERT_EQ(hf_release_start(hold, NULL, NULL, NULL, NULL), HF_EINVAL);
    EVENTUALLY(contract_try(client, name, HF_EXCLUSIVE, 0) == 0);
    hold = contract_acquire(client, name);
    contract_close(client);
    ASSERT_EQ(hf_release_start(hold, NULL, NULL, &request, NULL), HF_ECLOSED);
    ASSERT_EQ(hf_release_start(NULL, NULL, NULL, &request, NULL), HF_EINVAL);
}

/* ---- verify -------------------------------------------------------------- */

TEST(async, a_verification_is_told_with_the_hold)
{
    struct told told = TOLD;
    hf_client *client = contract_open(NULL);
    hf_hold *hold = contract_acquire(client, contract_name("jobs"));
    hf_request *request = verify_start(hold, on_done, &told);
    hf_error err;

    event_await(&told.done, 1, EVENT_PATIENCE_MS);
    ASSERT_EQ(told.done.values[0], 0);
    ASSERT_PTR_EQ(told.hold, hold);
    hf_request_free(request);
    request = verify_start(hold, NULL, NULL);
    ASSERT_OK(hf_request_wait(request, EVENT_PATIENCE_MS, NULL, &err), &err);
    hf_request_free(request);
    client_release(hold);
}

TEST(async, a_verification_and_a_release_take_effect_in_order)
{
    struct told told = TOLD;
    hf_client *client = contract_open(NULL);
    const char *name = contract_name("jobs");
    hf_hold *hold = contract_acquire(client, name);
    hf_request *first = verify_start(hold, on_done, &told);
    hf_request *second = release_start(hold, on_done, &told);

    event_await(&told.done, 2, EVENT_PATIENCE_MS);
    ASSERT_EQ(told.done.values[0], 0);
    ASSERT_EQ(told.done.values[1], 0);
    hf_request_free(first);
    hf_request_free(second);
    ASSERT_EQ(contract_try(client, name, HF_EXCLUSIVE, 0), 0);
}

TEST(async, a_verification_after_the_release_says_that_it_is_gone)
{
    hf_client *client = contract_open(NULL);
    hf_hold *hold = contract_acquire(client, contract_name("jobs"));
    hf_hold *second = hf_hold_ref(hold);
    hf_request *request;
    hf_error err;

    client_release(hold);
    request = verify_start(second, NULL, NULL);
    ASSERT_RC(hf_request_wait(request, EVENT_PATIENCE_MS, NULL, &err), HF_ELOST,
              &err);
    hf_request_free(request);
    hf_hold_unref(second);
}

/* The request's own reference is the last one. */
TEST(async, a_verification_keeps_the_hold_until_it_is_told)
{
    struct told told = TOLD;
    hf_client *client = contract_open(NULL);
    const char *name = contract_name("jobs");
    hf_hold *hold = contract_acquire(client, name);
    hf_request *request = verify_start(hold, on_done, &told);

    hf_hold_unref(hold);
    event_await(&told.done, 1, EVENT_PATIENCE_MS);
    hf_request_free(request);
    EVENTUALLY(contract_try(client, name, HF_EXCLUSIVE, 0) == 0);
}

/* ---- list ----------------------------------------------------------------- */

static hf_request *list_start(hf_client *client, const char *name,
                              hf_done_cb *done, struct told *told)
{
    hf_request *request;
    hf_error err;

    ASSERT_OK(hf_list_start(client, name, HF_EXACT, on_row, done, told,
                            &request, &err),
              &err);
    return request;
}

TEST(async, a_list_tells_all_rows_and_then_its_end)
{
    struct told told = TOLD;
    hf_client *client = contract_open(NULL);
    const char *name = contract_name("jobs");
    hf_request *request;
    hf_hold *hold;
    hf_error err;

    NEEDS(HF_CAP_LIST);
    hold = contract_acquire(client, name);
    request = list_start(client, name, on_done, &told);
    event_await(&told.done, 1, EVENT_PATIENCE_MS);
    ASSERT_EQ(told.done.values[0], 0);
    ASSERT_EQ(told.rows_before, 1);
    hf_request_free(request);
    request = list_start(client, name, NULL, &told);
    ASSERT_OK(hf_request_wait(request, EVENT_PATIENCE_MS, NULL, &err), &err);
    ASSERT_EQ(told.rows, 2);
    hf_request_free(request);
    told.stop_after = 3;
    request = list_start(client, name, on_done, &told);
    event_await(&told.done, 2, EVENT_PATIENCE_MS);
    ASSERT_EQ(told.done.values[1], 42);
    hf_request_free(request);
    request = list_start(client, name, NULL, &told);
    hf_request_free(request); /* no row comes */
    ASSERT_EQ(told.rows, 3);
    client_release(hold);
}

TEST(async, a_list_with_wrong_arguments_is_refused)
{
    hf_client *client = contract_open(NULL);
    struct told told = TOLD;
    hf_request *request = NULL;

    ASSERT_EQ(hf_list_start(NULL, "", 0, on_row, NULL, &told, &request, NULL),
              HF_EINVAL);
    ASSERT_EQ(hf_list_start(client, "", 0, NULL, NULL, &told, &request, NULL),
              HF_EINVAL);
    ASSERT_EQ(hf_list_start(client, "", 0, on_row, NULL, &told, NULL, NULL),
              HF_EINVAL);
    ASSERT_EQ(hf_list_start(client, "", 2, on_row, NULL, &told, &request, NULL),
              HF_EINVAL);
    ASSERT_EQ(hf_list_start(client, NULL, HF_EXACT, on_row, NULL, &told,
                            &request, NULL),
              HF_EINVAL);
    ASSERT_NULL(request);
}

/* ---- open ----------------------------------------------------------------- */

TEST(async, a_client_that_is_being_opened_can_be_used_at_once)
{
    struct told told = TOLD;
    const char *name = contract_name("jobs");
    hf_client *client;
    hf_request *request;
    hf_hold *hold;
    hf_error err;

    ASSERT_OK(hf_open_start(contract_url(NULL), NULL, on_done, &told, &client,
                            &request, &err),
              &err);
    hold = contract_acquire(client, name);
    event_await(&told.done, 1, EVENT_PATIENCE_MS);
    ASSERT_EQ(told.done.values[0], 0);
    ASSERT_NE(hf_capabilities(client), 0);
    client_release(hold);
    hf_request_free(request);
    hf_close(client);
}

TEST(async, an_opening_can_be_waited_for_and_outlives_the_client)
{
    hf_client *client;
    hf_request *request;
    hf_error err;

    ASSERT_OK(hf_open_start(contract_url(NULL), NULL, NULL, NULL, &client,
                            &request, &err),
              &err);
    ASSERT_OK(hf_request_wait(request, EVENT_PATIENCE_MS, NULL, &err), &err);
    hf_close(client);
    ASSERT_OK(hf_request_wait(request, 0, NULL, &err), &err);
    hf_request_free(request);
}

TEST(async, an_opening_that_fails_leaves_a_client_to_close)
{
    const char *url = contract_wrapped_url(
        "fault", "fault=connect:fail@1-1000&connect_timeout=300ms");
    struct told told = TOLD;
    hf_client *client;
    hf_request *request;
    hf_error err;

    ASSERT_OK(hf_open_start(url, NULL, on_done, &told, &client, &request, &err),
              &err);
    event_await(&told.done, 1, EVENT_PATIENCE_MS);
    ASSERT_EQ(told.done.values[0], HF_EUNAVAILABLE);
    hf_request_free(request);
    hf_close(client);
}

TEST(async, an_opening_is_cancelled_freed_and_ended_by_close)
{
    const char *url =
        contract_wrapped_url("fault", "fault=connect:fail@1-1000");
    struct told told = TOLD;
    hf_client *client;
    hf_request *request;
    hf_error err;

    ASSERT_OK(hf_open_start(url, NULL, on_done, &told, &client, &request, &err),
              &err);
    hf_cancel(request);
    event_await(&told.done, 1, EVENT_PATIENCE_MS);
    ASSERT_EQ(told.done.values[0], HF_ECANCELED);
    hf_request_free(request);
    hf_close(client);
    ASSERT_OK(hf_open_start(url, NULL, on_done, &told, &client, &request, &err),
              &err);
    hf_close(client);
    ASSERT_EQ(event_count(&told.done), 2); /* before close returned */
    ASSERT_EQ(told.done.values[1], HF_ECLOSED);
    hf_request_free(request);
    ASSERT_OK(hf_open_start(url, NULL, on_done, &told, &client, &request, &err),
              &err);
    hf_request_free(request);
    hf_close(client);
    ASSERT_EQ(event_count(&told.done), 2);
}

TEST(async, an_opening_of_nonsense_is_refused_at_once)
{
    hf_client *client = NULL;
    hf_request *request = NULL;

    ASSERT_EQ(
        hf_open_start("nonsense:", NULL, NULL, NULL, &client, &request, NULL),
        HF_EUNSUPPORTED);
    ASSERT_NULL(client);
    ASSERT_NULL(request);
}

/* ---- the program's own loop ------------------------------------------------ */

TEST(async, everything_goes_through_dispatch)
{
    struct told told = TOLD;
    hf_client *client = contract_open("drive=app");
    struct pollfd poller = {.fd = hf_event_fd(client), .events = POLLIN};
    hf_hold *hold = contract_acquire(client, contract_name("jobs"));
    hf_request *verify = verify_start(hold, on_done, &told);
    hf_request *release = release_start(hold, on_done, &told);

    ASSERT_EQ(event_count(&told.done), 0);
    while (event_count(&told.done) < 2) {
        (void)poll(&poller, 1, 1000);
        ASSERT_GE(hf_dispatch(client), 0);
    }
    ASSERT_EQ(told.done.values[0], 0);
    ASSERT_EQ(told.done.values[1], 0);
    hf_request_free(verify);
    hf_request_free(release);
}

/* ---- small things ----------------------------------------------------------- */

TEST(async, a_try_is_one_attempt)
{
    struct rivals at = contract_rivals("jobs");
    hf_hold *hold;
    hf_hold *other;
    hf_error err;
    int rc = hf_try(at.client, at.name, &hold, &err);

    if (rc == HF_EUNSUPPORTED)
        return; /* there are slots only */
    ASSERT_OK(rc, &err);
    ASSERT_RC(hf_try(at.rival, at.name, &other, &err), HF_EBUSY, &err);
    client_release(hold);
    ASSERT_EQ(hf_try(NULL, at.name, &hold, NULL), HF_EINVAL);
}

TEST(async, a_configured_cap_can_be_lifted)
{
    hf_client *client = contract_open("max_hold=90s");
    hf_hold *hold = contract_acquire(client, contract_name("capped"));

    ASSERT_EQ(hf_max_hold_ms(hold), 90000);
    client_release(hold);
    ASSERT_OK(hf_acquire(client, contract_name("uncapped"),
                         OPTS(HF_CONFIGURED, .max_hold_ms = HF_FOREVER), &hold,
                         NULL),
              NULL);
    ASSERT_EQ(hf_max_hold_ms(hold), 0);
    client_release(hold);
}

/* ---- the lost hold once more -------------------------------------------------- */

static void on_log(int level, const char *text, void *ctx)
{
    if (level == HF_LOG_WARNING && strstr(text, "lost '") != NULL)
        event_tell(ctx, level);
}

/* Somebody takes it away, and the holder notices. */
static void lose(hf_client *rival, const char *name, hf_hold *hold)
{
    hf_error err;

    ASSERT_OK(hf_break(rival, name, hf_token(hold), NULL, &err), &err);
    (void)hf_verify(hold, NULL);
    EVENTUALLY(hf_check(hold) == HF_LOST);
}

TEST(async, a_lost_hold_is_acquired_again_by_its_owner)
{
    const char *name = contract_name("jobs");
    hf_client *client = contract_open(NULL);
    hf_client *rival = contract_open(NULL);
    hf_opts opts = HF_OPTS_INIT;
    hf_hold *theirs;
    hf_hold *hold;
    hf_error err;
    uint64_t token;

    NEEDS(HF_CAP_BREAK | HF_CAP_FENCED);
    opts.owner_id = hf_owner_new();
    opts.max_hold_ms = 600000;
    ASSERT_OK(hf_acquire(client, name, &opts, &hold, &err), &err);
    token = hf_token(hold);
    ASSERT_RC(hf_reacquire(hold, 0, &err), HF_EINVAL, &err);
    lose(rival, name, hold);
    ASSERT_EQ(hf_hold_owner(hold), opts.owner_id);
    theirs = contract_acquire(rival, name);
    ASSERT_RC(hf_reacquire(hold, 0, &err), HF_EBUSY, &err);
    ASSERT_EQ(hf_check(hold), HF_LOST);
    client_release(theirs);
    ASSERT_OK(hf_reacquire(hold, EVENT_PATIENCE_MS, &err), &err);
    ASSERT_EQ(hf_check(hold), HF_HELD);
    ASSERT_GT(hf_token(hold), token);
    ASSERT_EQ(hf_hold_owner(hold), opts.owner_id);
    ASSERT_EQ(hf_max_hold_ms(hold), 600000);
    ASSERT_OK(hf_verify(hold, &err), &err);
    ASSERT_EQ(contract_try(rival, name, HF_EXCLUSIVE, 0), HF_EBUSY);
    client_release(hold);
    ASSERT_EQ(contract_try(rival, name, HF_EXCLUSIVE, 0), 0);
}

TEST(async, a_log_hook_of_a_client_hears_it_alone)
{
    struct event own = EVENT_INIT;
    struct event others = EVENT_INIT;
    const char *name = contract_name("jobs");
    hf_client *rival = contract_open(NULL);
    hf_config *config;
    hf_client *client;
    hf_hold *hold;
    hf_error err;

    NEEDS(HF_CAP_BREAK | HF_CAP_FENCED);
    config = hf_config_new();
    hf_config_set_log(config, on_log, HF_LOG_WARNING, &own);
    hf_set_log(on_log, HF_LOG_WARNING, &others);
    ASSERT_OK(hf_open(contract_url(NULL), config, &client, &err), &err);
    hf_config_free(config);
    hold = contract_acquire(client, name);
    lose(rival, name, hold);
    ASSERT_EQ(hf_release(hold, NULL), HF_ELOST);
    hf_close(client);
    hf_set_log(NULL, 0, NULL);
    ASSERT_EQ(event_count(&own), 1);
    ASSERT_EQ(event_count(&others), 0);
}

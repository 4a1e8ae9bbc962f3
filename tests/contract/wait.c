/* SPDX-License-Identifier: MIT */
/* wait.c - trying, waiting, giving up: and nothing is left behind. */
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>

#include "contract.h"

/* So long that a busy engine has answered: without an answer it is called
 * unreachable, not busy. */
enum { WAIT_MS = 1000 };

static int acquire_within(hf_client *client, const char *name, int64_t wait_ms,
                          hf_error *err)
{
    hf_hold *hold;
    int rc;

    rc = hf_acquire(client, name, OPTS(wait_ms, .owner = "impatient"), &hold,
                    err);
    if (rc == 0)
        client_release(hold);
    return rc;
}

static void assert_only_the_holder(hf_client *client, const char *name)
{
    if (!contract_can(HF_CAP_LIST))
        return;
    EVENTUALLY(client_count(client, name, HF_WAITER) == 0);
    ASSERT_EQ(client_count(client, name, HF_HOLDER), 1);
}

TEST(wait, a_try_that_fails_says_who_holds_it)
{
    struct rivals at = contract_rivals("jobs");
    hf_hold *hold = contract_acquire(at.client, at.name);
    hf_error err;

    ASSERT_RC(acquire_within(at.rival, at.name, 0, &err), HF_EBUSY, &err);
    ASSERT_EQ(err.code, HF_EBUSY);
    ASSERT_HAS(err.text, "held");
    assert_only_the_holder(at.client, at.name);
    client_release(hold);
}

TEST(wait, a_wait_that_runs_out_leaves_nothing_behind)
{
    struct rivals at = contract_rivals("jobs");
    hf_hold *hold = contract_acquire(at.client, at.name);
    int64_t before = clock_ms();
    hf_error err;

    ASSERT_RC(acquire_within(at.rival, at.name, WAIT_MS, &err), HF_ETIMEOUT,
              &err);
    ASSERT_GE(clock_ms() - before, WAIT_MS - 1);
    assert_only_the_holder(at.client, at.name);
    ASSERT_RC(acquire_within(at.client, at.name, WAIT_MS, &err), HF_ETIMEOUT,
              &err);
    assert_only_the_holder(at.client, at.name);
    client_release(hold);
    /* Where nobody can be seen in line, who gave up may be on its way out; but
     * not for as long as a lease. */
    ASSERT_RC(acquire_within(at.rival, at.name,
                             contract_can(HF_CAP_LIST) ? 0 : 10000, &err),
              0, &err);
}

TEST(wait, a_wait_that_runs_out_says_who_kept_it)
{
    struct rivals at = contract_rivals("jobs");
    hf_opts opts = HF_OPTS_INIT;
    hf_request *request;
    hf_hold *hold;
    hf_hold *got;
    hf_error err;

    opts.owner = "the keeper";
    ASSERT_OK(hf_acquire(at.client, at.name, &opts, &hold, &err), &err);
    ASSERT_RC(acquire_within(at.rival, at.name, WAIT_MS, &err), HF_ETIMEOUT,
              &err);
    if (contract_can(HF_CAP_LIST))
        ASSERT_HAS(err.text, "the keeper");
    opts.owner = NULL;
    opts.wait_ms = WAIT_MS;
    ASSERT_OK(
        hf_acquire_start(at.rival, at.name, &opts, NULL, NULL, &request, &err),
        &err);
    ASSERT_RC(hf_request_wait(request, EVENT_PATIENCE_MS, &got, &err),
              HF_ETIMEOUT, &err);
    if (contract_can(HF_CAP_LIST))
        ASSERT_HAS(err.text, "the keeper");
    hf_request_free(request);
    ASSERT_RC(acquire_within(at.client, at.name, 20, &err), HF_ETIMEOUT, &err);
    ASSERT_HAS(err.text, "in this process");
    assert_only_the_holder(at.client, at.name);
    client_release(hold);
}

TEST(wait, the_configured_wait_applies_where_none_is_given)
{
    hf_client *client = contract_open("wait=1s");
    const char *name = contract_name("jobs");
    hf_hold *hold = contract_acquire(contract_open(NULL), name);
    int64_t before = clock_ms();
    hf_hold *got;
    hf_error err;

    ASSERT_RC(hf_acquire(client, name, WITHIN(HF_CONFIGURED), &got, &err),
              HF_ETIMEOUT, &err);
    ASSERT_RC(hf_acquire(client, name, NULL, &got, &err), HF_ETIMEOUT, &err);
    ASSERT_GE(clock_ms() - before, 2 * WAIT_MS - 2);
    client_release(hold);
}

struct waiting {
    hf_client *client;
    const char *name;
    struct event done;
    int64_t got_ms;
};

static void *wait_thread(void *arg)
{
    struct waiting *waiting = arg;
    hf_hold *hold = contract_acquire(waiting->client, waiting->name);

    waiting->got_ms = clock_ms();
    event_tell(&waiting->done, 0);
    client_release(hold);
    return NULL;
}

TEST(wait, a_release_ends_the_wait)
{
    struct waiting waiting = {.client = contract_open(NULL),
                              .name = contract_name("jobs"),
                              .done = EVENT_INIT};
    hf_client *client = contract_open(NULL);
    hf_hold *hold = contract_acquire(client, waiting.name);
    pthread_t thread;
    int64_t released_ms;

    ASSERT_EQ(pthread_create(&thread, NULL, wait_thread, &waiting), 0);
    EVENTUALLY(contract_metric(waiting.client, "holdfast_waiting{") == 1);
    ASSERT_EQ(event_count(&waiting.done), 0);
    released_ms = clock_ms();
    client_release(hold);
    (void)pthread_join(thread, NULL);
    if (contract_can(HF_CAP_PUSH))
        ASSERT_LT(waiting.got_ms - released_ms, 5000); /* nobody polls */
}

/* ---- requests ----------------------------------------------------------- */

static hf_request *start(hf_client *client, const char *name, int64_t wait_ms,
                         hf_done_cb *done, void *ctx)
{
    hf_request *request;
    hf_error err;

    ASSERT_OK(hf_acquire_start(client, name, WITHIN(wait_ms), done, ctx,
                               &request, &err),
              &err);
    return request;
}

TEST(wait, a_cancelled_request_leaves_nothing_behind)
{
    struct rivals at = contract_rivals("jobs");
    hf_hold *hold = contract_acquire(at.client, at.name);
    hf_request *request = start(at.rival, at.name, HF_FOREVER, NULL, NULL);
    hf_hold *got = NULL;
    hf_error err;

    ASSERT_EQ(hf_request_pending(request), 1);
    ASSERT_RC(hf_request_wait(request, 20, &got, &err), HF_ETIMEOUT, &err);
    ASSERT_EQ(hf_request_pending(request), 1);
    hf_cancel(request);
    ASSERT_RC(hf_request_wait(request, 5000, &got, &err), HF_ECANCELED, &err);
    ASSERT_EQ(hf_request_pending(request), 0);
    hf_cancel(request); /* too late, and harmless */
    hf_request_free(request);
    assert_only_the_holder(at.client, at.name);
    client_release(hold);
}

static hf_request *volatile to_cancel;

static void cancel_it(int number)
{
    (void)number;
    hf_cancel(to_cancel);
}

static void restore_signal(void *arg)
{
    (void)arg;
    (void)signal(SIGUSR1, SIG_DFL);
}

TEST(wait, a_signal_handler_may_cancel)
{
    struct rivals at = contract_rivals("jobs");
    hf_hold *hold = contract_acquire(at.client, at.name);
    hf_hold *got;
    hf_error err;

    to_cancel = start(at.rival, at.name, HF_FOREVER, NULL, NULL);
    (void)signal(SIGUSR1, cancel_it);
    test_defer(restore_signal, NULL);
    ASSERT_EQ(raise(SIGUSR1), 0);
    ASSERT_RC(hf_request_wait(to_cancel, 5000, &got, &err), HF_ECANCELED, &err);
    hf_request_free(to_cancel);
    client_release(hold);
}

TEST(wait, a_request_ends_with_its_own_wait)
{
    struct rivals at = contract_rivals("jobs");
    hf_hold *hold = contract_acquire(at.client, at.name);
    hf_request *request = start(at.rival, at.name, 300, NULL, NULL);
    hf_hold *got;
    hf_error err;

    ASSERT_RC(hf_request_wait(request, 5000, &got, &err), HF_ETIMEOUT, &err);
    ASSERT_EQ(hf_request_pending(request), 0);
    hf_request_free(request);
    client_release(hold);
}

TEST(wait, an_outcome_that_nobody_took_is_released)
{
    hf_client *client = contract_open(NULL);
    const char *name = contract_name("jobs");
    hf_request *request = start(client, name, HF_FOREVER, NULL, NULL);

    EVENTUALLY(!hf_request_pending(request));
    ASSERT_EQ(contract_try(client, name, HF_EXCLUSIVE, 0), HF_EBUSY);
    hf_request_free(request);
    hf_request_free(NULL);
    EVENTUALLY(contract_try(client, name, HF_EXCLUSIVE, 0) == 0);
}

TEST(wait, a_freed_request_is_cancelled_without_a_callback)
{
    struct event done = EVENT_INIT;
    struct rivals at = contract_rivals("jobs");
    hf_hold *hold = contract_acquire(at.client, at.name);
    hf_request *request = start(at.rival, at.name, HF_FOREVER, NULL, &done);

    hf_request_free(request);
    assert_only_the_holder(at.client, at.name);
    client_release(hold);
    ASSERT_EQ(event_count(&done), 0);
}

/* ---- arguments ---------------------------------------------------------- */

static int acquire_with(hf_client *client, const char *name,
                        const hf_opts *opts)
{
    hf_hold *hold = NULL;
    hf_error err;
    int rc = hf_acquire(client, name, opts, &hold, &err);

    if (rc == 0)
        client_release(hold);
    else
        ASSERT_NULL(hold);
    return rc;
}

TEST(wait, wrong_arguments_are_refused)
{
    hf_client *client = contract_open(NULL);
    const char *name = contract_name("jobs");
    hf_opts opts = HF_OPTS_INIT;
    hf_hold *hold;

    ASSERT_EQ(hf_acquire(NULL, name, NULL, &hold, NULL), HF_EINVAL);
    ASSERT_EQ(hf_acquire(client, NULL, NULL, &hold, NULL), HF_EINVAL);
    ASSERT_EQ(hf_acquire(client, name, NULL, NULL, NULL), HF_EINVAL);
    opts.wait_ms = HF_CONFIGURED - 1;
    ASSERT_EQ(acquire_with(client, name, &opts), HF_EINVAL);
    opts.wait_ms = HF_DURATION_MAX + 1;
    ASSERT_EQ(acquire_with(client, name, &opts), HF_EINVAL);
    opts.wait_ms = 0;
    opts.ttl_ms = -1;
    ASSERT_EQ(acquire_with(client, name, &opts), HF_EINVAL);
    opts.ttl_ms = 0;
    opts.max_hold_ms = HF_FOREVER - 1;
    ASSERT_EQ(acquire_with(client, name, &opts), HF_EINVAL);
    opts.max_hold_ms = 0;
    opts.mode = 7;
    ASSERT_EQ(acquire_with(client, name, &opts), HF_EINVAL);
    opts.mode = HF_SLOT;
    opts.slots = 0;
    ASSERT_EQ(acquire_with(client, name, &opts), HF_EINVAL);
    opts.slots = HF_SLOTS_MAX + 1;
    ASSERT_EQ(acquire_with(client, name, &opts), HF_EINVAL);
    opts.mode = HF_EXCLUSIVE;
    opts.flags = 1u << 31;
    ASSERT_EQ(acquire_with(client, name, &opts), HF_EINVAL);
    opts.flags = 0;
    opts.owner = "";
    ASSERT_EQ(acquire_with(client, name, &opts), HF_EINVAL);
    opts.owner = "a\nb";
    ASSERT_EQ(acquire_with(client, name, &opts), HF_EINVAL);
    opts.owner = NULL;
    opts.note = "a\x1b";
    ASSERT_EQ(acquire_with(client, name, &opts), HF_EINVAL);
    opts.note = NULL;
    ASSERT_EQ(acquire_with(client, name, &opts), 0);
}

TEST(wait, options_of_a_later_library_are_refused_only_if_set)
{
    hf_client *client = contract_open(NULL);
    const char *name = contract_name("jobs");
    struct {
        hf_opts opts;
        uint64_t later;
    } larger = {HF_OPTS_INIT, 0};

    larger.opts = *CONTRACT_OPTS(&larger.opts);
    larger.opts.size = (uint32_t)sizeof(larger);
    ASSERT_EQ(acquire_with(client, name, &larger.opts), 0);
    larger.later = 1;
    ASSERT_EQ(acquire_with(client, name, &larger.opts), HF_EUNSUPPORTED);
    larger.opts.size = 8;
    ASSERT_EQ(acquire_with(client, name, &larger.opts), HF_EINVAL);
}

TEST(wait, options_of_the_first_header_are_taken)
{
    hf_client *client = contract_open(NULL);
    const char *name = contract_name("jobs");
    hf_opts opts = HF_OPTS_INIT;

    opts = *CONTRACT_OPTS(&opts);
    opts.size = (uint32_t)offsetof(hf_opts, owner_id);
    opts.owner_id = 1;
    opts.priority = 1; /* nobody looks behind the end */
    opts.reserved = 1;
    ASSERT_EQ(acquire_with(client, name, &opts), 0);
    opts.size--;
    ASSERT_EQ(acquire_with(client, name, &opts), HF_EINVAL);
}

/* SPDX-License-Identifier: MIT */
/* life.c - callbacks, event loops, closing, forking, logging. */
#include <poll.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "contract.h"

/* ---- callbacks ---------------------------------------------------------- */

struct outcome {
    struct event done;
    hf_client *client;
    const char *name;
    hf_hold *hold;
    hf_hold *inner; /* acquired inside the callback */
    pthread_t thread;
};

#define OUTCOME(query)                                                         \
    {                                                                          \
        .done = EVENT_INIT, .client = contract_open(query),                    \
        .name = contract_name("jobs")                                          \
    }

static void on_done(int rc, hf_hold *hold, const hf_error *err, void *ctx)
{
    struct outcome *outcome = ctx;

    outcome->hold = hold;
    outcome->thread = pthread_self();
    if ((rc == 0) != (err == NULL))
        rc = 1234;
    event_tell(&outcome->done, rc);
}

static hf_request *start(struct outcome *outcome, hf_done_cb *done,
                         int64_t wait_ms)
{
    hf_request *request;
    hf_error err;

    ASSERT_OK(hf_acquire_start(outcome->client, outcome->name, WITHIN(wait_ms),
                               done, outcome, &request, &err),
              &err);
    return request;
}

static void assert_told(struct outcome *outcome, int rc)
{
    event_await(&outcome->done, 1, 5000);
    ASSERT_EQ(outcome->done.values[0], rc);
}

TEST(callback, runs_on_another_thread_with_the_hold)
{
    struct outcome outcome = OUTCOME(NULL);
    hf_request *request = start(&outcome, on_done, HF_FOREVER);

    assert_told(&outcome, 0);
    ASSERT_FALSE(pthread_equal(outcome.thread, pthread_self()));
    ASSERT_EQ(hf_check(outcome.hold), HF_HELD);
    ASSERT_EQ(hf_request_pending(request), 0);
    hf_request_free(request);
    client_release(outcome.hold);
}

TEST(callback, tells_of_failure_once)
{
    struct outcome outcome = OUTCOME(NULL);
    hf_hold *hold = contract_acquire(outcome.client, outcome.name);
    hf_request *request = start(&outcome, on_done, 20);

    assert_told(&outcome, HF_ETIMEOUT);
    ASSERT_NULL(outcome.hold);
    hf_cancel(request);
    ASSERT_TRUE(event_is_silent(&outcome.done, 2, 20));
    hf_request_free(request);
    client_release(hold);
}

TEST(callback, tells_of_cancellation)
{
    struct outcome outcome = OUTCOME(NULL);
    hf_hold *hold = contract_acquire(outcome.client, outcome.name);
    hf_request *request = start(&outcome, on_done, HF_FOREVER);

    ASSERT_TRUE(event_is_silent(&outcome.done, 1, 20));
    hf_cancel(request);
    assert_told(&outcome, HF_ECANCELED);
    hf_request_free(request);
    client_release(hold);
}

static void acquire_inside(int rc, hf_hold *hold, const hf_error *err,
                           void *ctx)
{
    struct outcome *outcome = ctx;

    (void)err;
    outcome->hold = hold;
    outcome->inner = contract_acquire(outcome->client, "another");
    client_release(outcome->inner);
    client_release(hold);
    event_tell(&outcome->done, rc);
}

TEST(callback, may_use_the_library)
{
    struct outcome outcome = OUTCOME(NULL);
    hf_request *request = start(&outcome, acquire_inside, HF_FOREVER);

    event_await(&outcome.done, 1, 5000);
    hf_request_free(request);
    ASSERT_EQ(contract_try(outcome.client, outcome.name, HF_EXCLUSIVE, 0), 0);
}

TEST(callback, wrong_arguments_start_nothing)
{
    hf_client *client = contract_open(NULL);
    hf_request *request = NULL;
    hf_hold *hold;

    ASSERT_EQ(hf_acquire_start(client, "", NULL, NULL, NULL, &request, NULL),
              HF_EINVAL);
    ASSERT_EQ(hf_acquire_start(NULL, "a", NULL, NULL, NULL, &request, NULL),
              HF_EINVAL);
    ASSERT_EQ(hf_acquire_start(client, "a", NULL, NULL, NULL, NULL, NULL),
              HF_EINVAL);
    ASSERT_NULL(request);
    ASSERT_EQ(hf_request_wait(NULL, 0, &hold, NULL), HF_EINVAL);
    hf_cancel(NULL);
}

/* ---- event loops -------------------------------------------------------- */

static void dispatch_until(hf_client *client, struct event *event, int count)
{
    struct pollfd poller = {.fd = hf_event_fd(client), .events = POLLIN};
    int64_t until = clock_ms() + EVENT_PATIENCE_MS;

    ASSERT_GE(poller.fd, 0);
    while (event_count(event) < count) {
        ASSERT_LT(clock_ms(), until);
        if (poll(&poller, 1, 1000) == 1)
            ASSERT_GE(hf_dispatch(client), 0);
    }
}

TEST(loop, callbacks_run_in_dispatch_once_the_descriptor_was_asked_for)
{
    struct outcome outcome = OUTCOME(NULL);
    hf_request *request;

    ASSERT_GE(hf_event_fd(outcome.client), 0);
    request = start(&outcome, on_done, HF_FOREVER);
    ASSERT_TRUE(event_is_silent(&outcome.done, 1, 50));
    dispatch_until(outcome.client, &outcome.done, 1);
    ASSERT_TRUE(pthread_equal(outcome.thread, pthread_self()));
    ASSERT_EQ(hf_dispatch(outcome.client), 0);
    hf_request_free(request);
    client_release(outcome.hold);
}

TEST(loop, an_application_can_drive_everything)
{
    struct outcome outcome = OUTCOME("drive=app");
    hf_client *rival = contract_open(NULL);
    hf_hold *hold = contract_acquire(rival, outcome.name);
    hf_request *request = start(&outcome, on_done, HF_FOREVER);

    ASSERT_GE(hf_dispatch(outcome.client), 0);
    ASSERT_EQ(event_count(&outcome.done), 0);
    client_release(hold);
    dispatch_until(outcome.client, &outcome.done, 1);
    ASSERT_EQ(outcome.done.values[0], 0);
    hf_request_free(request);
    client_release(outcome.hold);
}

struct asker {
    hf_client *client;
    const char *name;
    hf_request *request;
    int grants;
    bool enough;
};

static void ask_again(int rc, hf_hold *hold, const hf_error *err, void *ctx)
{
    struct asker *asker = ctx;

    ASSERT_OK(rc, err);
    client_release(hold);
    hf_request_free(asker->request);
    asker->request = NULL;
    asker->grants++;
    if (!asker->enough)
        ASSERT_EQ(hf_acquire_start(asker->client, asker->name, NULL, ask_again,
                                   asker, &asker->request, NULL),
                  0);
}

TEST(loop, dispatch_ends_though_every_callback_asks_again)
{
    struct asker asker = {.client = contract_open("drive=app"),
                          .name = contract_name("jobs")};
    int64_t until = clock_ms() + EVENT_PATIENCE_MS;

    ASSERT_EQ(hf_acquire_start(asker.client, asker.name, NULL, ask_again,
                               &asker, &asker.request, NULL),
              0);
    while (asker.request) {
        struct pollfd poller = {.fd = hf_event_fd(asker.client),
                                .events = POLLIN};

        ASSERT_LT(clock_ms(), until);
        asker.enough = asker.grants >= 5;
        if (poll(&poller, 1, 1000) == 1)
            ASSERT_GE(hf_dispatch(asker.client), 0);
    }
    ASSERT_GE(asker.grants, 6);
}

TEST(loop, dispatch_renews_and_no_dispatch_loses)
{
    struct event events = EVENT_INIT;
    hf_client *client;
    int64_t until;
    hf_hold *hold;

    NEEDS(HF_CAP_LEASED);
    client = contract_open("drive=app");
    hold =
        client_acquire_with(client, contract_name("jobs"),
                            OPTS(HF_CONFIGURED, .ttl_ms = 2000,
                                 .on_event = client_on_event, .ctx = &events));
    until = clock_ms() + 2500;
    while (clock_ms() < until) {
        struct pollfd poller = {.fd = hf_event_fd(client), .events = POLLIN};

        if (poll(&poller, 1, (int)(until - clock_ms()) + 1) == 1)
            ASSERT_GE(hf_dispatch(client), 0);
    }
    ASSERT_EQ(hf_check(hold), HF_HELD);
    EVENTUALLY(hf_check(hold) == HF_LOST);
    dispatch_until(client, &events, 1);
    EVENTUALLY(hf_dispatch(client) >= 0 &&
               events.values[event_count(&events) - 1] == HF_LOST);
    ASSERT_EQ(hf_release(hold, NULL), HF_ELOST);
}

/* ---- opening ------------------------------------------------------------ */

static void assert_opens_soon(const char *query)
{
    int64_t before = clock_ms();

    contract_close(contract_open_url(contract_wrapped_url("fault", query)));
    ASSERT_LT(clock_ms() - before, 20000);
}

TEST(open, a_first_connection_that_fails_is_tried_again)
{
    assert_opens_soon("connect_timeout=30s&fault=connect:fail@1-2");
}

TEST(open, a_late_connection_is_awaited)
{
    assert_opens_soon("connect_timeout=30s&fault=connect:delay=100ms");
}

TEST(open, no_connection_is_an_error_in_time)
{
    int64_t before = clock_ms();
    hf_client *client = NULL;
    hf_error err;
    const char *url = contract_wrapped_url(
        "fault", "connect_timeout=200ms&fault=connect:fail");

    ASSERT_RC(hf_open(url, NULL, &client, &err), HF_EUNAVAILABLE, &err);
    ASSERT_GE(clock_ms() - before, 199);
    ASSERT_LT(clock_ms() - before, 20000);
    ASSERT_NULL(client);
}

TEST(open, a_lazy_client_connects_when_it_is_used)
{
    hf_client *client = contract_open_url(
        contract_wrapped_url("fault", "connect=lazy&fault=connect:fail@1"));
    const char *name = contract_name("jobs");

    client_release(contract_acquire(client, name));
}

TEST(open, a_lock_delay_that_cannot_be_kept_is_refused_if_it_was_asked_for)
{
    hf_config *config = hf_config_new();
    hf_client *client;
    hf_error err;

    if (contract_can(HF_CAP_LOCK_DELAY)) {
        ASSERT_OK(hf_open(contract_url("lock_delay=1s"), NULL, &client, &err),
                  &err);
    } else {
        ASSERT_EQ(hf_open(contract_url("lock_delay=1s"), NULL, &client, &err),
                  HF_EUNSUPPORTED);
        ASSERT_HAS(err.text, "lock_delay");
        ASSERT_OK(hf_config_prefer(config, "lock_delay", "1s", &err), &err);
        ASSERT_OK(hf_open(contract_url(NULL), config, &client, &err), &err);
    }
    hf_close(client);
    hf_config_free(config);
}

TEST(open, wrong_credentials_are_final)
{
    int64_t before = clock_ms();
    hf_client *client;
    hf_error err;
    const char *url = contract_wrapped_url(
        "fault", "connect_timeout=30s&fault=connect:fail=EAUTH");

    ASSERT_RC(hf_open(url, NULL, &client, &err), HF_EAUTH, &err);
    ASSERT_LT(clock_ms() - before, 20000);
}

/* ---- closing ------------------------------------------------------------ */

struct blocked {
    hf_client *client;
    const char *name;
    int rc;
};

static void *block(void *arg)
{
    struct blocked *blocked = arg;
    hf_hold *hold;

    blocked->rc = hf_acquire(blocked->client, blocked->name, NULL, &hold, NULL);
    return NULL;
}

TEST(close, releases_holds_and_ends_waits)
{
    enum { WAITERS = 6 };
    struct rivals at = contract_rivals("mine");
    const char *theirs = contract_name("theirs");
    hf_hold *hold = contract_acquire(at.client, at.name);
    hf_hold *other = contract_acquire(at.rival, theirs);
    struct blocked blocked[WAITERS];
    pthread_t threads[WAITERS];

    for (int i = 0; i < WAITERS; i++) {
        blocked[i] = (struct blocked){at.client, theirs, 1};
        ASSERT_EQ(pthread_create(&threads[i], NULL, block, &blocked[i]), 0);
    }
    EVENTUALLY(contract_metric(at.client, "holdfast_waiting{") == WAITERS);
    contract_close(at.client);
    for (int i = 0; i < WAITERS; i++) {
        (void)pthread_join(threads[i], NULL);
        ASSERT_EQ(blocked[i].rc, HF_ECLOSED);
    }
    ASSERT_EQ(hf_check(hold), HF_RELEASED);
    ASSERT_EQ(contract_try(at.rival, at.name, HF_EXCLUSIVE, 0), 0);
    (void)hf_release(hold, NULL); /* only the handle is left */
    if (contract_can(HF_CAP_LIST))
        ASSERT_EQ(client_count(at.rival, theirs, HF_WAITER), 0);
    client_release(other);
}

TEST(close, shutdown_refuses_what_comes_after)
{
    struct rivals at = contract_rivals("jobs");
    hf_hold *hold = contract_acquire(at.client, at.name);
    hf_request *request;
    hf_error err;

    ASSERT_OK(hf_shutdown(at.client, 5000, &err), &err);
    ASSERT_EQ(contract_try(at.rival, at.name, HF_EXCLUSIVE, 0), 0);
    ASSERT_EQ(contract_try(at.client, at.name, HF_EXCLUSIVE, 0), HF_ECLOSED);
    ASSERT_EQ(
        hf_acquire_start(at.client, at.name, NULL, NULL, NULL, &request, &err),
        HF_ECLOSED);
    ASSERT_EQ(hf_check(hold), HF_RELEASED);
    ASSERT_OK(hf_shutdown(at.client, 5000, &err), &err);
    (void)hf_release(hold, NULL);
    ASSERT_TRUE(hf_is_fatal(HF_ECLOSED));
}

TEST(close, requests_outlive_the_client)
{
    struct outcome outcome = OUTCOME(NULL);
    hf_client *rival = contract_open(NULL);
    hf_hold *hold = contract_acquire(rival, outcome.name);
    hf_request *told = start(&outcome, on_done, HF_FOREVER);
    hf_request *untold = start(&outcome, NULL, HF_FOREVER);
    hf_hold *got;

    contract_close(outcome.client);
    assert_told(&outcome, HF_ECLOSED);
    ASSERT_EQ(hf_request_wait(untold, 0, &got, NULL), HF_ECLOSED);
    hf_cancel(untold);
    hf_request_free(told);
    hf_request_free(untold);
    client_release(hold);
}

TEST(close, of_nothing_is_nothing)
{
    hf_close(NULL);
    ASSERT_EQ(hf_shutdown(NULL, 0, NULL), HF_EINVAL);
    ASSERT_EQ(hf_release(NULL, NULL), HF_EINVAL);
    ASSERT_EQ(hf_check(NULL), HF_EINVAL);
}

/* ---- forking ------------------------------------------------------------ */

/* The call is made in a forked child, and has to answer 0 there. */
#define IN_A_CHILD(call)                                                       \
    do {                                                                       \
        pid_t child_pid;                                                       \
        int child_status;                                                      \
                                                                               \
        (void)fflush(stdout);                                                  \
        child_pid = fork();                                                    \
        ASSERT_GE(child_pid, 0);                                               \
        if (child_pid == 0)                                                    \
            _exit(call);                                                       \
        ASSERT_EQ(waitpid(child_pid, &child_status, 0), child_pid);            \
        ASSERT_TRUE(WIFEXITED(child_status));                                  \
        ASSERT_EQ(WEXITSTATUS(child_status), 0);                               \
    } while (0)

static int child_of_fork(hf_client *client, hf_hold *hold)
{
    hf_hold *got;

    if (hf_acquire(client, "a", NULL, &got, NULL) != HF_EFORK)
        return 1;
    if (hf_check(hold) != HF_EFORK)
        return 2;
    if (hf_verify(hold, NULL) != HF_EFORK)
        return 3;
    if (hf_release(hold, NULL) != HF_EFORK)
        return 4;
    if (hf_shutdown(client, 0, NULL) != HF_EFORK)
        return 5;
    hf_close(client);
    return 0;
}

TEST(fork, the_child_is_refused_and_the_parent_keeps_its_lock)
{
    hf_client *client = contract_open("ttl=1500ms");
    hf_client *rival = contract_open(NULL);
    const char *name = contract_name("jobs");
    hf_hold *hold = contract_acquire(client, name);

    IN_A_CHILD(child_of_fork(client, hold));
    ASSERT_EQ(hf_check(hold), HF_HELD);
    ASSERT_EQ(contract_try(rival, name, HF_EXCLUSIVE, 0), HF_EBUSY);
    ASSERT_OK(hf_verify(hold, NULL), NULL);
    client_release(hold);
}

static int child_opens_its_own(const char *url, const char *name)
{
    hf_client *client;
    hf_hold *hold;
    hf_opts opts = HF_OPTS_INIT;

    opts.wait_ms = 0;
    if (hf_open(url, NULL, &client, NULL) != 0)
        return 1;
    if (hf_acquire(client, name, &opts, &hold, NULL) != HF_EBUSY)
        return 2;
    if (hf_acquire(client, "the-child's-own", &opts, &hold, NULL) != 0)
        return 3;
    if (hf_release(hold, NULL) != 0)
        return 4;
    hf_close(client);
    return 0;
}

TEST(fork, the_child_may_open_a_client_of_its_own)
{
    hf_client *client = contract_open(NULL);
    const char *url = contract_url(NULL);
    const char *name = contract_name("jobs");
    hf_hold *hold = contract_acquire(client, name);

    if (test_under_tsan()) {
        test_not_tested("%s: the thread sanitizer cannot start threads in the "
                        "child",
                        test_name());
        client_release(hold);
        return;
    }
    IN_A_CHILD(child_opens_its_own(url, name));
    client_release(hold);
}

/* ---- the log ------------------------------------------------------------ */

struct log {
    pthread_mutex_t mutex;
    char text[16384];
    size_t len;
};

static struct log log_lines = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static void keep_line(int level, const char *text, void *ctx)
{
    struct log *log = ctx;
    size_t len = strlen(text);

    (void)level;
    (void)pthread_mutex_lock(&log->mutex);
    if (log->len + len + 2 < sizeof(log->text)) {
        memcpy(log->text + log->len, text, len);
        log->len += len;
        log->text[log->len++] = '\n';
        log->text[log->len] = '\0';
    }
    (void)pthread_mutex_unlock(&log->mutex);
}

static bool log_has(const char *part)
{
    bool has;

    (void)pthread_mutex_lock(&log_lines.mutex);
    has = strstr(log_lines.text, part) != NULL;
    (void)pthread_mutex_unlock(&log_lines.mutex);
    return has;
}

static void silence(void *arg)
{
    (void)arg;
    hf_set_log(NULL, 0, NULL);
    log_lines.len = 0;
    log_lines.text[0] = '\0';
}

TEST(log, a_loss_is_a_warning)
{
    hf_client *client;
    hf_hold *hold;

    hf_set_log(keep_line, HF_LOG_WARNING, &log_lines);
    test_defer(silence, NULL);
    client = contract_open_url(
        contract_wrapped_url("fault", "fault=hold:expire=20ms"));
    hold = contract_acquire(client, contract_name("jobs"));
    EVENTUALLY(log_has("lost 'jobs"));
    ASSERT_EQ(hf_release(hold, NULL), HF_ELOST);
}

TEST(log, a_traced_engine_tells_every_call)
{
    hf_client *client;
    const char *name = contract_name("jobs");

    hf_set_log(keep_line, HF_LOG_INFO, &log_lines);
    test_defer(silence, NULL);
    client = contract_open_url(contract_wrapped_url("trace", NULL));
    client_release(contract_acquire(client, name));
    EVENTUALLY(log_has("acquire 'jobs"));
    EVENTUALLY(log_has("→ granted token"));
    EVENTUALLY(log_has("release 'jobs"));
    EVENTUALLY(log_has("→ left"));
    EVENTUALLY(log_has("connect → connected"));
}

TEST(log, a_traced_engine_promises_the_same)
{
    hf_client *client = contract_open(NULL);
    hf_client *traced = contract_open_url(contract_wrapped_url("trace", NULL));

    ASSERT_EQ(hf_capabilities(traced), hf_capabilities(client));
    ASSERT_STREQ(hf_engine_name(traced), hf_engine_name(client));
}

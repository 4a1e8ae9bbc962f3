/* SPDX-License-Identifier: MIT */
/*
 * torture_test.c - every public call with the n-th allocation failing.
 *
 * Each scenario is run again and again, with the first, the second, the third
 * … allocation failing, until it runs through without reaching the failure.
 * Whatever fails: no crash, every byte given back, no lock left in the store.
 *
 * A step may answer what it always may, or HF_ENOMEM; a scenario goes on as
 * far as its steps succeed.
 */
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include "event.h"
#include "heap.h"
#include "tempdir.h"
#include "test.h"
#include "test_client.h"

enum { FAILURES_MAX = 2000 };

/* Where the clients of a scenario are. */
struct stage {
    const char *directory;
    char url[512];
};

typedef void scenario_fn(struct stage *stage);

#define LONG_TEXT                                                              \
    "a text of more than forty bytes, so that it does not fit into the handle"

/* 0 or HF_ENOMEM; true if the step was taken. */
static bool step(const char *what, int rc, const hf_error *err)
{
    if (rc == 0)
        return true;
    if (rc != HF_ENOMEM)
        FAIL("%s: %s: %s", what, hf_errname(rc), err->text);
    if (err->code != HF_ENOMEM || err->text[0] == '\0')
        FAIL("%s: HF_ENOMEM without an explanation", what);
    return false;
}

static hf_client *open_client(struct stage *stage, const char *wrapper,
                              const char *query)
{
    hf_client *client = NULL;
    hf_error err = {0, 0, ""};

    (void)snprintf(stage->url, sizeof(stage->url), "%slocal://%s%s", wrapper,
                   stage->directory, query);
    if (!step("open", hf_open(stage->url, NULL, &client, &err), &err))
        ASSERT_NULL(client);
    return client;
}

static hf_hold *acquire(hf_client *client, const char *name,
                        const hf_opts *opts)
{
    hf_hold *hold = NULL;
    hf_error err = {0, 0, ""};

    if (client &&
        !step("acquire", hf_acquire(client, name, opts, &hold, &err), &err))
        ASSERT_NULL(hold);
    return hold;
}

static void release(hf_hold *hold)
{
    hf_error err = {0, 0, ""};

    if (hold)
        ASSERT_OK(hf_release(hold, &err), &err);
}

/* ---- the machinery ------------------------------------------------------ */

static int count_rows(const hf_lock_info *info, void *ctx)
{
    (void)info;
    ++*(int *)ctx;
    return 0;
}

static void assert_store_is_empty(struct stage *stage)
{
    hf_client *client = open_client(stage, "", "");
    hf_error err;
    int rows = 0;

    ASSERT_OK(hf_list(client, NULL, count_rows, &rows, &err), &err);
    ASSERT_EQ(rows, 0);
    hf_close(client);
}

static void torture(scenario_fn *scenario)
{
    struct stage stage = {.directory = tempdir_new()};
    long before = heap_in_use();
    long n;

    for (n = 1; n <= FAILURES_MAX; n++) {
        heap_fail_at(n);
        scenario(&stage);
        if (!heap_has_failed())
            break;
        heap_fail_at(0);
        if (heap_in_use() != before)
            FAIL("%ld allocations are not given back when the %ld. fails",
                 heap_in_use() - before, n);
        assert_store_is_empty(&stage);
    }
    heap_fail_at(0);
    ASSERT_LE(n, FAILURES_MAX);
    ASSERT_EQ(heap_in_use(), before);
    assert_store_is_empty(&stage);
    test_note("%ld allocations", n - 1);
}

#define TORTURE(name_)                                                         \
    static void scenario_##name_(struct stage *stage);                         \
    TEST_FORKED(torture, name_)                                                \
    {                                                                          \
        torture(scenario_##name_);                                             \
    }                                                                          \
    static void scenario_##name_(struct stage *stage)

/* ---- clients and configuration ------------------------------------------ */

TORTURE(opening_and_closing)
{
    hf_close(open_client(stage, "", "?ttl=5s&prefix=p.&note=n"));
}

TORTURE(opening_behind_wrappers)
{
    hf_close(open_client(stage, "trace+fault+", "?fault=query:fail@9"));
}

TORTURE(opening_with_a_configuration)
{
    hf_config *config = hf_config_new();
    hf_client *client = NULL;
    hf_error err = {0, 0, ""};

    if (!config)
        return;
    (void)snprintf(stage->url, sizeof(stage->url), "local://%s",
                   stage->directory);
    if (step("set", hf_config_set(config, "ttl", "7s", &err), &err) &&
        step("set", hf_config_set(config, "ttl", "8s", &err), &err) &&
        step("set", hf_config_set(config, "note", LONG_TEXT, &err), &err))
        (void)hf_config_get(config, "ttl");
    (void)step("open", hf_open(stage->url, config, &client, &err), &err);
    hf_config_free(config);
    hf_close(client);
}

static void write_file(const char *path)
{
    static const char text[] = "ttl = 9s\n[lock a*]\nttl = 3s\nnote = x\n"
                               "[profile]\nwait = 1s\n";
    int fd = open(path, O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0600);

    ASSERT_GE(fd, 0);
    ASSERT_EQ(write(fd, text, sizeof(text) - 1), sizeof(text) - 1);
    (void)close(fd);
}

TORTURE(reading_a_configuration_file)
{
    hf_config *config = hf_config_new();
    hf_error err = {0, 0, ""};
    char path[512];

    if (!config)
        return;
    (void)snprintf(path, sizeof(path), "%s.ini", stage->directory);
    write_file(path);
    (void)step("load", hf_config_load(config, path, NULL, &err), &err);
    hf_config_free(config);
    (void)unlink(path);
}

TORTURE(refusing_a_wrong_url)
{
    hf_client *client;
    hf_error err;
    int rc = hf_open("nosuch://user:pw@host/path?x=y", NULL, &client, &err);

    (void)stage;
    ASSERT_TRUE(rc == HF_EUNSUPPORTED || rc == HF_ENOMEM || rc == HF_ECONFIG);
}

/* ---- locks -------------------------------------------------------------- */

TORTURE(acquiring_and_releasing)
{
    hf_client *client = open_client(stage, "", "");

    for (int i = 0; i < 3; i++)
        release(acquire(client, "jobs", NULL));
    release(acquire(client, LONG_TEXT, NULL));
    hf_close(client);
}

TORTURE(acquiring_with_every_option)
{
    hf_client *client = open_client(stage, "", "");
    hf_opts opts = HF_OPTS_INIT;
    hf_hold *outer;
    hf_hold *inner;

    opts.owner = LONG_TEXT;
    opts.note = LONG_TEXT;
    opts.ttl_ms = 5000;
    opts.max_hold_ms = 60000;
    outer = acquire(client, "jobs", &opts);
    inner = outer ? acquire(client, "jobs", &opts) : NULL;
    release(inner);
    release(outer);
    hf_close(client);
}

TORTURE(holding_many)
{
    hf_client *client = open_client(stage, "", "");
    hf_hold *holds[40];

    for (int i = 0; i < 40; i++) {
        char name[24];

        (void)snprintf(name, sizeof(name), "lock-%d", i);
        holds[i] = acquire(client, name, NULL);
    }
    for (int i = 0; i < 40; i++)
        release(holds[i]);
    hf_close(client);
}

TORTURE(leaving_a_hold_to_close)
{
    hf_client *client = open_client(stage, "", "");
    hf_hold *hold = acquire(client, "jobs", NULL);

    hf_close(client);
    if (hold)
        (void)hf_release(hold, NULL);
}

TORTURE(acquiring_several)
{
    static const char *const names[] = {"c", LONG_TEXT, "a"};
    hf_client *client = open_client(stage, "", "");
    hf_hold *hold = NULL;
    hf_error err = {0, 0, ""};

    if (client &&
        step("many", hf_acquire_many(client, names, 3, NULL, &hold, &err),
             &err))
        release(hold);
    hf_close(client);
}

TORTURE(sharing_downgrading_and_verifying)
{
    hf_client *client = open_client(stage, "", "");
    hf_opts opts = HF_OPTS_INIT;
    hf_hold *hold = acquire(client, "book", NULL);
    hf_error err = {0, 0, ""};

    if (hold) {
        (void)step("downgrade", hf_downgrade(hold, &err), &err);
        (void)step("verify", hf_verify(hold, &err), &err);
        release(hold);
    }
    opts.mode = HF_SLOT;
    opts.slots = 3;
    release(acquire(client, "pool", &opts));
    hf_close(client);
}

/* Two clients, of which the first holds "jobs", as far as there is memory. */
struct pair {
    hf_client *client;
    hf_client *rival;
    hf_hold *hold;
};

static struct pair open_pair(struct stage *stage)
{
    struct pair at = {.client = open_client(stage, "", "")};

    at.rival = open_client(stage, "", "");
    at.hold = acquire(at.client, "jobs", NULL);
    return at;
}

static void close_pair(struct pair *at)
{
    release(at->hold);
    hf_close(at->rival);
    hf_close(at->client);
}

TORTURE(waiting_in_vain)
{
    struct pair at = open_pair(stage);
    hf_opts opts = HF_OPTS_INIT;
    hf_hold *got = NULL;
    int rc;

    opts.wait_ms = 0;
    for (; at.hold && at.rival && opts.wait_ms < 2; opts.wait_ms++) {
        rc = hf_acquire(at.rival, "jobs", &opts, &got, NULL);
        ASSERT_TRUE(rc == HF_ENOMEM || rc == HF_EBUSY || rc == HF_ETIMEOUT ||
                    rc == HF_EUNAVAILABLE);
    }
    close_pair(&at);
}

static void ignore_event(hf_hold *hold, int state, void *ctx)
{
    (void)hold;
    (void)state;
    (void)ctx;
}

TORTURE(losing_a_lock_and_telling)
{
    hf_client *client = open_client(stage, "fault+", "?fault=hold:expire=1ms");
    hf_opts opts = HF_OPTS_INIT;
    hf_hold *hold;

    opts.on_event = ignore_event;
    hold = acquire(client, "jobs", &opts);
    if (hold) {
        EVENTUALLY(hf_check(hold) == HF_LOST);
        ASSERT_EQ(hf_release(hold, NULL), HF_ELOST);
    }
    hf_close(client);
}

/* ---- requests ----------------------------------------------------------- */

struct outcome {
    struct event done;
    hf_hold *hold;
};

static void on_done(int rc, hf_hold *hold, const hf_error *err, void *ctx)
{
    struct outcome *outcome = ctx;

    (void)err;
    outcome->hold = hold;
    event_tell(&outcome->done, rc);
}

TORTURE(asking_with_a_callback)
{
    struct outcome outcome = {.done = EVENT_INIT};
    hf_client *client = open_client(stage, "", "");
    hf_opts opts = HF_OPTS_INIT;
    hf_request *request = NULL;
    hf_error err = {0, 0, ""};

    opts.owner = LONG_TEXT;
    opts.note = LONG_TEXT;
    opts.on_event = ignore_event;
    if (client && step("start",
                       hf_acquire_start(client, "jobs", &opts, on_done,
                                        &outcome, &request, &err),
                       &err)) {
        event_await(&outcome.done, 1, EVENT_PATIENCE_MS);
        ASSERT_TRUE(outcome.done.values[0] == 0 ||
                    outcome.done.values[0] == HF_ENOMEM);
        hf_request_free(request);
        release(outcome.hold);
    }
    hf_close(client);
}

TORTURE(asking_waiting_and_cancelling)
{
    hf_client *client = open_client(stage, "", "");
    hf_client *rival = open_client(stage, "", "");
    hf_hold *hold = acquire(client, "jobs", NULL);
    hf_request *request = NULL;
    hf_hold *got = NULL;
    hf_error err = {0, 0, ""};

    if (rival && hold &&
        step("start",
             hf_acquire_start(rival, "jobs", NULL, NULL, NULL, &request, &err),
             &err)) {
        int rc = hf_request_wait(request, 1, &got, &err);

        ASSERT_TRUE(rc == HF_ETIMEOUT || rc == HF_ENOMEM);
        hf_cancel(request);
        rc = hf_request_wait(request, HF_FOREVER, &got, &err);
        ASSERT_TRUE(rc == HF_ECANCELED || rc == HF_ENOMEM);
        hf_request_free(request);
    }
    release(hold);
    hf_close(rival);
    hf_close(client);
}

/* The outcome of a request without callback: 0, @other or HF_ENOMEM. */
static void finish(hf_request *request, int other)
{
    hf_error err = {0, 0, ""};
    int rc = hf_request_wait(request, EVENT_PATIENCE_MS, NULL, &err);

    if (rc != 0 && rc != other && rc != HF_ENOMEM)
        FAIL("%s: %s", hf_errname(rc), err.text);
    hf_request_free(request);
}

/* A release that cannot be started releases all the same. */
TORTURE(releasing_and_verifying_without_waiting)
{
    static const char *const names[] = {"a", LONG_TEXT};
    hf_client *client = open_client(stage, "", "");
    hf_hold *hold = NULL;
    hf_request *request = NULL;
    hf_error err = {0, 0, ""};

    if (client &&
        step("many", hf_acquire_many(client, names, 2, NULL, &hold, &err),
             &err)) {
        if (step("verify", hf_verify_start(hold, NULL, NULL, &request, &err),
                 &err))
            finish(request, 0);
        if (step("release", hf_release_start(hold, NULL, NULL, &request, &err),
                 &err))
            finish(request, 0);
    }
    hf_close(client);
}

TORTURE(opening_and_listing_without_waiting)
{
    hf_client *client = NULL;
    hf_request *request = NULL;
    hf_error err = {0, 0, ""};
    hf_hold *hold;
    int rows = 0;

    (void)snprintf(stage->url, sizeof(stage->url), "local://%s",
                   stage->directory);
    if (!step("open",
              hf_open_start(stage->url, NULL, NULL, NULL, &client, &request,
                            &err),
              &err)) {
        ASSERT_NULL(client);
        return;
    }
    finish(request, 0);
    hold = acquire(client, "jobs", NULL);
    if (step("list",
             hf_list_start(client, LONG_TEXT, 0, count_rows, NULL, &rows,
                           &request, &err),
             &err))
        finish(request, 0);
    if (step("list",
             hf_list_start(client, "jobs", HF_EXACT, count_rows, NULL, &rows,
                           &request, &err),
             &err))
        finish(request, 0);
    release(hold);
    hf_close(client);
}

static void count_event(const hf_watch_event *event, void *ctx)
{
    (void)event;
    ++*(int *)ctx;
}

/* Looks, events and the end of a watch; what comes later is not awaited. */
TORTURE(watching)
{
    hf_client *client = open_client(stage, "", "?drive=app");
    hf_error err = {0, 0, ""};
    hf_hold *hold = acquire(client, "jobs", NULL);
    hf_watch *watch = NULL;
    int events = 0;

    if (client && step("watch",
                       hf_watch_start(client, LONG_TEXT, 0, count_event,
                                      &events, &watch, &err),
                       &err))
        for (int i = 0; i < 3; i++)
            ASSERT_GE(hf_dispatch(client), 0);
    hf_watch_stop(watch);
    watch = NULL;
    events = 0;
    if (client && step("watch",
                       hf_watch_start(client, "jobs", HF_EXACT, count_event,
                                      &events, &watch, &err),
                       &err))
        for (int i = 0; i < 3; i++)
            ASSERT_GE(hf_dispatch(client), 0);
    release(hold);
    hf_close(client);
    hf_watch_stop(watch);
}

TORTURE(acquiring_again_what_was_lost)
{
    hf_client *client = open_client(stage, "", "");
    hf_opts opts = HF_OPTS_INIT;
    hf_error err = {0, 0, ""};
    hf_hold *hold;
    int rc;

    opts.owner_id = hf_owner_new();
    opts.owner = LONG_TEXT;
    opts.note = LONG_TEXT;
    hold = acquire(client, "jobs", &opts);
    if (hold && hf_break(client, "jobs", hf_token(hold), NULL, &err) == 0) {
        (void)hf_verify(hold, NULL); /* which finds the loss */
        rc = hf_reacquire(hold, 0, &err);
        /* HF_EINVAL: its options could not be kept when it was lost. */
        ASSERT_TRUE(rc == 0 || rc == HF_ENOMEM || rc == HF_EINVAL);
        if (rc == 0)
            ASSERT_EQ(hf_check(hold), HF_HELD);
    }
    if (hold)
        (void)hf_release(hold, NULL); /* HF_ELOST if it stayed lost */
    hf_close(client);
}

TORTURE(a_started_wait_in_vain)
{
    struct pair at = open_pair(stage);
    hf_opts opts = HF_OPTS_INIT;
    hf_request *request = NULL;
    hf_error err = {0, 0, ""};

    opts.wait_ms = 1;
    if (at.rival && at.hold &&
        step("start",
             hf_acquire_start(at.rival, "jobs", &opts, NULL, NULL, &request,
                              &err),
             &err))
        finish(request, HF_ETIMEOUT);
    close_pair(&at);
}

TORTURE(dispatching)
{
    struct outcome outcome = {.done = EVENT_INIT};
    hf_client *client = open_client(stage, "", "?drive=app");
    hf_request *request = NULL;
    hf_error err = {0, 0, ""};

    if (client && hf_event_fd(client) >= 0 &&
        step("start",
             hf_acquire_start(client, "jobs", NULL, on_done, &outcome, &request,
                              &err),
             &err)) {
        EVENTUALLY(hf_dispatch(client) >= 0 && event_count(&outcome.done) > 0);
        hf_request_free(request);
        release(outcome.hold);
    }
    hf_close(client);
}

TORTURE(standing_for_election)
{
    hf_client *client = open_client(stage, "", "");
    hf_election *election = NULL;
    hf_opts opts = HF_OPTS_INIT;
    hf_error err = {0, 0, ""};

    opts.note = LONG_TEXT;
    if (client && step("elect",
                       hf_elect_start(client, "leader", &opts, ignore_event,
                                      NULL, &election, &err),
                       &err)) {
        EVENTUALLY(hf_elect_check(election) != HF_RELEASED);
        ASSERT_OK(hf_elect_stop(election, &err), &err);
    }
    hf_close(client);
}

/* ---- waiting on each other ----------------------------------------------- */

/* A wait that began ends, and its hold is held, lost or released. */
static void end_wait(hf_request *request)
{
    hf_error err = {0, 0, ""};
    int rc = hf_request_wait(request, 1000, NULL, &err);

    ASSERT_TRUE(rc == 0 || rc == HF_ENOMEM || rc == HF_ELOST ||
                rc == HF_ETIMEOUT || rc == HF_EUNAVAILABLE);
    hf_request_free(request);
}

/* One waits on a condition, the other wakes it, both by started requests; then
 * one waits in vain. */
TORTURE(waiting_on_a_condition_and_waking)
{
    static const char long_cond[] =
        "a condition of more than forty bytes of text";
    struct pair at = open_pair(stage);
    hf_request *wait = NULL;
    hf_request *signal = NULL;
    hf_error err = {0, 0, ""};
    hf_hold *own = NULL;

    if (at.hold && at.rival &&
        step("wait",
             hf_cond_wait_start(at.hold, long_cond, 500, NULL, NULL, &wait,
                                &err),
             &err)) {
        own = acquire(at.rival, "jobs", NULL);
        if (own && step("signal",
                        hf_cond_signal_start(own, long_cond, 1, NULL, NULL,
                                             &signal, &err),
                        &err)) {
            int rc = hf_request_wait(signal, EVENT_PATIENCE_MS, NULL, &err);

            ASSERT_TRUE(rc >= 0 || rc == HF_ENOMEM);
            hf_request_free(signal);
        }
        release(own);
        end_wait(wait);
    }
    if (at.hold && hf_check(at.hold) == HF_HELD)
        (void)hf_cond_wait(at.hold, long_cond, 1, NULL);
    if (at.hold)
        (void)hf_release(at.hold, NULL);
    at.hold = NULL;
    close_pair(&at);
}

/* Each waits for what the other one has: the detectors find it, and one of the
 * two gives way, or their time is over. */
TORTURE(waiting_for_each_other)
{
    static const char query[] = "?deadlock=break";
    hf_client *clients[2] = {open_client(stage, "", query),
                             open_client(stage, "", query)};
    hf_hold *a = acquire(clients[0], "a", NULL);
    hf_hold *b = acquire(clients[1], "b", NULL);
    hf_request *requests[2] = {NULL, NULL};
    hf_error err;

    for (int i = 0; i < 2 && a && b; i++) {
        hf_opts opts = HF_OPTS_INIT;

        opts.wait_ms = 1;
        if (hf_acquire_start(clients[i], i == 0 ? "b" : "a", &opts, NULL, NULL,
                             &requests[i], NULL) != 0)
            requests[i] = NULL;
    }
    if (a && b)
        (void)step("deadlocks",
                   hf_deadlocks(clients[0], client_ignore_cycle, NULL, &err),
                   &err);
    for (int i = 0; i < 2; i++)
        hf_request_free(requests[i]);
    release(a);
    release(b);
    hf_close(clients[1]);
    hf_close(clients[0]);
}

/* ---- looking ------------------------------------------------------------ */

static int ignore_finding(const hf_finding *finding, void *ctx)
{
    (void)finding;
    (void)ctx;
    return 0;
}

static void ignore_text(const char *text, size_t len, void *ctx)
{
    (void)text;
    (void)len;
    (void)ctx;
}

TORTURE(looking_at_locks)
{
    hf_client *client = open_client(stage, "", "");
    hf_hold *hold = acquire(client, "jobs", NULL);
    hf_error err = {0, 0, ""};
    int rows = 0;

    if (hold) {
        (void)step("list", hf_list(client, NULL, count_rows, &rows, &err),
                   &err);
        (void)step("show", hf_show(client, "jobs", count_rows, &rows, &err),
                   &err);
        (void)step("check",
                   hf_check_token(client, "jobs", hf_token(hold), &err), &err);
        (void)step("doctor", hf_doctor(client, ignore_finding, NULL, &err),
                   &err);
        ASSERT_TRUE(hf_metrics_write(client, ignore_text, NULL) == 0 ||
                    heap_has_failed());
    }
    release(hold);
    hf_close(client);
}

TORTURE(breaking_a_lock)
{
    hf_client *client = open_client(stage, "", "");
    hf_hold *hold = acquire(client, "jobs", NULL);
    hf_error err = {0, 0, ""};

    if (hold &&
        step("break", hf_break(client, "jobs", hf_token(hold), NULL, &err),
             &err)) {
        int rc = hf_release(hold, NULL);

        ASSERT_EQ(rc, HF_ELOST);
    } else {
        release(hold);
    }
    hf_close(client);
}

TORTURE(committing_versions)
{
    hf_client *client = open_client(stage, "", "");
    hf_error err = {0, 0, ""};
    uint64_t version = 0;

    if (client &&
        step("read", hf_version_read(client, "page", &version, &err), &err))
        (void)step("commit",
                   hf_version_commit(client, "page", version, &version, &err),
                   &err);
    hf_close(client);
}

TORTURE(working_behind_wrappers)
{
    hf_client *client = open_client(stage, "trace+fault+",
                                    "?fault=acquire:drop@1;release:drop@1");

    release(acquire(client, "jobs", NULL));
    release(acquire(client, "jobs", NULL));
    hf_close(client);
}

static void ignore_log(int level, const char *text, void *ctx)
{
    (void)level;
    (void)text;
    (void)ctx;
}

int main(int argc, char **argv)
{
    heap_install();
    hf_set_log(ignore_log, HF_LOG_DEBUG, NULL);
    return test_main(argc, argv);
}

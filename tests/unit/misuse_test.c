/* SPDX-License-Identifier: MIT */
/*
 * misuse_test.c - calls that make no sense: each is refused with an explanation,
 * and changes nothing.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/world.h"
#include "event.h"
#include "tempdir.h"
#include "test.h"
#include "test_client.h"

static const char *fresh_url(const char *query)
{
    return test_text("local://%s%s", tempdir_new(), query);
}

static hf_client *fresh_client(void)
{
    return client_open(fresh_url(""));
}

/* Refused, and the reason is told. */
static void refused(const char *call, int rc, int wanted, const hf_error *err)
{
    if (rc != wanted || err->code != wanted || err->text[0] == '\0')
        FAIL("%s: %s (%s), not %s", call, hf_errname(rc), err->text,
             hf_errname(wanted));
}

#define REFUSED(call, rc_)                                                     \
    do {                                                                       \
        hf_error err = {0, 0, ""};                                             \
        int refused_rc = call;                                                 \
                                                                               \
        refused(#call, refused_rc, rc_, &err);                                 \
    } while (0)

static void ignore_done(int rc, hf_hold *hold, const hf_error *err, void *ctx)
{
    (void)err;
    (void)hold;
    event_tell(ctx, rc);
}

static void ignore_change(hf_hold *hold, int state, void *ctx)
{
    (void)hold;
    (void)state;
    (void)ctx;
}

static void ignore_event(const hf_watch_event *event, void *ctx)
{
    (void)event;
    (void)ctx;
}

/* ---- nothing where something has to be --------------------------------------- */

TEST(null, is_no_client)
{
    hf_request *request;
    hf_client *client;

    REFUSED(hf_show(NULL, "jobs", client_ignore_lock, NULL, &err), HF_EINVAL);
    REFUSED(hf_check_token(NULL, "jobs", 1, &err), HF_EINVAL);
    REFUSED(hf_doctor(NULL, client_ignore_finding, NULL, &err), HF_EINVAL);
    REFUSED(hf_deadlocks(NULL, client_ignore_cycle, NULL, &err), HF_EINVAL);
    REFUSED(hf_open_start("local:", NULL, NULL, NULL, NULL, &request, &err),
            HF_EINVAL);
    REFUSED(hf_open_start("local:", NULL, NULL, NULL, &client, NULL, &err),
            HF_EINVAL);
    ASSERT_EQ(hf_event_fd(NULL), HF_EINVAL);
    ASSERT_EQ(hf_dispatch(NULL), HF_EINVAL);
    ASSERT_EQ(hf_engines(NULL, NULL), HF_EINVAL);
}

TEST(null, is_no_hold)
{
    hf_request *request;
    void *connection;

    ASSERT_EQ(hf_token(NULL), 0);
    ASSERT_EQ(hf_token_at(NULL, 0), 0);
    ASSERT_EQ(hf_remaining_ms(NULL), 0);
    ASSERT_EQ(hf_check(NULL), HF_EINVAL);
    ASSERT_EQ(hf_beat(NULL), HF_EINVAL);
    hf_hold_unref(NULL);
    REFUSED(hf_verify(NULL, &err), HF_EINVAL);
    REFUSED(hf_downgrade(NULL, &err), HF_EINVAL);
    REFUSED(hf_verify_start(NULL, NULL, NULL, &request, &err), HF_EINVAL);
    REFUSED(hf_sql_connection(NULL, &connection, &err), HF_EINVAL);
}

TEST(null, is_no_place_for_an_answer)
{
    hf_client *client = fresh_client();
    hf_hold *hold = client_acquire(client, "jobs");
    hf_request *request;

    REFUSED(hf_check_token(client, "jobs", 0, &err), HF_EINVAL);
    REFUSED(hf_show(client, "jobs", NULL, NULL, &err), HF_EINVAL);
    REFUSED(hf_doctor(client, NULL, NULL, &err), HF_EINVAL);
    REFUSED(hf_deadlocks(client, NULL, NULL, &err), HF_EINVAL);
    REFUSED(hf_cond_wait_start(hold, "c", 1, NULL, NULL, NULL, &err),
            HF_EINVAL);
    REFUSED(hf_cond_signal_start(hold, "c", 0, NULL, NULL, NULL, &err),
            HF_EINVAL);
    REFUSED(hf_verify_start(hold, NULL, NULL, NULL, &err), HF_EINVAL);
    REFUSED(hf_sql_connection(hold, NULL, &err), HF_EINVAL);
    REFUSED(
        hf_elect_start(client, "jobs", NULL, ignore_change, NULL, NULL, &err),
        HF_EINVAL);
    ASSERT_EQ(hf_check(hold), HF_HELD);
    request = client_start(client, "other");
    EVENTUALLY(!hf_request_pending(request));
    REFUSED(hf_request_wait(request, 0, NULL, &err), HF_EINVAL);
    client_release(client_finish(request)); /* it is still there */
    client_release(hold);
}

/* ---- at the wrong time ------------------------------------------------------- */

TEST(request, that_has_a_callback_is_not_waited_for)
{
    struct event done = EVENT_INIT;
    hf_client *client = fresh_client();
    hf_hold *hold = client_acquire(client, "jobs");
    hf_request *request;
    hf_error why;

    ASSERT_OK(hf_acquire_start(client, "jobs", NULL, ignore_done, &done,
                               &request, &why),
              &why);
    REFUSED(hf_request_wait(request, 0, NULL, &err), HF_EINVAL);
    hf_cancel(request);
    event_await(&done, 1, EVENT_PATIENCE_MS);
    ASSERT_EQ(done.values[0], HF_ECANCELED);
    hf_request_free(request);
    client_release(hold);
}

/* Until nobody else does. */
static void *wait_for_it(void *request)
{
    while (hf_request_wait(request, HF_FOREVER, NULL, NULL) == HF_EINVAL)
        event_breathe();
    return NULL;
}

TEST(request, that_a_thread_waits_for_is_no_other_threads)
{
    hf_client *client = fresh_client();
    hf_hold *hold = client_acquire(client, "jobs");
    hf_request *wait = client_wait_start(hold, "c");
    pthread_t thread;
    hf_error err;

    ASSERT_EQ(pthread_create(&thread, NULL, wait_for_it, wait), 0);
    EVENTUALLY(hf_request_wait(wait, 1, NULL, &err) == HF_EINVAL);
    hf_cancel(wait);
    ASSERT_EQ(pthread_join(thread, NULL), 0);
    hf_request_free(wait);
    (void)hf_release(hold, NULL);
}

TEST(hold, of_many_locks_is_neither_downgraded_nor_acquired_again)
{
    static const char *const names[] = {"a", "b"};
    hf_client *client = fresh_client();
    hf_hold *hold;
    hf_error why;
    void *connection;

    ASSERT_OK(hf_acquire_many(client, names, 2, NULL, &hold, &why), &why);
    REFUSED(hf_downgrade(hold, &err), HF_EUNSUPPORTED);
    REFUSED(hf_reacquire(hold, 0, &err), HF_EUNSUPPORTED);
    REFUSED(hf_sql_connection(hold, &connection, &err), HF_EUNSUPPORTED);
    ASSERT_GT(hf_remaining_ms(hold), 0);
    ASSERT_EQ(hf_check(hold), HF_HELD);
    client_release(hold);
}

TEST(hold, that_waits_on_a_condition_has_nothing_to_verify)
{
    hf_client *client = fresh_client();
    hf_hold *hold = client_acquire(client, "jobs");
    hf_request *wait = client_wait_start(hold, "c");
    hf_error why;

    ASSERT_EQ(hf_check(hold), HF_WAITING);
    ASSERT_RC(hf_verify(hold, &why), HF_EINVAL, &why);
    ASSERT_HAS(why.text, "waits on a condition");
    ASSERT_EQ(hf_beat(hold), 0);
    ASSERT_EQ(hf_check(hold), HF_WAITING);
    hf_request_free(wait);
    (void)hf_release(hold, NULL);
}

TEST(watch, of_names_that_are_too_long_is_refused)
{
    hf_client *client = fresh_client();
    char name[HF_NAME_MAX + 2];
    hf_watch *watch;

    memset(name, 'x', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    REFUSED(hf_watch_start(client, name, 0, ignore_event, NULL, &watch, &err),
            HF_EINVAL);
}

/* ---- after the end ------------------------------------------------------------- */

static void is_closed(hf_client *client, hf_hold *hold)
{
    static const char *const names[] = {"a", "b"};
    hf_request *request;
    hf_watch *watch;
    hf_hold *other;

    REFUSED(hf_acquire_many(client, names, 2, NULL, &other, &err), HF_ECLOSED);
    REFUSED(hf_deadlocks(client, client_ignore_cycle, NULL, &err), HF_ECLOSED);
    REFUSED(hf_show(client, "jobs", client_ignore_lock, NULL, &err),
            HF_ECLOSED);
    REFUSED(hf_cond_wait(hold, "c", 0, &err), HF_ECLOSED);
    REFUSED(hf_cond_wait_start(hold, "c", 0, NULL, NULL, &request, &err),
            HF_ECLOSED);
    REFUSED(hf_reacquire(hold, 0, &err), HF_ECLOSED);
    REFUSED(hf_watch_start(client, "a", 0, ignore_event, NULL, &watch, &err),
            HF_ECLOSED);
    ASSERT_EQ(hf_event_fd(client), HF_ECLOSED);
}

TEST(client, that_was_shut_down_does_nothing_more)
{
    hf_client *client = fresh_client();
    hf_hold *hold = client_acquire(client, "jobs");
    hf_error err;

    ASSERT_OK(hf_shutdown(client, EVENT_PATIENCE_MS, &err), &err);
    is_closed(client, hold);
    (void)hf_release(hold, NULL);
}

struct parents {
    hf_client *client;
    hf_hold *hold;
    hf_hold *many;
    hf_watch *watch;
};

/* In a child, what the parent has is not ours, and letting go of it is fine. */
static void in_the_child(const struct parents *of)
{
    hf_request *request;

    REFUSED(hf_release_start(of->hold, NULL, NULL, &request, &err), HF_EFORK);
    REFUSED(hf_verify_start(of->many, NULL, NULL, &request, &err), HF_EFORK);
    ASSERT_EQ(hf_remaining_ms(of->many), 0);
    ASSERT_EQ(hf_dispatch(of->client), HF_EFORK);
    ASSERT_EQ(hf_event_fd(of->client), HF_EFORK);
    hf_watch_stop(of->watch);
    hf_hold_unref(of->many);
    hf_close(of->client);
}

TEST(child, has_nothing_of_its_parents)
{
    static const char *const names[] = {
        "a name of more than forty bytes, that does not fit into the handle",
        "b"};
    struct parents of = {.client = fresh_client()};
    hf_error err;
    pid_t child;
    int status;

    of.hold = client_acquire(of.client, "jobs");
    ASSERT_OK(hf_acquire_many(of.client, names, 2, NULL, &of.many, &err), &err);
    ASSERT_OK(hf_watch_start(of.client, "jobs", 0, ignore_event, NULL,
                             &of.watch, &err),
              &err);
    child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        in_the_child(&of);
        _exit(0);
    }
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_EQ(status, 0);
    ASSERT_OK(hf_verify(of.hold, &err), &err);
    hf_watch_stop(of.watch);
    client_release(of.many);
    client_release(of.hold);
}

/* ---- what the machine refuses ---------------------------------------------------- */

static int randoms_left;

static int few_random(void *bytes, size_t len)
{
    return randoms_left-- > 0 ? hf__world_real.random(bytes, len)
                              : HF_EINTERNAL;
}

/* Wherever they end, no client is made, or one that needs no more of them. */
TEST_FORKED(machine, that_gives_no_random_numbers_opens_no_client)
{
    struct hf__world world = hf__world_real;
    const char *directory = tempdir_new();
    hf_client *client = NULL;
    int n;

    world.random = few_random;
    hf__world = &world;
    for (n = 0; !client; n++) {
        const char *url = test_text("local://%s/%d", directory, n);
        hf_error err = {0, 0, ""};
        int rc;

        randoms_left = n;
        rc = hf_open(url, NULL, &client, &err);
        ASSERT_TRUE(rc == 0 || rc == HF_EINTERNAL);
        ASSERT_TRUE(rc == 0 || strstr(err.text, "random"));
    }
    ASSERT_GT(n, 2);
    hf_close(client);
    hf__world = &hf__world_real;
}

/* Only descriptors below @n can be had. */
static void limit_descriptors(rlim_t n)
{
    struct rlimit limit;

    ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = n;
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

/* All that needs descriptors; true if there were enough. */
static bool use_descriptors(const char *url)
{
    hf_error err = {0, 0, ""};
    hf_client *client = NULL;
    hf_hold *hold;
    int rc = hf_open(url, NULL, &client, &err);

    if (rc == 0) {
        rc = hf_event_fd(client);
        if (rc >= 0)
            rc = hf_acquire(client, "jobs", WITHIN(0), &hold, &err);
        if (rc == 0)
            ASSERT_OK(hf_release(hold, &err), &err);
    }
    hf_close(client);
    if (rc != 0 && rc != HF_ENOMEM && rc != HF_EUNAVAILABLE &&
        rc != HF_ENOSPACE && rc != HF_EAUTH)
        FAIL("%s: %s", hf_errname(rc), err.text);
    return rc == 0;
}

static void run_out_of_descriptors(const char *url)
{
    int lowest = open("/dev/null", O_RDONLY | O_CLOEXEC);
    int n = lowest;

    ASSERT_GE(lowest, 0);
    (void)close(lowest);
    for (bool enough = false; !enough; n++) {
        ASSERT_LT(n, lowest + 64);
        limit_descriptors((rlim_t)n);
        enough = use_descriptors(url);
        limit_descriptors(1024);
        /* Nothing was kept. */
        ASSERT_EQ(open("/dev/null", O_RDONLY | O_CLOEXEC), lowest);
        (void)close(lowest);
    }
    test_note("%d descriptors", n - lowest);
}

TEST_FORKED(machine, without_descriptors_is_an_error_and_none_is_kept)
{
    run_out_of_descriptors(fresh_url(""));
    run_out_of_descriptors(fresh_url("?drive=app"));
    run_out_of_descriptors(fresh_url("?deadlock=report"));
}

/* SPDX-License-Identifier: MIT */
/*
 * redis_fault_test.c - what networks, administrators and servers do to locks.
 *
 * Each test has a server of its own, and looks at the end whether anything was
 * left behind on it.
 */
#include <pthread.h>
#include <unistd.h>

#include "event.h"
#include "proc.h"
#include "redis.h"

#define QUICK "retry.base=1ms&retry.max_interval=20ms"

/* ---- the server ---------------------------------------------------------- */

TEST(server, that_lost_its_memory_is_told_as_lost)
{
    struct event events = EVENT_INIT;
    struct server *server = redis_start();
    hf_client *client = redis_open(server_port(server), QUICK "&ttl=2s");
    hf_opts opts = HF_OPTS_INIT;
    hf_hold *hold;
    hf_error err;
    uint64_t token;

    opts.on_event = client_on_event;
    opts.ctx = &events;
    ASSERT_OK(hf_acquire(client, "jobs", &opts, &hold, &err), &err);
    token = hf_token(hold);
    server_kill(server);
    server_restart(server);
    event_await(&events, 1, EVENT_PATIENCE_MS);
    while (event_count(&events) < 2 && events.values[0] != HF_LOST)
        event_await(&events, 2, EVENT_PATIENCE_MS);
    ASSERT_EQ(hf_check(hold), HF_LOST);
    ASSERT_EQ(hf_release(hold, NULL), HF_ELOST);

    hold = client_acquire(client, "jobs");
    ASSERT_GT(hf_token(hold), token);
    ASSERT_OK(hf_release(hold, &err), &err);
    ASSERT_EQ(redis_leftovers(server), 0);
}

TEST(server, that_comes_back_with_its_memory_changes_nothing)
{
    static const char *words[] = {NULL,        "--port",
                                  "{port}",    "--bind",
                                  "127.0.0.1", "--save",
                                  "",          "--dir",
                                  "{dir}",     "--appendonly",
                                  "yes",       "--appendfsync",
                                  "always",    NULL};
    struct server *server;
    hf_client *client;
    hf_client *rival;
    hf_hold *hold;
    hf_error err;

    words[0] = redis_program();
    server = server_start(words);
    client = redis_open(server_port(server), QUICK);
    rival = redis_open(server_port(server), QUICK);
    hold = client_acquire(client, "jobs");
    server_kill(server);
    server_restart(server);
    EVENTUALLY(hf_verify(hold, NULL) == 0);
    EVENTUALLY(client_try(rival, "jobs", &err) == HF_EBUSY);
    ASSERT_OK(hf_release(hold, &err), &err);
    ASSERT_EQ(redis_leftovers(server), 0);
}

TEST(server, that_stands_still_is_unavailable_and_recovers)
{
    struct server *server = redis_start();
    hf_client *client =
        redis_open(server_port(server), QUICK "&io_timeout=200ms");
    hf_opts opts = HF_OPTS_INIT;
    hf_hold *hold;
    hf_error err;
    int rc;

    opts.wait_ms = 600;
    server_pause(server);
    rc = hf_acquire(client, "jobs", &opts, &hold, &err);
    ASSERT_TRUE(rc == HF_EUNAVAILABLE || rc == HF_EUNKNOWN);
    server_resume(server);
    hold = client_acquire(client, "jobs");
    ASSERT_OK(hf_release(hold, &err), &err);
    EVENTUALLY(redis_leftovers(server) == 0);
}

/* Its kernel goes on to answer, and io_timeout is far away: the lease counts. */
TEST(server, that_stands_still_under_a_hold_is_jeopardy_and_then_lost_in_time)
{
    enum { TTL_MS = 3000 };
    struct event events = EVENT_INIT;
    struct server *server = redis_start();
    hf_client *client =
        redis_open(server_port(server), QUICK "&ttl=3s&io_timeout=60s");
    hf_client *rival = redis_open(server_port(server), QUICK);
    hf_opts opts = HF_OPTS_INIT;
    int64_t before_ms = clock_ms();
    hf_hold *hold;
    hf_error err;

    opts.on_event = client_on_event;
    opts.ctx = &events;
    ASSERT_OK(hf_acquire(client, "jobs", &opts, &hold, &err), &err);
    server_pause(server);
    event_await(&events, 1, EVENT_PATIENCE_MS);
    ASSERT_EQ(events.values[0], HF_JEOPARDY);
    event_await(&events, 2, EVENT_PATIENCE_MS);
    ASSERT_EQ(events.values[1], HF_LOST);
    ASSERT_EQ(hf_check(hold), HF_LOST);
    ASSERT_GE(events.at_ms - before_ms, TTL_MS * 9 / 10);
    ASSERT_LT(events.at_ms - before_ms, 30000);
    server_resume(server);
    ASSERT_EQ(hf_release(hold, &err), HF_ELOST);
    ASSERT_OK(hf_release(client_acquire(rival, "jobs"), &err), &err);
    EVENTUALLY(redis_leftovers(server) == 0);
}

TEST(server, a_waiter_survives_its_restart)
{
    struct server *server = redis_start();
    hf_client *holder = redis_open(server_port(server), QUICK "&ttl=1s");
    hf_client *waiter = redis_open(server_port(server), QUICK "&ttl=1s");
    hf_hold *hold = client_acquire(holder, "jobs");
    hf_request *request;
    hf_hold *next;
    hf_error err;

    ASSERT_OK(
        hf_acquire_start(waiter, "jobs", NULL, NULL, NULL, &request, &err),
        &err);
    EVENTUALLY(strstr(redis_do(server, "LLEN hf:{jobs}:q"), ":1") != NULL);
    server_kill(server);
    server_restart(server);
    ASSERT_OK(hf_request_wait(request, 10000, &next, &err), &err);
    ASSERT_GT(hf_token(next), hf_token(hold));
    (void)hf_release(hold, NULL);
    ASSERT_OK(hf_release(next, &err), &err);
    hf_request_free(request);
    EVENTUALLY(redis_leftovers(server) == 0);
}

/* ---- its administrator --------------------------------------------------- */

TEST(administrator, flushes_scripts_and_nothing_happens)
{
    struct server *server = redis_start();
    hf_client *client = redis_open(server_port(server), NULL);
    hf_client *rival = redis_open(server_port(server), NULL);
    hf_hold *hold;
    hf_error err;

    for (int i = 0; i < 3; i++) {
        (void)redis_do(server, "SCRIPT FLUSH SYNC");
        hold = client_acquire(client, "jobs");
        (void)redis_do(server, "SCRIPT FLUSH SYNC");
        ASSERT_OK(hf_verify(hold, &err), &err);
        ASSERT_EQ(client_try(rival, "jobs", &err), HF_EBUSY);
        (void)redis_do(server, "SCRIPT FLUSH SYNC");
        ASSERT_OK(hf_release(hold, &err), &err);
    }
    ASSERT_EQ(redis_leftovers(server), 0);
}

TEST(administrator, flushes_everything_and_tokens_still_grow)
{
    struct server *server = redis_start();
    hf_client *client = redis_open(server_port(server), NULL);
    hf_hold *hold = client_acquire(client, "jobs");
    uint64_t token = hf_token(hold);
    hf_error err;

    for (int i = 0; i < 5; i++) {
        (void)redis_do(server, "FLUSHALL");
        ASSERT_EQ(hf_verify(hold, &err), HF_ELOST);
        ASSERT_EQ(hf_check(hold), HF_LOST);
        ASSERT_EQ(hf_release(hold, &err), HF_ELOST);
        hold = client_acquire(client, "jobs");
        ASSERT_GT(hf_token(hold), token);
        token = hf_token(hold);
    }
    ASSERT_OK(hf_release(hold, &err), &err);
    /* The quick way must not count up from nothing. */
    for (int i = 0; i < 20; i++) {
        if (i % 3 == 0)
            (void)redis_do(server, "FLUSHALL");
        hold = client_acquire(client, "jobs");
        ASSERT_GT(hf_token(hold), token);
        token = hf_token(hold);
        ASSERT_OK(hf_release(hold, &err), &err);
    }
    ASSERT_EQ(redis_leftovers(server), 0);
}

TEST(administrator, flushes_everything_and_waiters_go_on)
{
    struct server *server = redis_start();
    hf_client *client = redis_open(server_port(server), "ttl=500ms");
    hf_client *other = redis_open(server_port(server), "ttl=500ms");
    hf_hold *hold = client_acquire(client, "jobs");
    hf_request *request;
    hf_hold *next;
    hf_error err;

    ASSERT_OK(hf_acquire_start(other, "jobs", NULL, NULL, NULL, &request, &err),
              &err);
    EVENTUALLY(strstr(redis_do(server, "LLEN hf:{jobs}:q"), ":1") != NULL);
    (void)redis_do(server, "FLUSHALL");
    ASSERT_OK(hf_request_wait(request, 5000, &next, &err), &err);
    (void)hf_release(hold, NULL);
    ASSERT_OK(hf_release(next, &err), &err);
    hf_request_free(request);
    ASSERT_EQ(redis_leftovers(server), 0);
}

TEST(administrator, limits_memory_and_releases_still_work)
{
    struct server *server = redis_start();
    hf_client *client = redis_open(server_port(server), NULL);
    hf_hold *hold = client_acquire(client, "jobs");
    hf_opts opts = HF_OPTS_INIT;
    hf_hold *other;
    hf_error err;

    (void)redis_do(server, "CONFIG SET maxmemory 1");
    opts.wait_ms = 2000;
    ASSERT_RC(hf_acquire(client, "other", &opts, &other, &err), HF_ENOSPACE,
              &err);
    ASSERT_HAS(err.text, "maxmemory");
    ASSERT_EQ(client_try(client, "third", &err), HF_ENOSPACE);
    ASSERT_OK(hf_verify(hold, &err), &err);
    ASSERT_OK(hf_release(hold, &err), &err);
    (void)redis_do(server, "CONFIG SET maxmemory 0");
    ASSERT_EQ(client_try(client, "other", &err), 0);
    ASSERT_EQ(redis_leftovers(server), 0);
}

TEST(administrator, kills_connections_and_a_waiter_is_served)
{
    struct server *server = redis_start();
    hf_client *holder = redis_open(server_port(server), QUICK);
    hf_client *waiter = redis_open(server_port(server), QUICK);
    hf_hold *hold = client_acquire(holder, "jobs");
    hf_request *request;
    hf_hold *next;
    hf_error err;

    ASSERT_OK(
        hf_acquire_start(waiter, "jobs", NULL, NULL, NULL, &request, &err),
        &err);
    for (int i = 0; i < 5; i++) {
        EVENTUALLY(strstr(redis_do(server, "LLEN hf:{jobs}:q"), ":1") != NULL);
        (void)redis_do(server, "CLIENT KILL TYPE pubsub");
        (void)redis_do(server, "CLIENT KILL TYPE normal SKIPME yes");
    }
    EVENTUALLY(hf_verify(hold, NULL) == 0);
    ASSERT_OK(hf_release(hold, &err), &err);
    ASSERT_OK(hf_request_wait(request, 5000, &next, &err), &err);
    ASSERT_OK(hf_release(next, &err), &err);
    hf_request_free(request);
    ASSERT_EQ(redis_leftovers(server), 0);
}

TEST(administrator, puts_something_else_at_the_key)
{
    struct server *server = redis_start();
    hf_client *client = redis_open(server_port(server), NULL);
    hf_error err;

    (void)redis_do(server, "HSET hf:{jobs} a b");
    ASSERT_EQ(client_try(client, "jobs", &err), HF_ECONFIG);
    ASSERT_HAS(err.text, "another program");
    (void)redis_do(server, "DEL hf:{jobs}");
    ASSERT_EQ(client_try(client, "jobs", &err), 0);
}

/* ---- credentials ---------------------------------------------------------- */

TEST(credentials, that_are_wrong_are_said_at_once)
{
    struct server *server = redis_start();
    hf_client *client = NULL;
    char url[128];
    int64_t before = clock_ms();
    hf_error err;

    (void)redis_do(server, "ACL SETUSER default on >sesame ~* &* +@all");
    (void)redis_do(server, "CONFIG SET requirepass sesame");
    ASSERT_RC(
        hf_open(redis_url(server_port(server), NULL), NULL, &client, &err),
        HF_EAUTH, &err);
    (void)snprintf(url, sizeof(url), "redis://:wr0ng@127.0.0.1:%d",
                   server_port(server));
    ASSERT_RC(hf_open(url, NULL, &client, &err), HF_EAUTH, &err);
    ASSERT_NULL(strstr(err.text, "wr0ng"));
    ASSERT_LT(clock_ms() - before, 3000);
    (void)snprintf(url, sizeof(url), "redis://:sesame@127.0.0.1:%d",
                   server_port(server));
    ASSERT_OK(hf_open(url, NULL, &client, &err), &err);
    ASSERT_NULL(strstr(hf_client_url(client), "sesame"));
    ASSERT_EQ(client_try(client, "jobs", &err), 0);
    hf_close(client);
}

TEST(credentials, that_allow_too_little_leave_nothing_behind)
{
    struct server *server = redis_start();
    hf_client *client;
    hf_opts opts = HF_OPTS_INIT;
    hf_hold *hold;
    char url[128];
    hf_error err;

    /* SET is allowed; the token's SET, under another key, is not. */
    (void)redis_do(server, "ACL SETUSER poor on >x ~hf:{jobs} &* +@all");
    (void)snprintf(url, sizeof(url), "redis://poor:x@127.0.0.1:%d",
                   server_port(server));
    ASSERT_OK(hf_open(url, NULL, &client, &err), &err);
    opts.wait_ms = 2000;
    ASSERT_RC(hf_acquire(client, "jobs", &opts, &hold, &err), HF_EAUTH, &err);
    ASSERT_HAS(err.text, "ACL");
    hf_close(client);
    ASSERT_EQ(redis_leftovers(server), 0);
}

/* ---- the network ----------------------------------------------------------- */

/* Take, verify, release; whatever happens to the connection, the lock is had
 * and given back. */
static void one_cycle(hf_client *client, const char *name)
{
    hf_hold *hold = client_acquire(client, name);
    hf_error err;
    int rc = hf_verify(hold, &err);

    ASSERT_TRUE(rc == 0 || rc == HF_EUNKNOWN || rc == HF_EUNAVAILABLE);
    ASSERT_TRUE(hf_check(hold) == HF_HELD || hf_check(hold) == HF_JEOPARDY);
    rc = hf_release(hold, &err);
    if (rc != 0)
        FAIL("release: %s: %s", hf_errname(rc), err.text);
}

static void cut_everywhere(const char *query, enum proxy_direction direction,
                           size_t step)
{
    struct server *server = redis_start();
    struct proxy *proxy = proxy_start(server_port(server));
    hf_client *client = redis_open(proxy_port(proxy), query);
    hf_client *witness = redis_open(server_port(server), query);
    uint64_t whole;
    hf_error err;
    int n = 0;

    one_cycle(client, "jobs");
    whole = proxy_bytes(proxy, direction);
    one_cycle(client, "jobs");
    whole = proxy_bytes(proxy, direction) - whole;
    for (size_t at = 0; at <= whole + step; at += step) {
        proxy_cut_after(proxy, direction, at);
        one_cycle(client, "jobs");
        ASSERT_EQ(client_try(witness, "jobs", &err), 0);
        n++;
    }
    proxy_pass(proxy);
    test_note("%d cuts in %d bytes", n, (int)whole);
    EVENTUALLY(redis_leftovers(server) == 0);
}

TEST(network, cuts_requests_anywhere_and_no_lock_is_left)
{
    cut_everywhere(QUICK "&io_timeout=1s", PROXY_TO_SERVER, 11);
}

TEST(network, cuts_answers_anywhere_and_no_lock_is_left)
{
    cut_everywhere(QUICK "&io_timeout=1s", PROXY_TO_CLIENT, 1);
}

TEST(network, cuts_plain_requests_anywhere)
{
    cut_everywhere(QUICK "&dialect=plain", PROXY_TO_SERVER, 11);
}

TEST(network, cuts_plain_answers_anywhere)
{
    cut_everywhere(QUICK "&dialect=plain", PROXY_TO_CLIENT, 1);
}

TEST(network, cuts_redisson_requests_anywhere)
{
    cut_everywhere(QUICK "&dialect=redisson&mode=rw", PROXY_TO_SERVER, 11);
}

TEST(network, cuts_redisson_answers_anywhere)
{
    cut_everywhere(QUICK "&dialect=redisson&mode=fair", PROXY_TO_CLIENT, 1);
}

static void *acquire_thread(void *arg)
{
    void **args = arg;

    args[2] = client_acquire(args[0], args[1]);
    return NULL;
}

/* The script runs; its answer is lost; the ticket asks again and learns it. */
static void lose_the_answer(const char *query)
{
    struct server *server = redis_start();
    struct proxy *proxy = proxy_start(server_port(server));
    hf_client *client = redis_open(proxy_port(proxy), query);
    hf_client *rival = redis_open(server_port(server), query);
    char name[] = "jobs";
    void *args[3] = {client, name, NULL};
    pthread_t thread;
    hf_error err;

    one_cycle(rival, name); /* the server knows the scripts */
    proxy_hold(proxy, PROXY_TO_CLIENT, true);
    ASSERT_EQ(pthread_create(&thread, NULL, acquire_thread, args), 0);
    EVENTUALLY(strcmp(redis_do(server, "EXISTS jobs hf:{jobs}"), ":1\r\n") ==
               0);
    proxy_reset(proxy);
    proxy_pass(proxy);
    ASSERT_EQ(pthread_join(thread, NULL), 0);
    ASSERT_EQ(client_try(rival, name, &err), HF_EBUSY);
    ASSERT_OK(hf_release(args[2], &err), &err);
    ASSERT_EQ(client_try(rival, name, &err), 0);
    ASSERT_EQ(redis_leftovers(server), 0);
}

TEST(network, loses_the_answer_to_an_acquire)
{
    lose_the_answer(QUICK);
}

TEST(network, loses_the_answer_to_a_plain_acquire)
{
    lose_the_answer(QUICK "&dialect=plain");
}

TEST(network, loses_the_answer_to_a_redisson_acquire)
{
    lose_the_answer(QUICK "&dialect=redisson");
    lose_the_answer(QUICK "&dialect=redisson&mode=fair");
    lose_the_answer(QUICK "&dialect=redisson&mode=rw");
}

TEST(network, loses_the_answer_and_the_caller_gives_up)
{
    struct server *server = redis_start();
    struct proxy *proxy = proxy_start(server_port(server));
    hf_client *client =
        redis_open(proxy_port(proxy), QUICK "&io_timeout=300ms");
    hf_client *rival = redis_open(server_port(server), NULL);
    hf_opts opts = HF_OPTS_INIT;
    hf_hold *hold;
    hf_error err;
    int rc;

    opts.wait_ms = 200;
    one_cycle(client, "jobs");
    proxy_hold(proxy, PROXY_TO_CLIENT, true);
    rc = hf_acquire(client, "jobs", &opts, &hold, &err);
    ASSERT_TRUE(rc == HF_EUNKNOWN || rc == HF_EUNAVAILABLE);
    proxy_reset(proxy);
    proxy_pass(proxy);
    EVENTUALLY(client_try(rival, "jobs", &err) == 0);
    EVENTUALLY(redis_leftovers(server) == 0);
}

/* It is done, its answer is lost, and the next attempt is refused: the error
 * is told when nothing is left. */
static void lose_the_answer_and_be_refused(const char *query)
{
    struct server *server = redis_start();
    struct proxy *proxy = proxy_start(server_port(server));
    hf_client *client = redis_open(proxy_port(proxy), query);
    hf_request *request;
    hf_hold *hold = NULL;
    hf_error err;

    ASSERT_EQ(client_try(client, "before", &err), 0);
    proxy_hold(proxy, PROXY_TO_CLIENT, true);
    request = client_start(client, "jobs");
    EVENTUALLY(redis_do(server, "EXISTS jobs hf:{jobs}")[1] == '1');
    (void)redis_do(server, "CONFIG SET maxmemory 1");
    (void)redis_do(server, "SCRIPT FLUSH SYNC");
    proxy_reset(proxy);
    proxy_pass(proxy);
    ASSERT_RC(hf_request_wait(request, EVENT_PATIENCE_MS, &hold, &err),
              HF_ENOSPACE, &err);
    hf_request_free(request);
    ASSERT_EQ(redis_do(server, "EXISTS jobs hf:{jobs}")[1], '0');
}

TEST(network, loses_the_answer_and_the_next_attempt_is_refused)
{
    lose_the_answer_and_be_refused(QUICK "&ttl=1h");
    lose_the_answer_and_be_refused(QUICK "&ttl=1h&dialect=plain");
    lose_the_answer_and_be_refused(QUICK "&ttl=1h&dialect=redisson");
}

static void *commit_thread(void *arg)
{
    void **args = arg;
    uint64_t version = 0;

    args[1] = (void *)(intptr_t)hf_version_commit(args[0], "page", 0, &version,
                                                  /* err= */ NULL);
    return NULL;
}

TEST(network, loses_the_answer_to_a_commit_and_it_is_unknown)
{
    struct server *server = redis_start();
    struct proxy *proxy = proxy_start(server_port(server));
    void *args[2] = {redis_open(proxy_port(proxy), QUICK), NULL};
    pthread_t thread;

    proxy_hold(proxy, PROXY_TO_CLIENT, true);
    ASSERT_EQ(pthread_create(&thread, NULL, commit_thread, args), 0);
    EVENTUALLY(redis_do(server, "EXISTS hf:{page}:v")[1] == '1');
    proxy_reset(proxy);
    proxy_pass(proxy);
    ASSERT_EQ(pthread_join(thread, NULL), 0);
    ASSERT_EQ((intptr_t)args[1], HF_EUNKNOWN);
}

TEST(network, is_away_and_the_owner_is_told_before_the_lease_ends)
{
    struct event events = EVENT_INIT;
    struct server *server = redis_start();
    struct proxy *proxy = proxy_start(server_port(server));
    hf_client *client =
        redis_open(proxy_port(proxy), QUICK "&ttl=3s&io_timeout=1s");
    hf_client *rival = redis_open(server_port(server), "ttl=3s");
    hf_opts opts = HF_OPTS_INIT;
    hf_hold *hold;
    hf_error err;

    opts.on_event = client_on_event;
    opts.ctx = &events;
    ASSERT_OK(hf_acquire(client, "jobs", &opts, &hold, &err), &err);
    proxy_refuse(proxy, true);
    proxy_reset(proxy);
    ASSERT_OK(hf_release(client_acquire(rival, "jobs"), &err), &err);
    /* The rival has had it, so we must know by now. */
    ASSERT_EQ(hf_check(hold), HF_LOST);
    event_await(&events, 2, EVENT_PATIENCE_MS);
    ASSERT_EQ(events.values[0], HF_JEOPARDY);
    ASSERT_EQ(events.values[1], HF_LOST);
    ASSERT_EQ(hf_release(hold, &err), HF_ELOST);
}

TEST(network, delivers_in_small_pieces)
{
    struct server *server = redis_start();
    struct proxy *proxy = proxy_start(server_port(server));
    hf_client *client = redis_open(proxy_port(proxy), NULL);
    hf_error err;

    proxy_slice(proxy, 1);
    for (int i = 0; i < 20; i++) {
        hf_hold *hold = client_acquire(client, "jobs");

        ASSERT_OK(hf_release(hold, &err), &err);
    }
    ASSERT_EQ(redis_leftovers(server), 0);
}

TEST(network, changes_bytes_and_nobody_crashes)
{
    struct server *server = redis_start();
    struct proxy *proxy = proxy_start(server_port(server));
    hf_client *client =
        redis_open(proxy_port(proxy), QUICK "&io_timeout=100ms&ttl=1s");
    hf_opts opts = HF_OPTS_INIT;
    hf_error err;

    proxy_corrupt(proxy, 40);
    opts.wait_ms = 50;
    for (int i = 0; i < 30; i++) {
        hf_hold *hold;

        if (hf_acquire(client, "jobs", &opts, &hold, &err) == 0)
            (void)hf_release(hold, &err);
    }
    proxy_pass(proxy);
    proxy_reset(proxy);
    EVENTUALLY(client_try(client, "jobs", &err) == 0);
}

/* ---- clients ------------------------------------------------------------ */

static void hold_until_killed(struct proc *self, void *arg)
{
    hf_client *client = redis_open(*(int *)arg, "ttl=200ms&lock_delay=600ms");

    (void)client_acquire(client, "jobs");
    proc_tell(self, "holding");
    (void)proc_hear(self);
}

TEST(native, keeps_the_lock_of_a_vanished_holder_closed_for_lock_delay)
{
    struct server *server = redis_start();
    int port = server_port(server);
    struct proc *child = proc_start(hold_until_killed, &port);
    hf_client *client;
    int64_t killed_ms;
    hf_hold *hold;
    hf_error err;

    (void)proc_expect(child, "holding");
    proc_kill(child);
    killed_ms = clock_ms();
    client = redis_open(port, "ttl=200ms");
    hold = client_acquire(client, "jobs");
    /* Its last renewal was at most a lease ago. */
    ASSERT_GE(clock_ms() - killed_ms, 600 - 10);
    ASSERT_LT(clock_ms() - killed_ms, 3000);
    ASSERT_OK(hf_release(hold, &err), &err);
    ASSERT_EQ(redis_leftovers(server), 0);
}

/* The client that waits listens on a channel that everybody may see; what a
 * user without a key publishes there is not believed. */
static void forge(struct server *server, const char *letter, unsigned ticket,
                  const char *rest)
{
    char channels[1024];
    const char *at = channels;

    (void)snprintf(channels, sizeof(channels), "%s",
                   redis_do(server, "PUBSUB CHANNELS hf:i:*"));
    ASSERT_NOT_NULL(strstr(at, "hf:i:"));
    while ((at = strstr(at, "hf:i:")) != NULL) {
        ASSERT_STREQ(redis_do(server, "PUBLISH %.37s %s%012x%s", at, letter,
                              ticket, rest),
                     ":1\r\n");
        at += 37;
    }
}

TEST(native, believes_no_push_of_who_cannot_read_its_keys)
{
    struct event events = EVENT_INIT;
    struct server *server = redis_start();
    hf_client *holder = redis_open(server_port(server), NULL);
    hf_client *waiter = redis_open(server_port(server), NULL);
    hf_hold *own = client_acquire_told(waiter, "own", &events);
    hf_hold *hold = client_acquire(holder, "jobs");
    hf_request *request = client_start(waiter, "jobs");
    hf_hold *next;
    hf_error err;

    EVENTUALLY(strstr(redis_do(server, "LLEN hf:{jobs}:q"), ":1") != NULL);
    for (unsigned ticket = 0; ticket < 8; ticket++) {
        forge(server, "b", ticket, "");
        forge(server, "b", ticket, "0000000000000000");
        forge(server, "g", ticket, "0000000000000007");
        forge(server, "g", ticket, "00000000000000000000000000000007");
        forge(server, "g", ticket, "00000000000000007777777777777777");
    }
    /* This answer comes behind what was published. */
    ASSERT_OK(hf_verify(own, &err), &err);
    ASSERT_EQ(event_count(&events), 0);
    ASSERT_EQ(hf_request_wait(request, 0, &next, &err), HF_ETIMEOUT);
    ASSERT_OK(hf_release(hold, &err), &err);
    next = client_finish(request);
    ASSERT_LT(hf_token(next), UINT64_C(7777777777777777));
    ASSERT_OK(hf_verify(next, &err), &err);
    ASSERT_OK(hf_release(next, &err), &err);
    ASSERT_OK(hf_release(own, &err), &err);
    ASSERT_EQ(redis_leftovers(server), 0);
}

/* The nonce is read by one who may read the key, and a token that has been is
 * used again. */
TEST(native, believes_no_token_that_has_been)
{
    struct server *server = redis_start();
    hf_client *holder = redis_open(server_port(server), NULL);
    hf_client *waiter = redis_open(server_port(server), NULL);
    hf_hold *hold = client_acquire(waiter, "jobs");
    char token[32];
    char record[512];
    char rest[64];
    hf_request *request;
    hf_hold *next;
    hf_error err;

    (void)snprintf(token, sizeof(token), "%016llu",
                   (unsigned long long)hf_token(hold));
    ASSERT_OK(hf_release(hold, &err), &err);
    hold = client_acquire(holder, "jobs");
    request = client_start(waiter, "jobs");
    EVENTUALLY(strstr(redis_do(server, "LLEN hf:{jobs}:q"), ":1") != NULL);
    (void)snprintf(record, sizeof(record), "%s",
                   strchr(redis_do(server, "LINDEX hf:{jobs}:q 0"), '\n') + 1);
    (void)snprintf(rest, sizeof(rest), "%.16s%s", record + 103, token);
    for (unsigned ticket = 0; ticket < 8; ticket++)
        forge(server, "g", ticket, rest);
    ASSERT_EQ(client_try(waiter, "other", &err), 0);
    ASSERT_EQ(hf_request_wait(request, 0, &next, &err), HF_ETIMEOUT);
    ASSERT_OK(hf_release(hold, &err), &err);
    ASSERT_OK(hf_release(client_finish(request), &err), &err);
    ASSERT_EQ(redis_leftovers(server), 0);
}

TEST(native, tells_a_broken_holder)
{
    struct event events = EVENT_INIT;
    struct server *server = redis_start();
    hf_client *client = redis_open(server_port(server), NULL);
    hf_client *other = redis_open(server_port(server), NULL);
    hf_opts opts = HF_OPTS_INIT;
    hf_request *request;
    hf_hold *hold;
    hf_error err;

    opts.on_event = client_on_event;
    opts.ctx = &events;
    ASSERT_OK(hf_acquire(client, "jobs", &opts, &hold, &err), &err);
    /* It hears while it waits for something else. */
    ASSERT_EQ(client_try(other, "more", &err), 0);
    hf_hold *more = client_acquire(other, "more");
    ASSERT_OK(
        hf_acquire_start(client, "more", NULL, NULL, NULL, &request, &err),
        &err);
    EVENTUALLY(strstr(redis_do(server, "LLEN hf:{more}:q"), ":1") != NULL);
    ASSERT_OK(hf_break(other, "jobs", hf_token(hold), NULL, &err), &err);
    event_await(&events, 1, EVENT_PATIENCE_MS);
    ASSERT_EQ(events.values[0], HF_LOST);
    ASSERT_EQ(hf_release(hold, &err), HF_ELOST);
    ASSERT_OK(hf_release(more, &err), &err);
    hf_request_free(request);
    EVENTUALLY(redis_leftovers(server) == 0);
}

/* When the kernel will look after the client's end of a connection to @port,
 * in hundredths of a second; -1: never. */
static long kernel_looks_in(int port)
{
    FILE *file = fopen("/proc/net/tcp", "re");
    long found = -1;
    char line[256];

    while (file && found < 0 && fgets(line, sizeof(line), file)) {
        unsigned peer;
        unsigned state;
        unsigned timer;
        unsigned long when;

        if (sscanf(line, " %*d: %*x:%*x %*x:%x %x %*x:%*x %x:%lx", &peer,
                   &state, &timer, &when) == 4 &&
            (int)peer == port && state == 1 && timer == 2)
            found = (long)when;
    }
    if (file)
        (void)fclose(file);
    return found;
}

TEST(connection, is_watched_by_the_kernel_within_io_timeout)
{
    struct server *server = redis_start();
    hf_client *client = redis_open(server_port(server), "io_timeout=6s");
    hf_hold *hold = client_acquire(client, "jobs");
    hf_error err;

    EVENTUALLY(kernel_looks_in(server_port(server)) >= 0);
    ASSERT_LE(kernel_looks_in(server_port(server)), 200);
    ASSERT_OK(hf_release(hold, &err), &err);
}

/* A client counts, and dies before its script would have tidied up. */
TEST(client, that_died_after_counting_leaves_no_counter_behind)
{
    struct server *server = redis_start();
    hf_client *client = redis_open(server_port(server), "ttl=600ms");
    hf_client *other = redis_open(server_port(server), "ttl=600ms");
    hf_hold *hold = client_acquire(client, "jobs");
    hf_request *request;
    hf_hold *next;
    hf_error err;

    ASSERT_OK(hf_acquire_start(other, "jobs", NULL, NULL, NULL, &request, &err),
              &err);
    EVENTUALLY(strstr(redis_do(server, "LLEN hf:{jobs}:q"), ":1") != NULL);
    ASSERT_STREQ(redis_do(server, "INCRBY hf:{jobs}:t 1"), ":1\r\n");
    /* The next beat of anybody there finds it. */
    EVENTUALLY(redis_do(server, "EXISTS hf:{jobs}:t")[1] == '0');
    ASSERT_OK(hf_release(hold, &err), &err);
    ASSERT_OK(hf_request_wait(request, 5000, &next, &err), &err);
    ASSERT_OK(hf_release(next, &err), &err);
    hf_request_free(request);
    ASSERT_EQ(redis_leftovers(server), 0);
}

TEST(url, that_is_wrong_says_what_is_right)
{
    static const struct {
        const char *url;
        int code;
        const char *says;
    } cases[] = {
        {"redis://a,b", HF_ECONFIG, "one server"},
        {"redis://a/x", HF_ECONFIG, "number"},
        {"redis://a?dialect=other", HF_ECONFIG, "native, plain and redisson"},
        {"redis://a?dialect=redisson&mode=other", HF_ECONFIG, "fenced, fair"},
        {"redis://a?dialect=plain&mode=other", HF_ECONFIG, "base64"},
        {"redis://a?mode=fair", HF_ECONFIG, "dialect=native has no modes"},
        {"redis+unix:", HF_ECONFIG, "three slashes"},
        {"redis-sentinel://a", HF_ECONFIG, "mymaster"},
        {"redis-cluster://a/1", HF_ECONFIG, "one database"},
        {"nosuch://h1,h2", HF_EUNSUPPORTED, "redis"},
        {"rediss://a?tls.ca=/nowhere", HF_ECONFIG, "tls.ca"},
        {"redis://127.0.0.1:1?connect_timeout=100ms", HF_EUNAVAILABLE,
         "cannot connect"},
        {"redis://no-such-host.invalid?connect_timeout=3s", HF_EUNAVAILABLE,
         ""},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        hf_client *client;
        hf_error err;

        ASSERT_RC(hf_open(cases[i].url, NULL, &client, &err), cases[i].code,
                  &err);
        ASSERT_HAS(err.text, cases[i].says);
    }
}

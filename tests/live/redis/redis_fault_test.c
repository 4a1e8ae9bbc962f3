/* SPDX-License-Identifier: MIT */
/*
 * redis_fault_test.c - what networks, administrators and servers do to locks.
 *
 * Each test has a server of its own, and looks at the end whether anything was
 * left behind on it.
 */
#include <pthread.h>
#include <stdlib.h>
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
    hf_hold *hold = client_acquire_told(client, "jobs", &events);
    uint64_t token = hf_token(hold);

    server_kill(server);
    server_restart(server);
    event_await(&events, 1, EVENT_PATIENCE_MS);
    while (event_count(&events) < 2 && events.values[0] != HF_LOST)
        event_await(&events, 2, EVENT_PATIENCE_MS);
    ASSERT_EQ(hf_check(hold), HF_LOST);
    ASSERT_EQ(hf_release(hold, NULL), HF_ELOST);

    hold = client_acquire(client, "jobs");
    ASSERT_GT(hf_token(hold), token);
    client_release(hold);
    ASSERT_EQ(redis_leftovers(server), 0);
}

TEST(server, that_comes_back_with_its_memory_changes_nothing)
{
    struct server *server = redis_start_durable();
    hf_client *client = redis_open(server_port(server), QUICK);
    hf_client *rival = redis_open(server_port(server), QUICK);
    hf_hold *hold = client_acquire(client, "jobs");
    hf_error err;

    server_kill(server);
    server_restart(server);
    EVENTUALLY(hf_verify(hold, NULL) == 0);
    EVENTUALLY(client_try(rival, "jobs", &err) == HF_EBUSY);
    client_release(hold);
    ASSERT_EQ(redis_leftovers(server), 0);
}

TEST(server, that_stands_still_is_unavailable_and_recovers)
{
    struct server *server = redis_start();

    client_outlasts_pause(
        redis_open(server_port(server), QUICK "&io_timeout=200ms"), server);
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
    int64_t before_ms = clock_ms();
    hf_error err;
    hf_hold *hold = client_acquire_told(client, "jobs", &events);

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
    client_release(client_acquire(rival, "jobs"));
    EVENTUALLY(redis_leftovers(server) == 0);
}

TEST(server, a_waiter_survives_its_restart)
{
    struct rivals at = redis_rivals(QUICK "&ttl=1s");
    hf_hold *hold = client_acquire(at.client, "jobs");
    hf_hold *next;
    hf_request *request = redis_stand_in_line(at.rival, at.server, "jobs");

    server_kill(at.server);
    server_restart(at.server);
    next = client_finish(request);
    ASSERT_GT(hf_token(next), hf_token(hold));
    (void)hf_release(hold, NULL);
    client_release(next);
    EVENTUALLY(redis_leftovers(at.server) == 0);
}

/* ---- its administrator --------------------------------------------------- */

TEST(administrator, flushes_scripts_and_nothing_happens)
{
    struct rivals at = redis_rivals(NULL);
    hf_hold *hold;
    hf_error err;

    for (int i = 0; i < 3; i++) {
        (void)redis_do(at.server, "SCRIPT FLUSH SYNC");
        hold = client_acquire(at.client, "jobs");
        (void)redis_do(at.server, "SCRIPT FLUSH SYNC");
        ASSERT_OK(hf_verify(hold, &err), &err);
        ASSERT_EQ(client_try(at.rival, "jobs", &err), HF_EBUSY);
        (void)redis_do(at.server, "SCRIPT FLUSH SYNC");
        client_release(hold);
    }
    ASSERT_EQ(redis_leftovers(at.server), 0);
}

TEST(administrator, flushes_everything_and_tokens_still_grow)
{
    struct rivals at = redis_rivals(NULL);
    hf_hold *hold = client_acquire(at.client, "jobs");
    uint64_t token = hf_token(hold);
    hf_error err;

    for (int i = 0; i < 5; i++) {
        (void)redis_do(at.server, "FLUSHALL");
        ASSERT_EQ(hf_verify(hold, &err), HF_ELOST);
        ASSERT_EQ(hf_check(hold), HF_LOST);
        ASSERT_EQ(hf_release(hold, &err), HF_ELOST);
        hold = client_acquire(at.client, "jobs");
        ASSERT_GT(hf_token(hold), token);
        token = hf_token(hold);
    }
    client_release(hold);
    /* The quick way must not count up from nothing. */
    for (int i = 0; i < 20; i++) {
        if (i % 3 == 0)
            (void)redis_do(at.server, "FLUSHALL");
        hold = client_acquire(at.client, "jobs");
        ASSERT_GT(hf_token(hold), token);
        token = hf_token(hold);
        client_release(hold);
    }
    ASSERT_EQ(redis_leftovers(at.server), 0);
}

TEST(administrator, flushes_everything_and_waiters_go_on)
{
    struct rivals at = redis_rivals("ttl=500ms");
    hf_hold *hold = client_acquire(at.client, "jobs");
    hf_hold *next;
    hf_request *request = redis_stand_in_line(at.rival, at.server, "jobs");

    (void)redis_do(at.server, "FLUSHALL");
    next = client_finish(request);
    (void)hf_release(hold, NULL);
    client_release(next);
    ASSERT_EQ(redis_leftovers(at.server), 0);
}

TEST(administrator, limits_memory_and_releases_still_work)
{
    struct rivals at = redis_rivals(NULL);
    hf_hold *hold = client_acquire(at.client, "jobs");
    hf_hold *other;
    hf_error err;

    (void)redis_do(at.server, "CONFIG SET maxmemory 1");
    ASSERT_RC(hf_acquire(at.client, "other", WITHIN(2000), &other, &err),
              HF_ENOSPACE, &err);
    ASSERT_HAS(err.text, "maxmemory");
    ASSERT_EQ(client_try(at.client, "third", &err), HF_ENOSPACE);
    ASSERT_OK(hf_verify(hold, &err), &err);
    client_release(hold);
    (void)redis_do(at.server, "CONFIG SET maxmemory 0");
    ASSERT_EQ(client_try(at.client, "other", &err), 0);
    ASSERT_EQ(redis_leftovers(at.server), 0);
}

TEST(administrator, kills_connections_and_a_waiter_is_served)
{
    struct rivals at = redis_rivals(QUICK);
    hf_hold *hold = client_acquire(at.client, "jobs");
    hf_hold *next;
    hf_request *request = client_start(at.rival, "jobs");

    for (int i = 0; i < 5; i++) {
        EVENTUALLY(strstr(redis_do(at.server, "LLEN hf:{jobs}:q"), ":1") !=
                   NULL);
        (void)redis_do(at.server, "CLIENT KILL TYPE pubsub");
        (void)redis_do(at.server, "CLIENT KILL TYPE normal SKIPME yes");
    }
    EVENTUALLY(hf_verify(hold, NULL) == 0);
    client_release(hold);
    next = client_finish(request);
    client_release(next);
    ASSERT_EQ(redis_leftovers(at.server), 0);
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

/* A client of a user that has these @rights only. */
static hf_client *open_poor(struct server *server, const char *rights,
                            const char *query)
{
    hf_client *client;
    hf_error err;

    (void)redis_do(server, "ACL SETUSER poor on >x %s", rights);
    ASSERT_OK(hf_open(test_text("redis://poor:x@127.0.0.1:%d?%s",
                                server_port(server), query),
                      NULL, &client, &err),
              &err);
    return client;
}

TEST(credentials, that_allow_too_little_leave_nothing_behind)
{
    struct server *server = redis_start();
    /* SET is allowed; the token's SET, under another key, is not. */
    hf_client *client = open_poor(server, "~hf:{jobs} &* +@all", "");
    hf_hold *hold;
    hf_error err;

    ASSERT_RC(hf_acquire(client, "jobs", WITHIN(2000), &hold, &err), HF_EAUTH,
              &err);
    ASSERT_HAS(err.text, "ACL");
    hf_close(client);
    ASSERT_EQ(redis_leftovers(server), 0);
}

/* How often the server was asked to run a script by its digest. */
static int scripts_run(struct server *server)
{
    const char *runs =
        strstr(redis_do(server, "INFO commandstats"), "cmdstat_evalsha:calls=");

    return runs ? atoi(strchr(runs, '=') + 1) : 0;
}

static void release_without_the_right_to_load(const char *query)
{
    struct server *server = redis_start();
    hf_client *client = open_poor(server, "~* &* +@all -script|load", query);
    hf_hold *hold;
    hf_error err;

    if (hf_acquire(client, "jobs", WITHIN(2000), &hold, &err) == 0)
        ASSERT_NE(hf_release(hold, &err), 0);
    else
        ASSERT_EQ(err.code, HF_EAUTH);
    hf_close(client);
    ASSERT_LE(scripts_run(server), 100);
}

TEST(credentials, that_may_not_load_scripts_are_not_asked_for_without_end)
{
    release_without_the_right_to_load("dialect=plain&io_timeout=1s");
    release_without_the_right_to_load("io_timeout=1s");
    release_without_the_right_to_load("dialect=redisson&io_timeout=1s");
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

    EVENTUALLY(kernel_looks_in(server_port(server)) >= 0);
    ASSERT_LE(kernel_looks_in(server_port(server)), 200);
    client_release(hold);
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

/* ---- watching -------------------------------------------------------------- */

static void tell_kind(const hf_watch_event *event, void *ctx)
{
    event_tell(ctx, event->kind);
}

static void stop_watch(void *watch)
{
    hf_watch_stop(watch);
}

/* A watch of all names, whose first event has come. */
static void watch_all(hf_client *client, struct event *kinds)
{
    hf_watch *watch;
    hf_error err;

    ASSERT_OK(hf_watch_start(client, NULL, 0, tell_kind, kinds, &watch, &err),
              &err);
    test_defer(stop_watch, watch);
    event_await(kinds, 1, EVENT_PATIENCE_MS);
    ASSERT_EQ(kinds->values[0], HF_EV_RESYNC);
}

/* The number of the connection that tracks keys; 0: there is none. */
static long tracker_of(struct server *server)
{
    const char *all = redis_do(server, "CLIENT LIST");
    const char *at = strstr(all, "flags=tB");

    while (at && at > all && strncmp(at, "id=", 3) != 0)
        at--;
    return at ? strtol(at + 3, NULL, 10) : 0;
}

TEST(watch, goes_on_without_the_connection_that_tracks_keys)
{
    static struct event kinds = EVENT_INIT;
    struct server *server = redis_start();
    hf_client *client = redis_open(server_port(server), QUICK);
    hf_client *watcher = redis_open(server_port(server), QUICK);
    hf_hold *hold;
    hf_error err;

    watch_all(watcher, &kinds);
    EVENTUALLY(tracker_of(server) != 0);
    (void)redis_do(server, "CLIENT KILL ID %ld", tracker_of(server));
    hold = client_acquire(client, "jobs");
    event_await(&kinds, 2, EVENT_PATIENCE_MS);
    ASSERT_EQ(kinds.values[1], HF_EV_GRANTED);
    ASSERT_OK(hf_release(hold, &err), &err);
    event_await(&kinds, 3, EVENT_PATIENCE_MS);
    ASSERT_EQ(kinds.values[2], HF_EV_RELEASED);
    EVENTUALLY(tracker_of(server) != 0); /* it was asked for again */
}

TEST(watch, begins_anew_when_the_server_does)
{
    static struct event kinds = EVENT_INIT;
    struct server *server = redis_start();
    hf_client *watcher = redis_open(server_port(server), QUICK);

    watch_all(watcher, &kinds);
    server_kill(server);
    server_restart(server);
    event_await(&kinds, 2, EVENT_PATIENCE_MS);
    ASSERT_EQ(kinds.values[1], HF_EV_RESYNC);
    EVENTUALLY(tracker_of(server) != 0);
}

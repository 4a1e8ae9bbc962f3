/* SPDX-License-Identifier: MIT */
/* redis_network_test.c - what a network does to locks. */
#include <pthread.h>

#include "event.h"
#include "redis.h"

#define QUICK "retry.base=1ms&retry.max_interval=20ms"

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
    struct rivals two = redis_proxied(query, query);
    uint64_t whole;
    hf_error err;
    int n = 0;

    one_cycle(two.client, "jobs");
    whole = proxy_bytes(two.proxy, direction);
    one_cycle(two.client, "jobs");
    whole = proxy_bytes(two.proxy, direction) - whole;
    for (size_t at = 0; at <= whole + step; at += step) {
        proxy_cut_after(two.proxy, direction, at);
        one_cycle(two.client, "jobs");
        ASSERT_EQ(client_try(two.rival, "jobs", &err), 0);
        n++;
    }
    proxy_pass(two.proxy);
    test_note("%d cuts in %d bytes", n, (int)whole);
    EVENTUALLY(redis_leftovers(two.server) == 0);
}

TEST_CALL(network, cuts_requests_anywhere_and_no_lock_is_left,
          cut_everywhere(QUICK "&io_timeout=1s", PROXY_TO_SERVER, 11))
TEST_CALL(network, cuts_answers_anywhere_and_no_lock_is_left,
          cut_everywhere(QUICK "&io_timeout=1s", PROXY_TO_CLIENT, 1))
TEST_CALL(network, cuts_plain_requests_anywhere,
          cut_everywhere(QUICK "&dialect=plain", PROXY_TO_SERVER, 11))
TEST_CALL(network, cuts_plain_answers_anywhere,
          cut_everywhere(QUICK "&dialect=plain", PROXY_TO_CLIENT, 1))
TEST_CALL(network, cuts_redisson_requests_anywhere,
          cut_everywhere(QUICK "&dialect=redisson&mode=rw", PROXY_TO_SERVER,
                         11))
TEST_CALL(network, cuts_redisson_answers_anywhere,
          cut_everywhere(QUICK "&dialect=redisson&mode=fair", PROXY_TO_CLIENT,
                         1))

static void *acquire_thread(void *arg)
{
    void **args = arg;

    args[2] = client_acquire(args[0], args[1]);
    return NULL;
}

/* The script runs; its answer is lost; the ticket asks again and learns it. */
static void lose_the_answer(const char *query)
{
    struct rivals two = redis_proxied(query, query);
    char name[] = "jobs";
    void *args[3] = {two.client, name, NULL};
    pthread_t thread;
    hf_error err;

    one_cycle(two.rival, name); /* the two.server knows the scripts */
    proxy_hold(two.proxy, PROXY_TO_CLIENT, true);
    ASSERT_EQ(pthread_create(&thread, NULL, acquire_thread, args), 0);
    EVENTUALLY(
        strcmp(redis_do(two.server, "EXISTS jobs hf:{jobs}"), ":1\r\n") == 0);
    proxy_reset(two.proxy);
    proxy_pass(two.proxy);
    ASSERT_EQ(pthread_join(thread, NULL), 0);
    ASSERT_EQ(client_try(two.rival, name, &err), HF_EBUSY);
    client_release(args[2]);
    ASSERT_EQ(client_try(two.rival, name, &err), 0);
    ASSERT_EQ(redis_leftovers(two.server), 0);
}

TEST_CALL(network, loses_the_answer_to_an_acquire, lose_the_answer(QUICK))
TEST_CALL(network, loses_the_answer_to_a_plain_acquire,
          lose_the_answer(QUICK "&dialect=plain"))

TEST(network, loses_the_answer_to_a_redisson_acquire)
{
    lose_the_answer(QUICK "&dialect=redisson");
    lose_the_answer(QUICK "&dialect=redisson&mode=fair");
    lose_the_answer(QUICK "&dialect=redisson&mode=rw");
}

TEST(network, loses_the_answer_and_the_caller_gives_up)
{
    struct rivals two = redis_proxied(QUICK "&io_timeout=300ms", NULL);
    hf_hold *hold;
    hf_error err;
    int rc;

    one_cycle(two.client, "jobs");
    proxy_hold(two.proxy, PROXY_TO_CLIENT, true);
    rc = hf_acquire(two.client, "jobs", WITHIN(200), &hold, &err);
    ASSERT_TRUE(rc == HF_EUNKNOWN || rc == HF_EUNAVAILABLE);
    proxy_reset(two.proxy);
    proxy_pass(two.proxy);
    EVENTUALLY(client_try(two.rival, "jobs", &err) == 0);
    EVENTUALLY(redis_leftovers(two.server) == 0);
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

static void try_behind_a_release(const char *query)
{
    struct server *server = redis_start();
    struct proxy *proxy = proxy_start(server_port(server));
    hf_client *client = redis_open(proxy_port(proxy), query);
    hf_hold *hold = client_acquire(client, "jobs");
    hf_opts once = HF_OPTS_INIT;
    hf_request *request;
    hf_request *marker;
    hf_error err;

    proxy_hold(proxy, PROXY_TO_CLIENT, true);
    client_release(hold);
    once.wait_ms = 0;
    ASSERT_OK(
        hf_acquire_start(client, "jobs", &once, NULL, NULL, &request, &err),
        &err);
    marker = client_start(client, "marker");
    EVENTUALLY(redis_do(server, "EXISTS marker hf:{marker}")[1] == '1');
    proxy_pass(proxy);
    client_release(client_finish(request));
    client_release(client_finish(marker));
}

/* The server has never seen the script of a release before. */
TEST(network, is_slow_and_a_posted_release_is_not_in_the_way)
{
    try_behind_a_release("release=post");
    try_behind_a_release("release=post&dialect=plain");
    try_behind_a_release("release=post&dialect=redisson");
    try_behind_a_release("release=post&dialect=redisson&mode=fair");
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
    struct rivals two = redis_proxied(QUICK "&ttl=3s&io_timeout=1s", "ttl=3s");
    hf_error err;
    hf_hold *hold = client_acquire_told(two.client, "jobs", &events);

    proxy_refuse(two.proxy, true);
    proxy_reset(two.proxy);
    client_release(client_acquire(two.rival, "jobs"));
    /* The two.rival has had it, so we must know by now. */
    ASSERT_EQ(hf_check(hold), HF_LOST);
    client_told_lost(&events);
    ASSERT_EQ(hf_release(hold, &err), HF_ELOST);
}

TEST(network, delivers_in_small_pieces)
{
    struct server *server = redis_start();
    struct proxy *proxy = proxy_start(server_port(server));
    hf_client *client = redis_open(proxy_port(proxy), NULL);

    proxy_slice(proxy, 1);
    for (int i = 0; i < 20; i++) {
        hf_hold *hold = client_acquire(client, "jobs");

        client_release(hold);
    }
    ASSERT_EQ(redis_leftovers(server), 0);
}

TEST(network, changes_bytes_and_nobody_crashes)
{
    struct server *server = redis_start();
    struct proxy *proxy = proxy_start(server_port(server));
    hf_client *client =
        redis_open(proxy_port(proxy), QUICK "&io_timeout=100ms&ttl=1s");
    hf_error err;

    proxy_corrupt(proxy, 40);
    for (int i = 0; i < 30; i++) {
        hf_hold *hold;

        if (hf_acquire(client, "jobs", WITHIN(50), &hold, &err) == 0)
            (void)hf_release(hold, &err);
    }
    proxy_pass(proxy);
    proxy_reset(proxy);
    EVENTUALLY(client_try(client, "jobs", &err) == 0);
}

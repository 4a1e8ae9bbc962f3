/* SPDX-License-Identifier: MIT */
/*
 * redis_cost_test.c - what an acquire costs, where that can be counted.
 *
 * Allocations, system calls and messages to the server. Nothing here looks at
 * a clock.
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "event.h"
#include "heap.h"
#include "holdfast.h"
#include "redis.h"
#include "tempdir.h"

static hf_client *open_client(const char *url)
{
    hf_client *client;
    hf_error err;

    ASSERT_OK(hf_open(url, NULL, &client, &err), &err);
    return client;
}

static void repeat(hf_client *client, const char *name, int n)
{
    for (int i = 0; i < n; i++)
        client_release(client_acquire(client, name));
}

/* ---- allocations ------------------------------------------------------- */

static void count_allocations(const char *url)
{
    hf_client *client = open_client(url);
    long before;

    repeat(client, "jobs", 100);
    before = heap_count();
    repeat(client, "jobs", 1000);
    ASSERT_LE(heap_count() - before, 1000);
    hf_close(client);
}

TEST_FORKED(cost, at_most_one_allocation_per_acquire_on_redis)
{
    heap_install();
    count_allocations(redis_url(server_port(redis_start()), ""));
}

TEST_FORKED(cost, at_most_one_allocation_per_acquire_on_local)
{
    char url[512];

    heap_install();
    (void)snprintf(url, sizeof(url), "local://%s", tempdir_new());
    count_allocations(url);
}

/* ---- system calls ------------------------------------------------------ */

struct checker {
    hf_hold *hold;
    int pipe[2];
};

/* From here on this thread may write and exit; for any other system call the
 * kernel ends it. (The strict mode takes the clock away, too.) */
static void be_strict(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_write, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_THREAD),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog program = {.len = sizeof(filter) / sizeof(filter[0]),
                                 .filter = filter};

    (void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    ASSERT_EQ(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

static void *check_strictly(void *arg)
{
    struct checker *checker = arg;
    char held = 'y';

    be_strict();
    for (int i = 0; i < 1000; i++) {
        if (hf_check(checker->hold) != HF_HELD ||
            hf_remaining_ms(checker->hold) <= 0 || hf_token(checker->hold) == 0)
            held = 'n';
    }
    (void)!write(checker->pipe[1], &held, 1);
    (void)syscall(SYS_exit, 0);
    return NULL;
}

TEST_FORKED(cost, a_check_makes_no_system_call)
{
    hf_client *client = open_client(redis_url(server_port(redis_start()), ""));
    struct checker checker = {.hold = client_acquire(client, "jobs")};
    struct pollfd answer = {.events = POLLIN};
    pthread_t thread;
    char held = '?';

    ASSERT_EQ(hf_check(checker.hold), HF_HELD);
    ASSERT_EQ(pipe(checker.pipe), 0);
    ASSERT_EQ(pthread_create(&thread, NULL, check_strictly, &checker), 0);
    answer.fd = checker.pipe[0];
    ASSERT_EQ(poll(&answer, 1, EVENT_PATIENCE_MS), 1);
    ASSERT_EQ(read(checker.pipe[0], &held, 1), 1);
    ASSERT_TRUE(held == 'y');
}

/* ---- messages ---------------------------------------------------------- */

enum { CLIENTS = 100, TURNS = 11 };

static long reads_of(struct server *server)
{
    static const char word[] = "total_reads_processed:";
    const char *at = strstr(redis_do(server, "INFO stats"), word);

    ASSERT_NOT_NULL(at);
    return atol(at + strlen(word));
}

struct contender {
    pthread_t thread;
    pthread_barrier_t *start;
    hf_client *client;
};

static void *contend(void *arg)
{
    struct contender *contender = arg;

    (void)pthread_barrier_wait(contender->start);
    repeat(contender->client, "jobs", TURNS);
    return NULL;
}

TEST_FORKED(cost, three_messages_per_hand_over_among_a_hundred)
{
    static struct contender all[CLIENTS];
    struct server *server = redis_start();
    pthread_barrier_t start;
    long before;

    (void)pthread_barrier_init(&start, NULL, CLIENTS);
    for (int i = 0; i < CLIENTS; i++) {
        all[i].start = &start;
        all[i].client = open_client(redis_url(server_port(server), ""));
        repeat(all[i].client, "greeting", 1);
    }
    before = reads_of(server);
    for (int i = 0; i < CLIENTS; i++)
        ASSERT_EQ(pthread_create(&all[i].thread, NULL, contend, &all[i]), 0);
    for (int i = 0; i < CLIENTS; i++)
        (void)pthread_join(all[i].thread, NULL);
    ASSERT_LE(reads_of(server) - before, 3L * CLIENTS * TURNS);
    for (int i = 0; i < CLIENTS; i++)
        hf_close(all[i].client);
}

/* ---- scripts ----------------------------------------------------------- */

static void on_granted(int rc, hf_hold *hold, const hf_error *err, void *ctx)
{
    ASSERT_OK(rc, err);
    ASSERT_EQ(hf_release(hold, NULL), 0);
    event_tell(ctx, rc);
}

TEST_FORKED(cost, a_script_is_loaded_once_for_all_that_were_refused)
{
    enum { REQUESTS = 200 };
    static hf_request *requests[REQUESTS];
    struct server *server = redis_start();
    hf_client *client = redis_open(server_port(server), "release=post");
    struct event granted = EVENT_INIT;
    char name[32];

    for (int i = 0; i < REQUESTS; i++) {
        (void)snprintf(name, sizeof(name), "job %d", i);
        ASSERT_EQ(hf_acquire_start(client, name, NULL, on_granted, &granted,
                                   &requests[i], NULL),
                  0);
    }
    event_await(&granted, REQUESTS, EVENT_PATIENCE_MS);
    for (int i = 0; i < REQUESTS; i++)
        hf_request_free(requests[i]);
    /* One for each of two scripts; the second may still be on its way. */
    ASSERT_GE(redis_calls(server, "script|load"), 1);
    ASSERT_LE(redis_calls(server, "script|load"), 2);
}

/* It is read, and runs no script; and it is seen when the lock is free. */
TEST_FORKED(cost, a_lock_that_was_taken_is_tried_by_one_command)
{
    struct server *server = redis_start();
    hf_client *client = redis_open(server_port(server), "");
    hf_hold *hold = client_acquire(redis_open(server_port(server), ""), "jobs");
    hf_error err;
    char text[sizeof(err.text)];
    long scripts;
    long reads;

    ASSERT_EQ(client_try(client, "jobs", &err), HF_EBUSY);
    (void)snprintf(text, sizeof(text), "%s", err.text);
    scripts = redis_calls(server, "evalsha");
    reads = reads_of(server);
    for (int i = 0; i < 100; i++) {
        ASSERT_EQ(client_try(client, "jobs", &err), HF_EBUSY);
        ASSERT_STREQ(err.text, text); /* who holds it */
    }
    ASSERT_EQ(redis_calls(server, "evalsha"), scripts);
    ASSERT_LE(reads_of(server) - reads, 110);
    ASSERT_OK(hf_release(hold, &err), &err);
    ASSERT_EQ(client_try(client, "jobs", &err), 0);
}

TEST_FORKED(cost, a_lock_that_somebody_waits_for_is_tried_by_the_script)
{
    struct server *server = redis_start();
    hf_client *client = redis_open(server_port(server), "");
    hf_client *waiter = redis_open(server_port(server), "");
    hf_hold *hold = client_acquire(redis_open(server_port(server), ""), "jobs");
    hf_request *request;
    hf_error err;
    long scripts;

    ASSERT_EQ(client_try(client, "jobs", &err), HF_EBUSY);
    scripts = redis_calls(server, "evalsha");
    request = client_start(waiter, "jobs");
    EVENTUALLY(redis_calls(server, "evalsha") > scripts);
    ASSERT_EQ(client_try(client, "jobs", &err), HF_EBUSY);
    ASSERT_GE(redis_calls(server, "evalsha"), scripts + 2);
    ASSERT_OK(hf_release(hold, &err), &err);
    ASSERT_OK(hf_release(client_finish(request), &err), &err);
}

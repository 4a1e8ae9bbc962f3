/* SPDX-License-Identifier: MIT */
/*
 * stress_test.c - many threads at one client, for the sanitizers.
 *
 * Threads that acquire and release, threads that give up at once, requests
 * with callbacks that use the client themselves, cancellations, posted
 * releases of a second client, and a signal every half millisecond. Each lock
 * guards two counters that are changed without any other protection: one for
 * all, and one per client, at which the thread sanitizer sees whether the lock
 * is one. Between two clients it cannot see that: they meet in a file that is
 * mapped twice.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "core/client.h"
#include "event.h"
#include "tempdir.h"
#include "test.h"

enum { NAMES = 3, ROUNDS = 1500 };

struct stress {
    hf_client *client;
    hf_client *posting; /* release=post, on the same store */
    int rounds;
    atomic_long counters[NAMES]; /* each guarded by its lock */
    long own_counters[2][NAMES]; /* the same, per client */
    atomic_long expected[NAMES];
    atomic_int errors;
};

static const char *const names[NAMES] = {"one", "two", "three"};

static unsigned draw(unsigned *state)
{
    *state = *state * 1103515245u + 12345u;
    return *state >> 16;
}

static void count(struct stress *stress, const hf_client *client, int name)
{
    long before =
        atomic_load_explicit(&stress->counters[name], memory_order_relaxed);

    stress->own_counters[client == stress->client][name]++;
    atomic_store_explicit(&stress->counters[name], before + 1,
                          memory_order_relaxed);
    atomic_fetch_add(&stress->expected[name], 1);
}

static void release(struct stress *stress, hf_hold *hold)
{
    int rc = hf_release(hold, NULL);

    if (rc != 0 && rc != HF_EUNKNOWN)
        atomic_fetch_add(&stress->errors, 1);
}

static void acquire_once(struct stress *stress, hf_client *client, int name,
                         int64_t wait_ms)
{
    hf_opts opts = HF_OPTS_INIT;
    hf_hold *hold;
    int rc;

    opts.wait_ms = wait_ms;
    rc = hf_acquire(client, names[name], &opts, &hold, NULL);
    if (rc == 0) {
        count(stress, client, name);
        release(stress, hold);
    } else if (wait_ms == HF_FOREVER) {
        atomic_fetch_add(&stress->errors, 1);
    }
}

/* Every name in turn; @hasty: half of the time without waiting. */
static void acquire_all_the_time(struct stress *stress, hf_client *client,
                                 bool hasty)
{
    unsigned state = (unsigned)(uintptr_t)&stress;

    for (int i = 0; i < stress->rounds; i++)
        acquire_once(stress, client, (int)(draw(&state) % NAMES),
                     hasty ? (int64_t)(draw(&state) % 2) : HF_FOREVER);
}

static void *pair_thread(void *arg)
{
    struct stress *stress = arg;

    acquire_all_the_time(stress, stress->client, /* hasty= */ false);
    return NULL;
}

static void *hasty_thread(void *arg)
{
    struct stress *stress = arg;

    acquire_all_the_time(stress, stress->client, /* hasty= */ true);
    return NULL;
}

static void *posting_thread(void *arg)
{
    struct stress *stress = arg;

    acquire_all_the_time(stress, stress->posting, /* hasty= */ false);
    return NULL;
}

struct asked {
    struct stress *stress;
    struct event done;
    int name;
};

static void on_done(int rc, hf_hold *hold, const hf_error *err, void *ctx)
{
    struct asked *asked = ctx;
    struct stress *stress = asked->stress;

    (void)err;
    if (rc == 0) {
        count(stress, stress->client, asked->name);
        release(stress, hold);
        acquire_once(stress, stress->client, (asked->name + 1) % NAMES, 1);
    } else if (rc != HF_ECANCELED) {
        atomic_fetch_add(&stress->errors, 1);
    }
    event_tell(&asked->done, rc);
}

static void ask_once(struct stress *stress, unsigned dice)
{
    struct asked asked = {stress, EVENT_INIT, (int)(dice % NAMES)};
    hf_request *request;

    if (hf_acquire_start(stress->client, names[asked.name], NULL, on_done,
                         &asked, &request, NULL) != 0) {
        atomic_fetch_add(&stress->errors, 1);
        return;
    }
    if (dice % 4 == 0)
        hf_cancel(request);
    if (dice % 8 != 1)
        event_await(&asked.done, 1, EVENT_PATIENCE_MS);
    hf_request_free(request); /* an unfinished one is cancelled */
}

static void *asking_thread(void *arg)
{
    struct stress *stress = arg;
    unsigned state = (unsigned)(uintptr_t)&stress;

    for (int i = 0; i < stress->rounds; i++)
        ask_once(stress, draw(&state));
    return NULL;
}

/* ---- signals ------------------------------------------------------------ */

static void on_signal(int number)
{
    (void)number;
}

static void stop_signals(void *arg)
{
    (void)timer_delete(*(timer_t *)arg);
    (void)signal(SIGUSR2, SIG_IGN);
}

/* From now on a signal every half millisecond interrupts some system call. */
static void start_signals(void)
{
    static timer_t timer;
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL,
                             .sigev_signo = SIGUSR2};
    struct itimerspec every = {{0, 500000}, {0, 500000}};
    struct sigaction action = {.sa_handler = on_signal};

    ASSERT_EQ(sigaction(SIGUSR2, &action, NULL), 0);
    ASSERT_EQ(timer_create(CLOCK_MONOTONIC, &event, &timer), 0);
    test_defer(stop_signals, &timer);
    ASSERT_EQ(timer_settime(timer, 0, &every, NULL), 0);
}

/* ---- all of them -------------------------------------------------------- */

static hf_client *open_client(const char *format, const char *directory)
{
    hf_client *client;
    char url[512];
    hf_error err;

    (void)snprintf(url, sizeof(url), "%s://%s%s", "local", directory, format);
    ASSERT_OK(hf_open(url, NULL, &client, &err), &err);
    return client;
}

static void run_all(struct stress *stress)
{
    static void *(*const kinds[])(void *) = {
        pair_thread,    pair_thread,   pair_thread,   pair_thread,
        hasty_thread,   hasty_thread,  asking_thread, asking_thread,
        posting_thread, posting_thread};
    enum { THREADS = sizeof(kinds) / sizeof(kinds[0]) };
    pthread_t threads[THREADS];

    for (int i = 0; i < THREADS; i++)
        ASSERT_EQ(pthread_create(&threads[i], NULL, kinds[i], stress), 0);
    for (int i = 0; i < THREADS; i++)
        ASSERT_EQ(pthread_join(threads[i], NULL), 0);
}

static int rounds(void)
{
    const char *text = getenv("STRESS_ROUNDS");

    return text && atoi(text) > 0 ? atoi(text) : ROUNDS;
}

TEST(stress, ten_threads_and_a_shower_of_signals)
{
    const char *directory = tempdir_new();
    struct stress stress = {.rounds = rounds()};

    stress.client = open_client("", directory);
    stress.posting = open_client("?release=post", directory);
    start_signals();
    run_all(&stress);
    ASSERT_EQ(stress.errors, 0);
    for (int i = 0; i < NAMES; i++) {
        ASSERT_EQ(stress.counters[i], stress.expected[i]);
        ASSERT_EQ(stress.own_counters[0][i] + stress.own_counters[1][i],
                  stress.expected[i]);
    }
    hf_close(stress.posting);
    hf_close(stress.client);
}

static void *closing_thread(void *arg)
{
    struct stress *stress = arg;

    for (;;) {
        hf_hold *hold;
        int rc = hf_acquire(stress->client, names[0], NULL, &hold, NULL);

        if (rc == HF_ECLOSED)
            return NULL;
        if (rc != 0) {
            atomic_fetch_add(&stress->errors, 1);
            return NULL;
        }
        (void)hf_release(hold, NULL); /* the shutdown may have been quicker */
    }
}

TEST(stress, a_shutdown_in_the_midst_ends_every_call)
{
    enum { THREADS = 6, TIMES = 20 };
    const char *directory = tempdir_new();

    for (int i = 0; i < TIMES; i++) {
        struct stress stress = {.rounds = 1};
        pthread_t threads[THREADS];

        stress.client = open_client("", directory);
        for (int j = 0; j < THREADS; j++)
            ASSERT_EQ(
                pthread_create(&threads[j], NULL, closing_thread, &stress), 0);
        for (int j = 0; j < i; j++)
            acquire_once(&stress, stress.client, 1, 0);
        ASSERT_EQ(hf_shutdown(stress.client, 5000, NULL), 0);
        for (int j = 0; j < THREADS; j++)
            (void)pthread_join(threads[j], NULL);
        ASSERT_EQ(stress.errors, 0);
        hf_close(stress.client);
    }
}

static void *waiting_thread(void *arg)
{
    struct stress *stress = arg;

    for (int i = 0; i < stress->rounds; i++)
        acquire_once(stress, stress->client, /* name= */ 0, HF_FOREVER);
    return NULL;
}

static uint64_t waiting_in(hf_client *client)
{
    uint64_t waiting;

    ASSERT_EQ(hf__monitor_enter_any(client, NULL), 0);
    waiting = client->metrics.waiting;
    hf__monitor_leave(client);
    return waiting;
}

/* Only 32 of them have a call of the client's bell. */
TEST(stress, more_threads_wait_than_one_word_can_tell_apart)
{
    enum { THREADS = 40 };
    struct stress stress = {.rounds = 5};
    pthread_t threads[THREADS];
    hf_hold *hold;
    hf_error err;

    stress.client = open_client("", tempdir_new());
    ASSERT_OK(hf_acquire(stress.client, names[0], NULL, &hold, &err), &err);
    for (int i = 0; i < THREADS; i++)
        ASSERT_EQ(pthread_create(&threads[i], NULL, waiting_thread, &stress),
                  0);
    EVENTUALLY(waiting_in(stress.client) == THREADS);
    ASSERT_OK(hf_release(hold, &err), &err);
    for (int i = 0; i < THREADS; i++)
        ASSERT_EQ(pthread_join(threads[i], NULL), 0);
    ASSERT_EQ(stress.errors, 0);
    ASSERT_EQ(stress.counters[0], (long)THREADS * stress.rounds);
    hf_close(stress.client);
}

static void *checking_thread(void *arg)
{
    hf_hold *hold = arg;
    int state;

    do
        state = hf_check(hold);
    while (state == HF_HELD || state == HF_JEOPARDY);
    hf_hold_unref(hold);
    return NULL;
}

TEST(stress, checks_run_beside_renewals_and_releases)
{
    hf_client *client = open_client("?ttl=30ms", tempdir_new());

    for (int i = 0; i < 10; i++) {
        pthread_t threads[2];
        hf_hold *hold;
        int64_t until;

        ASSERT_OK(hf_acquire(client, "checked", NULL, &hold, NULL), NULL);
        for (int j = 0; j < 2; j++)
            ASSERT_EQ(pthread_create(&threads[j], NULL, checking_thread,
                                     hf_hold_ref(hold)),
                      0);
        until = clock_ms() + 30;
        while (clock_ms() < until)
            (void)hf_remaining_ms(hold);
        (void)hf_release(hold, NULL); /* lost, if the machine is slow */
        for (int j = 0; j < 2; j++)
            (void)pthread_join(threads[j], NULL);
    }
    hf_close(client);
}

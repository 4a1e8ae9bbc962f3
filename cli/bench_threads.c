/* SPDX-License-Identifier: MIT */
/*
 * bench_threads.c - the scenarios pair and shared-name.
 *
 * Threads of one process, one client, acquire and release as fast as they can:
 * each a name of its own, or all the same one. One pair in eight is timed: a
 * look at the clock costs a tenth of what it measures here.
 *
 * Fairness is the share of the thread that got the lock least often, divided by
 * that of the one that got it most often.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench.h"

struct worker {
    pthread_t thread;
    pthread_barrier_t *start;
    hf_client *client;
    char name[64];
    uint64_t seconds_ns;
    uint64_t began_ns;
    uint64_t ended_ns;
    uint64_t pairs;
    struct figures figures; /* of this thread */
};

enum { TIMED_ONE_IN = 8 };

static void one_pair(struct worker *worker)
{
    hf_hold *hold;
    hf_error err;
    int rc = hf_acquire(worker->client, worker->name, NULL, &hold, &err);

    if (rc == 0)
        rc = hf_release(hold, &err);
    if (rc != 0)
        bench_error(&worker->figures, &err);
    worker->pairs++;
}

static void *work(void *arg)
{
    struct worker *worker = arg;
    uint64_t until;

    pthread_barrier_wait(worker->start);
    worker->began_ns = bench_now_ns();
    until = worker->began_ns + worker->seconds_ns;
    do {
        uint64_t before;

        for (int i = 1; i < TIMED_ONE_IN; i++)
            one_pair(worker);
        before = bench_now_ns();
        one_pair(worker);
        worker->ended_ns = bench_now_ns();
        histogram_add(&worker->figures.histogram, worker->ended_ns - before);
    } while (worker->ended_ns < until);
    return NULL;
}

static void add_up(const struct bench *bench, struct worker *workers,
                   struct figures *figures)
{
    uint64_t least = UINT64_MAX;
    uint64_t most = 0;
    uint64_t began = UINT64_MAX;
    uint64_t ended = 0;
    uint64_t pairs = 0;

    for (int i = 0; i < bench->threads; i++) {
        struct worker *worker = &workers[i];
        uint64_t n = worker->pairs;

        histogram_merge(&figures->histogram, &worker->figures.histogram);
        pairs += n;
        least = n < least ? n : least;
        most = n > most ? n : most;
        began = worker->began_ns < began ? worker->began_ns : began;
        ended = worker->ended_ns > ended ? worker->ended_ns : ended;
        if (worker->figures.errors && !figures->errors)
            snprintf(figures->error, sizeof(figures->error), "%s",
                     worker->figures.error);
        figures->errors += worker->figures.errors;
    }
    figures->seconds = (double)(ended - began) / 1e9;
    figures->per_s = (double)pairs / figures->seconds;
    figures->fairness = most ? (double)least / (double)most : 0;
}

static int run_threads(const struct bench *bench, struct worker *workers,
                       pthread_barrier_t *start)
{
    int started = 0;

    for (; started < bench->threads; started++) {
        workers[started].start = start;
        workers[started].seconds_ns = (uint64_t)(bench->seconds * 1e9);
        if (pthread_create(&workers[started].thread, NULL, work,
                           &workers[started]) != 0)
            break;
    }
    if (started < bench->threads) {
        /* The others wait at the barrier for ever; the process ends. */
        fprintf(stderr, "holdfast: cannot start %d threads\n", bench->threads);
        exit(CLI_INTERNAL);
    }
    pthread_barrier_wait(start);

    uint64_t now = bench_now_ns();
    bench_wait(bench, now, now + (uint64_t)(bench->seconds * 1e9));
    for (int i = 0; i < bench->threads; i++)
        pthread_join(workers[i].thread, NULL);
    return 0;
}

static int measure(const struct bench *bench, struct figures *figures,
                   bool shared)
{
    struct worker *workers = calloc((size_t)bench->threads, sizeof(*workers));
    pthread_barrier_t start;
    hf_client *client = NULL;
    int rc = workers ? bench_open(figures, &client) : CLI_INTERNAL;

    if (rc != 0) {
        free(workers);
        return rc;
    }
    pthread_barrier_init(&start, NULL, (unsigned)bench->threads + 1);
    for (int i = 0; i < bench->threads; i++) {
        workers[i].client = client;
        bench_name(workers[i].name, sizeof(workers[i].name), bench->scenario,
                   shared ? 0 : i);
    }
    rc = run_threads(bench, workers, &start);
    add_up(bench, workers, figures);
    if (!shared)
        figures->fairness = -1;
    pthread_barrier_destroy(&start);
    free(workers);
    hf_close(client);
    return rc;
}

int bench_pair(const struct bench *bench, struct figures *figures)
{
    return measure(bench, figures, /* shared= */ false);
}

int bench_shared_name(const struct bench *bench, struct figures *figures)
{
    return measure(bench, figures, /* shared= */ true);
}

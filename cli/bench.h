/* SPDX-License-Identifier: MIT */
/* bench.h - the scenarios of holdfast bench. */
#ifndef CLI_BENCH_H
#define CLI_BENCH_H

#include "cli.h"
#include "histogram.h"

/* What to measure. */
struct bench {
    const char *scenario;
    double seconds;
    int threads;
    int processes;
    int64_t locks;
};

/* What came out. A figure that a scenario does not have is below zero. */
struct figures {
    char engine[32];
    char url[512];
    double seconds; /* as measured */
    double per_s;
    double fairness;
    double bytes_per_lock;
    double cpu_percent;
    double renewals_per_s;
    struct histogram histogram;
    uint64_t errors;
    char error[248]; /* the first one */
};

/* A scenario returns 0, or the exit code of what kept it from starting. */
typedef int bench_fn(const struct bench *bench, struct figures *figures);
bench_fn bench_pair;
bench_fn bench_shared_name;
bench_fn bench_handover;
bench_fn bench_try;
bench_fn bench_async;
bench_fn bench_held;

uint64_t bench_now_ns(void);
/* A name that no other run uses. */
void bench_name(char *to, size_t size, const char *what, int64_t i);
/* Open the engine, and remember which one it is; as cli_open(). */
int bench_open(struct figures *figures, hf_client **ret_client);
/* One more error; keep the text of the first. */
void bench_error(struct figures *figures, const hf_error *err);
/* The progress line; NULL wipes it. */
void bench_progress(const struct bench *bench, double elapsed);
/* Sleep until @until, with a progress line. */
void bench_wait(const struct bench *bench, uint64_t start_ns,
                uint64_t until_ns);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * world.h - time, chance, sleeping and threads: all that a test must own.
 *
 * The library never asks the kernel for these directly. The simulation
 * replaces the table, and then the same code runs on a virtual clock with
 * coroutines for threads, and any run repeats from its seed.
 *
 * Instants are nanoseconds of CLOCK_BOOTTIME, which goes on while the machine
 * sleeps. HF_NEVER is later than every instant.
 */
#ifndef HF_BASE_WORLD_H
#define HF_BASE_WORLD_H

#include <stdatomic.h>

#include "base/base.h"

#define HF_NEVER INT64_MAX
#define HF_ANYBODY UINT32_MAX /* of those who are parked on one word */
#define HF_MS INT64_C(1000000)
#define HF_SECOND INT64_C(1000000000)

struct hf__loop;
struct hf__loop_batch;
struct hf__alarm;
struct hf__thread; /* opaque: a pthread, or a coroutine of the simulation */

typedef void hf__thread_fn(void *arg);

struct hf__world {
    /* CLOCK_BOOTTIME in ns. */
    int64_t (*now_ns)(void);
    /* CLOCK_REALTIME in µs. */
    int64_t (*wall_us)(void);
    /* Fill with unpredictable bytes; 0, or HF_EINTERNAL. */
    int (*random)(void *bytes, size_t len);
    /* Sleep while *word == value, until @until_ns, under the bits of @who; may
     * return early. */
    void (*park)(_Atomic uint32_t *word, uint32_t value, uint32_t who,
                 int64_t until_ns);
    /* Wake the threads parked on @word under a bit of @who, all before any of
     * them runs. Never reads the word: it may be gone. */
    void (*unpark)(_Atomic uint32_t *word, uint32_t who);
    /* Wait for descriptors of @loop until @until_ns (base/loop.h). */
    int (*poll)(struct hf__loop *loop, struct hf__loop_batch *batch,
                int64_t until_ns);
    /* End that poll, or the next one. Async-signal-safe. */
    void (*kick)(struct hf__loop *loop);
    /* Sleep until @until_ns or ring(), also through a suspend; with
     * @loop (may be NULL) also until that has something to poll. */
    void (*sleep)(struct hf__alarm *alarm, struct hf__loop *loop,
                  int64_t until_ns);
    /* End that sleep, or the next one. Async-signal-safe. */
    void (*ring)(struct hf__alarm *alarm);
    /* Let others run once. */
    void (*yield)(void);
    /* The calling thread's serial number, from 1, never used twice. */
    uint64_t (*self)(void);
    /* A thread with all signals blocked. 0, or HF_ENOMEM. */
    int (*thread_start)(struct hf__thread **ret_thread, const char *name,
                        hf__thread_fn *run, void *arg);
    void (*thread_join)(struct hf__thread *thread);
    /* On how many the calling thread may run; 1 if that is not known. */
    int (*processors)(void);
};

/* The one in force; the real one unless a test has replaced it before the
 * first client was opened. */
extern const struct hf__world *hf__world;
extern const struct hf__world hf__world_real;

static inline int64_t hf__now(void)
{
    return hf__world->now_ns();
}

/* a + b without leaving the number range; either may be HF_NEVER. */
static inline int64_t hf__instant_add(int64_t a_ns, int64_t b_ns)
{
    int64_t sum;

    if (__builtin_add_overflow(a_ns, b_ns, &sum))
        return HF_NEVER;
    return sum;
}

/* @ms may be HF_FOREVER. */
static inline int64_t hf__ms_to_ns(int64_t ms)
{
    return ms < 0 || ms > HF_DURATION_MAX ? HF_NEVER : ms * HF_MS;
}

/* A serial number that no thread has. */
uint64_t hf__world_serial(void);

/* A number below @bound; 0 if @bound is 0. */
uint64_t hf__random_below(uint64_t bound);

#endif

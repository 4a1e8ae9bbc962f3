/* SPDX-License-Identifier: MIT */
/*
 * world.c - the real clock, the real kernel, real threads.
 *
 * Parking is a private futex. Its timeout counts on CLOCK_MONOTONIC, the only
 * clock futexes have for it: a caller's wait may end late by the time the
 * machine slept. Leases are not kept that way: the background thread sleeps on
 * a timerfd (loop.c), and every entry to a client looks at the clock first.
 */
#include "base/world.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/loop.h"
#include "base/loop_real.h"

struct hf__thread {
    pthread_t id;
    hf__thread_fn *run;
    void *arg;
    char name[16];
};

static int64_t clock_ns(clockid_t clock)
{
    struct timespec now;

    (void)clock_gettime(clock, &now); /* cannot fail for these clocks */
    return now.tv_sec * HF_SECOND + now.tv_nsec;
}

static int64_t real_now_ns(void)
{
    return clock_ns(CLOCK_BOOTTIME);
}

static int64_t real_wall_us(void)
{
    return clock_ns(CLOCK_REALTIME) / 1000;
}

static int real_random(void *bytes, size_t len)
{
    unsigned char *to = bytes;

    while (len > 0) {
        ssize_t n = getrandom(to, len, 0);

        if (n < 0 && errno != EINTR)
            return HF_EINTERNAL;
        if (n > 0) {
            to += n;
            len -= (size_t)n;
        }
    }
    return 0;
}

static void real_park(_Atomic uint32_t *word, uint32_t value, uint32_t who,
                      int64_t until_ns)
{
    struct timespec at;
    struct timespec *timeout = NULL;

    if (until_ns != HF_NEVER) {
        int64_t left_ns = until_ns - real_now_ns();
        int64_t due_ns;

        if (left_ns <= 0)
            return;
        due_ns = clock_ns(CLOCK_MONOTONIC) + left_ns;
        at.tv_sec = due_ns / HF_SECOND;
        at.tv_nsec = due_ns % HF_SECOND;
        timeout = &at;
    }
    /* EAGAIN, EINTR, ETIMEDOUT: the caller looks for itself. */
    (void)syscall(SYS_futex, word, FUTEX_WAIT_BITSET_PRIVATE, value, timeout,
                  NULL, who);
}

static void real_unpark(_Atomic uint32_t *word, uint32_t who)
{
    /* The word's thread may have left and its stack be gone: a wake-up of
     * nobody, or a spurious one, both harmless. */
    (void)syscall(SYS_futex, word, FUTEX_WAKE_BITSET_PRIVATE, INT_MAX, NULL,
                  NULL, who);
}

static void real_yield(void)
{
    (void)sched_yield(); /* cannot fail on Linux */
}

static _Atomic uint64_t serials;
static _Thread_local uint64_t own_serial;

uint64_t hf__world_serial(void)
{
    return atomic_fetch_add_explicit(&serials, 1, memory_order_relaxed) + 1;
}

static uint64_t real_self(void)
{
    if (HF_UNLIKELY(own_serial == 0))
        own_serial = hf__world_serial();
    return own_serial;
}

static void *thread_main(void *arg)
{
    struct hf__thread *thread = arg;

    (void)pthread_setname_np(pthread_self(), thread->name); /* for people */
    thread->run(thread->arg);
    return NULL;
}

static int real_thread_start(struct hf__thread **ret_thread, const char *name,
                             hf__thread_fn *run, void *arg)
{
    struct hf__thread *thread = hf__calloc(1, sizeof(*thread));
    sigset_t all;
    sigset_t before;
    int rc;

    if (!thread)
        return HF_ENOMEM;

    thread->run = run;
    thread->arg = arg;
    hf__text_copy(thread->name, sizeof(thread->name), name);
    /* The host's signals are the host's threads' business. */
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    rc = pthread_create(&thread->id, NULL, thread_main, thread);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (rc != 0) {
        hf__free(thread);
        return HF_ENOMEM;
    }
    *ret_thread = thread;
    return 0;
}

static void real_thread_join(struct hf__thread *thread)
{
    (void)pthread_join(thread->id, NULL);
    hf__free(thread);
}

static int real_processors(void)
{
    cpu_set_t set;

    return sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
}

const struct hf__world hf__world_real = {
    .now_ns = real_now_ns,
    .wall_us = real_wall_us,
    .random = real_random,
    .park = real_park,
    .unpark = real_unpark,
    .poll = hf__loop_real_poll,
    .kick = hf__loop_real_kick,
    .sleep = hf__loop_real_sleep,
    .ring = hf__loop_real_ring,
    .yield = real_yield,
    .self = real_self,
    .thread_start = real_thread_start,
    .thread_join = real_thread_join,
    .processors = real_processors,
};

const struct hf__world *hf__world = &hf__world_real;

uint64_t hf__random_below(uint64_t bound)
{
    uint64_t number = 0;

    if (bound == 0 || hf__world->random(&number, sizeof(number)) != 0)
        return 0;
    return number % bound;
}

/* SPDX-License-Identifier: MIT */
/*
 * raw_handover.h - two processes pass one lock back and forth, for the raw
 * programs whose server makes who waits wait.
 *
 * What is measured is what holdfast bench --scenario handover measures: from the
 * call that gives it in one to the return of the call that takes it in the
 * other.
 */
#ifndef BENCH_RAW_HANDOVER_H
#define BENCH_RAW_HANDOVER_H

#include <sys/wait.h>

#include "raw.h"

/* Only who has the lock writes here. */
struct turns {
    _Atomic int ready;
    volatile uint64_t end_ns;
    volatile uint64_t given_ns;
    volatile uint64_t passed;
    volatile int by;
    struct samples samples;
};

/* What one process needs for it; me is 0 or 1. */
struct player {
    void *(*dial)(const char *where, int me);
    void (*take)(void *connection);
    void (*give)(void *connection);
};

static inline void take_turns(struct turns *turns, const struct player *player,
                              const char *where, int me, double seconds)
{
    struct timespec ms = {0, 1000000};
    void *connection = player->dial(where, me);

    if (++turns->ready == 2)
        turns->end_ns = end_of(seconds);
    while (turns->end_ns == 0)
        nanosleep(&ms, NULL);
    while (now_ns() < turns->end_ns) {
        player->take(connection);
        if (turns->passed > 0 && turns->by != me)
            sample(&turns->samples, now_ns() - turns->given_ns);
        turns->passed++;
        turns->by = me;
        turns->given_ns = now_ns();
        player->give(connection);
    }
}

static inline void handover(const char *scenario, const struct player *player,
                            const char *where, double seconds)
{
    struct turns *turns = shared_page(sizeof(*turns));
    pid_t other = fork();
    int status;

    if (other < 0)
        die("fork");
    take_turns(turns, player, where, other == 0, seconds);
    if (other == 0)
        _exit(0);
    if (waitpid(other, &status, 0) < 0 || status != 0)
        exit(1);
    print(scenario, (double)turns->samples.n / seconds, &turns->samples);
}

#endif

/* SPDX-License-Identifier: MIT */
/*
 * futex.h - the three system calls that waiting uses.
 *
 * Several processes map the file with the words, so these are shared futexes,
 * except where the name says private.
 */
#ifndef HF_LOCAL_FUTEX_H
#define HF_LOCAL_FUTEX_H

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifndef SYS_futex_waitv
#define SYS_futex_waitv 449 /* the same on every architecture */
#endif

/* As the kernel's struct futex_waitv, which older headers do not have. */
struct hf__futex_waitv {
    uint64_t value;
    uint64_t address;
    uint32_t flags;
    uint32_t reserved;
};

enum { HF__FUTEX_32 = 2, HF__FUTEX_PRIVATE = 128 };

static inline void hf__futex_wake_all(_Atomic uint32_t *word)
{
    (void)syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* Sleep while *word == value, until @at on CLOCK_MONOTONIC. */
static inline void hf__futex_wait(_Atomic uint32_t *word, uint32_t value,
                                  bool private, const struct timespec *at)
{
    int op = FUTEX_WAIT_BITSET | (private ? FUTEX_PRIVATE_FLAG : 0);

    (void)syscall(SYS_futex, word, op, value, at, NULL, FUTEX_BITSET_MATCH_ANY);
}

/* Sleep while all of the words have their values. False if the kernel does
 * not have this call, or forbids it. */
static inline bool hf__futex_wait_any(struct hf__futex_waitv *words, unsigned n,
                                      const struct timespec *at)
{
    long rc = syscall(SYS_futex_waitv, words, n, 0, at, CLOCK_MONOTONIC);

    return rc >= 0 || (errno != ENOSYS && errno != EPERM);
}

#endif

/* SPDX-License-Identifier: MIT */
/*
 * deadlock.h - which owners wait for one another for ever. Pure: no clock, no
 * I/O, no memory of its own.
 *
 * The members are owners that wait for one lock and hold others. For each of
 * them the caller gives the rows of the lock that it waits for: who holds it,
 * and who is in line before it.
 */
#ifndef HF_CORE_DEADLOCK_H
#define HF_CORE_DEADLOCK_H

#include "base/base.h"

enum {
    HF__DEADLOCK_MEMBERS = 256, /* more are not looked at */
    HF__DEADLOCK_NOBODY = -1    /* a row of an owner that is no member */
};

/* One holder of the lock that a member waits for, or one waiter before it. */
struct hf__deadlock_row {
    int32_t role;   /* HF_HOLDER, HF_WAITER */
    int32_t mode;   /* HF_EXCLUSIVE, HF_SHARED, HF_SLOT */
    int32_t member; /* a holder's number, or HF__DEADLOCK_NOBODY */
};

struct hf__deadlock_set {
    uint64_t bits[HF__DEADLOCK_MEMBERS / 64];
};

struct hf__deadlock_member {
    struct hf__deadlock_set holders; /* members that keep it waiting */
    bool strangers;                  /* others keep it waiting, too */
    bool slots;                      /* one slot that becomes free is enough */
};

struct hf__deadlock {
    uint32_t n;
    struct hf__deadlock_member members[HF__DEADLOCK_MEMBERS];
    struct hf__deadlock_set stuck; /* after hf__deadlock_solve() */
};

static inline bool hf__deadlock_has(const struct hf__deadlock_set *set,
                                    uint32_t number)
{
    return (set->bits[number / 64] >> number % 64 & 1) != 0;
}

/* What member @number, which waits in @mode, waits for. It is nobody's until
 * then. */
void hf__deadlock_rows(struct hf__deadlock *deadlock, uint32_t number, int mode,
                       const struct hf__deadlock_row *rows, size_t n);
/* Find the members that nothing but a timeout, a cancel, a loss or a break can
 * free. */
void hf__deadlock_solve(struct hf__deadlock *deadlock);
/* The shortest way from stuck member @number over holders back to itself, into
 * @cycle, which begins with it. Returns its length; 0: there is none. */
uint32_t hf__deadlock_cycle(const struct hf__deadlock *deadlock,
                            uint32_t number,
                            uint16_t cycle[HF__DEADLOCK_MEMBERS]);

#endif

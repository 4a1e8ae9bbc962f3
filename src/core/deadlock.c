/* SPDX-License-Identifier: MIT */
/*
 * deadlock.c - which owners wait for one another for ever.
 *
 * A member is kept waiting by the holders that exclude it, or anybody in line
 * before it: a shared request behind an exclusive one waits for the shared
 * holders, too. All of those holders have to go before it is served, so one
 * that is stuck is enough to keep it. With slots only, one that goes is enough
 * to serve it, so all have to be stuck.
 *
 * solve() begins with all members and removes those that can be served, until
 * none is left to remove. tests/unit/deadlock_test.c compares the rest with a
 * run to the end.
 */
#include "core/deadlock.h"

static bool excludes(int held, int wanted)
{
    return held != HF_SHARED || wanted != HF_SHARED;
}

/* Does the holder in @mode exclude a waiter in @wanted, or one before it? */
static bool keeps_waiting(int mode, int wanted,
                          const struct hf__deadlock_row *rows, size_t n)
{
    if (excludes(mode, wanted))
        return true;
    for (size_t i = 0; i < n; i++) {
        if (rows[i].role == HF_WAITER && excludes(mode, rows[i].mode))
            return true;
    }
    return false;
}

void hf__deadlock_rows(struct hf__deadlock *deadlock, uint32_t number, int mode,
                       const struct hf__deadlock_row *rows, size_t n)
{
    struct hf__deadlock_member *member = &deadlock->members[number];

    memset(member, 0, sizeof(*member));
    member->slots = mode == HF_SLOT;
    for (size_t i = 0; i < n; i++) {
        const struct hf__deadlock_row *row = &rows[i];

        member->slots &= row->mode == HF_SLOT;
        if (row->role != HF_HOLDER || !keeps_waiting(row->mode, mode, rows, n))
            continue;
        if (row->member == HF__DEADLOCK_NOBODY)
            member->strangers = true;
        else
            member->holders.bits[row->member / 64] |= UINT64_C(1)
                                                      << row->member % 64;
    }
}

/* How many of @some are in @all, and not: as two bits, 1 and 2. */
static unsigned compare(const struct hf__deadlock_set *some,
                        const struct hf__deadlock_set *all)
{
    unsigned found = 0;

    for (size_t i = 0; i < HF_COUNT_OF(some->bits); i++) {
        found |= (some->bits[i] & all->bits[i]) != 0 ? 1u : 0u;
        found |= (some->bits[i] & ~all->bits[i]) != 0 ? 2u : 0u;
    }
    return found;
}

static bool can_be_served(const struct hf__deadlock *deadlock, uint32_t number)
{
    const struct hf__deadlock_member *member = &deadlock->members[number];
    unsigned found = compare(&member->holders, &deadlock->stuck);

    if ((found & 1) == 0)
        return true;
    return member->slots && (member->strangers || (found & 2) != 0);
}

void hf__deadlock_solve(struct hf__deadlock *deadlock)
{
    bool changed = true;

    memset(&deadlock->stuck, 0, sizeof(deadlock->stuck));
    for (uint32_t i = 0; i < deadlock->n; i++)
        deadlock->stuck.bits[i / 64] |= UINT64_C(1) << i % 64;
    while (changed) {
        changed = false;
        for (uint32_t i = 0; i < deadlock->n; i++) {
            if (hf__deadlock_has(&deadlock->stuck, i) &&
                can_be_served(deadlock, i)) {
                deadlock->stuck.bits[i / 64] &= ~(UINT64_C(1) << i % 64);
                changed = true;
            }
        }
    }
}

/* The way that search() found from its beginning to @last, in order. */
static uint32_t walk_back(const uint16_t *before, uint32_t number,
                          uint32_t last, uint16_t *cycle)
{
    uint32_t n = 1;

    for (uint32_t at = last; at != number; at = before[at])
        n++;
    for (uint32_t at = last, i = n; i > 0; at = before[at])
        cycle[--i] = (uint16_t)at;
    return n;
}

uint32_t hf__deadlock_cycle(const struct hf__deadlock *deadlock,
                            uint32_t number,
                            uint16_t cycle[HF__DEADLOCK_MEMBERS])
{
    struct hf__deadlock_set seen = {{0}};
    uint16_t before[HF__DEADLOCK_MEMBERS] = {0};
    uint16_t line[HF__DEADLOCK_MEMBERS];
    uint32_t n = 0;

    if (!hf__deadlock_has(&deadlock->stuck, number))
        return 0;
    line[n++] = (uint16_t)number;
    for (uint32_t i = 0; i < n; i++) {
        const struct hf__deadlock_set *next =
            &deadlock->members[line[i]].holders;

        if (hf__deadlock_has(next, number))
            return walk_back(before, number, line[i], cycle);
        for (uint32_t to = 0; to < deadlock->n; to++) {
            if (!hf__deadlock_has(next, to) || hf__deadlock_has(&seen, to) ||
                !hf__deadlock_has(&deadlock->stuck, to))
                continue;
            seen.bits[to / 64] |= UINT64_C(1) << to % 64;
            before[to] = line[i];
            line[n++] = (uint16_t)to;
        }
    }
    return 0;
}

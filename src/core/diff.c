/* SPDX-License-Identifier: MIT */
/*
 * diff.c - what happened between two lists of holders and waiters.
 *
 * A row is the same in both lists if name, role, token, owner, host and pid
 * are. Rows that are equal in all of them (an owner that waits twice) are
 * counted. A waiter that is gone has not left if its owner holds the lock now.
 * What came and went between the two lists is in neither, and is not told.
 *
 * Both lists are sorted, so the work grows with n log n: a line of ten
 * thousand waiters is no attack. Pure: no clock, no client.
 */
#include "core/diff.h"

#include <stdlib.h>

#include "base/world.h"

/* The end of a lease and the look that finds it are timed by two clocks. */
#define LEASE_SLACK_MS 20

/* One row of one list, and whether the other list has it. */
struct side {
    struct hf__row *row;
    bool met;
};

/* One list: its rows that count, in order, and pointers to sort. */
struct sides {
    struct side *at;
    struct side **sorted;
    size_t n;
};

bool hf__diff_counts(const struct hf__row *row)
{
    return row->is.lock.role == HF_HOLDER || row->is.lock.role == HF_WAITER;
}

int hf__diff_ending(const struct hf__row *row, int64_t now_ns)
{
    const hf_lock_info *lock = &row->is.lock;
    int64_t seen_ms = (now_ns - row->seen_ns) / HF_MS;

    if (row->broken)
        return HF_EV_BROKEN;
    if (lock->alive == HF_ALIVE_NO)
        return HF_EV_LOST;
    return lock->lease_ms >= 0 && lock->lease_ms - LEASE_SLACK_MS <= seen_ms
               ? HF_EV_LOST
               : HF_EV_RELEASED;
}

/* ---- who is who ------------------------------------------------------------ */

typedef int order_fn(const void *a, const void *b);

static int order_of(uint64_t left, uint64_t right)
{
    return (left > right) - (left < right);
}

static const hf_lock_info *lock_of(const void *pointer)
{
    const struct side *side = *(struct side *const *)pointer;

    return &side->row->is.lock;
}

/* The same name and the same owner. */
static int by_owner(const void *a, const void *b)
{
    const hf_lock_info *left = lock_of(a);
    const hf_lock_info *right = lock_of(b);
    int order = strcmp(left->name, right->name);

    if (order == 0)
        order = strcmp(left->owner, right->owner);
    if (order == 0)
        order = strcmp(left->host, right->host);
    return order != 0 ? order
                      : order_of((uint64_t)left->pid, (uint64_t)right->pid);
}

/* And in the same role, under the same grant. */
static int by_identity(const void *a, const void *b)
{
    const hf_lock_info *left = lock_of(a);
    const hf_lock_info *right = lock_of(b);
    int order = by_owner(a, b);

    if (order == 0)
        order = order_of((uint64_t)left->role, (uint64_t)right->role);
    return order != 0 ? order : order_of(left->token, right->token);
}

/* Mark the rows that both lists have, as often as both have them. */
static void meet(struct side **before, size_t before_n, struct side **after,
                 size_t after_n, order_fn *order, bool marks_after)
{
    size_t b = 0;
    size_t a = 0;

    while (b < before_n && a < after_n) {
        int way = order(&before[b], &after[a]);

        if (way == 0) {
            before[b]->met = true;
            after[a]->met |= marks_after;
        }
        b += way <= 0;
        a += way >= 0;
    }
}

static void sort(struct side **at, size_t n, order_fn *order)
{
    if (n > 1)
        qsort(at, n, sizeof(struct side *), order);
}

static void meet_equals(struct sides *before, struct sides *after)
{
    sort(before->sorted, before->n, by_identity);
    sort(after->sorted, after->n, by_identity);
    meet(before->sorted, before->n, after->sorted, after->n, by_identity,
         /* marks_after= */ true);
}

/* Of the rows that have met nobody, those of @role; how many. */
static size_t strangers(struct sides *sides, int role)
{
    size_t n = 0;

    for (size_t i = 0; i < sides->n; i++) {
        struct side *side = &sides->at[i];

        if (!side->met && side->row->is.lock.role == role)
            sides->sorted[n++] = side;
    }
    sort(sides->sorted, n, by_owner);
    return n;
}

/* A waiter whose owner holds it now was granted the lock. */
static void meet_promoted(struct sides *before, struct sides *after)
{
    size_t waiters = strangers(before, HF_WAITER);
    size_t holders = strangers(after, HF_HOLDER);

    meet(before->sorted, waiters, after->sorted, holders, by_owner,
         /* marks_after= */ false);
}

/* ---- telling --------------------------------------------------------------- */

static const char *name_at(const struct sides *sides, size_t i)
{
    return sides->at[i].row->is.lock.name;
}

/* Where the rows of @name end that begin at @from. */
static size_t end_of(const struct sides *sides, size_t from, const char *name)
{
    while (from < sides->n && strcmp(name_at(sides, from), name) == 0)
        from++;
    return from;
}

static const char *next_name(const struct sides *before, size_t b,
                             const struct sides *after, size_t a)
{
    if (b == before->n)
        return name_at(after, a);
    if (a == after->n)
        return name_at(before, b);
    return strcmp(name_at(before, b), name_at(after, a)) <= 0
               ? name_at(before, b)
               : name_at(after, a);
}

static void tell_strangers(const struct sides *sides, size_t from, size_t to,
                           int role, enum hf__change change, hf__diff_fn *tell,
                           void *ctx)
{
    for (size_t i = from; i < to; i++) {
        const struct side *side = &sides->at[i];

        if (!side->met && side->row->is.lock.role == role)
            tell(ctx, change, side->row);
    }
}

static void tell_all(const struct sides *before, const struct sides *after,
                     hf__diff_fn *tell, void *ctx)
{
    size_t b = 0;
    size_t a = 0;

    while (b < before->n || a < after->n) {
        const char *name = next_name(before, b, after, a);
        size_t b_end = end_of(before, b, name);
        size_t a_end = end_of(after, a, name);

        tell_strangers(before, b, b_end, HF_HOLDER, HF__CHANGE_ENDED, tell,
                       ctx);
        tell_strangers(after, a, a_end, HF_HOLDER, HF__CHANGE_GRANTED, tell,
                       ctx);
        tell_strangers(before, b, b_end, HF_WAITER, HF__CHANGE_LEFT, tell, ctx);
        tell_strangers(after, a, a_end, HF_WAITER, HF__CHANGE_QUEUED, tell,
                       ctx);
        b = b_end;
        a = a_end;
    }
}

static int sides_init(struct sides *sides, struct hf__diff_list list)
{
    sides->at = hf__calloc(list.n + 1, sizeof(struct side));
    sides->sorted = hf__calloc(list.n + 1, sizeof(struct side *));
    sides->n = 0;
    if (!sides->at || !sides->sorted)
        return HF_ENOMEM;
    for (size_t i = 0; i < list.n; i++) {
        if (!hf__diff_counts(list.at[i]))
            continue;
        sides->at[sides->n].row = list.at[i];
        sides->sorted[sides->n] = &sides->at[sides->n];
        sides->n++;
    }
    return 0;
}

static void sides_release(struct sides *sides)
{
    hf__free(sides->at);
    hf__free(sides->sorted);
}

int hf__diff_rows(struct hf__diff_list before, struct hf__diff_list after,
                  hf__diff_fn *tell, void *ctx)
{
    struct sides was = {0};
    struct sides is = {0};
    int rc = sides_init(&was, before);

    if (rc == 0)
        rc = sides_init(&is, after);
    if (rc == 0) {
        meet_equals(&was, &is);
        meet_promoted(&was, &is);
        tell_all(&was, &is, tell, ctx);
    }
    sides_release(&was);
    sides_release(&is);
    return rc;
}

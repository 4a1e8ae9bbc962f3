/* SPDX-License-Identifier: MIT */
/*
 * condition.h - who of a condition's waiters is called, where the store keeps
 * records that end with their session (ZooKeeper, etcd). Pure.
 *
 * A parked waiter has a record; the store numbers records in the order in which
 * they were made. A signal adds a stamp to a list beside them, which no session
 * owns. Nobody is assigned to a stamp: every reader computes who is called, and
 * all of them find the same. So a wake-up whose bearer dies belongs to the next
 * waiter as soon as the record is gone, and nobody has to write that down.
 */
#ifndef HF_ENGINES_CONDITION_H
#define HF_ENGINES_CONDITION_H

#include "base/buf.h"

/* One wake-up that is not used up. It is for records with a smaller number:
 * those that were there when it was signalled. */
struct hf__condition_stamp {
    uint64_t at;
    bool all; /* a broadcast: for all of them */
};

/* The most that a list has: more is not ours. */
enum { HF__CONDITION_STAMPS = 10000 };

struct hf__condition {
    struct hf__condition_stamp *stamps; /* oldest first */
    size_t n;
};

/* Read the list from the store's text. 0, HF_ENOMEM, or HF_EINTERNAL if it is
 * malformed. Release with hf__condition_release(), also after an error. */
int hf__condition_read(struct hf__condition *condition, const char *text,
                       size_t len);
void hf__condition_write(const struct hf__condition *condition,
                         struct hf__buf *to);
void hf__condition_release(struct hf__condition *condition);

/* How many of the @n records are called: the first so many. @made has their
 * numbers, in ascending order. */
size_t hf__condition_called(const struct hf__condition *condition,
                            const uint64_t *made, size_t n);
/* The bearer with the record @made leaves in order: its wake-up is used up. */
void hf__condition_use_up(struct hf__condition *condition, uint64_t made);
/* Call one more, or with @all everybody, of the records below @at. 0, HF_ENOMEM
 * or HF_ENOSPACE. */
int hf__condition_signal(struct hf__condition *condition, uint64_t at,
                         bool all);
/* Drop the stamps that no record counts for; @oldest is the smallest number of
 * a record, UINT64_MAX if there is none. */
void hf__condition_clean(struct hf__condition *condition, uint64_t oldest);

#endif

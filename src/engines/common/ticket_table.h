/* SPDX-License-Identifier: MIT */
/*
 * ticket_table.h - the tickets that a server may know of, by number.
 *
 * A call that is under way remembers its ticket by number, never by pointer:
 * the ticket may be gone when the answer comes. The entry is part of the
 * engine's bytes of a ticket, so nothing is allocated.
 */
#ifndef HF_ENGINES_TICKET_TABLE_H
#define HF_ENGINES_TICKET_TABLE_H

#include "base/list.h"
#include "core/ticket.h"

enum { HF__TICKET_BUCKETS = 64 }; /* at first */

struct hf__ticket_table {
    struct hf__list *buckets; /* @first, or a larger array */
    uint32_t size;            /* of it; a power of two */
    uint32_t n;
    bool walking; /* hf__ticket_table_each() runs: do not grow */
    struct hf__list first[HF__TICKET_BUCKETS];
};

/* In the engine's bytes of a ticket; zeroed: not in a table. */
struct hf__ticket_entry {
    struct hf__list link;
    struct hf__ticket *ticket;
};

void hf__ticket_table_init(struct hf__ticket_table *table);
/* It has no tickets then. A table of zeroes may be released, and one that was
 * released may be used again. */
void hf__ticket_table_release(struct hf__ticket_table *table);
/* True if it was not there before. */
bool hf__ticket_table_add(struct hf__ticket_table *table,
                          struct hf__ticket_entry *entry,
                          struct hf__ticket *ticket);
/* True if it was there. */
bool hf__ticket_table_remove(struct hf__ticket_table *table,
                             struct hf__ticket_entry *entry);
/* NULL: the ticket is gone. */
struct hf__ticket *hf__ticket_table_find(const struct hf__ticket_table *table,
                                         uint64_t id);
/* The first ticket for which @wanted is true, in bucket *@bucket or a later
 * one; NULL: there is none. Begin with *@bucket = 0. The next call finds the
 * same ticket again unless it was removed or @wanted refuses it by then. */
typedef bool hf__ticket_wanted_fn(struct hf__ticket_entry *entry,
                                  const void *what);
struct hf__ticket *hf__ticket_table_next(const struct hf__ticket_table *table,
                                         size_t *bucket,
                                         hf__ticket_wanted_fn *wanted,
                                         const void *what);
/* Call @each for every ticket; it may remove the one it is called for. A table
 * of zeroes has none: an engine may be closed before it was opened. */
void hf__ticket_table_each(struct hf__ticket_table *table,
                           void (*each)(struct hf__ticket *ticket, void *ctx),
                           void *ctx);

#endif

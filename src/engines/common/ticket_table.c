/* SPDX-License-Identifier: MIT */
/*
 * ticket_table.c - a hash table of fixed size.
 *
 * Numbers of tickets count up, so they spread evenly. A client with ten thousand
 * requests under way has chains of ten; more buckets would make the walk over
 * all tickets dear for the clients that have few.
 */
#include "engines/common/ticket_table.h"

void hf__ticket_table_init(struct hf__ticket_table *table)
{
    for (size_t i = 0; i < HF__TICKET_BUCKETS; i++)
        hf__list_init(&table->buckets[i]);
    table->n = 0;
}

bool hf__ticket_table_add(struct hf__ticket_table *table,
                          struct hf__ticket_entry *entry,
                          struct hf__ticket *ticket)
{
    if (entry->ticket)
        return false;
    entry->ticket = ticket;
    hf__list_init(&entry->link);
    hf__list_append(&table->buckets[ticket->id % HF__TICKET_BUCKETS],
                    &entry->link);
    table->n++;
    return true;
}

bool hf__ticket_table_remove(struct hf__ticket_table *table,
                             struct hf__ticket_entry *entry)
{
    if (!entry->ticket)
        return false;
    hf__list_remove(&entry->link);
    entry->ticket = NULL;
    table->n--;
    return true;
}

struct hf__ticket *hf__ticket_table_find(const struct hf__ticket_table *table,
                                         uint64_t id)
{
    const struct hf__list *bucket = &table->buckets[id % HF__TICKET_BUCKETS];

    for (struct hf__list *link = bucket->next; link != bucket;
         link = link->next) {
        struct hf__ticket *ticket =
            HF_CONTAINER_OF(link, struct hf__ticket_entry, link)->ticket;

        if (ticket->id == id)
            return ticket;
    }
    return NULL;
}

struct hf__ticket *hf__ticket_table_next(const struct hf__ticket_table *table,
                                         size_t *bucket,
                                         hf__ticket_wanted_fn *wanted,
                                         const void *what)
{
    for (; *bucket < HF__TICKET_BUCKETS; ++*bucket) {
        HF_LIST_EACH(&table->buckets[*bucket], link) {
            struct hf__ticket_entry *entry =
                HF_CONTAINER_OF(link, struct hf__ticket_entry, link);

            if (wanted(entry, what))
                return entry->ticket;
        }
    }
    return NULL;
}

void hf__ticket_table_each(struct hf__ticket_table *table,
                           void (*each)(struct hf__ticket *ticket, void *ctx),
                           void *ctx)
{
    if (table->n == 0)
        return; /* it may not even be initialised */
    for (size_t i = 0; i < HF__TICKET_BUCKETS; i++) {
        HF_LIST_EACH(&table->buckets[i], link) {
            each(HF_CONTAINER_OF(link, struct hf__ticket_entry, link)->ticket,
                 ctx);
        }
    }
}

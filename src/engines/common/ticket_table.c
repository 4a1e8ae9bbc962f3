/* SPDX-License-Identifier: MIT */
/*
 * ticket_table.c - a hash table that grows.
 *
 * Numbers of tickets count up, so they spread evenly. The table never shrinks,
 * and a bucket becomes two: its own number, and one beyond the old size. So a
 * walk by numbers of buckets misses no ticket when the table grows meanwhile.
 *
 * Failure: without memory the table stays as it is, and its chains grow.
 */
#include "engines/common/ticket_table.h"

static struct hf__list *bucket_of(const struct hf__ticket_table *table,
                                  uint64_t id)
{
    return &table->buckets[id & (table->size - 1)];
}

static void use(struct hf__ticket_table *table, struct hf__list *buckets,
                uint32_t size)
{
    for (uint32_t i = 0; i < size; i++)
        hf__list_init(&buckets[i]);
    table->buckets = buckets;
    table->size = size;
}

void hf__ticket_table_init(struct hf__ticket_table *table)
{
    use(table, table->first, HF__TICKET_BUCKETS);
    table->n = 0;
}

static void free_buckets(struct hf__ticket_table *table,
                         struct hf__list *buckets)
{
    if (buckets != table->first)
        hf__free(buckets);
}

void hf__ticket_table_release(struct hf__ticket_table *table)
{
    free_buckets(table, table->buckets);
    hf__ticket_table_init(table);
}

static void grow(struct hf__ticket_table *table)
{
    struct hf__list *old = table->buckets;
    uint32_t size = table->size;
    struct hf__list *buckets = hf__malloc((size_t)4 * size * sizeof(*buckets));

    if (!buckets)
        return;
    use(table, buckets, 4 * size);
    for (uint32_t i = 0; i < size; i++) {
        HF_LIST_EACH(&old[i], link) {
            struct hf__ticket_entry *entry =
                HF_CONTAINER_OF(link, struct hf__ticket_entry, link);

            hf__list_remove(link);
            hf__list_append(bucket_of(table, entry->ticket->id), link);
        }
    }
    free_buckets(table, old);
}

bool hf__ticket_table_add(struct hf__ticket_table *table,
                          struct hf__ticket_entry *entry,
                          struct hf__ticket *ticket)
{
    if (entry->ticket)
        return false;
    if (table->n == table->size && !table->walking)
        grow(table);
    entry->ticket = ticket;
    hf__list_init(&entry->link);
    hf__list_append(bucket_of(table, ticket->id), &entry->link);
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
    const struct hf__list *bucket = bucket_of(table, id);

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
    for (; *bucket < table->size; ++*bucket) {
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
    table->walking = true;
    for (size_t i = 0; i < table->size; i++) {
        HF_LIST_EACH(&table->buckets[i], link) {
            each(HF_CONTAINER_OF(link, struct hf__ticket_entry, link)->ticket,
                 ctx);
        }
    }
    table->walking = false;
}

/* SPDX-License-Identifier: MIT */
/* table.h - the mapping of the store (layout.h). */
#ifndef HF_LOCAL_TABLE_H
#define HF_LOCAL_TABLE_H

#include <sys/types.h>

#include "base/base.h"
#include "base/world.h"
#include "engines/local/layout.h"

/* The store as one client sees it. */
struct hf__table {
    char *base;       /* NULL: not mapped */
    uint64_t size;    /* mapped; less than HF__TABLE_SIZE if memory is tight */
    int fd;           /* carries the shared flock() of a live client */
    int directory_fd; /* borrowed */
    dev_t dev;
    ino_t ino;
    int64_t offset_ns; /* our BOOTTIME less the table's */
    struct hf__table_header *header;
    _Atomic uint8_t *map; /* class of a segment; 0: none, or inside a large */
    struct hf__table_bucket *buckets;
    struct hf__table_slot *slots;
    char *heap;
    uint32_t units; /* of the heap, known to have memory */
};

struct hf__place;
/* Open or make the file "table" in @place, which is open, under its lock.
 * @floor is what a new table's tokens begin above. */
int hf__table_open(struct hf__table *table, const struct hf__place *place,
                   uint64_t floor, hf_error *err);
/* With @forked there is no mapping: close only the descriptor. */
void hf__table_release(struct hf__table *table, bool forked);
/* False if the file was deleted or replaced. */
bool hf__table_is_current(const struct hf__table *table);
/* Memory for slots below @count. */
int hf__table_reserve_slots(struct hf__table *table, uint32_t count,
                            hf_error *err);
/* One more segment (16 of the largest class) for blocks of @size_class. */
int hf__table_grow(struct hf__table *table, unsigned size_class, hf_error *err);
/* Learn of segments that others added; true if @units are within reach now. */
bool hf__table_reach(struct hf__table *table, uint64_t units);
int hf__table_damaged(hf_error *err, const char *what);

static inline int64_t hf__table_time(const struct hf__table *table,
                                     int64_t instant_ns)
{
    return instant_ns - table->offset_ns;
}

static inline int64_t hf__table_now(const struct hf__table *table)
{
    return hf__table_time(table, hf__now());
}

/* The block at @unit; the caller has checked the bounds. */
static inline struct hf__table_block *hf__table_block_at(
    const struct hf__table *table, uint32_t unit)
{
    return (struct hf__table_block *)(void *)(table->heap +
                                              (uint64_t)unit * HF__TABLE_UNIT);
}

/* ThreadSanitizer does not support fences; under it a read-modify-write of a
 * word of our own replaces them. */
#if defined(__SANITIZE_THREAD__)
#define HF__FENCE(order) hf__table_fence()
void hf__table_fence(void);
#else
#define HF__FENCE(order) atomic_thread_fence(order)
#endif

/* Where the soak test kills: nothing in a library. */
#ifdef HF__LOCAL_POINTS
extern void (*hf__local_point)(const char *name);
#define HF__POINT(name)                                                        \
    do {                                                                       \
        if (hf__local_point)                                                   \
            hf__local_point(name);                                             \
    } while (0)
#else
#define HF__POINT(name)                                                        \
    do {                                                                       \
    } while (0)
#endif

#endif

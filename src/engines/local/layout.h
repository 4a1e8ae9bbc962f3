/* SPDX-License-Identifier: MIT */
/*
 * layout.h - the layout of the store.
 *
 *   header │ segment map │ buckets │ client slots │ heap of blocks …
 *
 * Everything has a fixed offset and a fixed width, so that programs of
 * different builds share one table. Nothing in it is a pointer, and there is
 * no lock in it: every change is one compare-and-swap of one bucket's word.
 *
 *   bucket.word   version:37 │ class:3 │ unit:24     class and unit 0: empty
 *   block.owner   tag:16 │ generation:32 │ slot:16   the last two 0: free
 *   client id     generation:32 │ slot:16
 *
 * A block lists the tickets of all names that hash to one bucket. It is
 * immutable while its bucket names it; only its owner writes it, and only when
 * it is not installed.
 *
 * Instants in the table are CLOCK_BOOTTIME of the first time namespace.
 */
#ifndef HF_LOCAL_LAYOUT_H
#define HF_LOCAL_LAYOUT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#if ATOMIC_LLONG_LOCK_FREE != 2
#error "the local engine needs lock-free 64-bit atomics"
#endif

enum {
    HF__TABLE_LAYOUT = 2,
    HF__TABLE_BUCKETS = 1 << 17,
    HF__TABLE_SLOTS = 1 << 14,
    HF__TABLE_SEGMENTS = 1 << 16,
    HF__TABLE_SEGMENT = 1 << 16,                          /* bytes */
    HF__TABLE_UNIT = 256,                                 /* bytes */
    HF__TABLE_UNITS = HF__TABLE_SEGMENT / HF__TABLE_UNIT, /* of a segment */
    HF__TABLE_CLASSES = 5, /* 1 … 5: 256 B, 1, 8, 64 and 1024 KiB */
    HF__TABLE_LIVES = 64,
    HF__TABLE_HINTS = 32,
    HF__TABLE_HOST = 64
};

/* One client: its identity, its inbox, its life words. */
struct hf__table_slot {
    _Atomic uint64_t generation;
    _Atomic int64_t dead_ns; /* first seen dead; 0: not seen */
    _Atomic uint32_t alarm;  /* +1: look at what you hold */
    uint32_t unused;
    int64_t pid;               /* as its own namespace counts */
    char host[HF__TABLE_HOST]; /* terminated */
    char unused_line[32];
    _Atomic uint32_t inbox;    /* +1: look at what you wait for */
    _Atomic uint32_t sleeping; /* threads that sleep on the inbox */
    _Atomic uint32_t hints_n;  /* written so far, or about to be */
    char unused_inbox[52];
    /* The life words: the kernel marks them when the client dies, 0 first.
     * Half of each is unused: they lie as far apart as the private nodes. */
    struct {
        _Atomic uint32_t word;
        uint32_t unused;
    } life[HF__TABLE_LIVES];
    /* Which buckets the last messages were about: number:32 │ bucket:32. */
    _Atomic uint64_t hints[HF__TABLE_HINTS];
    char unused_end[64];
};

struct hf__table_bucket {
    _Atomic uint64_t word;
    _Atomic uint64_t last; /* not below any token of a block that was here */
};

struct hf__table_block {
    _Atomic uint64_t owner;
    _Atomic uint64_t last;  /* the greatest token granted in this bucket */
    _Atomic uint64_t place; /* used:32 │ bucket:32 */
    _Atomic uint64_t check; /* over the above, the bucket's word, records */
    _Atomic uint64_t records[];
};

struct hf__table_header {
    char magic[8];
    uint32_t layout;
    uint32_t buckets;
    uint32_t slots;
    uint32_t segments_max;
    uint8_t boot_id[16];
    uint64_t seed[2];
    uint64_t floor;              /* tokens begin above this */
    _Atomic uint64_t mark;       /* no token above this was granted */
    _Atomic uint32_t slots_used; /* slots below this have been in use */
    _Atomic uint32_t segments;   /* segments below this have memory */
    _Atomic uint32_t classes[HF__TABLE_CLASSES + 1]; /* segments of each */
    _Atomic int32_t free[HF__TABLE_CLASSES + 1];     /* blocks: a hint only */
    _Atomic uint64_t purged;    /* hf__life_deaths() at the last purge */
    _Atomic int64_t watched_ns; /* somebody watches until then; 0: nobody */
    _Atomic uint32_t changes;   /* count:31 │ somebody sleeps on it:1 */
    uint32_t unused;
};

_Static_assert(sizeof(struct hf__table_slot) == 1024, "part of the layout");
_Static_assert(sizeof(struct hf__table_bucket) == 16, "part of the layout");
_Static_assert(sizeof(struct hf__table_block) == 32, "part of the layout");
_Static_assert(sizeof(struct hf__table_header) == 152, "part of the layout");

/* Where the parts lie. */
#define HF__TABLE_MAP_AT UINT64_C(4096)
#define HF__TABLE_BUCKETS_AT UINT64_C(0x20000)
#define HF__TABLE_SLOTS_AT UINT64_C(0x220000)
#define HF__TABLE_HEAP_AT UINT64_C(0x1220000)
#define HF__TABLE_SIZE                                                         \
    (HF__TABLE_HEAP_AT + (uint64_t)HF__TABLE_SEGMENTS * HF__TABLE_SEGMENT)

/* Units of a block of @size_class. */
static inline uint32_t hf__class_units(unsigned size_class)
{
    static const uint16_t units[HF__TABLE_CLASSES + 1] = {0,  1,   4,
                                                          32, 256, 4096};

    return units[size_class];
}

static inline uint32_t hf__class_bytes(unsigned size_class)
{
    return hf__class_units(size_class) * HF__TABLE_UNIT;
}

/* ---- words ------------------------------------------------------------- */

#define HF__WORD_UNIT UINT64_C(0xffffff)
#define HF__WORD_BLOCK UINT64_C(0x7ffffff) /* unit and class */

static inline uint32_t hf__word_unit(uint64_t word)
{
    return (uint32_t)(word & HF__WORD_UNIT);
}

static inline unsigned hf__word_class(uint64_t word)
{
    return (unsigned)(word >> 24) & 7;
}

/* The word that follows @word; unit and class 0: empty. */
static inline uint64_t hf__word_next(uint64_t word, uint32_t unit,
                                     unsigned size_class)
{
    return (((word >> 27) + 1) << 27) | (uint64_t)size_class << 24 | unit;
}

static inline bool hf__word_empty(uint64_t word)
{
    return (word & HF__WORD_BLOCK) == 0;
}

#define HF__OWNER_CLIENT ((UINT64_C(1) << 48) - 1)
#define HF__OWNER_TAG (UINT64_C(1) << 48)

static inline uint32_t hf__client_slot(uint64_t client)
{
    return (uint32_t)(client & 0xffff);
}

static inline uint64_t hf__client_id(uint64_t generation, uint32_t slot)
{
    return ((generation << 16) | slot) & HF__OWNER_CLIENT;
}

#endif

/* SPDX-License-Identifier: MIT */
/*
 * store.h - one client's view of the store: the mapping, its slot, its spare
 * blocks, and the draft of a change (draft.h).
 *
 * A change is: load a bucket's block into the draft, edit the draft, install
 * it with one compare-and-swap; start over if the bucket changed meanwhile.
 * The monitor is held, so there is one change at a time per client.
 */
#ifndef HF_LOCAL_STORE_H
#define HF_LOCAL_STORE_H

#include "engines/local/draft.h"

enum { HF__STOCK = 8 };

/* Blocks that are ours and not installed. */
struct hf__stock {
    uint32_t unit[HF__TABLE_CLASSES + 1][HF__STOCK];
    uint32_t cursor[HF__TABLE_CLASSES + 1]; /* segment where to look next */
    uint8_t n[HF__TABLE_CLASSES + 1];
    bool purging;
};

/* Where the high-water mark of the tokens is kept; see token.c. */
struct hf__mark {
    int fd;           /* directory; -1: nowhere */
    char name[40];    /* "tokens-HASH-" begins every file of ours */
    uint64_t known;   /* what the table said last */
    int64_t retry_ns; /* do not try to write before */
    uint64_t wall_us; /* the wall clock, when it was last read */
    int64_t wall_at_ns;
};

struct hf__store {
    struct hf__table table;
    struct hf__table_slot *slot;
    uint64_t client; /* our id; 0: not connected */
    struct hf__stock stock;
    struct hf__draft draft;
    struct hf__draft purge_draft;
    struct hf__mark mark;
};

/* ---- block.c: from and to the table ------------------------------------ */

/* The block of @bucket; an empty one if there is none. HF_ECONFIG: damaged.
 * HF_ENOMEM. */
int hf__block_load(struct hf__store *store, uint32_t bucket,
                   struct hf__draft *draft, hf_error *err);
/* Replace the loaded block by the draft. 0; 1: another client changed the
 * bucket, load again; HF_ENOSPACE. */
int hf__block_install(struct hf__store *store, struct hf__draft *draft,
                      hf_error *err);
/* The fast path of a release: @word is what we installed, with one ticket,
 * which is removed. False if the bucket has changed since. */
bool hf__block_empty(struct hf__store *store, uint32_t bucket, uint64_t word,
                     uint64_t last);
/* Our own block at @unit, no longer installed. */
void hf__block_put(struct hf__store *store, uint32_t unit, unsigned size_class);
/* Have two blocks of the class that the draft needs: one to install, one for
 * the release when the disk is full. */
int hf__block_ready(struct hf__store *store, const struct hf__draft *draft,
                    hf_error *err);
/* Give all spare blocks back. */
void hf__block_release(struct hf__store *store);
/* Take the tickets of dead clients out of every bucket. */
void hf__block_purge(struct hf__store *store);

/* ---- life.c ------------------------------------------------------------ */

/* Does @client live? Two loads. */
static inline bool hf__life_alive(const struct hf__table *table,
                                  uint64_t client)
{
    uint32_t index = hf__client_slot(client);
    const struct hf__table_slot *slot = &table->slots[index];
    uint32_t word;

    if (HF_UNLIKELY(index >= atomic_load_explicit(&table->header->slots_used,
                                                  memory_order_acquire) ||
                    index >= HF__TABLE_SLOTS))
        return false;
    /* The word first: a client that takes the slot changes the generation
     * before the word, so a new life is never taken for the old one. */
    word = atomic_load_explicit(&slot->life[0].word, memory_order_acquire);
    return (word & 0x3fffffff) != 0 && (word & 0x40000000) == 0 &&
           hf__client_id(
               atomic_load_explicit(&slot->generation, memory_order_acquire),
               index) == client;
}

/* Somebody watches: a bucket has changed. */
void hf__local_watch_tell(const struct hf__table *table);
/* Wake @client to check its tickets in @bucket. */
void hf__life_notify(const struct hf__table *table, uint64_t client,
                     uint32_t bucket);
/* Tell @client to look at what it holds. */
void hf__life_alarm(const struct hf__table *table, uint64_t client);
/* Dead for so long that no thread of it can still be running. */
bool hf__life_buried(const struct hf__table *table, uint64_t client);
/* A number that changes when a client has died, or come. */
uint64_t hf__life_deaths(const struct hf__table *table);
/* Take a slot, under the lock of the directory; it does not live yet. */
int hf__life_take(struct hf__store *store, const char *host, int64_t pid,
                  hf_error *err);

/* Tokens stay exact in a double, for scripts and JSON. */
#define HF__TOKEN_MAX ((UINT64_C(1) << 53) - 1)

/* ---- token.c ----------------------------------------------------------- */

/* @count tokens above every one before; the first of them. */
uint64_t hf__token_next(struct hf__store *store, struct hf__draft *draft,
                        uint32_t count, int64_t now_ns);
/* The greatest mark that is kept in mark->fd. */
uint64_t hf__mark_read(const struct hf__mark *mark);
/* Keep @value. 0 or an errno. */
int hf__mark_write(const struct hf__mark *mark, uint64_t value);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * store.h - one client's view of the store: the mapping, its slot, its spare
 * blocks, and the draft of a change.
 *
 * A change is: load a bucket's block into the draft, edit the draft, install
 * it with one compare-and-swap; start over if the bucket changed meanwhile.
 * The monitor is held, so there is one change at a time per client.
 */
#ifndef HF_LOCAL_STORE_H
#define HF_LOCAL_STORE_H

#include "engines/local/table.h"

enum hf__record_state {
    HF__RECORD_HELD = 1,
    HF__RECORD_GRANTED, /* not accepted yet; lapses at expires_ns */
    HF__RECORD_WAITING,
    HF__RECORD_DELAYED, /* its holder died: closed until expires_ns */
    HF__RECORD_VERSION, /* of an optimistic version: token is its number */
    HF__RECORD_PARKED /* waits for a condition; lasts while its client lives */
};

/* Flags of a record. */
enum {
    HF__RECORD_MARK = 1, /* bears a wake-up: a signal called it */
    HF__RECORD_COND = 2  /* the name of a condition is behind the note */
};

/* One ticket in a block; a multiple of 8 bytes with its texts. */
struct hf__record {
    uint64_t client;
    uint64_t id;
    uint64_t token;
    int64_t expires_ns; /* HF_NEVER: held until released or dead */
    int64_t since_ns;
    uint32_t tokens;
    uint32_t delay_ms;
    uint32_t hash;
    uint16_t slots;
    uint16_t name_len;
    uint16_t size; /* in words of 8 bytes, with the texts */
    uint8_t owner_len;
    uint8_t note_len;
    uint8_t mode;
    uint8_t state;
    uint8_t wake; /* in a draft: must hear of this change */
    uint8_t flags;
    char texts[]; /* name, owner, note; a byte of length and the condition */
};

_Static_assert(sizeof(struct hf__record) == 64, "part of the layout");

/* The longest name with its prefix. */
enum { HF__KEY_MAX = 1024 };

/* A name, and where it lives. */
struct hf__key {
    const char *text; /* with the prefix */
    uint32_t len;
    uint32_t hash;
    uint32_t bucket;
};

struct hf__draft {
    uint64_t word;  /* of the bucket, as loaded; after install the new one */
    uint64_t owner; /* of the block, as loaded */
    uint64_t last;  /* the greatest token */
    uint32_t bucket;
    uint32_t used; /* bytes of records */
    uint32_t room;
    bool changed; /* against what is installed */
    char *bytes;
};

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

/* ---- draft.c: records in private memory -------------------------------- */

#define HF__RECORD_AT(draft, offset)                                           \
    ((struct hf__record *)(void *)((draft)->bytes + (offset)))
/* Every record; do not remove one inside. */
#define HF__RECORDS(draft, record)                                             \
    for (struct hf__record *record = HF__RECORD_AT(draft, 0);                  \
         (char *)record < (draft)->bytes + (draft)->used;                      \
         record = (struct hf__record *)(void *)((char *)record +               \
                                                (size_t)record->size * 8))

static inline bool hf__record_is(const struct hf__record *record,
                                 const struct hf__key *key)
{
    return record->hash == key->hash && record->name_len == key->len &&
           record->state != HF__RECORD_VERSION &&
           memcmp(record->texts, key->text, key->len) == 0;
}

static inline size_t hf__record_cond_at(const struct hf__record *record)
{
    return (size_t)record->name_len + record->owner_len + record->note_len;
}

/* Is the condition of @record the one that @other has? */
static inline bool hf__record_is_cond(const struct hf__record *record,
                                      const char *cond, size_t len)
{
    const char *at = record->texts + hf__record_cond_at(record);

    return (record->flags & HF__RECORD_COND) != 0 && (uint8_t)at[0] == len &&
           memcmp(at + 1, cond, len) == 0;
}

/* Holds the name against others. */
static inline bool hf__record_holds(const struct hf__record *record)
{
    return record->state == HF__RECORD_HELD ||
           record->state == HF__RECORD_GRANTED ||
           record->state == HF__RECORD_DELAYED;
}

/* How long a grant may stay unaccepted. */
#define HF__GRANT_LAPSE_NS (500 * HF_MS)

void hf__draft_release(struct hf__draft *draft);
/* Room for @bytes of records; HF_ENOMEM. */
int hf__draft_room(struct hf__draft *draft, uint32_t bytes);
/* True if the loaded records are well-formed; clears the wake marks. */
bool hf__draft_check(struct hf__draft *draft);
/* A new last record with these texts, @cond may be NULL; NULL without memory,
 * or beyond the largest block. The rest of it is zero. */
struct hf__record *hf__draft_append(struct hf__draft *draft,
                                    const struct hf__key *key,
                                    const char *owner, const char *note,
                                    const char *cond);
void hf__draft_remove(struct hf__draft *draft, struct hf__record *record);
/* The ticket @id of @client, which is one of @key. */
struct hf__record *hf__draft_find(const struct hf__draft *draft,
                                  const struct hf__key *key, uint64_t client,
                                  uint64_t id);
struct hf__record *hf__draft_version(const struct hf__draft *draft,
                                     const struct hf__key *key);
/* Put the first that is parked on @cond at the end of the line, with a wake-up.
 * False: there is none. */
bool hf__draft_call(struct hf__draft *draft, const struct hf__key *key,
                    const char *cond, size_t len);
/* The same for the parked @record, without a wake-up; where it is then. */
struct hf__record *hf__draft_unpark(struct hf__draft *draft,
                                    const struct hf__key *key,
                                    struct hf__record *record);
/* Remove a waiter or holder; the next one is to check again. A wake-up that it
 * bears goes to the next that is parked. */
void hf__draft_drop(struct hf__draft *draft, const struct hf__key *key,
                    struct hf__record *record);
/* Drop the dead and the expired of @key, but not the ticket @id of @client;
 * 0: of nobody. */
void hf__draft_purge(const struct hf__table *table, struct hf__draft *draft,
                     const struct hf__key *key, int64_t now_ns, uint64_t client,
                     uint64_t id);
/* A holder that died or expired may still write to the resource: lock_delay
 * keeps the name closed for that long. True if it does. */
bool hf__draft_delay(struct hf__draft *draft, struct hf__record *record,
                     int64_t now_ns);
/* True if the purge would change something. */
bool hf__draft_stale(const struct hf__table *table,
                     const struct hf__record *record, int64_t now_ns);
/* Grant to the tickets that may enter, in order. */
void hf__draft_promote(struct hf__draft *draft, const struct hf__key *key,
                       int64_t now_ns);

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

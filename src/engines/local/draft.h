/* SPDX-License-Identifier: MIT */
/* draft.h - the records of a bucket, in private memory. */
#ifndef HF_LOCAL_DRAFT_H
#define HF_LOCAL_DRAFT_H

#include <string.h>

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
/* A new last record with these texts; NULL without memory, or beyond the
 * largest block. The rest of it is zero. */
struct hf__record *hf__draft_append(struct hf__draft *draft,
                                    const struct hf__key *key,
                                    const char *owner, const char *note);
/* Give the last record a condition; where it is then, or NULL likewise. */
struct hf__record *hf__draft_add_cond(struct hf__draft *draft,
                                      struct hf__record *record,
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

#endif

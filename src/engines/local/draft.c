/* SPDX-License-Identifier: MIT */
/*
 * draft.c - the rules for holders, waiters and grants, on private memory.
 *
 * A draft is a copy of one bucket's records, in the order in which they came;
 * names that share the bucket are mixed, and every function here looks at one
 * name only. First come, first served: no ticket passes a waiting one, not
 * even a reader that could enter beside the readers that hold the lock.
 *
 * Other clients see nothing of this before block.c installs the draft, so
 * there is no concurrency here. The functions mark the tickets whose clients
 * have to be woken after the installation (wake):
 *
 *   - a ticket that was granted;
 *   - the one behind a ticket that was removed, because it watched that one;
 *   - the new first waiter, if there is more than one holder: it watched only
 *     its predecessor, and must watch them all now.
 */
#include "engines/local/store.h"

void hf__draft_release(struct hf__draft *draft)
{
    hf__free(draft->bytes);
    draft->bytes = NULL;
    draft->room = 0;
}

int hf__draft_room(struct hf__draft *draft, uint32_t bytes)
{
    uint32_t room = draft->room == 0 ? 4096 : draft->room;
    char *moved;

    if (HF_LIKELY(bytes <= draft->room))
        return 0;
    while (room < bytes)
        room *= 2;
    moved = hf__realloc(draft->bytes, room);
    if (!moved)
        return HF_ENOMEM;
    draft->bytes = moved;
    draft->room = room;
    return 0;
}

static bool record_fits(const struct hf__record *record, size_t left)
{
    size_t size = (size_t)record->size * 8;

    return size >= sizeof(*record) && size <= left &&
           record->name_len <= HF__KEY_MAX &&
           (size_t)record->name_len + record->owner_len + record->note_len <=
               size - sizeof(*record) &&
           record->since_ns >= 0 && record->expires_ns >= 0 &&
           record->state >= HF__RECORD_HELD &&
           record->state <= HF__RECORD_VERSION && record->mode <= HF_SLOT;
}

bool hf__draft_check(struct hf__draft *draft)
{
    size_t at = 0;

    while (at < draft->used) {
        struct hf__record *record = HF__RECORD_AT(draft, at);

        if (draft->used - at < sizeof(*record) ||
            !record_fits(record, draft->used - at))
            return false;
        record->wake = 0;
        at += (size_t)record->size * 8;
    }
    return true;
}

struct hf__record *hf__draft_append(struct hf__draft *draft,
                                    const struct hf__key *key,
                                    const char *owner, const char *note)
{
    size_t owner_len = strlen(owner);
    size_t note_len = strlen(note);
    size_t texts = (key->len + owner_len + note_len + 7) & ~(size_t)7;
    size_t size = sizeof(struct hf__record) + texts;
    struct hf__record *record;

    if (owner_len > UINT8_MAX || note_len > UINT8_MAX ||
        draft->used + size > hf__class_bytes(HF__TABLE_CLASSES) -
                                 sizeof(struct hf__table_block) ||
        hf__draft_room(draft, draft->used + (uint32_t)size) != 0)
        return NULL;
    record = HF__RECORD_AT(draft, draft->used);
    memset(record, 0, sizeof(*record));
    record->hash = key->hash;
    record->name_len = (uint16_t)key->len;
    record->owner_len = (uint8_t)owner_len;
    record->note_len = (uint8_t)note_len;
    record->size = (uint16_t)(size / 8);
    memset((char *)record + size - 8, 0, texts > 0 ? 8 : 0);
    memcpy(record->texts, key->text, key->len);
    memcpy(record->texts + key->len, owner, owner_len);
    memcpy(record->texts + key->len + owner_len, note, note_len);
    draft->used += (uint32_t)size;
    draft->changed = true;
    return record;
}

void hf__draft_remove(struct hf__draft *draft, struct hf__record *record)
{
    size_t size = (size_t)record->size * 8;
    char *next = (char *)record + size;

    memmove(record, next, (size_t)(draft->bytes + draft->used - next));
    draft->used -= (uint32_t)size;
    draft->changed = true;
}

struct hf__record *hf__draft_find(const struct hf__draft *draft,
                                  const struct hf__key *key, uint64_t client,
                                  uint64_t id)
{
    HF__RECORDS(draft, record)
        if (record->id == id && record->client == client &&
            hf__record_is(record, key))
            return record;
    return NULL;
}

struct hf__record *hf__draft_version(const struct hf__draft *draft,
                                     const struct hf__key *key)
{
    HF__RECORDS(draft, record)
        if (record->state == HF__RECORD_VERSION && record->hash == key->hash &&
            record->name_len == key->len &&
            memcmp(record->texts, key->text, key->len) == 0)
            return record;
    return NULL;
}

void hf__draft_drop(struct hf__draft *draft, const struct hf__key *key,
                    struct hf__record *record)
{
    size_t at = (size_t)((char *)record - draft->bytes);
    bool held =
        record->state == HF__RECORD_HELD || record->state == HF__RECORD_DELAYED;

    hf__draft_remove(draft, record);
    if (held)
        return; /* the first waiter watches all holders: promote() decides */
    while (at < draft->used) {
        record = HF__RECORD_AT(draft, at);
        if (record->state == HF__RECORD_WAITING && hf__record_is(record, key)) {
            record->wake = 1;
            return;
        }
        at += (size_t)record->size * 8;
    }
}

bool hf__draft_stale(const struct hf__table *table,
                     const struct hf__record *record, int64_t now_ns)
{
    switch (record->state) {
    case HF__RECORD_HELD:
    case HF__RECORD_GRANTED:
        return record->expires_ns <= now_ns ||
               !hf__life_alive(table, record->client);
    case HF__RECORD_WAITING:
        return !hf__life_alive(table, record->client);
    case HF__RECORD_DELAYED:
        return record->expires_ns <= now_ns;
    default:
        return false;
    }
}

bool hf__draft_delay(struct hf__draft *draft, struct hf__record *record,
                     int64_t now_ns)
{
    int64_t from_ns = record->expires_ns < now_ns ? record->expires_ns : now_ns;
    int64_t until_ns = from_ns + record->delay_ms * HF_MS;

    if (record->state != HF__RECORD_HELD || until_ns <= now_ns)
        return false;
    record->state = HF__RECORD_DELAYED;
    record->expires_ns = until_ns;
    record->token = 0;
    draft->changed = true;
    return true;
}

void hf__draft_purge(const struct hf__table *table, struct hf__draft *draft,
                     const struct hf__key *key, int64_t now_ns, uint64_t client,
                     uint64_t id)
{
    size_t at = 0;

    while (at < draft->used) {
        struct hf__record *record = HF__RECORD_AT(draft, at);
        bool own = client != 0 && record->client == client &&
                   record->id == id && record->state == HF__RECORD_GRANTED;

        if (hf__record_is(record, key) && !own &&
            hf__draft_stale(table, record, now_ns) &&
            !hf__draft_delay(draft, record, now_ns))
            hf__draft_drop(draft, key, record);
        else
            at += (size_t)record->size * 8;
    }
}

/* What holds a name now. */
struct inside {
    uint32_t n;
    uint32_t limit; /* the smallest number of slots among them */
    bool only_shared;
    bool only_slots;
};

static void inside_add(struct inside *inside, const struct hf__record *record)
{
    inside->n++;
    if (record->state == HF__RECORD_DELAYED || record->mode != HF_SHARED)
        inside->only_shared = false;
    if (record->state == HF__RECORD_DELAYED || record->mode != HF_SLOT)
        inside->only_slots = false;
    else if (record->slots < inside->limit)
        inside->limit = record->slots;
}

static bool inside_admits(const struct inside *inside,
                          const struct hf__record *record)
{
    if (inside->n == 0)
        return true;
    if (record->mode == HF_SHARED)
        return inside->only_shared;
    if (record->mode == HF_SLOT)
        return inside->only_slots &&
               (HF__PLANTED("one_slot_too_many")
                    ? inside->n <= inside->limit
                    : inside->n < inside->limit && inside->n < record->slots);
    return HF__PLANTED("writer_beside_readers") && inside->only_shared;
}

static struct inside look_inside(const struct hf__draft *draft,
                                 const struct hf__key *key)
{
    struct inside inside = {0, UINT32_MAX, true, true};

    HF__RECORDS(draft, record)
        if (hf__record_holds(record) && hf__record_is(record, key))
            inside_add(&inside, record);
    return inside;
}

void hf__draft_promote(struct hf__draft *draft, const struct hf__key *key,
                       int64_t now_ns)
{
    struct inside inside = look_inside(draft, key);
    bool moved = false;

    HF__RECORDS(draft, record) {
        if (record->state != HF__RECORD_WAITING || !hf__record_is(record, key))
            continue;
        if (!inside_admits(&inside, record)) {
            /* Now the first waiter. Its predecessor is a holder; if there
             * are more, it has to watch those too. */
            if (moved && inside.n > 1)
                record->wake = 1;
            return;
        }
        record->state = HF__RECORD_GRANTED;
        record->expires_ns = now_ns + HF__GRANT_LAPSE_NS;
        record->wake = 1;
        draft->changed = true;
        moved = true;
        inside_add(&inside, record);
    }
}

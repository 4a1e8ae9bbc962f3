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
 *     its predecessor, and must watch them all now;
 *   - a ticket that was called, which watched nobody in line; and the one that
 *     was parked behind it on the same condition, which watched it.
 *
 * CONDITIONS. A parked record is outside the line. A signal calls the first one
 * of its condition: the record goes to the end of the line and bears a mark, the
 * wake-up, until it leaves in order. Wherever else a bearer is removed, its mark
 * calls the next.
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

/* The texts before it have been found to fit into @room. */
static bool cond_fits(const struct hf__record *record, size_t room)
{
    size_t at = hf__record_cond_at(record);
    uint8_t len;

    if ((record->flags & HF__RECORD_COND) == 0)
        return record->flags == 0 && record->state != HF__RECORD_PARKED;
    if ((record->flags & ~(HF__RECORD_COND | HF__RECORD_MARK)) != 0 ||
        at + 1 > room)
        return false;
    len = (uint8_t)record->texts[at];
    return len >= 1 && len <= HF_COND_MAX && at + 1 + len <= room;
}

static bool record_fits(const struct hf__record *record, size_t left)
{
    size_t size = (size_t)record->size * 8;

    return size >= sizeof(*record) && size <= left &&
           record->name_len <= HF__KEY_MAX &&
           hf__record_cond_at(record) <= size - sizeof(*record) &&
           cond_fits(record, size - sizeof(*record)) && record->since_ns >= 0 &&
           record->expires_ns >= 0 && record->state >= HF__RECORD_HELD &&
           record->state <= HF__RECORD_PARKED && record->mode <= HF_SLOT;
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

struct hf__record *hf__draft_add_cond(struct hf__draft *draft,
                                      struct hf__record *record,
                                      const char *cond)
{
    size_t at = (size_t)((char *)record - draft->bytes);
    size_t texts = hf__record_cond_at(record);
    size_t len = strlen(cond);
    size_t size = (sizeof(*record) + texts + 1 + len + 7) & ~(size_t)7;
    size_t more = size - (size_t)record->size * 8;

    if (draft->used + more > hf__class_bytes(HF__TABLE_CLASSES) -
                                 sizeof(struct hf__table_block) ||
        hf__draft_room(draft, draft->used + (uint32_t)more) != 0)
        return NULL;
    record = HF__RECORD_AT(draft, at);
    memset(draft->bytes + draft->used, 0, more);
    record->size = (uint16_t)(size / 8);
    record->flags = HF__RECORD_COND;
    record->texts[texts] = (char)len;
    memcpy(record->texts + texts + 1, cond, len);
    draft->used += (uint32_t)more;
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

/* ---- conditions -------------------------------------------------------- */

/* The condition of a record, kept while records move. */
struct cond {
    uint8_t len; /* 0: none */
    char text[HF_COND_MAX];
};

static void take_cond(const struct hf__record *record, struct cond *cond)
{
    const char *at = record->texts + hf__record_cond_at(record);

    cond->len = 0;
    if ((record->flags & HF__RECORD_COND) == 0)
        return;
    cond->len = (uint8_t)at[0];
    memcpy(cond->text, at + 1, cond->len);
}

/* The first that is parked on @cond, from @at on; NULL. */
static struct hf__record *first_parked(const struct hf__draft *draft, size_t at,
                                       const struct hf__key *key,
                                       const char *cond, size_t len)
{
    while (at < draft->used) {
        struct hf__record *record = HF__RECORD_AT(draft, at);

        if (record->state == HF__RECORD_PARKED && hf__record_is(record, key) &&
            hf__record_is_cond(record, cond, len))
            return record;
        at += (size_t)record->size * 8;
    }
    return NULL;
}

static void wake_parked(struct hf__draft *draft, size_t at,
                        const struct hf__key *key, const struct cond *cond)
{
    struct hf__record *next =
        first_parked(draft, at, key, cond->text, cond->len);

    if (next)
        next->wake = 1;
}

/* Exchange the record with all that are behind it. */
static struct hf__record *move_to_end(struct hf__draft *draft,
                                      struct hf__record *record)
{
    char copy[sizeof(struct hf__record) + HF__KEY_MAX + 2 * UINT8_MAX +
              HF_COND_MAX + 16];
    size_t size = (size_t)record->size * 8;
    char *next = (char *)record + size;
    size_t behind = (size_t)(draft->bytes + draft->used - next);

    if (size > sizeof(copy))
        return record; /* no honest record is so long: it stays */
    memcpy(copy, record, size);
    memmove(record, next, behind);
    return memcpy((char *)record + behind, copy, size);
}

struct hf__record *hf__draft_unpark(struct hf__draft *draft,
                                    const struct hf__key *key,
                                    struct hf__record *record)
{
    size_t at = (size_t)((char *)record - draft->bytes);
    struct cond cond;

    take_cond(record, &cond);
    record = move_to_end(draft, record);
    record->state = HF__RECORD_WAITING;
    record->wake = 1;
    draft->changed = true;
    wake_parked(draft, at, key, &cond);
    return record;
}

bool hf__draft_call(struct hf__draft *draft, const struct hf__key *key,
                    const char *cond, size_t len)
{
    struct hf__record *record = first_parked(draft, 0, key, cond, len);

    if (!record)
        return false;
    hf__draft_unpark(draft, key, record)->flags |= HF__RECORD_MARK;
    return true;
}

/* The one behind a removed waiter watched it. */
static void wake_next(struct hf__draft *draft, size_t at,
                      const struct hf__key *key)
{
    while (at < draft->used) {
        struct hf__record *record = HF__RECORD_AT(draft, at);

        if (record->state == HF__RECORD_WAITING && hf__record_is(record, key)) {
            record->wake = 1;
            return;
        }
        at += (size_t)record->size * 8;
    }
}

void hf__draft_drop(struct hf__draft *draft, const struct hf__key *key,
                    struct hf__record *record)
{
    size_t at = (size_t)((char *)record - draft->bytes);
    uint8_t state = record->state;
    bool marked = (record->flags & HF__RECORD_MARK) != 0;
    struct cond cond;

    take_cond(record, &cond);
    hf__draft_remove(draft, record);
    if (state == HF__RECORD_PARKED)
        wake_parked(draft, at, key, &cond);
    else if (state == HF__RECORD_WAITING || state == HF__RECORD_GRANTED)
        wake_next(draft, at, key);
    /* Else the first waiter watches all holders: promote() decides. */
    if (HF_UNLIKELY(marked))
        (void)hf__draft_call(draft, key, cond.text, cond.len);
}

/* ---- the dead ---------------------------------------------------------- */

bool hf__draft_stale(const struct hf__table *table,
                     const struct hf__record *record, int64_t now_ns)
{
    switch (record->state) {
    case HF__RECORD_HELD:
    case HF__RECORD_GRANTED:
        return record->expires_ns <= now_ns ||
               !hf__life_alive(table, record->client);
    case HF__RECORD_WAITING:
    case HF__RECORD_PARKED:
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

/* A name that stays closed keeps no wake-up: it calls the next now. */
static bool call_of_delayed(struct hf__draft *draft, const struct hf__key *key,
                            struct hf__record *record)
{
    struct cond cond;

    if (record->state != HF__RECORD_DELAYED ||
        (record->flags & HF__RECORD_MARK) == 0)
        return false;
    record->flags &= (uint8_t)~HF__RECORD_MARK;
    take_cond(record, &cond);
    (void)hf__draft_call(draft, key, cond.text, cond.len);
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
        bool marked = (record->flags & HF__RECORD_MARK) != 0;
        bool concerned = hf__record_is(record, key) && !own;

        if (concerned && call_of_delayed(draft, key, record)) {
            at = 0; /* the call may have moved any of them */
        } else if (!concerned || !hf__draft_stale(table, record, now_ns)) {
            at += (size_t)record->size * 8;
        } else if (!hf__draft_delay(draft, record, now_ns)) {
            hf__draft_drop(draft, key, record);
            at = marked ? 0 : at;
        }
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

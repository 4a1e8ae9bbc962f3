/* SPDX-License-Identifier: MIT */
/*
 * change.c - ask, leave, renew, downgrade, break, commit.
 *
 * Each is the same loop: load the bucket, edit the draft, install it with one
 * compare-and-swap; start over if another client changed the bucket meanwhile.
 * Before the swap the change is invisible; after it the change is complete.
 * Then we wake the clients that it concerns; if we are killed before that, the
 * client that watches us does it (waiting.c).
 *
 * Every change of a name first drops its dead and expired tickets, and last
 * grants to the tickets that may enter now. So there is no separate cleanup,
 * and the next client gets a lock whose holder died.
 *
 * HAND-OVER. A grant to another client is a promise (GRANTED) until that
 * client accepts it (HELD), with a lease that counts from its own clock. A
 * client that was stopped does not accept; after half a second the next one
 * gets it.
 */
#include "engines/local/change.h"

#include "base/error.h"

/* Wake the clients that the change concerns, the first in line last: it watches
 * us, so if we die meanwhile it wakes the others again. */
static void wake(const struct hf__store *store, const struct hf__draft *draft)
{
    const struct hf__record *first = NULL;

    HF__RECORDS(draft, record) {
        if (!record->wake)
            continue;
        if (!first) {
            first = record;
            continue;
        }
        hf__life_notify(&store->table, record->client, draft->bucket);
    }
    HF__POINT("before_wake");
    if (first)
        hf__life_notify(&store->table, first->client, draft->bucket);
}

static int64_t lease_end(int64_t now_ns, int64_t lease_ms)
{
    return lease_ms == 0 ? HF_NEVER
                         : hf__instant_add(now_ns, hf__ms_to_ns(lease_ms));
}

/* A record did not fit: into the largest block, or into our memory? */
static int no_room(const struct hf__draft *draft, hf_error *err)
{
    static const uint32_t record_max = sizeof(struct hf__record) + HF__KEY_MAX +
                                       HF_OWNER_MAX + HF_NOTE_MAX + 1 +
                                       HF_COND_MAX + 8;

    if (draft->used + record_max + sizeof(struct hf__table_block) <
        hf__class_bytes(HF__TABLE_CLASSES))
        return hf__fail(err, HF_ENOMEM, "out of memory");
    return hf__fail(err, HF_ENOSPACE,
                    "too many tickets share a part of the local store: have "
                    "fewer waiters or slots of one name");
}

/* ---- ask --------------------------------------------------------------- */

static struct hf__record *enter(const struct hf__store *store,
                                struct hf__draft *draft,
                                const struct hf__key *key,
                                const struct hf__asker *asker)
{
    struct hf__record *record =
        hf__draft_append(draft, key, asker->owner, asker->note, asker->cond);

    if (!record)
        return NULL;
    record->client = store->client;
    record->id = asker->id;
    record->since_ns = asker->now_ns;
    record->expires_ns = HF_NEVER;
    record->delay_ms = asker->delay_ms;
    record->slots = asker->slots;
    record->mode = asker->mode;
    record->state = HF__RECORD_WAITING;
    return record;
}

static void accept(struct hf__store *store, struct hf__draft *draft,
                   struct hf__record *record, const struct hf__asker *asker)
{
    record->state = HF__RECORD_HELD;
    record->wake = 0;
    record->tokens = asker->reserve;
    record->token = hf__token_next(store, draft, asker->reserve, asker->now_ns);
    record->since_ns = asker->now_ns;
    record->expires_ns = lease_end(asker->now_ns, asker->lease_ms);
    draft->changed = true;
}

/* Wake the clients of granted tickets again: the client that granted may have
 * died before it woke them. */
static void wake_granted(struct hf__draft *draft, const struct hf__key *key)
{
    HF__RECORDS(draft, record)
        if (record->state == HF__RECORD_GRANTED && hf__record_is(record, key))
            record->wake = 1;
}

/* What may be done for @record, of a name whose dead were dropped. */
static struct hf__record *advance(struct hf__store *store,
                                  const struct hf__key *key,
                                  const struct hf__asker *asker,
                                  struct hf__record *record)
{
    struct hf__draft *draft = &store->draft;

    if (asker->unpark && record->state == HF__RECORD_PARKED)
        record = hf__draft_unpark(draft, key, record);
    record->wake = 0; /* we look at it just now */
    if (record->state == HF__RECORD_WAITING ||
        (record->state == HF__RECORD_PARKED && draft->changed))
        hf__draft_promote(draft, key, asker->now_ns);
    if (record->state == HF__RECORD_GRANTED)
        accept(store, draft, record, asker);
    return record;
}

/* Edit the draft; our record, or NULL without room, or where a ticket that was
 * parked is gone. */
static struct hf__record *edit_ask(struct hf__store *store,
                                   const struct hf__key *key,
                                   const struct hf__asker *asker,
                                   bool *ret_entered)
{
    struct hf__draft *draft = &store->draft;
    struct hf__record *record;

    *ret_entered = false;
    if (HF_LIKELY(draft->used == 0)) {
        if (HF_UNLIKELY(asker->cond != NULL))
            return NULL;
        *ret_entered = true;
        record = enter(store, draft, key, asker);
        if (record)
            accept(store, draft, record, asker);
        return record;
    }
    hf__draft_purge(&store->table, draft, key, asker->now_ns, store->client,
                    asker->id);
    record = hf__draft_find(draft, key, store->client, asker->id);
    if (!record && asker->cond)
        return NULL;
    if (!record || HF__PLANTED("repeated_request_is_new")) {
        *ret_entered = true;
        record = enter(store, draft, key, asker);
        if (!record)
            return NULL;
    }
    return advance(store, key, asker, record);
}

static int answer_of(const struct hf__record *record)
{
    switch (record->state) {
    case HF__RECORD_HELD:
        return HF__ANSWER_HELD;
    case HF__RECORD_PARKED:
        return HF__ANSWER_PARKED;
    default:
        return HF__ANSWER_WAITING;
    }
}

/* Another client has changed the bucket. */
enum { AGAIN = HF__ANSWER_GONE + 1 };

/* Install the draft in which @record is ours, wake, and answer. */
static int install_ours(struct hf__store *store,
                        const struct hf__record *record, struct hf__result *ret,
                        hf_error *err)
{
    struct hf__draft *draft = &store->draft;
    int rc = 0;

    ret->token = record->token;
    ret->tokens = record->tokens;
    ret->woken = (record->flags & HF__RECORD_MARK) != 0;
    ret->ours = draft->changed;
    ret->alone = draft->used == (uint32_t)record->size * 8;
    if (draft->changed)
        rc = hf__block_install(store, draft, err);
    if (rc != 0)
        return rc == 1 ? AGAIN : rc;
    wake(store, draft);
    return answer_of(record);
}

int hf__change_ask(struct hf__store *store, const struct hf__key *key,
                   const struct hf__asker *asker, struct hf__result *ret,
                   hf_error *err)
{
    struct hf__draft *draft = &store->draft;

    for (;;) {
        struct hf__record *record;
        bool entered;
        int rc = hf__block_load(store, key->bucket, draft, err);

        if (rc != 0)
            return rc;
        record = edit_ask(store, key, asker, &entered);
        if (!record)
            return asker->cond ? HF__ANSWER_GONE : no_room(draft, err);
        if (asker->nowait && record->state == HF__RECORD_WAITING)
            return HF__ANSWER_BUSY; /* the draft is thrown away */
        if (entered && hf__block_ready(store, draft, err) != 0)
            return HF_ENOSPACE;
        if (asker->rewake)
            wake_granted(draft, key);
        rc = install_ours(store, record, ret, err);
        if (rc != AGAIN)
            return rc;
    }
}

/* ---- leave ------------------------------------------------------------- */

/* Return tokens that were reserved and not used, if no later one was
 * granted. */
static void give_back(struct hf__draft *draft, const struct hf__record *record,
                      uint64_t used)
{
    uint64_t end = record->token + record->tokens - 1;

    if (record->state == HF__RECORD_HELD && record->tokens > 1 &&
        draft->last == end && used >= record->token && used < end)
        draft->last = used;
}

/* Was it lost, and does its lock_delay keep it closed? Then it stays: a release
 * does not end the delay. */
static bool stays_closed(struct hf__draft *draft, struct hf__record *record,
                         int64_t now_ns)
{
    if (record->delay_ms == 0 || record->expires_ns > now_ns)
        return record->state == HF__RECORD_DELAYED;
    return hf__draft_delay(draft, record, now_ns);
}

int hf__change_leave(struct hf__store *store, const struct hf__key *key,
                     const struct hf__leave *leave, hf_error *err)
{
    struct hf__draft *draft = &store->draft;
    int64_t now_ns = hf__table_now(&store->table);
    bool closed;
    int rc;

    do {
        struct hf__record *record;

        rc = hf__block_load(store, key->bucket, draft, err);
        if (rc != 0)
            return rc;
        record = hf__draft_find(draft, key, store->client, leave->id);
        if (!record)
            return 1;
        closed = stays_closed(draft, record, now_ns);
        if (closed && !draft->changed)
            return 1;
        if (closed) {
            hf__draft_purge(&store->table, draft, key, now_ns, 0, 0);
            rc = hf__block_install(store, draft, err);
            continue;
        }
        give_back(draft, record, leave->used);
        if (leave->in_order)
            record->flags &= (uint8_t)~HF__RECORD_MARK;
        hf__draft_drop(draft, key, record);
        if (draft->used != 0) {
            hf__draft_purge(&store->table, draft, key, now_ns, 0, 0);
            hf__draft_promote(draft, key, now_ns);
        }
        rc = hf__block_install(store, draft, err);
    } while (rc == 1);
    if (rc == 0)
        wake(store, draft);
    return rc == 0 && closed ? 1 : rc;
}

/* ---- conditions -------------------------------------------------------- */

/* The ticket @id of ours, if it holds. */
static struct hf__record *find_holder(struct hf__store *store,
                                      const struct hf__key *key, uint64_t id,
                                      int64_t now_ns)
{
    struct hf__record *record =
        hf__draft_find(&store->draft, key, store->client, id);

    return record && record->state == HF__RECORD_HELD &&
                   record->mode == HF_EXCLUSIVE && record->expires_ns > now_ns
               ? record
               : NULL;
}

/* Our ticket in the draft: parked in place of @old, unless it is there already.
 * NULL with *ret_rc: HF__ANSWER_GONE, or an error. */
static struct hf__record *edit_park(struct hf__store *store,
                                    const struct hf__key *key,
                                    const struct hf__asker *asker,
                                    const struct hf__leave *old, int *ret_rc,
                                    hf_error *err)
{
    struct hf__draft *draft = &store->draft;
    struct hf__record *record;

    hf__draft_purge(&store->table, draft, key, asker->now_ns, store->client,
                    asker->id);
    record = hf__draft_find(draft, key, store->client, asker->id);
    if (record)
        return advance(store, key, asker, record);
    record = find_holder(store, key, old->id, asker->now_ns);
    *ret_rc = HF__ANSWER_GONE;
    if (!record)
        return NULL;
    give_back(draft, record, old->used);
    hf__draft_remove(draft, record); /* and its mark, which is used up */
    record = enter(store, draft, key, asker);
    if (!record) {
        *ret_rc = no_room(draft, err);
        return NULL;
    }
    record->state = HF__RECORD_PARKED;
    *ret_rc = hf__block_ready(store, draft, err);
    if (*ret_rc != 0)
        return NULL;
    hf__draft_promote(draft, key, asker->now_ns);
    return record;
}

int hf__change_park(struct hf__store *store, const struct hf__key *key,
                    const struct hf__asker *asker, const struct hf__leave *old,
                    struct hf__result *ret, hf_error *err)
{
    for (;;) {
        struct hf__record *record;
        int rc = hf__block_load(store, key->bucket, &store->draft, err);

        if (rc != 0)
            return rc;
        record = edit_park(store, key, asker, old, &rc, err);
        if (!record)
            return rc;
        rc = install_ours(store, record, ret, err);
        if (rc != AGAIN)
            return rc;
    }
}

int hf__change_signal(struct hf__store *store, const struct hf__key *key,
                      uint64_t id, const char *cond, bool all, uint32_t *ret_n,
                      hf_error *err)
{
    struct hf__draft *draft = &store->draft;
    int64_t now_ns = hf__table_now(&store->table);
    size_t len = strlen(cond);
    uint32_t n;
    int rc;

    do {
        rc = hf__block_load(store, key->bucket, draft, err);
        if (rc != 0)
            return rc;
        hf__draft_purge(&store->table, draft, key, now_ns, 0, 0);
        if (!find_holder(store, key, id, now_ns))
            return hf__fail(err, HF_ELOST, "it is not held any more");
        for (n = 0; (all || n == 0) && hf__draft_call(draft, key, cond, len);)
            n++;
        rc = draft->changed ? hf__block_install(store, draft, err) : 0;
    } while (rc == 1);
    if (rc != 0)
        return rc;
    wake(store, draft);
    *ret_n = n;
    return 0;
}

/* ---- renew ------------------------------------------------------------- */

static struct hf__renewal *find_renewal(struct hf__renewal *renewals, size_t n,
                                        uint64_t id)
{
    size_t low = 0;

    while (n > 0) {
        size_t half = n / 2;

        if (renewals[low + half].id == id)
            return &renewals[low + half];
        if (renewals[low + half].id < id) {
            low += half + 1;
            n -= half + 1;
        } else {
            n = half;
        }
    }
    return NULL;
}

int hf__change_renew(struct hf__store *store, uint32_t bucket,
                     struct hf__renewal *renewals, size_t n, int64_t now_ns,
                     struct hf__result *ret, hf_error *err)
{
    struct hf__draft *draft = &store->draft;
    int rc;

    do {
        size_t records = 0;

        rc = hf__block_load(store, bucket, draft, err);
        if (rc != 0)
            return rc;
        for (size_t i = 0; i < n; i++)
            renewals[i].found = false;
        HF__RECORDS(draft, record) {
            struct hf__renewal *renewal;

            records++;
            if (record->client != store->client ||
                record->state != HF__RECORD_HELD ||
                record->expires_ns <= now_ns)
                continue;
            renewal = find_renewal(renewals, n, record->id);
            if (!renewal)
                continue;
            renewal->found = true;
            if (!HF__PLANTED("renewal_not_written"))
                record->expires_ns = lease_end(now_ns, renewal->lease_ms);
            draft->changed = true;
        }
        ret->alone = records == 1;
        ret->ours = draft->changed;
        rc = draft->changed ? hf__block_install(store, draft, err) : 0;
    } while (rc == 1);
    return rc;
}

int hf__change_downgrade(struct hf__store *store, const struct hf__key *key,
                         const struct hf__asker *asker, hf_error *err)
{
    struct hf__draft *draft = &store->draft;
    int rc;

    do {
        struct hf__record *record;

        rc = hf__block_load(store, key->bucket, draft, err);
        if (rc != 0)
            return rc;
        record = hf__draft_find(draft, key, store->client, asker->id);
        if (!record || record->state != HF__RECORD_HELD ||
            record->expires_ns <= asker->now_ns)
            return 1;
        record->mode = HF_SHARED;
        record->expires_ns = lease_end(asker->now_ns, asker->lease_ms);
        draft->changed = true;
        hf__draft_purge(&store->table, draft, key, asker->now_ns, 0, 0);
        hf__draft_promote(draft, key, asker->now_ns);
        rc = hf__block_install(store, draft, err);
    } while (rc == 1);
    if (rc == 0)
        wake(store, draft);
    return rc;
}

/* ---- pass ------------------------------------------------------------------ */

/* Write the next owner's name into the record, if it fits: a record keeps its
 * size and so its place. The process is the same. */
static void rename_owner(struct hf__record *record, const char *owner,
                         size_t len)
{
    size_t room = (size_t)record->size * 8 - sizeof(*record) - record->name_len;
    char *texts = record->texts + record->name_len;

    if (len + record->note_len > room || record->flags != 0)
        return;
    memmove(texts + len, texts + record->owner_len, record->note_len);
    memcpy(texts, owner, len);
    memset(texts + len + record->note_len, 0, room - len - record->note_len);
    record->owner_len = (uint8_t)len;
}

int hf__change_pass(struct hf__store *store, const struct hf__key *key,
                    const struct hf__asker *asker, struct hf__result *ret,
                    hf_error *err)
{
    struct hf__draft *draft = &store->draft;
    struct hf__record *record;
    int rc;

    do {
        rc = hf__block_load(store, key->bucket, draft, err);
        if (rc != 0)
            return rc;
        record = hf__draft_find(draft, key, store->client, asker->id);
        if (!record || record->state != HF__RECORD_HELD ||
            record->expires_ns <= asker->now_ns)
            return 1;
        rename_owner(record, asker->owner, strlen(asker->owner));
        record->since_ns = asker->now_ns;
        record->tokens = 1;
        record->token = hf__token_next(store, draft, 1, asker->now_ns);
        draft->changed = true;
        ret->token = record->token;
        ret->tokens = 1;
        ret->ours = true;
        ret->alone = draft->used == (uint32_t)record->size * 8;
        rc = hf__block_install(store, draft, err);
    } while (rc == 1);
    return rc;
}

/* ---- break ------------------------------------------------------------- */

static bool is_meant(const struct hf__record *record, uint64_t token,
                     const char *owner)
{
    if (token != 0)
        return token >= record->token && token < record->token + record->tokens;
    return strlen(owner) == record->owner_len &&
           memcmp(record->texts + record->name_len, owner, record->owner_len) ==
               0;
}

/* Remove the holder that the query names; its client's id in *ret_client. */
static int edit_break(struct hf__store *store, const struct hf__key *key,
                      uint64_t token, const char *owner, int64_t now_ns,
                      uint64_t *ret_client)
{
    struct hf__draft *draft = &store->draft;
    int rc = HF_ENOTFOUND;

    hf__draft_purge(&store->table, draft, key, now_ns, 0, 0);
    HF__RECORDS(draft, record) {
        if (record->state != HF__RECORD_HELD || !hf__record_is(record, key))
            continue;
        rc = HF_ECONFLICT;
        if (!is_meant(record, token, owner))
            continue;
        *ret_client = record->client;
        hf__draft_drop(draft, key, record);
        hf__draft_promote(draft, key, now_ns);
        return 0;
    }
    return rc;
}

int hf__change_break(struct hf__store *store, const struct hf__key *key,
                     uint64_t token, const char *owner, hf_error *err)
{
    struct hf__draft *draft = &store->draft;
    uint64_t client = 0;
    int rc;

    do {
        rc = hf__block_load(store, key->bucket, draft, err);
        if (rc != 0)
            return rc;
        rc = edit_break(store, key, token, owner, hf__table_now(&store->table),
                        &client);
        if (rc == HF_ENOTFOUND)
            return hf__fail(err, rc, "nobody holds it");
        if (rc == HF_ECONFLICT)
            return hf__fail(err, rc, "it is held under another %s",
                            token != 0 ? "token" : "owner");
        rc = hf__block_install(store, draft, err);
    } while (rc == 1);
    if (rc != 0)
        return rc;
    wake(store, draft);
    hf__life_alarm(&store->table, client);
    return 0;
}

/* ---- versions ---------------------------------------------------------- */

int hf__change_commit(struct hf__store *store, const struct hf__key *key,
                      uint64_t expected, uint64_t *ret_version, hf_error *err)
{
    struct hf__draft *draft = &store->draft;
    uint64_t version;
    int rc;

    do {
        struct hf__record *record;

        rc = hf__block_load(store, key->bucket, draft, err);
        if (rc != 0)
            return rc;
        record = hf__draft_version(draft, key);
        if ((record ? record->token : 0) != expected)
            return hf__fail(err, HF_ECONFLICT, "the version is %llu now",
                            (unsigned long long)(record ? record->token : 0));
        if (!record) {
            record = hf__draft_append(draft, key, "", "", /* cond= */ NULL);
            if (!record)
                return no_room(draft, err);
            record->state = HF__RECORD_VERSION;
        }
        version = hf__token_next(store, draft, 1, hf__table_now(&store->table));
        record->token = version;
        draft->changed = true;
        rc = hf__block_install(store, draft, err);
    } while (rc == 1);
    if (rc == 0)
        *ret_version = version;
    return rc;
}

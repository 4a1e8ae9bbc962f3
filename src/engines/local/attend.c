/* SPDX-License-Identifier: MIT */
/*
 * attend.c - check the tickets that wait, and those that are held.
 *
 * attend() reads the inbox first and the buckets then, so that a grant that
 * comes in between ends the next sleep at once. Messages name their bucket
 * (hints in the slot), so a client that waits for thousands of names checks
 * only a few. It checks all when a client that it watched has died, when a
 * check is due, or when hints were lost. It asks again for a ticket (change.c,
 * which accepts a grant, drops dead tickets ahead of it and promotes) only if
 * the bucket has changed, the watched client has died, or the check is due;
 * for all others one load is enough.
 *
 * Every waiter has a time at which it checks, even if nothing happens: when
 * the lease of a holder ends; for the second in line after half a second, in
 * which a grant to the first lapses if that client is stopped; for the third
 * after a second, and so on; for the first after two seconds, in case the
 * client that granted the lock was killed before it woke the waiter.
 */
#include "engines/local/local.h"

#define FIRST_CHECK_NS (2 * HF_SECOND)
#define LAST_CHECK_NS (30 * HF_SECOND)
/* Later waiters check a little later, so that the first does the work. */
#define BEHIND_NS (20 * HF_MS)
#define STORE_CHECK_NS HF_SECOND
#define AGAIN_NS (100 * HF_MS)

/* ---- which clients to watch -------------------------------------------- */

/* The tickets before a waiting one. */
struct ahead {
    uint64_t waiter; /* the nearest; 0: we are the first */
    uint64_t holder; /* the last one seen */
    uint32_t waiters;
    uint32_t holders;
    int64_t expires_ns; /* the first lease to end */
};

static struct ahead look_ahead(const struct hf__draft *draft,
                               const struct hf__key *key, uint64_t client,
                               uint64_t id)
{
    struct ahead ahead = {.expires_ns = HF_NEVER};

    HF__RECORDS(draft, record) {
        if (record->client == client && record->id == id)
            break;
        if (record->state == HF__RECORD_PARKED || !hf__record_is(record, key))
            continue;
        if (record->state == HF__RECORD_WAITING) {
            ahead.waiter = record->client;
            ahead.waiters++;
            continue;
        }
        ahead.holders++;
        if (record->state != HF__RECORD_DELAYED)
            ahead.holder = record->client;
        if (record->expires_ns < ahead.expires_ns)
            ahead.expires_ns = record->expires_ns;
    }
    return ahead;
}

/* The same for one that is parked: those before it on its condition count as
 * waiters, and those that bear its wake-ups as holders. */
static struct ahead look_parked(const struct hf__draft *draft,
                                const struct hf__key *key,
                                const struct hf__ticket *ticket,
                                uint64_t client)
{
    struct ahead ahead = {.expires_ns = HF_NEVER};
    size_t len = strlen(ticket->cond);
    bool before = true;

    HF__RECORDS(draft, record) {
        if (record->client == client && record->id == ticket->id)
            before = false;
        else if (!hf__record_is(record, key) ||
                 !hf__record_is_cond(record, ticket->cond, len))
            continue;
        else if (record->state == HF__RECORD_PARKED && before) {
            ahead.waiter = record->client;
            ahead.waiters++;
        } else if ((record->flags & HF__RECORD_MARK) != 0) {
            ahead.holders++;
            ahead.holder = record->client;
            if (record->expires_ns < ahead.expires_ns)
                ahead.expires_ns = record->expires_ns;
        }
    }
    if (ahead.waiters == 0 && ahead.holders == 0) { /* nobody to watch */
        ahead.holders = 1;
        ahead.holder = client;
    }
    return ahead;
}

static int64_t next_check(const struct ahead *ahead, int64_t now_ns)
{
    int64_t pause_ns = FIRST_CHECK_NS;
    int64_t expires_ns = ahead->expires_ns;

    if (ahead->waiters > 0) {
        pause_ns = ahead->waiters * HF__GRANT_LAPSE_NS;
        if (pause_ns > LAST_CHECK_NS)
            pause_ns = LAST_CHECK_NS;
        expires_ns = hf__instant_add(expires_ns, ahead->waiters * BEHIND_NS);
    }
    return expires_ns < now_ns + pause_ns ? expires_ns : now_ns + pause_ns;
}

/* Does the life of @record's client concern @mine, one of several? */
static bool concerns(const struct hf__record *record,
                     const struct hf__local_ticket *mine)
{
    const char *cond = mine->ticket->cond;

    if (mine->state == HF__LOCAL_PARKED)
        return (record->flags & HF__RECORD_MARK) != 0 &&
               hf__record_is_cond(record, cond, strlen(cond));
    return hf__record_holds(record) && record->state != HF__RECORD_DELAYED;
}

/* False if one of them is dead. */
static bool watch_several(struct hf__local *local,
                          const struct hf__local_ticket *mine,
                          const struct hf__key *key)
{
    bool alive = true;

    HF__RECORDS(&local->store.draft, record)
        if (hf__record_is(record, key) && concerns(record, mine) &&
            !hf__watch_add(&local->watch, &local->store, record->client))
            alive = false;
    return alive;
}

/* Watch the clients before @mine in store->draft. If one has died meanwhile,
 * the next check is due at once. */
static void watch_ahead(struct hf__local *local, struct hf__local_ticket *mine,
                        const struct hf__key *key)
{
    bool alive = mine->target != 0
                     ? hf__watch_add(&local->watch, &local->store, mine->target)
                     : watch_several(local, mine, key);

    if (!alive)
        mine->check_ns = 0;
    hf__watch_until(&local->watch, &local->store, mine->check_ns);
}

void hf__local_observe(struct hf__local *local, struct hf__local_ticket *mine,
                       const struct hf__key *key, int64_t now_ns)
{
    const struct hf__draft *draft = &local->store.draft;
    uint64_t client = local->store.client;
    struct ahead ahead = mine->state == HF__LOCAL_PARKED
                             ? look_parked(draft, key, mine->ticket, client)
                             : look_ahead(draft, key, client, mine->ticket->id);

    mine->word = draft->word;
    mine->check_ns = next_check(&ahead, now_ns);
    mine->target = ahead.waiter;
    if (ahead.waiters == 0 && ahead.holders == 1)
        mine->target = ahead.holder;
    watch_ahead(local, mine, key);
}

/* Move everything from one list to another that is made here. */
static void take_all(struct hf__list *from, struct hf__list *to)
{
    hf__list_init(to);
    while (!hf__list_empty(from)) {
        struct hf__list *link = hf__list_first(from);

        hf__list_remove(link);
        hf__list_append(to, link);
    }
}

static void look_later(struct hf__local *local, struct hf__local_ticket *mine,
                       int64_t check_ns)
{
    mine->check_ns = check_ns;
    hf__watch_begin(&local->watch);
    hf__watch_until(&local->watch, &local->store, check_ns);
    hf__watch_end(&local->watch);
}

/* ---- what we wait for -------------------------------------------------- */

static bool must_look(const struct hf__local *local,
                      const struct hf__local_ticket *mine, int64_t now_ns,
                      bool died)
{
    const struct hf__table *table = &local->store.table;

    if (atomic_load_explicit(&table->buckets[mine->bucket].word,
                             memory_order_acquire) != mine->word ||
        now_ns >= mine->check_ns)
        return true;
    return died && (mine->target == 0 || !hf__life_alive(table, mine->target));
}

/* Watch for a ticket that is still waiting. The client to watch is known,
 * unless there are several. */
static void watch_again(struct hf__local *local, struct hf__local_ticket *mine)
{
    struct hf__draft *draft = &local->store.draft;
    struct hf__key key = {.text = NULL}; /* of no use with a target */

    if (mine->target == 0) {
        hf__local_key(local, mine->ticket->name, mine->ticket->name_len, &key);
        if (hf__block_load(&local->store, key.bucket, draft,
                           /* err= */ NULL) != 0)
            draft->used = 0; /* damaged: until check_ns */
        else if (draft->word != mine->word)
            mine->check_ns = 0;
    }
    watch_ahead(local, mine, &key);
}

/* Check every ticket of a list once; reports may add and remove tickets. */
static void look_at_list(struct hf__local *local, struct hf__list *list,
                         int64_t sent_ns, bool died)
{
    int64_t now_ns = hf__table_time(&local->store.table, sent_ns);
    struct hf__list rest;
    hf_error why;
    int rc;

    take_all(list, &rest);
    while (!hf__list_empty(&rest)) {
        struct hf__local_ticket *mine = HF_CONTAINER_OF(
            hf__list_first(&rest), struct hf__local_ticket, link);
        struct hf__ticket *ticket = mine->ticket;

        hf__list_remove(&mine->link);
        hf__list_append(list, &mine->link);
        if (!must_look(local, mine, now_ns, died))
            continue;
        rc = hf__local_ask(local, ticket, sent_ns, died ? HF__ASK_REWAKE : 0,
                           /* old= */ NULL, &why);
        if (rc == HF__ANSWER_HELD)
            hf__local_report_grant(local, ticket, sent_ns);
        else if (rc == HF__ANSWER_GONE)
            hf__local_condition_report(local, ticket, rc, sent_ns);
        else if (rc < 0)
            look_later(local, mine, now_ns + AGAIN_NS); /* full, or damaged */
    }
}

/* Check all tickets, and begin a new watch. */
static void look_at_all(struct hf__local *local, uint32_t inbox, bool died)
{
    int64_t sent_ns = hf__now();

    for (unsigned i = 0; i < HF__LOCAL_LISTS; i++)
        if (!hf__list_empty(&local->waiting[i]))
            look_at_list(local, &local->waiting[i], sent_ns, died);
    hf__watch_begin(&local->watch);
    hf__watch_reset(&local->watch, &local->store, inbox);
    for (unsigned i = 0; i < HF__LOCAL_LISTS; i++) {
        HF_LIST_EACH(&local->waiting[i], link) {
            watch_again(local,
                        HF_CONTAINER_OF(link, struct hf__local_ticket, link));
        }
    }
    hf__watch_end(&local->watch);
}

/* The lists that the messages since the last time concern, as bits. False if
 * that is not known: there were too many, or one is not written yet. */
static bool read_hints(struct hf__local *local,
                       uint64_t bits[HF__LOCAL_LISTS / 64])
{
    struct hf__table_slot *slot = local->store.slot;
    uint32_t from = local->hints;
    uint32_t to = atomic_load(&slot->hints_n);

    local->hints = to;
    if (to - from > HF__TABLE_HINTS)
        return false;
    for (uint32_t i = from; i != to; i++) {
        uint64_t hint = atomic_load(&slot->hints[i % HF__TABLE_HINTS]);
        uint32_t list = (uint32_t)hint % HF__LOCAL_LISTS;

        if (hint >> 32 != i)
            return false;
        bits[list / 64] |= UINT64_C(1) << (list % 64);
    }
    return true;
}

/* Check the tickets that the hints name; the watch stays as it is, perhaps
 * with more words than needed, until the next check of all. */
static void look_at_some(struct hf__local *local, uint32_t inbox,
                         const uint64_t bits[HF__LOCAL_LISTS / 64])
{
    int64_t sent_ns = hf__now();

    for (unsigned i = 0; i < HF__LOCAL_LISTS / 64; i++) {
        for (uint64_t left = bits[i]; left != 0; left &= left - 1) {
            unsigned list = i * 64 + (unsigned)__builtin_ctzll(left);

            look_at_list(local, &local->waiting[list], sent_ns,
                         /* died= */ false);
        }
    }
    hf__watch_begin(&local->watch);
    hf__watch_inbox(&local->watch, inbox);
    hf__watch_end(&local->watch);
}

/* ---- what we hold ------------------------------------------------------ */

static bool still_ours(struct hf__local *local,
                       const struct hf__local_ticket *mine)
{
    struct hf__draft *draft = &local->store.draft;
    struct hf__key key;

    hf__local_key(local, mine->ticket->name, mine->ticket->name_len, &key);
    return hf__block_load(&local->store, mine->bucket, draft,
                          /* err= */ NULL) != 0 ||
           hf__draft_find(draft, &key, local->store.client, mine->ticket->id);
}

/* Another client set the alarm: it broke a ticket of ours. */
static void look_at_held(struct hf__local *local)
{
    struct hf__list rest;

    take_all(&local->held, &rest);
    while (!hf__list_empty(&rest)) {
        struct hf__local_ticket *mine = HF_CONTAINER_OF(
            hf__list_first(&rest), struct hf__local_ticket, link);
        struct hf__ticket *ticket = mine->ticket;

        hf__list_remove(&mine->link);
        hf__list_append(&local->held, &mine->link);
        if (still_ours(local, mine))
            continue;
        hf__local_forget(local, mine);
        hf__up_lost(&local->base, ticket, HF__LOST_BROKEN);
    }
}

/* ---- the calls --------------------------------------------------------- */

bool hf__local_check_store(struct hf__local *local, int64_t now_ns)
{
    if (HF_LIKELY(now_ns - local->checked_ns < STORE_CHECK_NS))
        return true;
    local->checked_ns = now_ns;
    if (hf__table_is_current(&local->store.table))
        return true;
    hf__local_lose_store(local);
    return false;
}

void hf__local_attend(struct hf__engine *engine)
{
    struct hf__local *local = (struct hf__local *)engine;
    uint64_t bits[HF__LOCAL_LISTS / 64] = {0};
    uint32_t inbox;
    uint32_t alarm;
    bool known;
    bool died;

    atomic_store(&local->nobody_seen, atomic_load(&local->nobody));
    if (!local->connected || !hf__local_check_store(local, hf__now()))
        return;
    inbox = atomic_load(&local->store.slot->inbox);
    alarm = atomic_load(&local->store.slot->alarm);
    if (HF_UNLIKELY(alarm != local->alarm)) {
        local->alarm = alarm;
        look_at_held(local);
    }
    known = read_hints(local, bits);
    died = hf__watch_pass_on(&local->watch);
    if (known && !died && local->watch.n < HF__WATCH_MAX - 4 &&
        hf__now() < local->watch.until_ns)
        look_at_some(local, inbox, bits);
    else
        look_at_all(local, inbox, died);
    if (local->sentry)
        hf__life_arm(&local->life, true);
    if (HF_UNLIKELY(!hf__list_empty(&local->feeds)))
        hf__local_watch_attend(local);
}

/* A kick is meant for the thread in wait(), or about to enter it. Another
 * thread's attend() reads the inbox that the kick has changed, and makes a
 * watch with the new value; so there is a flag that only wait() clears. The
 * kick sets it before it changes the inbox; wait() reads it after it copied the
 * watch. */
void hf__local_wait(struct hf__engine *engine, int64_t until_ns)
{
    struct hf__local *local = (struct hf__local *)engine;
    _Atomic uint32_t *bell = atomic_load(&local->bell);
    uint32_t seen = atomic_load(&local->nobody_seen);

    if (bell != &local->nobody)
        hf__watch_sleep(&local->watch, &local->store, &local->kicked, until_ns);
    else if (!atomic_exchange(&local->kicked, false))
        hf__world->park(bell, seen, HF_ANYBODY, until_ns);
}

void hf__local_kick(struct hf__engine *engine)
{
    struct hf__local *local = (struct hf__local *)engine;
    _Atomic uint32_t *bell = atomic_load(&local->bell);

    atomic_store(&local->kicked, true);
    (void)atomic_fetch_add(bell, 1);
    if (bell == &local->nobody)
        hf__world->unpark(bell, HF_ANYBODY);
    else
        hf__futex_wake_all(bell);
}

void hf__local_sentry(struct hf__engine *engine, bool on)
{
    struct hf__local *local = (struct hf__local *)engine;

    local->sentry = on;
    hf__life_arm(&local->life, on);
}

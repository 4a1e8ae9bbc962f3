/* SPDX-License-Identifier: MIT */
/*
 * local.c - the embedded engine: locks of one machine, in shared memory.
 *
 * There is no daemon. Every client maps the same file (table.c) and changes it
 * by compare-and-swap (change.c, draft.c, block.c). The kernel reports deaths
 * (life.c) and delivers the wake-ups (waiting.c); token.c makes tokens that
 * outlive the file, choose.c and directory.c find its place.
 *
 * ONE UNCONTENDED PAIR. acquire(): hash the name, find its bucket empty, fill
 * a spare block with one ticket, swap the bucket's word. release(): the word
 * is still the one we put there, so swap it back to empty, and the block is
 * spare again. No system call, no allocation, no other client's memory.
 *
 * ONE HAND-OVER. The waiter's ticket is behind the holder's in the same
 * block, and its thread sleeps in wait(). The holder's release swaps in a
 * block in which the waiter's is GRANTED, adds one to the waiter's inbox and
 * wakes it. It accepts by another swap, with a lease of its own.
 *
 * Every call completes before it returns.
 *
 * Failure: an acquire on a full disk is HF_ENOSPACE; the core retries a
 * release until it succeeds. The next renewal, or the first request a second
 * later, notices that the store was deleted: its locks are lost, and the engine
 * connects to the new store.
 */
#include "engines/local/local.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/error.h"
#include "config/name.h"

/* ---- open, connect, close ---------------------------------------------- */

static int local_open(struct hf__engine *engine, hf_error *err)
{
    struct hf__local *local = (struct hf__local *)engine;
    const struct hf__settings *settings = engine->host->settings;

    for (unsigned i = 0; i < HF__LOCAL_LISTS; i++)
        hf__list_init(&local->waiting[i]);
    hf__list_init(&local->held);
    hf__list_init(&local->feeds);
    hf__watch_init(&local->watch);
    local->place.fd = -1;
    local->store.table.fd = -1;
    local->store.mark.fd = -1;
    atomic_store(&local->bell, &local->nobody);
    local->prefix_len = strlen(settings->prefix);
    if (local->prefix_len + HF_NAME_MAX > HF__KEY_MAX)
        return hf__fail(err, HF_ECONFIG, "prefix: at most %d bytes for local:",
                        (int)HF__KEY_MAX - HF_NAME_MAX);
    if (settings->lease == HF__LEASE_PROCESS)
        engine->caps &= ~HF_CAP_LEASED;
    engine->place = local->place.path;
    return hf__place_choose(&local->place, engine->host->url,
                            settings->trust_owner, err);
}

static void close_mark(struct hf__mark *mark)
{
    if (mark->fd >= 0)
        (void)close(mark->fd);
    mark->fd = -1;
}

/* Under the directory's lock: the table, a slot, and life in it. */
static int enter_store(struct hf__local *local, hf_error *err)
{
    struct hf__store *store = &local->store;
    int rc;

    hf__place_open_mark(&local->place, &store->mark);
    rc = hf__table_open(&store->table, &local->place,
                        hf__mark_read(&store->mark), err);
    if (rc != 0)
        return rc;
    memset(&store->stock, 0, sizeof(store->stock));
    rc = hf__life_take(store, local->base.host->host, local->base.host->pid,
                       err);
    if (rc != 0)
        return rc;
    hf__watch_begin(&local->watch);
    hf__watch_reset(&local->watch, store, atomic_load(&store->slot->inbox));
    hf__watch_end(&local->watch);
    local->alarm = atomic_load(&store->slot->alarm);
    local->hints = atomic_load(&store->slot->hints_n);
    return hf__life_start(&local->life, store, &local->watch,
                          local->base.host->loop, err);
}

static int local_connect(struct hf__engine *engine, hf_error *err)
{
    struct hf__local *local = (struct hf__local *)engine;
    int lock_fd = -1;
    int rc;

    hf__watch_ask_kernel();
    rc = hf__place_open(&local->place, err);
    if (local->place.made && local->place.kind == HF__PLACE_NAMED)
        hf__engine_log(engine, HF_LOG_WARNING,
                       "made the directory %s: a new store, without locks",
                       local->place.path);
    if (rc == 0)
        rc = hf__place_lock(&local->place, &lock_fd, err);
    if (rc == 0)
        rc = enter_store(local, err);
    if (lock_fd >= 0)
        (void)close(lock_fd); /* and so unlock */
    if (rc != 0) {
        close_mark(&local->store.mark);
        hf__table_release(&local->store.table, /* forked= */ false);
        hf__place_release(&local->place);
        return rc;
    }
    local->connected = true;
    local->checked_ns = hf__now();
    atomic_store(&local->bell, &local->store.slot->inbox);
    (void)atomic_fetch_add(&local->nobody, 1); /* who waited for this */
    hf__world->unpark(&local->nobody, HF_ANYBODY);
    if (local->sentry)
        hf__life_arm(&local->life, true);
    hf__up_connected(engine);
    return 0;
}

/* Release everything but the mapping, on which a thread may be sleeping. Do not
 * touch tickets: at the end they may be gone. */
static void leave_store(struct hf__local *local)
{
    struct hf__store *store = &local->store;

    local->connected = false;
    atomic_store(&local->bell, &local->nobody);
    hf__block_release(store);
    hf__life_stop(&local->life);
    hf__life_notify(&store->table, store->client, 0);
    close_mark(&store->mark);
}

static void forget_all(struct hf__local *local, struct hf__list *list)
{
    while (!hf__list_empty(list))
        hf__local_forget(local, HF_CONTAINER_OF(hf__list_first(list),
                                                struct hf__local_ticket, link));
}

void hf__local_lose_store(struct hf__local *local)
{
    hf_error err;

    for (unsigned i = 0; i < HF__LOCAL_LISTS; i++)
        forget_all(local, &local->waiting[i]);
    forget_all(local, &local->held);
    leave_store(local);
    (void)close(local->store.table.fd);
    local->store.table.fd = -1;
    if (local->old_tables_n == HF__LOCAL_OLD_TABLES) {
        hf__table_release(&local->old_tables[0], /* forked= */ false);
        memmove(&local->old_tables[0], &local->old_tables[1],
                sizeof(local->old_tables[0]) * (HF__LOCAL_OLD_TABLES - 1));
        local->old_tables_n--;
    }
    local->old_tables[local->old_tables_n++] = local->store.table;
    memset(&local->store.table, 0, sizeof(local->store.table));
    local->store.table.fd = -1;
    hf__place_release(&local->place);
    (void)hf__fail(&err, HF_EUNAVAILABLE,
                   "the local store was deleted while it was in use");
    hf__up_down(&local->base, &err);
}

static void local_close(struct hf__engine *engine, bool forked)
{
    struct hf__local *local = (struct hf__local *)engine;

    if (local->connected && !forked)
        leave_store(local);
    if (local->connected && forked)
        close_mark(&local->store.mark);
    for (uint32_t i = 0; i < local->old_tables_n; i++)
        hf__table_release(&local->old_tables[i], forked);
    hf__table_release(&local->store.table, forked);
    hf__place_release(&local->place);
    hf__draft_release(&local->store.draft);
    hf__draft_release(&local->store.purge_draft);
    if (!forked)
        hf__watch_release(&local->watch);
}

/* ---- small parts ------------------------------------------------------- */

void hf__local_key(struct hf__local *local, const char *name, size_t len,
                   struct hf__key *key)
{
    uint64_t hash;

    key->text = name;
    key->len = (uint32_t)len;
    if (HF_UNLIKELY(local->prefix_len > 0)) {
        memcpy(local->name, local->base.host->settings->prefix,
               local->prefix_len);
        memcpy(local->name + local->prefix_len, name, len);
        key->text = local->name;
        key->len += (uint32_t)local->prefix_len;
    }
    hash = hf__name_hash(key->text, key->len, local->store.table.header->seed);
    key->hash = (uint32_t)(hash >> 32);
    key->bucket = (uint32_t)hash % HF__TABLE_BUCKETS;
}

static void ticket_key(struct hf__local *local, struct hf__ticket *ticket,
                       struct hf__key *key)
{
    hf__local_key(local, ticket->name, ticket->name_len, key);
}

static int64_t lease_of(const struct hf__local *local, int64_t ttl_ms)
{
    return local->base.host->settings->lease == HF__LEASE_PROCESS ? 0 : ttl_ms;
}

/* Out of its list. */
static void delist(struct hf__local *local, struct hf__local_ticket *mine)
{
    if (!mine->ticket)
        return;
    hf__list_remove(&mine->link);
    local->waiting_n -= hf__local_waits(mine);
    mine->ticket = NULL;
    mine->state = HF__LOCAL_OUT;
}

void hf__local_forget(struct hf__local *local, struct hf__local_ticket *mine)
{
    delist(local, mine);
    mine->alone = false;
}

static void enlist(struct hf__local *local, struct hf__local_ticket *mine,
                   struct hf__ticket *ticket, enum hf__local_state state)
{
    delist(local, mine);
    mine->ticket = ticket;
    mine->state = state;
    local->waiting_n += state != HF__LOCAL_HELD;
    hf__list_append(state == HF__LOCAL_HELD
                        ? &local->held
                        : &local->waiting[mine->bucket % HF__LOCAL_LISTS],
                    &mine->link);
}

int hf__local_not_open(hf_error *err)
{
    return hf__fail(err, HF_EUNAVAILABLE, "the local store is not open");
}

int hf__local_answer(struct hf__engine *engine, struct hf__query *query,
                     hf__local_answer_fn *find_out, hf_error *err)
{
    struct hf__local *local = (struct hf__local *)engine;
    struct hf__key key = {0};
    hf_error why;
    int rc;

    if (!local->connected)
        return hf__local_not_open(err);
    if (query->name)
        hf__local_key(local, query->name, strlen(query->name), &key);
    rc = find_out(local, query, &key, &why);
    hf__up_answer(engine, query, rc, &why);
    return 0;
}

static uint32_t delay_ms(const struct hf__local *local)
{
    int64_t ms = local->base.host->settings->lock_delay_ms;

    return ms > UINT32_MAX ? UINT32_MAX : (uint32_t)ms;
}

/* ---- acquire ----------------------------------------------------------- */

static void make_asker(const struct hf__local *local,
                       const struct hf__ticket *ticket, int64_t sent_ns,
                       struct hf__asker *asker)
{
    asker->id = ticket->id;
    asker->owner = ticket->owner;
    asker->note = ticket->note;
    asker->lease_ms = lease_of(local, ticket->ttl_ms);
    asker->now_ns = hf__table_time(&local->store.table, sent_ns);
    asker->reserve = ticket->reserve > 0 ? ticket->reserve : 1;
    asker->delay_ms = delay_ms(local);
    asker->slots = (uint16_t)(ticket->mode == HF_SLOT ? ticket->slots : 0);
    asker->mode = (uint8_t)ticket->mode;
    asker->nowait = ticket->nowait;
    asker->cond = ticket->cond;
    asker->old = NULL;
}

void hf__local_report_grant(struct hf__local *local, struct hf__ticket *ticket,
                            int64_t sent_ns)
{
    struct hf__local_ticket *mine = hf__engine_ticket(&local->base, ticket);
    struct hf__grant grant = {
        .token = mine->token,
        .tokens = mine->tokens,
        .lease_ms = lease_of(local, ticket->ttl_ms),
        .sent_ns = sent_ns,
    };

    if (HF_UNLIKELY(ticket->cond != NULL))
        grant.woken = mine->woken;
    hf__up_granted(&local->base, ticket, &grant);
}

/* The last token that an owner of this client got. */
static uint64_t last_used(const struct hf__ticket *ticket,
                          const struct hf__local_ticket *mine)
{
    uint64_t end = mine->token + mine->tokens - 1;

    return ticket->token >= mine->token && ticket->token <= end ? ticket->token
                                                                : end;
}

/* Does the record of @ticket, as store->draft has it, bear a wake-up? */
static bool bears_mark(const struct hf__local *local,
                       const struct hf__ticket *ticket,
                       const struct hf__key *key)
{
    const struct hf__record *record = hf__draft_find(
        &local->store.draft, key, local->store.client, ticket->id);

    return record && (record->flags & HF__RECORD_MARK) != 0;
}

int hf__local_ask(struct hf__local *local, struct hf__ticket *ticket,
                  int64_t sent_ns, uint32_t why, struct hf__ticket *old,
                  hf_error *err)
{
    struct hf__local_ticket *mine = hf__engine_ticket(&local->base, ticket);
    struct hf__leave leave;
    struct hf__asker asker;
    struct hf__result result;
    struct hf__key key;
    int rc;

    ticket_key(local, ticket, &key);
    make_asker(local, ticket, sent_ns, &asker);
    asker.why = why;
    if (HF_UNLIKELY(old != NULL)) {
        leave.id = old->id;
        leave.used = last_used(old, hf__engine_ticket(&local->base, old));
        asker.old = &leave;
    }
    mine->bucket = key.bucket;
    rc = hf__change_ask(&local->store, &key, &asker, &result, err);
    if (HF_LIKELY(rc == HF__ANSWER_HELD)) {
        mine->word = local->store.draft.word;
        mine->alone = result.ours && result.alone;
        mine->token = result.token;
        mine->tokens = result.tokens;
        if (HF_UNLIKELY(ticket->cond != NULL))
            mine->woken = bears_mark(local, ticket, &key);
        enlist(local, mine, ticket, HF__LOCAL_HELD);
    } else if (rc == HF__ANSWER_WAITING || rc == HF__ANSWER_PARKED) {
        enlist(local, mine, ticket,
               rc == HF__ANSWER_PARKED ? HF__LOCAL_PARKED : HF__LOCAL_IN_LINE);
        hf__watch_begin(&local->watch);
        hf__local_observe(local, mine, &key, asker.now_ns);
        hf__watch_end(&local->watch);
    }
    return rc;
}

void hf__local_tell_watchers(struct hf__local *local)
{
    if (local->sentry)
        hf__life_arm(&local->life, true);
    else if (atomic_load(&local->store.slot->sleeping) != 0)
        hf__local_kick(&local->base);
}

static int local_acquire(struct hf__engine *engine, struct hf__ticket *ticket,
                         hf_error *err)
{
    struct hf__local *local = (struct hf__local *)engine;
    struct hf__key key;
    hf_error why;
    char holder[256];
    int rc;

    if (HF_UNLIKELY(!local->connected ||
                    !hf__local_check_store(local, ticket->sent_ns)))
        return hf__local_not_open(err);
    rc = hf__local_ask(local, ticket, ticket->sent_ns, /* why= */ 0,
                       /* old= */ NULL, &why);
    if (HF_LIKELY(rc == HF__ANSWER_HELD)) {
        hf__local_report_grant(local, ticket, ticket->sent_ns);
    } else if (rc == HF__ANSWER_WAITING) {
        hf__local_tell_watchers(local);
        hf__up_queued(engine, ticket);
    } else if (rc == HF__ANSWER_BUSY) {
        ticket_key(local, ticket, &key);
        hf__local_holder(local, &key, holder, sizeof(holder));
        hf__up_busy(engine, ticket, 0, holder);
    } else {
        hf__up_failed(engine, ticket, &why);
    }
    return 0;
}

/* ---- release, withdraw ------------------------------------------------- */

/* 0, 1: it was not there, or an error. */
static int leave(struct hf__local *local, struct hf__ticket *ticket,
                 bool in_order, hf_error *err)
{
    struct hf__local_ticket *mine = hf__engine_ticket(&local->base, ticket);
    struct hf__leave how = {.id = ticket->id,
                            .used = last_used(ticket, mine),
                            .in_order = in_order};
    struct hf__key key;
    int rc;

    if (HF_LIKELY(mine->alone && delay_ms(local) == 0 &&
                  hf__block_empty(&local->store, mine->bucket, mine->word,
                                  how.used))) {
        hf__local_forget(local, mine);
        return 0;
    }
    ticket_key(local, ticket, &key);
    rc = hf__change_leave(&local->store, &key, &how, err);
    if (rc >= 0)
        hf__local_forget(local, mine);
    return rc;
}

static int leave_and_report(struct hf__engine *engine,
                            struct hf__ticket *ticket, bool in_order,
                            hf_error *err)
{
    struct hf__local *local = (struct hf__local *)engine;
    hf_error why;
    int rc;

    if (HF_UNLIKELY(!local->connected))
        return hf__local_not_open(err);
    rc = leave(local, ticket, in_order, &why);
    if (HF_UNLIKELY(rc < 0))
        hf__up_unknown(engine, ticket, &why);
    else /* a withdrawal does not ask what there was */
        hf__up_left(engine, ticket, rc == 0 || !in_order ? 0 : HF_ELOST);
    return 0;
}

static int local_release(struct hf__engine *engine, struct hf__ticket *ticket,
                         hf_error *err)
{
    return leave_and_report(engine, ticket, /* in_order= */ true, err);
}

static int local_withdraw(struct hf__engine *engine, struct hf__ticket *ticket,
                          hf_error *err)
{
    return leave_and_report(engine, ticket, /* in_order= */ false, err);
}

/* ---- renew, downgrade -------------------------------------------------- */

enum { RUN = 64 };

static int by_bucket(const void *a, const void *b, void *arg)
{
    const struct hf__engine *engine = arg;
    struct hf__ticket *one = *(struct hf__ticket *const *)a;
    struct hf__ticket *two = *(struct hf__ticket *const *)b;
    const struct hf__local_ticket *x = hf__engine_ticket(engine, one);
    const struct hf__local_ticket *y = hf__engine_ticket(engine, two);

    if (x->bucket != y->bucket)
        return x->bucket < y->bucket ? -1 : 1;
    return one->id < two->id ? -1 : one->id > two->id;
}

/* One swap for the tickets of one bucket; then the reports. */
static void renew_run(struct hf__local *local, struct hf__ticket **tickets,
                      size_t n, int64_t sent_ns)
{
    struct hf__engine *engine = &local->base;
    struct hf__local_ticket *first = hf__engine_ticket(engine, tickets[0]);
    struct hf__renewal renewals[RUN];
    struct hf__result result;
    int rc;

    for (size_t i = 0; i < n; i++) {
        renewals[i].id = tickets[i]->id;
        renewals[i].lease_ms = lease_of(local, tickets[i]->ttl_ms);
    }
    rc = hf__change_renew(&local->store, first->bucket, renewals, n,
                          hf__table_time(&local->store.table, sent_ns), &result,
                          /* err= */ NULL);
    if (rc != 0)
        return; /* no report: the core notices, and asks again */
    for (size_t i = 0; i < n; i++) {
        struct hf__local_ticket *mine = hf__engine_ticket(engine, tickets[i]);
        struct hf__grant grant = {.lease_ms = renewals[i].lease_ms,
                                  .sent_ns = sent_ns};

        if (renewals[i].found) {
            mine->word = local->store.draft.word;
            mine->alone = result.ours && result.alone;
        } else {
            hf__local_forget(local, mine);
        }
        if (renewals[i].found && tickets[i]->cond &&
            tickets[i]->token != mine->token)
            hf__local_report_grant(local, tickets[i], sent_ns); /* not heard */
        else if (renewals[i].found)
            hf__up_renewed(engine, tickets[i], &grant);
        else
            hf__up_lost(engine, tickets[i], HF__LOST_TAKEN);
    }
}

/* Check those that are parked, or were called: their records have no lease. How
 * many others are left in @tickets. */
static size_t renew_parked(struct hf__local *local, struct hf__ticket **tickets,
                           size_t n, int64_t sent_ns)
{
    size_t left = 0;

    for (size_t i = 0; i < n; i++) {
        struct hf__ticket *ticket = tickets[i];
        struct hf__local_ticket *mine = hf__engine_ticket(&local->base, ticket);

        if (!ticket->cond || !hf__local_waits(mine)) {
            tickets[left++] = ticket;
            continue;
        }
        hf__local_condition_report(
            local, ticket, hf__local_ask(local, ticket, sent_ns, 0, NULL, NULL),
            sent_ns);
    }
    return left;
}

static bool store_is_there(struct hf__local *local)
{
    if (hf__table_is_current(&local->store.table)) {
        local->checked_ns = hf__now();
        return true;
    }
    return false;
}

static int local_renew(struct hf__engine *engine, struct hf__ticket **tickets,
                       size_t n, hf_error *err)
{
    struct hf__local *local = (struct hf__local *)engine;
    int64_t sent_ns = hf__now();

    if (!local->connected)
        return hf__local_not_open(err);
    if (!store_is_there(local)) {
        for (size_t i = 0; i < n; i++) {
            hf__local_forget(local, hf__engine_ticket(engine, tickets[i]));
            hf__up_lost(engine, tickets[i], HF__LOST_SESSION);
        }
        hf__local_lose_store(local);
        return 0;
    }
    n = renew_parked(local, tickets, n, sent_ns);
    if (n > 1)
        qsort_r(tickets, n, sizeof(struct hf__ticket *), by_bucket, engine);
    for (size_t i = 0; i < n;) {
        struct hf__local_ticket *first = hf__engine_ticket(engine, tickets[i]);
        size_t run = 1;

        while (i + run < n && run < RUN) {
            struct hf__local_ticket *next =
                hf__engine_ticket(engine, tickets[i + run]);

            if (next->bucket != first->bucket)
                break;
            run++;
        }
        renew_run(local, tickets + i, run, sent_ns);
        i += run;
    }
    return 0;
}

static int local_downgrade(struct hf__engine *engine, struct hf__ticket *ticket,
                           hf_error *err)
{
    struct hf__local *local = (struct hf__local *)engine;
    struct hf__local_ticket *mine = hf__engine_ticket(engine, ticket);
    struct hf__grant grant = {.sent_ns = hf__now()};
    struct hf__asker asker;
    struct hf__key key;
    hf_error why;
    int rc;

    if (!local->connected)
        return hf__local_not_open(err);
    ticket_key(local, ticket, &key);
    make_asker(local, ticket, grant.sent_ns, &asker);
    grant.lease_ms = asker.lease_ms;
    rc = hf__change_downgrade(&local->store, &key, &asker, &why);
    mine->alone = false;
    if (rc < 0) {
        hf__up_unknown(engine, ticket, &why);
    } else if (rc == 1) {
        hf__local_forget(local, mine);
        hf__up_lost(engine, ticket, HF__LOST_TAKEN);
    } else {
        ticket->mode = HF_SHARED;
        hf__up_renewed(engine, ticket, &grant);
    }
    return 0;
}

static int local_pass(struct hf__engine *engine, struct hf__ticket *ticket,
                      uint64_t *ret_token)
{
    struct hf__local *local = (struct hf__local *)engine;
    struct hf__local_ticket *mine = hf__engine_ticket(engine, ticket);
    struct hf__asker asker;
    struct hf__result result;
    struct hf__key key;
    int rc;

    if (!local->connected)
        return HF_EUNAVAILABLE;
    ticket_key(local, ticket, &key);
    make_asker(local, ticket, hf__now(), &asker);
    rc = hf__change_pass(&local->store, &key, &asker, &result,
                         /* err= */ NULL);
    mine->alone = false;
    if (rc != 0)
        return rc < 0 ? rc : HF_ELOST;
    mine->word = local->store.draft.word;
    mine->alone = result.alone;
    mine->token = result.token;
    mine->tokens = result.tokens;
    *ret_token = result.token;
    return 0;
}

const struct hf__engine_ops hf__engine_local = {
    .name = "local",
    .schemes = "local",
    .dialects = "native",
    .caps = HF_CAP_FENCED | HF_CAP_FIFO | HF_CAP_SHARED | HF_CAP_SLOTS |
            HF_CAP_PUSH | HF_CAP_LEASED | HF_CAP_DOWNGRADE | HF_CAP_VERSIONS |
            HF_CAP_LIST | HF_CAP_BREAK | HF_CAP_CHECK_TOKEN |
            HF_CAP_DEATH_NOTICE | HF_CAP_LOCK_DELAY |
            HF_CAP_TOLD_BEFORE_REGRANT | HF_CAP_CONDITIONS,
    .size = sizeof(struct hf__local),
    .ticket_size = sizeof(struct hf__local_ticket),
    .open = local_open,
    .connect = local_connect,
    .close = local_close,
    .acquire = local_acquire,
    .withdraw = local_withdraw,
    .release = local_release,
    .renew = local_renew,
    .downgrade = local_downgrade,
    .pass = local_pass,
    .park = hf__local_park,
    .unpark = hf__local_unpark,
    .signal = hf__local_signal,
    .list = hf__local_list,
    .check_token = hf__local_check_token,
    .break_lock = hf__local_break,
    .version_read = hf__local_version_read,
    .version_commit = hf__local_version_commit,
    .doctor = hf__local_doctor,
    .board_post = hf__local_board_post,
    .board_read = hf__local_board_read,
    .wait = hf__local_wait,
    .attend = hf__local_attend,
    .kick = hf__local_kick,
    .sentry = hf__local_sentry,
    .watch = hf__local_watch,
    .unwatch = hf__local_watch_stop,
};

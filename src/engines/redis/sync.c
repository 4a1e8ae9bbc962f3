/* SPDX-License-Identifier: MIT */
/*
 * sync.c - sync_replicas: a grant is told when so many replicas have it.
 *
 * What the server has granted or renewed is reported after WAIT says that
 * enough replicas have all that this connection wrote. One WAIT is under way at
 * a time: it covers whatever was written before it was sent, and the rest has
 * the next one. Without the setting nothing of this costs anything.
 *
 * Another connection wrote a grant that was pushed, so a renewal of our own comes
 * before the WAIT.
 *
 * Failure: too few replicas within half of io_timeout. A grant is given back,
 * and when that is confirmed the caller hears why; a ticket that was in line has
 * lost its place then, and the core asks anew. A renewal counts as not answered,
 * and the core tells the owner in time.
 *
 * This is no consensus. A replica that has the lock may still not be the one
 * that is promoted.
 */
#include "engines/redis/connection.h"
#include "engines/redis/errors.h"
#include "engines/redis/native.h"
#include "engines/redis/redis.h"
#include "engines/redis/tickets.h"
#include "engines/redis/verbs.h"

static int wanted(const struct hf__redis *redis)
{
    return redis->base.host->settings->sync_replicas;
}

static void on_waited(struct hf__redis *redis,
                      const struct hf__redis_call *call,
                      struct hf__resp *reply);

static int put_wait(struct hf__redis *redis, const struct hf__redis_call *call,
                    hf_error *err)
{
    int64_t ms = redis->base.host->settings->io_timeout_ms / 2;
    size_t mark = hf__redis_connection_begin(redis, 3);

    hf__resp_arg_text(&redis->stream.out, "WAIT");
    hf__resp_arg_number(&redis->stream.out, wanted(redis));
    hf__resp_arg_number(&redis->stream.out, ms > 0 ? ms : 1);
    return hf__redis_connection_end(redis, mark, call, err);
}

static int send_wait(struct hf__redis *redis, hf_error *err)
{
    struct hf__redis_call call = {.done = on_waited};
    int rc = put_wait(redis, &call, err);

    if (rc == 0)
        redis->sync_sent = redis->sync_last;
    return rc;
}

/* ---- outcomes ---------------------------------------------------------- */

/* The core waits for a ticket in line: the next renewal finds out. */
static void unknown(struct hf__redis *redis, struct hf__ticket *ticket,
                    const hf_error *err)
{
    struct hf__redis_ticket *mine = hf__redis_ticket(redis, ticket);

    if (mine->state == HF__REDIS_CALLED)
        hf__redis_ticket_to(mine, HF__REDIS_WAITING);
    if (hf__redis_ticket_hears(mine))
        return;
    hf__redis_ticket_doubt(mine);
    hf__up_unknown(&redis->base, ticket, err);
}

void hf__redis_sync_give_back(struct hf__redis *redis,
                              struct hf__ticket *ticket, const hf_error *why)
{
    struct hf__redis_ticket *mine = hf__redis_ticket(redis, ticket);
    enum hf__redis_state state = hf__redis_ticket_in_line(mine)
                                     ? HF__REDIS_DROPPING
                                     : HF__REDIS_RETURNING;

    mine->why = hf__malloc(sizeof(*mine->why));
    if (mine->why)
        *mine->why = *why;
    if (!mine->why ||
        hf__redis_release(redis, ticket, state, /* err= */ NULL) != 0) {
        hf__redis_sync_forget(redis, ticket);
        unknown(redis, ticket, why);
    }
}

void hf__redis_sync_forget(struct hf__redis *redis, struct hf__ticket *ticket)
{
    struct hf__redis_ticket *mine = hf__redis_ticket(redis, ticket);

    if (!mine->why)
        return;
    hf__free(mine->why);
    mine->why = NULL;
    if (mine->state == HF__REDIS_RETURNING)
        hf__redis_ticket_to(mine, HF__REDIS_UNKNOWN);
    else
        hf__redis_ticket_to(mine,
                            ticket->cond ? HF__REDIS_STALE : HF__REDIS_WAITING);
}

void hf__redis_sync_released(struct hf__redis *redis, struct hf__ticket *ticket,
                             int rc)
{
    struct hf__redis_ticket *mine = hf__redis_ticket(redis, ticket);
    bool in_line = mine->state == HF__REDIS_DROPPING;
    hf_error *why = mine->why;

    mine->why = NULL;
    hf__redis_tickets_forget(redis, ticket);
    if (why && in_line)
        hf__up_lost(&redis->base, ticket, HF__LOST_TAKEN);
    else if (why)
        hf__up_failed(&redis->base, ticket, why);
    else
        hf__up_left(&redis->base, ticket, rc);
    hf__free(why);
}

/* @err: NULL if enough replicas have it. @lost: nobody answered. */
static void synced(struct hf__redis *redis, struct hf__ticket *ticket,
                   const hf_error *err, bool lost)
{
    struct hf__redis_ticket *mine = hf__redis_ticket(redis, ticket);

    mine->sync = 0;
    if (!hf__redis_ticket_asks(mine)) {
        if (!err && !hf__redis_ticket_leaves(mine))
            hf__up_renewed(&redis->base, ticket, &mine->grant);
    } else if (lost || (err && mine->old)) {
        unknown(redis, ticket, err); /* a park is asked again */
    } else if (err) {
        hf__redis_sync_give_back(redis, ticket, err);
    } else if (mine->old) {
        hf__native_condition_parked(redis, ticket);
    } else {
        hf__redis_ticket_to(mine, HF__REDIS_HELD);
        hf__up_granted(&redis->base, ticket, &mine->grant);
    }
}

/* Does the WAIT with this mark cover the ticket? */
static bool covered(struct hf__ticket_entry *entry, const void *what)
{
    const struct hf__redis_ticket *mine =
        HF_CONTAINER_OF(entry, struct hf__redis_ticket, entry);
    const uint64_t *mark = what;

    return mine->sync != 0 && mine->sync <= *mark;
}

/* What a WAIT says, as an error: code 0 if enough replicas have it. */
static void explain(struct hf__redis *redis, struct hf__resp *reply,
                    hf_error *err)
{
    struct hf__resp_value value = hf__resp_first(reply);

    err->code = 0;
    if (!reply)
        hf__redis_errors_explain_lost(redis, err);
    else if (value.type != HF__RESP_NUMBER)
        (void)hf__redis_errors_explain(redis, &value, err);
    else if (value.number < wanted(redis))
        (void)hf__fail(err, HF_EUNAVAILABLE,
                       "%s: %lld replicas have it, sync_replicas wants %d",
                       redis->peer, (long long)value.number, wanted(redis));
}

static void on_waited(struct hf__redis *redis,
                      const struct hf__redis_call *call, struct hf__resp *reply)
{
    /* With the connection ends also what waits for the next WAIT. */
    uint64_t mark = reply ? redis->sync_sent : redis->sync_last;
    struct hf__ticket *ticket;
    size_t bucket = 0;
    hf_error err;

    (void)call;
    redis->sync_sent = 0;
    explain(redis, reply, &err);
    while ((ticket = hf__ticket_table_next(&redis->tickets, &bucket, covered,
                                           &mark)) != NULL)
        synced(redis, ticket, err.code != 0 ? &err : NULL, !reply);
    if (reply && redis->sync_sent == 0 && redis->sync_last > mark)
        (void)send_wait(redis, /* err= */ NULL); /* or with the next one */
}

/* ---- what the dialects call -------------------------------------------- */

static int await(struct hf__redis *redis, struct hf__redis_ticket *mine,
                 const struct hf__grant *grant, hf_error *err)
{
    mine->grant = *grant;
    mine->sync = ++redis->sync_last;
    return redis->sync_sent == 0 ? send_wait(redis, err) : 0;
}

void hf__redis_sync_granted(struct hf__redis *redis, struct hf__ticket *ticket,
                            const struct hf__grant *grant, bool pushed)
{
    struct hf__redis_ticket *mine = hf__redis_ticket(redis, ticket);
    hf_error err;

    if (wanted(redis) == 0) {
        hf__redis_ticket_to(mine, HF__REDIS_HELD);
        hf__up_granted(&redis->base, ticket, grant);
        return;
    }
    hf__redis_ticket_to(mine, hf__redis_ticket_in_line(mine)
                                  ? HF__REDIS_CALLED
                                  : HF__REDIS_SYNCING);
    if ((pushed && redis->dialect->renew(redis, &ticket, 1, &err) != 0) ||
        await(redis, mine, grant, &err) != 0) {
        mine->sync = 0;
        unknown(redis, ticket, &err);
    }
}

void hf__redis_sync_parked(struct hf__redis *redis, struct hf__ticket *ticket)
{
    static const struct hf__grant none;
    struct hf__redis_ticket *mine = hf__redis_ticket(redis, ticket);
    hf_error err;

    if (wanted(redis) == 0) {
        hf__native_condition_parked(redis, ticket);
        return;
    }
    hf__redis_ticket_to(mine, HF__REDIS_SYNCING);
    if (await(redis, mine, &none, &err) != 0) {
        mine->sync = 0;
        unknown(redis, ticket, &err);
    }
}

static void on_changed(struct hf__redis *redis,
                       const struct hf__redis_call *call,
                       struct hf__resp *reply)
{
    hf_error err;

    explain(redis, reply, &err);
    hf__up_answer(&redis->base, call->query, err.code,
                  err.code != 0 ? &err : NULL);
}

void hf__redis_sync_changed(struct hf__redis *redis, struct hf__query *query)
{
    struct hf__redis_call call = {.done = on_changed, .query = query};
    hf_error err;
    int rc = 0;

    if (wanted(redis) > 0) {
        rc = put_wait(redis, &call, &err);
        if (rc == 0)
            return;
    }
    hf__up_answer(&redis->base, query, rc, rc != 0 ? &err : NULL);
}

void hf__redis_sync_again(struct hf__redis *redis, struct hf__ticket *ticket)
{
    struct hf__redis_ticket *mine = hf__redis_ticket(redis, ticket);

    if (mine->sync != 0)
        mine->sync = ++redis->sync_last;
}

void hf__redis_sync_renewed(struct hf__redis *redis, struct hf__ticket *ticket,
                            const struct hf__grant *grant)
{
    struct hf__redis_ticket *mine = hf__redis_ticket(redis, ticket);

    if (wanted(redis) == 0 || hf__redis_ticket_waits(mine))
        hf__up_renewed(&redis->base, ticket, grant);
    else if (await(redis, mine, grant, /* err= */ NULL) != 0)
        mine->sync = 0; /* silence: the core counts the time */
}

/* SPDX-License-Identifier: MIT */
/*
 * release.c - the ends of a ticket, whatever the dialect: release, withdrawal,
 * downgrade, and not knowing.
 *
 * A dialect sends; the answers mean the same in all of them. The script is
 * loaded with the first release; one that the server has forgotten since is
 * loaded again, and asked for again.
 *
 * Failure: an answer that is lost, or is an error, is reported unknown: the core
 * asks again until it is certain. A refused acquire is certain if the error says
 * so and nothing was asked for this ticket before; otherwise a release comes
 * first.
 */
#include "engines/redis/connection.h"
#include "engines/redis/errors.h"
#include "engines/redis/redis.h"
#include "engines/redis/tickets.h"
#include "engines/redis/verbs.h"

void hf__redis_release_unknown(struct hf__redis *redis,
                               struct hf__ticket *ticket)
{
    struct hf__redis_ticket *mine = hf__redis_ticket(redis, ticket);
    hf_error err;

    hf__redis_sync_forget(redis, ticket);
    if (hf__redis_ticket_waits(mine) || mine->state == HF__REDIS_STALE)
        return; /* in line as before: the next renewal finds out */
    hf__redis_ticket_doubt(mine);
    hf__redis_errors_explain_lost(redis, &err);
    hf__up_unknown(&redis->base, ticket, &err);
}

void hf__redis_release_lost(struct hf__redis *redis, struct hf__ticket *ticket,
                            int reason)
{
    hf__redis_tickets_forget(redis, ticket);
    hf__up_lost(&redis->base, ticket, reason);
}

struct hf__ticket *hf__redis_release_asking(struct hf__redis *redis,
                                            const struct hf__redis_call *call,
                                            struct hf__resp *reply,
                                            struct hf__resp_value *ret_value)
{
    struct hf__ticket *ticket = hf__redis_tickets_find(redis, call->ticket);

    if (!ticket || !hf__redis_ticket_asks(hf__redis_ticket(redis, ticket)))
        return NULL; /* withdrawn meanwhile */
    *ret_value = hf__resp_first(reply);
    if (reply)
        return ticket;
    hf__redis_release_unknown(redis, ticket);
    return NULL;
}

/* ---- an acquire that was refused --------------------------------------- */

/* Certain: not held, and nothing is left. */
static void failed(struct hf__redis *redis, struct hf__ticket *ticket,
                   const hf_error *err)
{
    hf__redis_tickets_forget(redis, ticket);
    hf__up_failed(&redis->base, ticket, err);
}

static void doubtful(struct hf__redis *redis, struct hf__ticket *ticket,
                     const hf_error *err)
{
    hf__redis_ticket_doubt(hf__redis_ticket(redis, ticket));
    hf__up_unknown(&redis->base, ticket, err);
}

static void cleared(struct hf__redis *redis, struct hf__ticket *ticket,
                    const struct hf__resp_value *value, const hf_error *why)
{
    struct hf__redis_ticket *mine = hf__redis_ticket(redis, ticket);
    bool certain = value->type == HF__RESP_NUMBER;

    if (hf__redis_ticket_asks(mine) &&
        (certain || (value->type != 0 && !mine->again))) {
        failed(redis, ticket, why);
    } else if (hf__redis_ticket_asks(mine)) {
        doubtful(redis, ticket, why);
    } else if (hf__redis_ticket_waits(mine) && certain) {
        /* The core asks anew, and is told the error. */
        hf__redis_release_lost(redis, ticket, HF__LOST_TAKEN);
    }
}

/* The answer to a release after an error: now it is certain. */
static void on_cleared(struct hf__redis *redis,
                       const struct hf__redis_call *call,
                       struct hf__resp *reply)
{
    struct hf__ticket *ticket = hf__redis_tickets_find(redis, call->ticket);
    struct hf__resp_value value = hf__resp_first(reply);

    if (ticket &&
        hf__redis_connection_script_lost(redis, &value,
                                         redis->release_script) &&
        redis->dialect->send_release(redis, ticket, on_cleared, call->data,
                                     /* err= */ NULL) == 0)
        return;
    if (ticket)
        cleared(redis, ticket, &value, call->data);
    hf__free(call->data);
}

void hf__redis_release_refused(struct hf__redis *redis,
                               struct hf__ticket *ticket,
                               const struct hf__resp_value *value)
{
    struct hf__redis_ticket *mine = hf__redis_ticket(redis, ticket);
    hf_error err;
    hf_error *why;
    bool certain = hf__redis_errors_explain(redis, value, &err);

    if (hf__redis_ticket_asks(mine) && redis->redirected) {
        doubtful(redis, ticket, &err);
        return;
    }
    if (hf__redis_ticket_asks(mine) && certain && !mine->again) {
        failed(redis, ticket, &err);
        return;
    }
    why = hf__malloc(sizeof(*why));
    if (why)
        *why = err;
    if (why && redis->dialect->send_release(redis, ticket, on_cleared, why,
                                            /* err= */ NULL) == 0)
        return;
    hf__free(why);
    if (hf__redis_ticket_asks(mine))
        doubtful(redis, ticket, &err);
}

/* ---- leaving ----------------------------------------------------------- */

static void on_left(struct hf__redis *redis, const struct hf__redis_call *call,
                    struct hf__resp *reply)
{
    struct hf__ticket *ticket = hf__redis_tickets_find(redis, call->ticket);
    struct hf__resp_value value = hf__resp_first(reply);
    bool releasing;

    if (!ticket || !hf__redis_ticket_leaves(hf__redis_ticket(redis, ticket)))
        return; /* it was given back, and is asked for again */
    if (hf__redis_connection_script_lost(redis, &value,
                                         redis->release_script) &&
        redis->dialect->send_release(redis, ticket, on_left, NULL, NULL) == 0)
        return;
    if (value.type != HF__RESP_NUMBER) {
        hf__redis_release_unknown(redis, ticket);
        return;
    }
    releasing = hf__redis_ticket(redis, ticket)->state == HF__REDIS_RELEASING;
    hf__redis_sync_released(redis, ticket,
                            releasing && value.number != 1 ? HF_ELOST : 0);
}

/* With the first release of a connection: a server that answers NOSCRIPT gets
 * the release again behind what we have asked meanwhile, and would refuse an
 * acquire because of a lock that we have released. */
static void load_once(struct hf__redis *redis)
{
    if (!redis->release_loaded)
        redis->release_loaded =
            hf__redis_connection_script_load(redis, redis->release_script) == 0;
}

int hf__redis_release(struct hf__redis *redis, struct hf__ticket *ticket,
                      enum hf__redis_state state, hf_error *err)
{
    struct hf__redis_ticket *mine = hf__redis_ticket(redis, ticket);

    mine->watch_ns = 0;
    hf__redis_wait_part(redis, mine);
    hf__redis_ticket_to(mine, state);
    load_once(redis);
    return redis->dialect->send_release(redis, ticket, on_left, NULL, err);
}

void hf__redis_release_downgraded(struct hf__redis *redis,
                                  const struct hf__redis_call *call,
                                  struct hf__resp *reply)
{
    struct hf__ticket *ticket = hf__redis_tickets_find(redis, call->ticket);
    struct hf__resp_value value = hf__resp_first(reply);
    struct hf__grant grant = {.tokens = 1, .sent_ns = call->sent_ns};

    if (!ticket || hf__redis_ticket_leaves(hf__redis_ticket(redis, ticket)))
        return;
    if (hf__redis_connection_script_lost(redis, &value,
                                         redis->dialect->downgrade_script) &&
        redis->dialect->downgrade(redis, ticket, /* err= */ NULL) == 0)
        return;
    if (value.type != HF__RESP_NUMBER) {
        hf__redis_release_unknown(redis, ticket);
    } else if (value.number == 1) {
        ticket->mode = HF_SHARED;
        grant.lease_ms = ticket->ttl_ms;
        hf__up_renewed(&redis->base, ticket, &grant);
    } else {
        hf__redis_release_lost(redis, ticket, HF__LOST_TAKEN);
    }
}

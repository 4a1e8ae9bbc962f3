/* SPDX-License-Identifier: MIT */
/*
 * native_condition.c - waiting for a condition of a lock, and signals.
 *
 * Who waits for a condition is parked: its record is in a list beside the line of
 * the lock, with the condition as its last line (lua/native_park.lua). A signal
 * moves the first of them to the end of the line and marks it as the bearer of a
 * wake-up; from there on it is granted like any other, by a push. Whatever takes
 * a bearer away but its own release passes the mark to the next one.
 *
 * Somebody who holds a lock by the quick way has not subscribed to anything, and
 * a push that nobody hears counts as death. So a park subscribes first.
 *
 * Failure: an answer that is lost is asked for again, by the same ticket. A
 * server that may not know the last changes (another run of it, another node)
 * may have lost a signal: whoever is parked gives its place up there, and is
 * reported lost. It then returns without a signal, which is allowed.
 */
#include "engines/redis/connection.h"
#include "engines/redis/errors.h"
#include "engines/redis/inspect.h"
#include "engines/redis/native.h"
#include "engines/redis/tickets.h"
#include "engines/redis/verbs.h"

#include <limits.h>

/* ---- parking ----------------------------------------------------------- */

/* It is certain what became of the park: the lock that it gave up is gone. */
static void forget_old(struct hf__redis *redis, struct hf__redis_ticket *mine)
{
    struct hf__ticket *old = mine->old;

    mine->old = NULL;
    if (old)
        hf__redis_tickets_forget(redis, old);
}

void hf__native_condition_parked(struct hf__redis *redis,
                                 struct hf__ticket *ticket)
{
    struct hf__redis_ticket *mine = hf__redis_ticket(redis, ticket);

    forget_old(redis, mine);
    hf__redis_ticket_to(mine, HF__REDIS_PARKED);
    hf__up_parked(&redis->base, ticket);
}

static void on_answer(struct hf__redis *redis,
                      const struct hf__redis_call *call,
                      struct hf__resp *reply);

static int send_script(struct hf__redis *redis, struct hf__ticket *ticket,
                       int script, hf_error *err)
{
    struct hf__redis_ticket *mine = hf__redis_ticket(redis, ticket);
    struct hf__redis_call call = {
        .done = on_answer, .ticket = ticket->id, .movable = true};
    struct hf__buf *out = &redis->stream.out;
    char old[HF__RECORD_TICKET_WIDTH];
    bool parks = script == HF__SCRIPT_NATIVE_PARK;
    size_t mark;
    int rc = hf__native_wait_hear(redis, mine, err);

    if (rc != 0)
        return rc;
    mark =
        hf__redis_connection_ticket_begin(redis, ticket, script, parks ? 2 : 1);
    hf__resp_arg(out, mine->record, mine->record_len);
    if (parks) {
        hf__redis_tickets_text(redis, mine->old->id, old);
        hf__resp_arg(out, old, sizeof(old));
    }
    return hf__redis_connection_end(redis, mark, &call, err);
}

/* An error. A park has changed nothing, or is cleared away; who cannot unpark
 * asks again. */
static void refused(struct hf__redis *redis, struct hf__ticket *ticket,
                    const struct hf__resp_value *value)
{
    hf_error err;

    if (hf__redis_ticket(redis, ticket)->state != HF__REDIS_UNPARKING) {
        hf__redis_release_refused(redis, ticket, value);
        return;
    }
    (void)hf__redis_errors_explain(redis, value, &err);
    hf__redis_release_doubtful(redis, ticket, &err);
}

static void answered(struct hf__redis *redis, struct hf__ticket *ticket,
                     const struct hf__redis_call *call, struct hf__resp *reply,
                     uint32_t count)
{
    struct hf__redis_ticket *mine = hf__redis_ticket(redis, ticket);
    struct hf__resp_value letter = hf__resp_next(reply);
    struct hf__resp_value number = {0};
    struct hf__resp_value woken = {0};

    if (count > 1)
        number = hf__resp_next(reply);
    if (count > 2)
        woken = hf__resp_next(reply);
    mine->confirmed_ns = call->sent_ns;
    if (hf__resp_is(&letter, "p")) {
        hf__redis_sync_parked(redis, ticket);
        return;
    }
    forget_old(redis, mine);
    if (hf__resp_is(&letter, "q"))
        hf__native_acquire_queued(redis, ticket, hf__resp_number(&number, -1),
                                  call->sent_ns);
    else if (hf__resp_is(&letter, "g"))
        hf__native_granted(
            redis, ticket, (uint64_t)hf__resp_number(&number, 0), call->sent_ns,
            hf__resp_number(&woken, 0) == 1 ? HF__NATIVE_WOKEN : 0u);
    else
        hf__redis_release_lost(redis, ticket, HF__LOST_TAKEN);
}

static void on_answer(struct hf__redis *redis,
                      const struct hf__redis_call *call, struct hf__resp *reply)
{
    struct hf__resp_value value;
    struct hf__ticket *ticket =
        hf__redis_release_asking(redis, call, reply, &value);
    hf_error err;
    int script;

    if (!ticket)
        return;
    script = hf__redis_ticket(redis, ticket)->state == HF__REDIS_UNPARKING
                 ? HF__SCRIPT_NATIVE_UNPARK
                 : HF__SCRIPT_NATIVE_PARK;
    if (hf__redis_connection_script_lost(redis, &value, script)) {
        if (send_script(redis, ticket, script, &err) != 0)
            hf__redis_release_doubtful(redis, ticket, &err);
    } else if (value.type != HF__RESP_LIST || value.count < 1) {
        refused(redis, ticket, &value);
    } else {
        answered(redis, ticket, call, reply, value.count);
    }
}

int hf__native_condition_park(struct hf__redis *redis,
                              struct hf__ticket *ticket, struct hf__ticket *old,
                              hf_error *err)
{
    struct hf__redis_ticket *mine = hf__redis_ticket(redis, ticket);
    struct hf__redis_ticket *held = hf__redis_ticket(redis, old);
    int rc = hf__redis_tickets_ask(redis, ticket, /* token= */ 0, err);

    if (rc != 0)
        return rc;
    mine->old = old;
    if (held->record)
        hf__redis_ticket_to(held, HF__REDIS_YIELDING);
    rc = send_script(redis, ticket, HF__SCRIPT_NATIVE_PARK, err);
    return rc == 0 ? 0 : hf__redis_tickets_not_asked(redis, ticket, err);
}

int hf__native_condition_unpark(struct hf__redis *redis,
                                struct hf__ticket *ticket, hf_error *err)
{
    struct hf__redis_ticket *mine = hf__redis_ticket(redis, ticket);
    int rc;

    if (mine->state == HF__REDIS_STALE) {
        hf__native_renew_give_up(redis, ticket);
        return 0;
    }
    rc = send_script(redis, ticket, HF__SCRIPT_NATIVE_UNPARK, err);
    if (rc == 0)
        hf__redis_ticket_to(mine, HF__REDIS_UNPARKING);
    return rc;
}

/* ---- signals ----------------------------------------------------------- */

static void on_signalled(struct hf__redis *redis,
                         const struct hf__redis_call *call,
                         struct hf__resp *reply)
{
    struct hf__query *query = call->query;
    struct hf__resp_value value = hf__resp_first(reply);

    if (hf__redis_connection_script_lost(redis, &value,
                                         HF__SCRIPT_NATIVE_SIGNAL) &&
        hf__native_condition_signal(&redis->base, query, /* err= */ NULL) == 0)
        return;
    if (value.type == HF__RESP_ERROR) {
        hf__redis_inspect_refused(redis, query, &value);
    } else if (value.type != HF__RESP_NUMBER || value.number > INT_MAX) {
        hf__redis_inspect_unknown(redis, query);
    } else if (value.number < 0) {
        hf__redis_inspect_text(redis, query, HF_ELOST, "not held any more");
    } else {
        query->woken = (uint32_t)value.number;
        hf__redis_sync_changed(redis, query);
    }
}

int hf__native_condition_signal(struct hf__engine *engine,
                                struct hf__query *query, hf_error *err)
{
    struct hf__redis *redis = (struct hf__redis *)engine;
    struct hf__redis_call call = {.done = on_signalled, .query = query};
    struct hf__buf *out = &redis->stream.out;
    char hold[HF__RECORD_TICKET_WIDTH];
    size_t mark;
    int rc = hf__redis_inspect_key(redis, query, &hf__redis_native, err);

    if (rc != 0)
        return rc;
    mark = hf__redis_connection_script_begin(redis, HF__SCRIPT_NATIVE_SIGNAL, 1,
                                             3);
    hf__redis_inspect_put_key(redis);
    hf__redis_tickets_text(redis, query->ticket, hold);
    hf__resp_arg(out, hold, sizeof(hold));
    hf__resp_arg_text(out, query->cond);
    hf__resp_arg_number(out, query->all ? INT_MAX : 1);
    return hf__redis_connection_end(redis, mark, &call, err);
}

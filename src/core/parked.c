/* SPDX-License-Identifier: MIT */
/*
 * parked.c - those who have given up the lock and wait on a condition.
 *
 * A wait has a ticket of its own, which parks in the step that gives up the old
 * ticket, the hold's. Both exist until it is certain which of them the engine
 * has: the new one ASKING or RESTING, the old one PARTING. The hold is WAITING
 * and has neither.
 *
 *     hold ── old HELD                                     ticket HELD ── hold
 *              └─▶ PARTING ─▶ GONE            signal, or       ▲
 *              park()                         time over        │
 *                  ticket ASKING ─▶ PARKED ───────────────▶ QUEUED
 *
 * TIME. The caller's time is over: unpark() puts the ticket in line. Whether it
 * was called before that is for the engine to say, with the grant (woken): the
 * outcome is 0 or HF_ETIMEOUT. An engine that does not answer to unpark() within
 * io_timeout ends the wait.
 *
 * DOUBT. A park() of unknown outcome is asked again, with the same ticket, until
 * the lease of the old one ends; then both are withdrawn. A parked ticket that
 * the engine has lost may have missed signals: an ordinary ticket asks for the
 * lock in its place, and the caller gets 0, as if it had been woken.
 *
 * CANCEL. The ticket is withdrawn, by which a wake-up that was on its way goes to
 * the next, and the old one, if that is still to be given up, is released.
 *
 * Failure: every way out finishes the request, once, and leaves the hold HELD,
 * LOST or RELEASED.
 *
 * With the monitor held.
 */
#include "core/parked.h"

#include "core/client.h"
#include "core/keeper.h"
#include "core/leaving.h"
#include "core/retry.h"

/* ---- the end of a wait ----------------------------------------------------- */

static void finish(struct hf_request *request, int rc)
{
    request->hold->wait = NULL;
    request->ticket = NULL;
    hf__request_finish(request, rc);
}

static void finish_failed(struct hf_request *request, int rc, const char *why)
{
    finish(request,
           hf__fail(&request->error, rc, "wait on a condition of '%s': %s",
                    request->hold->name, why));
}

/* The hold belongs to @ticket again, but is still WAITING. */
static void rejoin(hf_hold *hold, struct hf__ticket *ticket)
{
    hold->ticket = ticket;
    hf__list_append(&ticket->holds, &hold->link);
    hold->client->metrics.held++;
}

/* The engine has the new ticket, and not the old one any more. */
static void end_old(struct hf__ticket *ticket)
{
    struct hf__ticket *old = HF_STEAL(ticket->old);

    if (!old)
        return;
    hf__ticket_tell(old, HF_EUNKNOWN); /* a verification that was overtaken */
    hf__ticket_end(old);
}

/* The lock is not ours any more, and @ticket, the old one or the one that
 * stands for the wait, is what was lost. */
static void lose(struct hf_request *request, struct hf__ticket *ticket,
                 int reason, bool certain)
{
    ticket->wait = NULL;
    rejoin(request->hold, ticket);
    hf__ticket_lose(ticket, reason, certain);
}

/* The same, where it may not be certain which of the two the engine has: it is
 * to have neither. */
static void lose_wait(struct hf_request *request, int reason)
{
    struct hf__ticket *ticket = request->ticket;
    struct hf__ticket *old = HF_STEAL(ticket->old);

    if (old) {
        hf__list_remove(&ticket->link);
        hf__ticket_drop(ticket);
        ticket = old;
    }
    lose(request, ticket, reason, /* certain= */ false);
}

/* ---- beginning --------------------------------------------------------------- */

/* The lease of the old ticket has ended, and nobody knows whether it parked. */
static void old_fire(struct hf__timer *timer)
{
    struct hf__ticket *old = HF_CONTAINER_OF(timer, struct hf__ticket, timer);
    struct hf_request *request = old->wait;
    struct hf__gate *gate = old->gate;

    hf__gate_pin(gate);
    lose_wait(request, HF__LOST_EXPIRED);
    finish_failed(request, HF_ELOST, "the lease ended before it had begun");
    hf__gate_unpin(gate);
}

/* A ticket for @request that parks on @cond; NULL without memory. */
static struct hf__ticket *make_ticket(const struct hf__ticket *old,
                                      const char *cond)
{
    struct hf__ticket *ticket = hf__ticket_like(old);

    if (!ticket)
        return NULL;
    ticket->cond = hf__strdup(cond);
    if (!ticket->cond) {
        hf__ticket_free(ticket);
        return NULL;
    }
    return ticket;
}

/* @ticket stands for @request from now on. */
static void stand_for(struct hf__ticket *ticket, struct hf_request *request)
{
    hf_client *client = request->client;

    ticket->wait = request;
    ticket->granted_ns = client->now_ns; /* what a loss remembers as max_hold */
    ticket->until_ns =
        request->max_hold_ms == 0
            ? HF_NEVER
            : hf__instant_add(client->now_ns,
                              hf__ms_to_ns(request->max_hold_ms));
    request->ticket = ticket;
    hf__list_append(&ticket->gate->parked, &ticket->link);
}

static void part(struct hf__ticket *old, struct hf__ticket *ticket)
{
    hf_client *client = old->gate->client;

    hf__keeper_stop(old);
    hf__list_remove(&old->link);
    hf__ticket_move(old, HF__TICKET_PARTING);
    old->wait = ticket->wait;
    ticket->old = old;
    old->timer.fire = old_fire;
    if (old->deadline_ns != HF_NEVER)
        hf__monitor_timer(client, &old->timer, old->deadline_ns);
}

int hf__parked_begin(struct hf_request *request, const char *cond,
                     hf_error *err)
{
    hf_client *client = request->client;
    hf_hold *hold = request->hold;
    struct hf__ticket *old = hold->ticket;
    struct hf__gate *gate = old->gate;
    struct hf__ticket *ticket = make_ticket(old, cond);

    if (!ticket)
        return hf__fail(err, HF_ENOMEM, "out of memory");
    hf__callbacks_unlist(&hold->callback);
    hf__hold_part(hold, HF_WAITING);
    if (hf__hold_seen_lost(hold)) { /* an instant ago, by hf_check() */
        hf__ticket_free(ticket);
        lose(request, old, HF__LOST_EXPIRED, /* certain= */ false);
        return hf__hold_none(hold, err);
    }
    hf__gate_pin(gate);
    request->max_hold_ms = hf__keeper_max_hold(old);
    stand_for(ticket, request);
    hold->wait = request;
    part(old, ticket);
    hf__ticket_ask(ticket);
    if (gate->place && client->engine->ops->attend)
        client->engine->ops->attend(client->engine);
    hf__gate_unpin(gate);
    return 0;
}

/* ---- time, cancel, close ----------------------------------------------------- */

static void unpark(struct hf__ticket *ticket);

static void unpark_fire(struct hf__timer *timer)
{
    unpark(HF_CONTAINER_OF(timer, struct hf__ticket, timer));
}

void hf__parked_unknown(struct hf__ticket *ticket)
{
    hf_client *client = ticket->gate->client;

    if (!ticket->unparking)
        return;
    ticket->timer.fire = unpark_fire;
    hf__monitor_timer(client, &ticket->timer,
                      client->now_ns + hf__retry_pause_ns(&client->settings,
                                                          ticket->attempts++));
}

static void unpark(struct hf__ticket *ticket)
{
    hf_client *client = ticket->gate->client;

    hf__keeper_stop(ticket);
    ticket->unparking = true;
    if (!hf__client_is_up(client)) {
        hf__client_connect(client); /* which asks again */
        return;
    }
    ticket->sent_ns = client->now_ns;
    if (client->engine->ops->unpark(client->engine, ticket, /* err= */ NULL) !=
        0)
        hf__parked_unknown(ticket);
}

/* The engine has until io_timeout to put the ticket in line. */
static void time_is_over(struct hf__ticket *ticket)
{
    struct hf_request *request = ticket->wait;
    hf_client *client = request->client;

    hf__monitor_timer(
        client, &request->timer,
        hf__instant_add(client->now_ns,
                        hf__ms_to_ns(client->settings.io_timeout_ms)));
    unpark(ticket);
}

/* It does not answer. */
static void give_up(struct hf_request *request)
{
    lose_wait(request, HF__LOST_EXPIRED);
    finish_failed(request, HF_EUNAVAILABLE,
                  "the engine does not put it in line again");
}

/* The caller does not want the lock again. */
static void cancel(struct hf_request *request, int rc)
{
    struct hf__ticket *ticket = request->ticket;
    struct hf__ticket *old = HF_STEAL(ticket->old);

    ticket->wait = NULL;
    hf__list_remove(&ticket->link);
    hf__ticket_drop(ticket);
    if (old) {
        old->wait = NULL;
        hf__ticket_tell(old, HF_EUNKNOWN);
        hf__leaving_take(old, /* releasing= */ true);
    }
    hf__hold_move(request->hold, HF_RELEASED);
    finish_failed(request, rc, hf_strerror(rc));
}

void hf__parked_forget(struct hf_request *request, int rc)
{
    struct hf__ticket *ticket = request->ticket;
    struct hf__gate *gate = ticket->gate;

    hf__gate_pin(gate);
    if (rc != HF_ETIMEOUT) {
        cancel(request, rc);
    } else if (!request->overdue) {
        request->overdue = true;
        if (ticket->state == HF__TICKET_PARKED)
            time_is_over(ticket);
    } else if (ticket->unparking) {
        give_up(request);
    }
    hf__gate_unpin(gate);
}

/* ---- reports of the engine --------------------------------------------------- */

void hf__parked_parked(struct hf__ticket *ticket)
{
    struct hf__gate *gate = ticket->gate;

    hf__gate_pin(gate);
    end_old(ticket);
    ticket->parked = true;
    if (ticket->wait->overdue)
        time_is_over(ticket);
    else
        hf__keeper_beat(ticket);
    hf__gate_unpin(gate);
}

void hf__parked_queued(struct hf__ticket *ticket)
{
    hf_client *client = ticket->gate->client;

    hf__keeper_stop(ticket);
    end_old(ticket);
    ticket->parked = false;
    ticket->unparking = false;
    hf__timer_stop(&client->loop, &ticket->wait->timer);
}

/* An ordinary ticket asks in place of @ticket, and the caller will be told that
 * it was woken. @certain: the engine has nothing of @ticket. */
static void replace(struct hf__ticket *ticket, bool certain)
{
    struct hf_request *request = ticket->wait;
    struct hf__ticket *another = hf__ticket_like(ticket);

    if (!another) {
        lose(request, ticket, HF__LOST_EXPIRED, certain);
        finish_failed(request, HF_ENOMEM, "out of memory");
        return;
    }
    request->spurious = true;
    hf__timer_stop(&request->client->loop, &request->timer);
    stand_for(another, request);
    ticket->wait = NULL;
    hf__list_remove(&ticket->link);
    if (certain)
        hf__ticket_end(ticket);
    else
        hf__ticket_drop(ticket);
    hf__ticket_ask(another);
}

void hf__parked_granted(struct hf__ticket *ticket,
                        const struct hf__grant *grant)
{
    struct hf_request *request = ticket->wait;
    bool timed_out = request->overdue && !request->spurious && !grant->woken;

    end_old(ticket);
    ticket->parked = false;
    ticket->unparking = false;
    if (!hf__keeper_start(ticket, grant)) {
        /* The claim had ended before it was read. */
        replace(ticket, /* certain= */ false);
        return;
    }
    ticket->wait = NULL;
    hf__ticket_move(ticket, HF__TICKET_HELD);
    hf__list_remove(&ticket->link);
    hf__list_append(&ticket->gate->seats, &ticket->link);
    hf__keeper_cap(ticket, request->max_hold_ms, ticket->flags);
    request->client->metrics.held++;
    hf__hold_bind(request->hold, ticket);
    if (timed_out)
        finish_failed(request, HF_ETIMEOUT, "nobody signalled in time");
    else
        finish(request, 0);
}

/* Nothing was parked, and the old ticket is not ours any more. */
static void lost_before(struct hf__ticket *ticket, int reason)
{
    struct hf_request *request = ticket->wait;
    struct hf__ticket *old = HF_STEAL(ticket->old);

    hf__list_remove(&ticket->link);
    hf__ticket_end(ticket);
    lose(request, old, reason, /* certain= */ true);
    finish_failed(request, HF_ELOST, "it was lost before it could wait");
}

void hf__parked_lost(struct hf__ticket *ticket, int reason)
{
    struct hf__gate *gate = ticket->gate;

    hf__gate_pin(gate);
    if (ticket->old)
        lost_before(ticket, reason);
    else
        replace(ticket, /* certain= */ true);
    hf__gate_unpin(gate);
}

/* The engine has refused to park: the hold is what it was. */
static void keep_old(struct hf__ticket *ticket)
{
    struct hf_request *request = ticket->wait;
    struct hf__ticket *old = HF_STEAL(ticket->old);

    hf__list_remove(&ticket->link);
    hf__ticket_end(ticket);
    old->wait = NULL;
    hf__ticket_move(old, HF__TICKET_HELD);
    hf__list_append(&old->gate->seats, &old->link);
    request->client->metrics.held++;
    hf__hold_bind(request->hold, old);
    hf__keeper_resume(old);
}

void hf__parked_failed(struct hf__ticket *ticket, const hf_error *err)
{
    struct hf_request *request = ticket->wait;

    if (ticket->old) {
        keep_old(ticket);
    } else {
        lose(request, ticket, HF__LOST_TAKEN, !ticket->unsure);
    }
    finish_failed(request, err->code, err->text);
}

/* ---- all of a gate ------------------------------------------------------------ */

static struct hf__ticket *first_of(const struct hf__list *tickets)
{
    struct hf__list *link = hf__list_first(tickets);

    return link ? HF_CONTAINER_OF(link, struct hf__ticket, link) : NULL;
}

static void ask_again(struct hf__ticket *ticket)
{
    if (ticket->state == HF__TICKET_RESTING) {
        hf__ticket_ask(ticket);
    } else if (ticket->unparking) {
        unpark(ticket);
    } else if (ticket->cond) {
        hf__keeper_hurry(ticket);
    } else if (ticket->state == HF__TICKET_QUEUED) {
        hf__keeper_stop(ticket);
        hf__ticket_move(ticket, HF__TICKET_RESTING);
        hf__ticket_ask(ticket);
    }
}

void hf__parked_ask_again(struct hf__gate *gate)
{
    struct hf__ticket *ticket;
    struct hf__list all;

    /* They go back to the list as they are asked about, and may leave it. */
    hf__list_init(&all);
    while ((ticket = first_of(&gate->parked)) != NULL) {
        hf__list_remove(&ticket->link);
        hf__list_append(&all, &ticket->link);
    }
    while ((ticket = first_of(&all)) != NULL) {
        hf__list_remove(&ticket->link);
        hf__list_append(&gate->parked, &ticket->link);
        ask_again(ticket);
    }
}

void hf__parked_fail_all(struct hf__gate *gate, const hf_error *err)
{
    struct hf__ticket *ticket;

    while ((ticket = first_of(&gate->parked)) != NULL) {
        struct hf_request *request = ticket->wait;

        if (err->code == HF_ECLOSED) {
            cancel(request, err->code);
            continue;
        }
        lose_wait(request, HF__LOST_SESSION);
        finish_failed(request, err->code, err->text);
    }
}

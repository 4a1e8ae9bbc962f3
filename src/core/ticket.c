/* SPDX-License-Identifier: MIT */
/*
 * ticket.c - the life of one request at the engine.
 *
 * This file turns reports of the engine into moves of a ticket, and tells the
 * gate, the keeper or leaving.c. The diagram is in ticket.h; the moves that
 * are allowed are the table below, and every move is checked against it.
 *
 * The happy path: ask() → ASKING → granted() → HELD. In line: ASKING → QUEUED
 * → granted(), pushed by the engine. Engines that cannot push say busy(), and
 * the ticket is RESTING until it asks again. An unknown outcome is asked again
 * too: acquire is idempotent for one ticket, so the answer is the one that was
 * lost. If the caller does not want it any more, leaving.c withdraws it.
 *
 * A grant whose claim has ended before it was read (we were stopped, the
 * answer was slow) is withdrawn, and another ticket asks.
 *
 * Engines may report from inside the call that asks; after that call the
 * caller must not touch the ticket without checking.
 *
 * With the monitor held.
 */
#include "core/ticket.h"

#include <stdio.h>

#include "core/client.h"
#include "core/detector.h"
#include "core/keeper.h"
#include "core/leaving.h"
#include "core/parked.h"
#include "core/query.h"
#include "core/retry.h"
#include "core/watch.h"

#define MAY(state) (1u << HF__TICKET_##state)

static const uint16_t moves[] = {
    [HF__TICKET_NEW] = MAY(ASKING) | MAY(GONE),
    [HF__TICKET_ASKING] = MAY(QUEUED) | MAY(RESTING) | MAY(PARKED) | MAY(HELD) |
                          MAY(LEAVING) | MAY(GONE),
    [HF__TICKET_RESTING] = MAY(ASKING) | MAY(HELD) | MAY(LEAVING) | MAY(GONE),
    [HF__TICKET_QUEUED] = MAY(RESTING) | MAY(HELD) | MAY(LEAVING) | MAY(GONE),
    [HF__TICKET_PARKED] = MAY(QUEUED) | MAY(HELD) | MAY(LEAVING) | MAY(GONE),
    [HF__TICKET_HELD] = MAY(PARTING) | MAY(LEAVING) | MAY(GONE),
    [HF__TICKET_PARTING] = MAY(HELD) | MAY(LEAVING) | MAY(GONE),
    [HF__TICKET_LEAVING] = MAY(GONE),
    [HF__TICKET_GONE] = 0,
};

void hf__ticket_move(struct hf__ticket *ticket, int state)
{
    /* What somebody must drive: in line, and on the way out. */
    static const uint16_t asked = MAY(ASKING) | MAY(QUEUED) | MAY(PARKED);
    hf_client *client = ticket->gate->client;
    int before = ticket->state;

    assert(moves[before] & (1u << state));
    client->asked += (asked >> state & 1u) - (asked >> before & 1u);
    client->owed += (uint32_t)(state == HF__TICKET_LEAVING) -
                    (uint32_t)(before == HF__TICKET_LEAVING);
    ticket->state = (uint8_t)state;
}

/* ---- making ------------------------------------------------------------ */

static struct hf__ticket *take_spare(hf_client *client)
{
    struct hf__list *link = hf__list_first(&client->spare_tickets);

    if (!link)
        return hf__malloc(client->ticket_size);
    hf__list_remove(link);
    client->spare_tickets_n--;
    return HF_CONTAINER_OF(link, struct hf__ticket, link);
}

/* "thread 17": also of an owner that is none, the number is what tells. */
static void name_thread(uint64_t serial, char text[24])
{
    static const char thread[] = "thread ";
    char room[HF_DIGITS];
    const char *digits = hf__text_number(serial % 1000000000000, room);

    memcpy(text, thread, sizeof(thread) - 1);
    memcpy(text + sizeof(thread) - 1, digits,
           (size_t)(room + HF_DIGITS - digits));
}

int hf__ticket_set_owner(struct hf__ticket *ticket,
                         const struct hf_request *request)
{
    size_t owner_len = request->owner ? strlen(request->owner) + 1 : 0;
    size_t note_len = request->note[0] ? strlen(request->note) + 1 : 0;
    size_t apart = owner_len > sizeof(ticket->owner_text) ? owner_len : 0;
    char *texts = NULL;

    if (apart > 0 || note_len > 0) {
        texts = hf__malloc(apart + note_len);
        if (!texts)
            return HF_ENOMEM;
    }
    if (!request->owner)
        name_thread(request->owner_serial, ticket->owner_text);
    else
        memcpy(apart ? texts : ticket->owner_text, request->owner, owner_len);
    if (note_len > 0)
        memcpy(texts + apart, request->note, note_len);
    hf__free(ticket->texts);
    ticket->texts = texts;
    ticket->owner = apart ? texts : ticket->owner_text;
    ticket->note = note_len > 0 ? texts + apart : "";
    ticket->owner_serial = request->owner_serial;
    return 0;
}

static inline __attribute__((always_inline)) uint32_t tokens_wanted(
    const struct hf__gate *gate)
{
    hf_client *client = gate->client;
    bool alone = hf__list_empty(&gate->seats) &&
                 gate->waiting.next == gate->waiting.prev;

    if (alone || (client->engine->ops->flags & HF__RESERVES_TOKENS) == 0)
        return 1;
    return hf__gate_most_passes(client) + 1;
}

/* Inlined in both callers: one of them is on the way of every acquire. */
static inline __attribute__((always_inline)) struct hf__ticket *make(
    struct hf__gate *gate, const struct hf_request *request)
{
    hf_client *client = gate->client;
    struct hf__ticket *ticket = take_spare(client);

    if (!ticket)
        return NULL;
    memset(ticket, 0, client->ticket_size);
    ticket->gate = gate;
    hf__list_init(&ticket->link);
    hf__list_init(&ticket->holds);
    hf__list_init(&ticket->waiters);
    if (hf__ticket_set_owner(ticket, request) != 0 ||
        hf__monitor_timer_user(client) != 0) {
        hf__free(ticket->texts);
        hf__free(ticket);
        return NULL;
    }
    ticket->id = ++client->next_ticket;
    ticket->name = gate->name;
    ticket->name_len = gate->name_len;
    ticket->mode = request->mode;
    ticket->slots = request->slots;
    ticket->ttl_ms = request->ttl_ms;
    ticket->nowait = request->nowait;
    ticket->reserve = tokens_wanted(gate);
    return ticket;
}

struct hf__ticket *hf__ticket_new(struct hf__gate *gate,
                                  const struct hf_request *request)
{
    return make(gate, request);
}

struct hf__ticket *hf__ticket_like(const struct hf__ticket *ticket)
{
    struct hf_request request;
    struct hf__ticket *like;

    memset(&request, 0, offsetof(struct hf_request, started));
    request.mode = ticket->mode;
    request.slots = ticket->slots;
    request.ttl_ms = ticket->ttl_ms;
    request.owner = ticket->owner;
    request.owner_serial = ticket->owner_serial;
    request.note = ticket->note;
    like = make(ticket->gate, &request);
    if (!like)
        return NULL;
    like->reserve = 1;
    like->flags = ticket->flags;
    return like;
}

void hf__ticket_free(struct hf__ticket *ticket)
{
    hf_client *client = ticket->gate->client;

    assert(hf__list_empty(&ticket->holds));
    hf__timer_stop(&client->loop, &ticket->timer);
    hf__monitor_timer_user_gone(client);
    hf__free(ticket->texts);
    hf__free(ticket->reason);
    if (HF_UNLIKELY(ticket->cond != NULL))
        hf__free((char *)(uintptr_t)ticket->cond);
    if (client->spare_tickets_n >= HF__CLIENT_SPARES) {
        hf__free(ticket);
        return;
    }
    hf__list_init(&ticket->link);
    hf__list_append(&client->spare_tickets, &ticket->link);
    client->spare_tickets_n++;
}

void hf__ticket_reason(struct hf__ticket *ticket, const char *text, bool names)
{
    ticket->reason_names = names;
    if (ticket->reason && strcmp(ticket->reason, text) == 0)
        return;
    hf__free(ticket->reason);
    ticket->reason = hf__strdup(text);
}

bool hf__ticket_suits(const struct hf__ticket *ticket,
                      const struct hf_request *request)
{
    return ticket->mode == request->mode && ticket->slots == request->slots &&
           ticket->ttl_ms == request->ttl_ms &&
           ticket->nowait == request->nowait &&
           strcmp(ticket->note, request->note) == 0;
}

bool hf__ticket_owned_by(const struct hf__ticket *ticket,
                         const struct hf_request *request)
{
    if (request->owner_serial != 0)
        return ticket->owner_serial == request->owner_serial;
    return ticket->owner_serial == 0 &&
           strcmp(ticket->owner, request->owner) == 0;
}

/* ---- asking ------------------------------------------------------------ */

static void rest_fire(struct hf__timer *timer)
{
    hf__ticket_ask(HF_CONTAINER_OF(timer, struct hf__ticket, timer));
}

/* Ask again at @again_ns, or by the policy (0). */
static void rest(struct hf__ticket *ticket, int64_t again_ns)
{
    hf_client *client = ticket->gate->client;

    hf__ticket_move(ticket, HF__TICKET_RESTING);
    if (!hf__client_is_up(client)) {
        hf__client_connect(client); /* which asks for all that rest */
        return;
    }
    if (again_ns == 0)
        again_ns = client->now_ns +
                   hf__retry_pause_ns(&client->settings, ticket->attempts++);
    ticket->timer.fire = rest_fire;
    hf__monitor_timer(client, &ticket->timer, again_ns);
}

static void ask_failed(struct hf__ticket *ticket, const hf_error *err);

void hf__ticket_ask(struct hf__ticket *ticket)
{
    hf_client *client = ticket->gate->client;
    hf_error err;
    int rc;

    hf__timer_stop(&client->loop, &ticket->timer);
    hf__ticket_move(ticket, HF__TICKET_ASKING);
    if (HF_UNLIKELY(!hf__client_is_up(client))) {
        rest(ticket, 0);
        return;
    }
    ticket->asked_ns = client->now_ns;
    ticket->sent_ns = client->now_ns;
    if (HF_UNLIKELY(ticket->old != NULL))
        rc = client->engine->ops->park(client->engine, ticket, ticket->old,
                                       &err);
    else
        rc = client->engine->ops->acquire(client->engine, ticket, &err);
    if (HF_UNLIKELY(rc != 0))
        ask_failed(ticket, &err);
}

static bool worth_another_try(const struct hf__ticket *ticket, int code)
{
    return code == HF_EUNAVAILABLE && !ticket->nowait;
}

void hf__ticket_end(struct hf__ticket *ticket)
{
    hf__keeper_stop(ticket);
    hf__ticket_move(ticket, HF__TICKET_GONE);
    hf__ticket_free(ticket);
}

void hf__ticket_drop(struct hf__ticket *ticket)
{
    bool resting = ticket->state == HF__TICKET_RESTING;

    if (resting && !ticket->unsure && !ticket->in_line)
        hf__ticket_end(ticket); /* the engine knows nothing of it */
    else
        hf__leaving_take(ticket, /* releasing= */ false);
}

/* The engine has answered: the gate's place is none any more. */
static void retire(struct hf__ticket *ticket)
{
    ticket->gate->place = NULL;
    if (ticket->unsure || ticket->in_line)
        hf__leaving_take(ticket, /* releasing= */ false);
    else
        hf__ticket_end(ticket);
}

/* Did a park that was refused follow one of unknown outcome? Then the engine
 * may have parked the ticket at that time. */
static bool still_unsure(const struct hf__ticket *ticket)
{
    return ticket->old && ticket->unsure;
}

static void ask_failed(struct hf__ticket *ticket, const hf_error *err)
{
    struct hf__gate *gate = ticket->gate;

    if (ticket->old ? still_unsure(ticket)
                    : worth_another_try(ticket, err->code)) {
        hf__ticket_reason(ticket, err->text, /* names= */ false);
        rest(ticket, 0);
        return;
    }
    hf__gate_pin(gate);
    if (ticket->wait) {
        hf__parked_failed(ticket, err);
    } else {
        retire(ticket);
        hf__gate_failed(gate, err);
    }
    hf__gate_unpin(gate);
}

/* ---- the end ----------------------------------------------------------- */

void hf__ticket_tell(struct hf__ticket *ticket, int rc)
{
    HF_LIST_EACH(&ticket->waiters, link) {
        hf__waiter_done(ticket->gate->client,
                        HF_CONTAINER_OF(link, struct hf__waiter, watch), rc);
    }
}

void hf__ticket_lose(struct hf__ticket *ticket, int reason, bool certain)
{
    struct hf__gate *gate = ticket->gate;
    hf_client *client = gate->client;

    hf__gate_pin(gate);
    hf__metrics_lost(&client->metrics, reason,
                     client->now_ns - ticket->granted_ns);
    hf__monitor_log(client, HF_LOG_WARNING, "lost '%s' (token %llu): %s",
                    gate->name, (unsigned long long)ticket->token,
                    hf__metrics_lost_word(reason));
    HF_LIST_EACH(&ticket->holds, link) {
        hf__hold_part(HF_CONTAINER_OF(link, hf_hold, link), HF_LOST);
    }
    hf__ticket_tell(ticket, HF_ELOST);
    hf__list_remove(&ticket->link);
    if (certain)
        hf__ticket_end(ticket);
    else
        hf__leaving_take_lost(ticket);
    hf__gate_unpin(gate);
}

/* ---- reports of the engine ---------------------------------------------- */

static void on_granted(void *owner, struct hf__ticket *ticket,
                       const struct hf__grant *grant)
{
    struct hf__gate *gate = ticket->gate;

    (void)owner;
    if (ticket->state >= HF__TICKET_HELD)
        return; /* pushed as well as answered, or not wanted any more */
    ticket->token = grant->token;
    if (HF__PLANTED("token_of_a_coarse_clock"))
        ticket->token &= ~UINT64_C(0xfff);
    ticket->token_end = grant->token + grant->tokens;
    ticket->attempts = 0;
    ticket->granted_ns = gate->client->now_ns;
    hf__gate_pin(gate);
    if (HF_UNLIKELY(ticket->wait != NULL)) {
        hf__parked_granted(ticket, grant);
    } else if (HF_UNLIKELY(!hf__keeper_start(ticket, grant))) {
        gate->place = NULL;
        hf__leaving_take(ticket, /* releasing= */ false);
    } else {
        hf__ticket_move(ticket, HF__TICKET_HELD);
        hf__gate_granted(ticket);
    }
    hf__gate_unpin(gate);
}

static void on_queued(void *owner, struct hf__ticket *ticket)
{
    (void)owner;
    if (ticket->state != HF__TICKET_ASKING &&
        ticket->state != HF__TICKET_PARKED)
        return; /* the push was quicker */
    ticket->answered = true;
    ticket->unsure = false;
    ticket->in_line = false;
    ticket->attempts = 0;
    ticket->confirmed_ns = ticket->sent_ns;
    if (HF_UNLIKELY(ticket->wait != NULL))
        hf__parked_queued(ticket);
    hf__ticket_move(ticket, HF__TICKET_QUEUED);
    hf__detector_expect(ticket->gate->client);
    hf__keeper_beat(ticket);
}

static void on_parked(void *owner, struct hf__ticket *ticket)
{
    (void)owner;
    if (ticket->state != HF__TICKET_ASKING || !ticket->old)
        return; /* a signal, and the push, were quicker */
    ticket->answered = true;
    ticket->unsure = false;
    ticket->in_line = false;
    ticket->attempts = 0;
    ticket->confirmed_ns = ticket->sent_ns;
    hf__ticket_move(ticket, HF__TICKET_PARKED);
    hf__parked_parked(ticket);
}

/* When to poll again: soon, if it has just gone from one holder to another. */
static int64_t poll_ns(struct hf__ticket *ticket)
{
    hf_client *client = ticket->gate->client;
    int64_t taken_ns = client->now_ns - ticket->rival_ns;

    if (ticket->rival == 0)
        taken_ns = -1;
    else if (taken_ns < 0)
        taken_ns = 0; /* now_ns was read before the answer */
    return client->now_ns +
           hf__retry_poll_ns(&client->settings, ticket->attempts++, taken_ns);
}

static void on_busy(void *owner, struct hf__ticket *ticket, int64_t again_ns,
                    const char *holder)
{
    struct hf__gate *gate = ticket->gate;

    (void)owner;
    if (ticket->state != HF__TICKET_ASKING)
        return;
    ticket->answered = true;
    ticket->unsure = false;
    ticket->in_line = false;
    if (!ticket->nowait) {
        if (holder)
            hf__ticket_reason(ticket, holder, /* names= */ true);
        rest(ticket, again_ns == 0 ? poll_ns(ticket) : again_ns);
        return;
    }
    hf__gate_pin(gate);
    retire(ticket);
    hf__gate_busy(gate, holder);
    hf__gate_unpin(gate);
}

static void on_failed(void *owner, struct hf__ticket *ticket,
                      const hf_error *err)
{
    (void)owner;
    if (ticket->state != HF__TICKET_ASKING)
        return;
    ticket->unsure = still_unsure(ticket);
    ticket->in_line = false;
    ask_failed(ticket, err);
}

static void on_unknown(void *owner, struct hf__ticket *ticket,
                       const hf_error *err)
{
    (void)owner;
    (void)err;
    if (ticket->state == HF__TICKET_ASKING) {
        ticket->unsure = !HF__PLANTED("lost_answer_means_no");
        rest(ticket, 0);
    } else if (ticket->state == HF__TICKET_LEAVING) {
        hf__leaving_unknown(ticket);
    } else if (ticket->state == HF__TICKET_PARKED) {
        hf__parked_unknown(ticket);
    } else {
        hf__ticket_tell(ticket, HF_EUNKNOWN);
    }
}

static void tell_renewed(struct hf__ticket *ticket)
{
    HF_LIST_EACH(&ticket->waiters, link) {
        struct hf__waiter *waiter =
            HF_CONTAINER_OF(link, struct hf__waiter, watch);

        if (!waiter->for_shared || ticket->mode == HF_SHARED)
            hf__waiter_done(ticket->gate->client, waiter, 0);
    }
}

static void on_renewed(void *owner, struct hf__ticket *ticket,
                       const struct hf__grant *grant)
{
    (void)owner;
    if (ticket->state == HF__TICKET_LEAVING)
        return;
    ticket->attempts = 0;
    /* First, so that a renewal that came too late does not count as one. */
    if ((ticket->state == HF__TICKET_HELD ||
         ticket->state == HF__TICKET_PARTING) &&
        ticket->gate->client->now_ns < ticket->deadline_ns)
        tell_renewed(ticket);
    hf__keeper_renewed(ticket, grant);
}

/* Ask for the place that was lost at once; by the retry policy if the last one
 * was lost as soon, or an engine that takes each place back would be asked
 * without a pause. */
static void ask_for_place(struct hf__ticket *ticket)
{
    const hf_client *client = ticket->gate->client;
    int64_t again_ns = client->now_ns;

    if (ticket->places_lost > 0) {
        int64_t pause_ns =
            hf__retry_pause_ns(&client->settings, ticket->places_lost - 1);

        if (client->now_ns - ticket->asked_ns >= pause_ns)
            ticket->places_lost = 0;
        else
            again_ns = ticket->asked_ns + pause_ns;
    }
    ticket->places_lost++;
    rest(ticket, again_ns);
}

static void on_lost(void *owner, struct hf__ticket *ticket, int reason)
{
    hf_client *client = ticket->gate->client;

    (void)owner;
    if (ticket->state == HF__TICKET_HELD) {
        if (ticket->renewing)
            hf__metrics_renewal_failed(&client->metrics, HF__RENEWAL_LOST);
        hf__ticket_lose(ticket, reason, /* certain= */ true);
    } else if (ticket->cond && ticket->state < HF__TICKET_HELD) {
        hf__parked_lost(ticket, reason);
    } else if (ticket->state == HF__TICKET_QUEUED ||
               (ticket->state == HF__TICKET_ASKING &&
                !HF__PLANTED("place_lost_while_asking"))) {
        hf__keeper_stop(ticket);
        ask_for_place(ticket);
    }
}

static void on_left(void *owner, struct hf__ticket *ticket, int rc)
{
    (void)owner;
    assert(ticket->state == HF__TICKET_LEAVING);
    hf__leaving_confirmed(ticket, rc);
}

static void on_answer(void *owner, struct hf__query *query, int rc,
                      const hf_error *err)
{
    hf__query_answered(owner, query, rc, err);
}

static void on_connected(void *owner)
{
    hf__client_connected(owner);
}

static void on_down(void *owner, const hf_error *err)
{
    hf__client_down(owner, err);
}

static void on_changed(void *owner, const char *name)
{
    hf__watch_hint(owner, name);
}

const struct hf__engine_up hf__ticket_reports = HF__ENGINE_UP(on_);

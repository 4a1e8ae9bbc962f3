/* SPDX-License-Identifier: MIT */
/*
 * gate.c - one name inside this process.
 *
 * Requests of callers wait here, first come first served. At the engine stands
 * at most one ticket for all of them, the gate's place in line: so a hundred
 * waiting threads are one waiter to the others, and a release wakes one. A
 * granted place becomes a seat; the request in front gets it and the next one
 * stands behind a new place.
 *
 *      callers ──▶ waiting: r3 r2 r1 ──▶ place ──▶ │ engine │ ──▶ seats
 *
 * The place belongs to the gate, not to a request. When the request in front
 * gives up, the next one inherits the place, if it wants the same; otherwise
 * it is withdrawn.
 *
 * LOCAL HAND-OVER. A released exclusive seat may be passed straight to the
 * request in front, without the engine: at most local_handover times or 10 ms
 * in a row, so that other processes are not starved, and not while the engine is
 * down: it may have granted the lock to another client. Every pass has a larger
 * token: the engine writes it into the seat's record (pass), or granted a range
 * of them with the seat. The place that stood
 * for the receiver now stands for the next one; with nobody left it stays in
 * line for a moment, because the caller that released often asks again.
 *
 * TOGETHER. Where a release and an acquire that leave together cost one trip
 * (HF__JOINS_CALLS), the next request asks when the seat is released, or a
 * millisecond after it was granted. A lock that is held briefly then needs one
 * trip for each holder.
 *
 * RE-ENTRY. An owner that has a seat gets another hold on it, at once, in the
 * same mode or shared inside exclusive. Exclusive inside shared would wait for
 * itself: HF_EDEADLK.
 *
 * Failure: a gate cannot fail; a request can, and is told. Every path that
 * finishes a request leaves its place to the next request or to leaving.c.
 *
 * With the monitor held.
 */
#include "core/gate.h"

#include <inttypes.h>
#include <stdio.h>

#include "config/name.h"
#include "core/client.h"
#include "core/keeper.h"
#include "core/leaving.h"
#include "core/parked.h"

#define IN_A_ROW_NS (10 * HF_MS)
#define STANDARD_PASSES 16u
/* A lock that was granted so recently is likely to be released soon. */
#define BRIEF_NS HF_MS
#define FIRST_TABLE 64u

/* ---- the table of gates ------------------------------------------------- */

int hf__gate_init(hf_client *client)
{
    client->gates = hf__calloc(FIRST_TABLE, sizeof(struct hf__gate *));
    if (!client->gates)
        return HF_ENOMEM;
    client->gates_size = FIRST_TABLE;
    return 0;
}

static void grow(hf_client *client)
{
    uint32_t size = client->gates_size * 2;
    struct hf__gate **gates = hf__calloc(size, sizeof(struct hf__gate *));

    if (!gates)
        return; /* longer chains, nothing worse */
    for (uint32_t i = 0; i < client->gates_size; i++) {
        while (client->gates[i]) {
            struct hf__gate *gate = client->gates[i];

            client->gates[i] = gate->next;
            gate->next = gates[gate->hash & (size - 1)];
            gates[gate->hash & (size - 1)] = gate;
        }
    }
    hf__free(client->gates);
    client->gates = gates;
    client->gates_size = size;
}

static void idle_fire(struct hf__timer *timer);

static struct hf__gate *gate_new(hf_client *client, const char *name,
                                 size_t name_len, uint64_t hash)
{
    struct hf__gate *gate = hf__calloc(1, sizeof(*gate));

    if (!gate)
        return NULL;
    gate->name =
        name_len < HF__SMALL_NAME ? gate->small_name : hf__malloc(name_len + 1);
    if (!gate->name || hf__monitor_timer_user(client) != 0) {
        if (gate->name != gate->small_name)
            hf__free(gate->name);
        hf__free(gate);
        return NULL;
    }
    memcpy(gate->name, name, name_len);
    gate->name[name_len] = '\0';
    gate->name_len = (uint32_t)name_len;
    gate->client = client;
    gate->hash = hash;
    hf__list_init(&gate->seats);
    hf__list_init(&gate->parked);
    hf__list_init(&gate->waiting);
    gate->timer.fire = idle_fire;
    return gate;
}

static void gate_free(struct hf__gate *gate)
{
    hf_client *client = gate->client;
    struct hf__gate **at =
        &client->gates[gate->hash & (client->gates_size - 1)];

    while (*at != gate)
        at = &(*at)->next;
    *at = gate->next;
    client->gates_count--;
    hf__timer_stop(&client->loop, &gate->timer);
    hf__monitor_timer_user_gone(client);
    if (gate->name != gate->small_name)
        hf__free(gate->name);
    hf__free(gate);
}

/* Nobody needs the gate. The last such one stays, because a program that locks
 * one name over and over would make it anew each time. */
static void gate_rest(struct hf__gate *gate)
{
    hf_client *client = gate->client;
    struct hf__gate *before = client->idle_gate;

    if (client->walking) {
        gate_free(gate);
        return;
    }
    client->idle_gate = gate;
    if (before && before != gate)
        gate_free(before);
}

static struct hf__gate *find_or_make(hf_client *client, const char *name,
                                     size_t name_len)
{
    uint64_t hash = hf__name_hash(name, name_len, client->gate_key);
    struct hf__gate *gate = client->gates[hash & (client->gates_size - 1)];

    for (; gate; gate = gate->next) {
        if (gate->hash == hash && gate->name_len == name_len &&
            memcmp(gate->name, name, name_len) == 0) {
            if (client->idle_gate == gate)
                client->idle_gate = NULL;
            return gate;
        }
    }
    gate = gate_new(client, name, name_len, hash);
    if (!gate)
        return NULL;
    if (client->gates_count >= client->gates_size)
        grow(client);
    gate->next = client->gates[hash & (client->gates_size - 1)];
    client->gates[hash & (client->gates_size - 1)] = gate;
    client->gates_count++;
    return gate;
}

void hf__gate_each(hf_client *client, void (*each)(struct hf__gate *))
{
    /* @each may end the gate it is called for, and no other one. */
    if (client->idle_gate)
        gate_free(HF_STEAL(client->idle_gate));
    client->walking = true;
    for (uint32_t i = 0; i < client->gates_size; i++) {
        struct hf__gate *gate = client->gates[i];

        while (gate) {
            struct hf__gate *next = gate->next;

            each(gate);
            gate = next;
        }
    }
    client->walking = false;
}

void hf__gate_release_all(hf_client *client)
{
    for (uint32_t i = 0; i < client->gates_size; i++) {
        while (client->gates[i])
            gate_free(client->gates[i]);
    }
    hf__free(client->gates);
    client->gates = NULL;
    client->gates_size = 0;
    client->idle_gate = NULL;
}

/* ---- requests ----------------------------------------------------------- */

static struct hf_request *first_waiting(const struct hf__gate *gate)
{
    struct hf__list *link = hf__list_first(&gate->waiting);

    return link ? HF_CONTAINER_OF(link, struct hf_request, link) : NULL;
}

static void finish(struct hf_request *request, int rc)
{
    hf_client *client = request->client;

    if (!hf__list_empty(&request->link)) {
        hf__list_remove(&request->link);
        client->metrics.waiting--;
    }
    if (rc != 0) {
        hf__hold_free(request->hold);
        request->hold = NULL;
    }
    hf__request_finish(request, rc);
}

static void finish_held(struct hf_request *request, struct hf__ticket *ticket)
{
    hf_client *client = request->client;

    hf__hold_bind(request->hold, ticket);
    client->metrics.held++;
    finish(request, 0);
}

static void finish_failed(struct hf_request *request, const hf_error *err)
{
    (void)hf__fail_pass(request->err, err);
    hf__metrics_acquired(&request->client->metrics, err->code, 0);
    finish(request, err->code);
}

static void granted(struct hf_request *request, struct hf__ticket *ticket)
{
    hf_client *client = request->client;

    hf__metrics_acquired(&client->metrics, 0,
                         client->now_ns - request->asked_ns);
    hf__keeper_cap(ticket, request->max_hold_ms, request->flags);
    finish_held(request, ticket);
}

/* ---- re-entry ----------------------------------------------------------- */

static struct hf__ticket *own_seat(const struct hf__gate *gate,
                                   const struct hf_request *request)
{
    HF_LIST_EACH(&gate->seats, link) {
        struct hf__ticket *seat =
            HF_CONTAINER_OF(link, struct hf__ticket, link);

        if (hf__ticket_owned_by(seat, request) &&
            gate->client->now_ns < seat->deadline_ns)
            return seat;
    }
    return NULL;
}

static void reenter(struct hf__ticket *seat, struct hf_request *request)
{
    int mode = seat->downgrading ? HF_SHARED : seat->mode;
    bool fits = mode == request->mode ||
                (mode == HF_EXCLUSIVE && request->mode == HF_SHARED);
    hf_error err;

    if (fits && (request->flags & HF_NON_REENTRANT) == 0) {
        hf__metrics_reentered(&request->client->metrics);
        finish_held(request, seat);
        return;
    }
    (void)hf__fail(&err, HF_EDEADLK,
                   fits ? "this owner holds it already, and asked not to "
                          "re-enter"
                        : "this owner holds it in another mode, and would wait "
                          "for itself: release first");
    finish_failed(request, &err);
}

/* ---- the place in line -------------------------------------------------- */

static void retire_place(struct hf__gate *gate)
{
    struct hf__ticket *place = gate->place;

    gate->place = NULL;
    hf__timer_stop(&gate->client->loop, &gate->timer);
    if (place)
        hf__ticket_drop(place);
}

static void idle_fire(struct hf__timer *timer)
{
    struct hf__gate *gate = HF_CONTAINER_OF(timer, struct hf__gate, timer);

    hf__gate_pin(gate);
    if (hf__list_empty(&gate->waiting))
        retire_place(gate);
    hf__gate_unpin(gate);
}

static void stand_in_line(struct hf__gate *gate, struct hf_request *request)
{
    struct hf__ticket *ticket = hf__ticket_new(gate, request);
    hf_error err;

    if (!ticket) {
        (void)hf__fail(&err, HF_ENOMEM, "out of memory");
        finish_failed(request, &err);
        return;
    }
    gate->place = ticket;
    hf__ticket_ask(ticket);
}

/* Does the first request ask together with the release of the seat, which is
 * likely to come soon? If it does not come, the timer ends that. */
static bool awaits_release(struct hf__gate *gate)
{
    hf_client *client = gate->client;
    struct hf__list *first = hf__list_first(&gate->seats);
    const struct hf__ticket *seat;

    if ((client->engine->ops->flags & HF__JOINS_CALLS) == 0 || !first)
        return false;
    seat = HF_CONTAINER_OF(first, struct hf__ticket, link);
    if (seat->mode != HF_EXCLUSIVE ||
        client->now_ns >= seat->granted_ns + BRIEF_NS)
        return false;
    hf__monitor_timer(client, &gate->timer, seat->granted_ns + BRIEF_NS);
    return true;
}

static void advance(struct hf__gate *gate)
{
    struct hf_request *request;

    while ((request = first_waiting(gate)) != NULL) {
        if (!gate->place && awaits_release(gate))
            return;
        hf__timer_stop(&gate->client->loop, &gate->timer);
        if (!gate->place)
            stand_in_line(gate, request);
        else if (hf__ticket_suits(gate->place, request))
            return;
        else
            retire_place(gate);
    }
    if (gate->place && !hf__timer_running(&gate->timer))
        retire_place(gate);
}

static bool needed(const struct hf__gate *gate)
{
    return gate->place || gate->leaving > 0 || gate->pins > 0 ||
           !hf__list_empty(&gate->seats) || !hf__list_empty(&gate->waiting) ||
           !hf__list_empty(&gate->parked);
}

void hf__gate_pin(struct hf__gate *gate)
{
    gate->pins++;
}

/* Every waiting request is owed something: an answer of the engine, a place in
 * line, a timer, or a connection, which asks for all that rest. */
__attribute__((unused)) static bool owed(const struct hf__gate *gate)
{
    const hf_client *client = gate->client;
    const struct hf__ticket *place = gate->place;

    if (hf__list_empty(&gate->waiting))
        return true;
    if (!place)
        return hf__timer_running(&gate->timer);
    return place->state == HF__TICKET_ASKING ||
           place->state == HF__TICKET_QUEUED ||
           hf__timer_running(&place->timer) ||
           client->connection == HF__CONNECTION_CONNECTING ||
           hf__timer_running(&client->connect_timer);
}

void hf__gate_unpin(struct hf__gate *gate)
{
    if (gate->pins == 1) {
        advance(gate);
        assert(gate->client->walking || owed(gate));
    }
    gate->pins--;
    if (!needed(gate))
        gate_rest(gate);
}

/* ---- asking and giving up ----------------------------------------------- */

/* Is it certain without asking that a try would not get it? */
static bool shut(const struct hf__gate *gate, const struct hf_request *request)
{
    struct hf__list *first = hf__list_first(&gate->seats);

    if (!hf__list_empty(&gate->waiting) || gate->place)
        return true;
    if (!first)
        return false;
    return request->mode == HF_EXCLUSIVE ||
           HF_CONTAINER_OF(first, struct hf__ticket, link)->mode ==
               HF_EXCLUSIVE;
}

int hf__gate_ask(hf_client *client, const char *name, size_t name_len,
                 struct hf_request *request, hf_error *err)
{
    struct hf__gate *gate;
    struct hf__ticket *seat;

    /* A caller that entered before the client was closed may have waited for a
     * callback, or for the first of several names, since. */
    if (HF_UNLIKELY(client->closing))
        return hf__monitor_closed(client, err);
    gate = find_or_make(client, name, name_len);
    if (!gate)
        return hf__fail(err, HF_ENOMEM, "out of memory");

    hf__gate_pin(gate);
    request->gate = gate;
    hf__list_init(&request->link);
    seat = own_seat(gate, request);
    if (seat) {
        reenter(seat, request);
    } else if (request->nowait && shut(gate, request)) {
        hf__list_append(&gate->waiting, &request->link);
        client->metrics.waiting++;
        hf__gate_forget(request, HF_EBUSY);
    } else {
        hf__list_append(&gate->waiting, &request->link);
        client->metrics.waiting++;
    }
    hf__gate_unpin(gate);
    return 0;
}

/* The wait is over: what do we know? */
static int timeout_code(const struct hf_request *request)
{
    const struct hf__gate *gate = request->gate;
    bool front = first_waiting(gate) == request;

    if (front && gate->place && gate->place->unsure)
        return HF_EUNKNOWN;
    if (request->nowait)
        return HF_EUNAVAILABLE; /* a try that was answered has ended */
    if (!front || !hf__list_empty(&gate->seats) ||
        (gate->place && gate->place->answered))
        return HF_ETIMEOUT;
    return HF_EUNAVAILABLE;
}

/* The wait is over, and others kept the lock. */
static void explain_timeout(const struct hf__gate *gate, hf_error *err)
{
    const struct hf__ticket *place = gate->place;
    const char *reason = place ? place->reason : NULL;

    if (!hf__list_empty(&gate->seats))
        (void)hf__fail(err, HF_ETIMEOUT,
                       "'%s' is still held by another owner in this process",
                       gate->name);
    else if (reason && place->reason_names)
        (void)hf__fail(err, HF_ETIMEOUT, "'%s' is still held by %s", gate->name,
                       reason);
    else
        (void)hf__fail(err, HF_ETIMEOUT, "acquire '%s': %s%s%s", gate->name,
                       hf_strerror(HF_ETIMEOUT), reason ? "; " : "",
                       reason ? reason : "");
}

static void explain(const struct hf_request *request, hf_error *err, int rc)
{
    const hf_client *client = request->client;
    const struct hf__ticket *place = request->gate->place;
    const char *name = request->gate->name;

    if (rc == HF_ETIMEOUT)
        explain_timeout(request->gate, err);
    else if (rc == HF_EUNAVAILABLE && hf__client_is_up(client) && place &&
             place->reason)
        (void)hf__fail(err, rc, "acquire '%s': %s", name, place->reason);
    else if (rc == HF_EUNAVAILABLE && !hf__client_is_up(client) &&
             client->down_err.code != 0)
        (void)hf__fail(err, rc, "acquire '%s': %s", name,
                       client->down_err.text);
    else if (rc == HF_EBUSY)
        (void)hf__fail(err, rc, "'%s' is held by another owner in this process",
                       name);
    else
        (void)hf__fail(err, rc, "acquire '%s': %s", name, hf_strerror(rc));
}

void hf__gate_forget(struct hf_request *request, int rc)
{
    struct hf__gate *gate = request->gate;
    hf_error err;

    hf__gate_pin(gate);
    if (rc == HF_ETIMEOUT)
        rc = timeout_code(request);
    explain(request, &err, rc);
    finish_failed(request, &err);
    hf__gate_unpin(gate);
}

void hf__gate_refuse(struct hf_request *request, const hf_error *err)
{
    struct hf__gate *gate = request->gate;

    hf__gate_pin(gate);
    finish_failed(request, err);
    hf__gate_unpin(gate);
}

bool hf__gate_is_anonymous(const struct hf_request *request)
{
    const struct hf__gate *gate = request->gate;
    const hf_client *client = request->client;

    return (client->engine->caps & HF_CAP_LIST) != 0 &&
           hf__client_is_up(client) && gate->place &&
           !gate->place->reason_names && hf__list_empty(&gate->seats) &&
           timeout_code(request) == HF_ETIMEOUT;
}

void hf__gate_name_holder(struct hf__gate *gate, const hf_lock_info *holder)
{
    char text[256];

    (void)snprintf(text, sizeof(text), "%s:%" PRId64 " (%s)%s%s%s",
                   holder->host, holder->pid, holder->owner,
                   holder->note[0] ? ", \"" : "", holder->note,
                   holder->note[0] ? "\"" : "");
    if (gate->place)
        hf__ticket_reason(gate->place, text, /* names= */ true);
}

void hf__gate_busy(struct hf__gate *gate, const char *holder)
{
    struct hf_request *request = first_waiting(gate);
    hf_error err;

    if (!request)
        return;
    (void)hf__fail(&err, HF_EBUSY,
                   holder ? "'%s' is held by %s" : "'%s' is held", gate->name,
                   holder);
    finish_failed(request, &err);
}

void hf__gate_failed(struct hf__gate *gate, const hf_error *err)
{
    struct hf_request *request = first_waiting(gate);
    hf_error told = *err;

    if (!request)
        return;
    (void)hf__fail_in(&told, told.code, "acquire '%s'", gate->name);
    finish_failed(request, &told);
}

void hf__gate_fail_all(struct hf__gate *gate, const hf_error *err)
{
    hf__gate_pin(gate);
    while (first_waiting(gate))
        hf__gate_failed(gate, err);
    hf__parked_fail_all(gate, err);
    hf__gate_unpin(gate);
}

/* ---- granting and releasing ---------------------------------------------- */

void hf__gate_granted(struct hf__ticket *ticket)
{
    struct hf__gate *gate = ticket->gate;
    struct hf_request *request = first_waiting(gate);

    gate->place = NULL;
    gate->passes = 0;
    gate->passing_since_ns = gate->client->now_ns;
    hf__timer_stop(&gate->client->loop, &gate->timer);
    if (!request) {
        hf__leaving_take(ticket,
                         /* releasing= */ true); /* nobody is behind it */
        return;
    }
    hf__list_append(&gate->seats, &ticket->link);
    if (!hf__ticket_owned_by(ticket, request) &&
        hf__ticket_set_owner(ticket, request) != 0) {
        hf_error err;

        (void)hf__fail(&err, HF_ENOMEM, "out of memory");
        finish_failed(request, &err);
        hf__leaving_take(ticket, /* releasing= */ true);
        return;
    }
    granted(request, ticket);
}

uint32_t hf__gate_most_passes(const hf_client *client)
{
    const struct hf__engine_ops *ops = client->engine->ops;

    if (client->settings.local_handover >= 0)
        return (uint32_t)client->settings.local_handover;
    return ops->pass || ops->flags & HF__RESERVES_TOKENS ? STANDARD_PASSES : 0;
}

/* May the released @seat go straight to @request? */
static bool may_pass(const struct hf__gate *gate, const struct hf__ticket *seat,
                     const struct hf_request *request)
{
    const hf_client *client = gate->client;

    return hf__client_is_up(client) && seat->mode == HF_EXCLUSIVE &&
           !seat->downgrading && !seat->cond &&
           (HF__PLANTED("passed_without_end") ||
            (gate->passes < hf__gate_most_passes(client) &&
             client->now_ns - gate->passing_since_ns < IN_A_ROW_NS)) &&
           (client->engine->ops->pass || seat->token == 0 ||
            seat->token + 1 < seat->token_end) &&
           seat->deadline_ns - client->now_ns >
               hf__ms_to_ns(seat->lease_ms) / 4 &&
           hf__ticket_suits(seat, request);
}

/* A larger token for the next owner of @seat. */
static bool next_token(const struct hf__gate *gate, struct hf__ticket *seat)
{
    struct hf__engine *engine = gate->client->engine;

    if (!engine->ops->pass) {
        seat->token += seat->token != 0;
        return true;
    }
    return engine->ops->pass(engine, seat, &seat->token) == 0;
}

static bool pass(struct hf__gate *gate, struct hf__ticket *seat)
{
    struct hf_request *request = first_waiting(gate);
    hf_client *client = gate->client;

    if (!request || !may_pass(gate, seat, request) ||
        hf__ticket_set_owner(seat, request) != 0 || !next_token(gate, seat))
        return false;
    gate->passes++;
    seat->granted_ns = client->now_ns;
    client->metrics.handovers_local++;
    granted(request, seat);
    if (gate->place && hf__list_empty(&gate->waiting))
        hf__monitor_timer(client, &gate->timer, client->now_ns + IN_A_ROW_NS);
    return true;
}

bool hf__gate_release(struct hf__ticket *ticket, struct hf__waiter *waiter)
{
    struct hf__gate *gate = ticket->gate;
    hf_client *client = gate->client;
    bool passed;

    hf__gate_pin(gate);
    passed = pass(gate, ticket);
    if (!passed) {
        if (hf__list_empty(&gate->waiting))
            retire_place(gate); /* first, or it would be granted to nobody */
        if (waiter)
            hf__list_append(&ticket->waiters, &waiter->watch);
        hf__leaving_take(ticket, /* releasing= */ true);
        if (gate->place && client->engine->ops->attend)
            client->engine->ops->attend(client->engine);
    }
    hf__gate_unpin(gate);
    return passed;
}

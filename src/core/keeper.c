/* SPDX-License-Identifier: MIT */
/*
 * keeper.c - keep leases alive, and say so in time when we cannot.
 *
 * Each held ticket has one timer. With L the lease and C the instant at which
 * the last confirmed request was SENT:
 *
 *   C          C+L/3        C+L/2      C+2L/3      C+5L/6    deadline   C+L
 *   │            │            │           │           │         │        │
 *   confirmed    renew        again       JEOPARDY,   again     LOST     the
 *                                         again                          engine
 *                                                                        frees
 *
 * The deadline is C + L − (drift·L + 2 ms). The arrival of an answer is never
 * used as the start of a lease: the engine's clock started earlier than that.
 * Renewals that are due at about the same time travel together.
 *
 * Three things end the renewals on purpose: max_hold, HF_NO_RENEW, and, with
 * renew=beat, an owner that gave no sign of life. The lease then runs out and
 * the owner is told as for any other loss. An hf_verify() after max_hold renews
 * the engine's lease, but not our claim. Without a lease, max_hold is the claim.
 *
 * Failure: an engine that does not answer, or says no, changes nothing here
 * but the state told to the owner. The deadline is the only judge.
 *
 * With the monitor held. Owns no memory; timers live in struct hf__ticket.
 */
#include "core/keeper.h"

#include "core/client.h"

#define MARGIN_NS (2 * HF_MS)

enum { MANY_GATES = 64 };

static int64_t claim_end(const struct hf__ticket *ticket, int64_t sent_ns)
{
    const struct hf__settings *settings = &ticket->gate->client->settings;
    int64_t lease_ns = hf__ms_to_ns(ticket->lease_ms);

    if (ticket->lease_ms == 0)
        return HF_NEVER;
    if (HF__PLANTED("deadline_from_the_answer"))
        sent_ns = ticket->gate->client->now_ns;
    return hf__instant_add(sent_ns,
                           lease_ns - MARGIN_NS -
                               (int64_t)((double)lease_ns * settings->drift));
}

static int64_t share_of_lease(const struct hf__ticket *ticket, int64_t n,
                              int64_t of)
{
    return hf__instant_add(ticket->confirmed_ns,
                           hf__ms_to_ns(ticket->lease_ms) / of * n);
}

static void set_deadline(struct hf__ticket *ticket, int64_t deadline_ns)
{
    ticket->deadline_ns = deadline_ns;
    HF_LIST_EACH(&ticket->holds, link) {
        hf_hold *hold = HF_CONTAINER_OF(link, hf_hold, link);

        atomic_store_explicit(&hold->deadline_ns, deadline_ns,
                              memory_order_release);
    }
}

/* Has an owner been told LOST already, by hf_check()? */
static bool seen_lost(const struct hf__ticket *ticket)
{
    bool lost = false;

    HF_LIST_EACH(&ticket->holds, link) {
        lost |= hf__hold_seen_lost(HF_CONTAINER_OF(link, hf_hold, link));
    }
    return lost;
}

static void move_holds(struct hf__ticket *ticket, int state)
{
    HF_LIST_EACH(&ticket->holds, link) {
        hf__hold_move(HF_CONTAINER_OF(link, hf_hold, link), state);
    }
}

/* Has an owner with renew=beat given a sign of life since the last renewal? */
static bool beaten(struct hf__ticket *ticket)
{
    bool beat = false;

    HF_LIST_EACH(&ticket->holds, link) {
        hf_hold *hold = HF_CONTAINER_OF(link, hf_hold, link);

        beat |=
            atomic_exchange_explicit(&hold->beat, 0, memory_order_acquire) != 0;
        /* Who waits for the rest of a multi-lock cannot give one. */
        beat |= hold->whole && hold->whole->forming;
    }
    return beat;
}

/* May this ticket be renewed? If not, lost_reason says why it will be lost. */
static bool wanted(struct hf__ticket *ticket)
{
    hf_client *client = ticket->gate->client;

    if (ticket->state == HF__TICKET_QUEUED)
        return true;
    if (ticket->unwanted)
        return false;
    if (client->now_ns >= ticket->until_ns) {
        ticket->unwanted = true;
        ticket->lost_reason = HF__LOST_MAX_HOLD;
        return false;
    }
    if (client->settings.renew == HF__RENEW_BEAT && !beaten(ticket)) {
        ticket->lost_reason = HF__LOST_NO_BEAT;
        return false;
    }
    ticket->lost_reason = HF__LOST_EXPIRED;
    return true;
}

static void gather(struct hf__ticket *ticket)
{
    hf_client *client = ticket->gate->client;

    if (client->batch_n == HF__CLIENT_BATCH)
        hf__keeper_send(client);
    if (!ticket->renewing) {
        ticket->renewing = true;
        client->owed++;
    }
    ticket->sent_ns = client->now_ns;
    if (HF__PLANTED("renewal_counts_when_sent"))
        set_deadline(ticket, claim_end(ticket, client->now_ns));
    client->batch[client->batch_n++] = ticket;
}

static void answered(struct hf__ticket *ticket)
{
    if (!ticket->renewing)
        return;
    ticket->renewing = false;
    ticket->gate->client->owed--;
}

static void keeper_fire(struct hf__timer *timer)
{
    struct hf__ticket *ticket =
        HF_CONTAINER_OF(timer, struct hf__ticket, timer);
    hf_client *client = ticket->gate->client;
    int64_t doubt_ns = share_of_lease(ticket, 2, 3);
    int64_t next_ns;

    if (client->now_ns >= ticket->deadline_ns || seen_lost(ticket)) {
        hf__ticket_lose(ticket, ticket->lost_reason, /* certain= */ false);
        return;
    }
    if (ticket->renewing)
        hf__metrics_renewal_failed(&client->metrics, HF__RENEWAL_OVERDUE);
    if (wanted(ticket))
        gather(ticket);
    if (client->now_ns >= doubt_ns)
        move_holds(ticket, HF_JEOPARDY);

    next_ns = client->now_ns + hf__ms_to_ns(ticket->lease_ms) / 6;
    if (client->now_ns < doubt_ns && next_ns > doubt_ns)
        next_ns = doubt_ns;
    if (next_ns > ticket->deadline_ns || ticket->unwanted)
        next_ns = ticket->deadline_ns;
    hf__monitor_timer(client, timer, next_ns);
}

/* A third of the lease after the last confirmation. A client with
 * many locks renews them on a common grid, so that renewals of locks taken at
 * about the same time travel together; a little earlier, never later. */
static int64_t renewal_due(const struct hf__ticket *ticket)
{
    int64_t due_ns = share_of_lease(ticket, 1, 3);
    int64_t grid_ns = hf__ms_to_ns(ticket->lease_ms) / 32;

    if (ticket->gate->client->gates_count < MANY_GATES || due_ns == HF_NEVER)
        return due_ns;
    return due_ns - due_ns % grid_ns;
}

/* Give up the lease's end, not its start: with HF_NO_RENEW the only thing to
 * wait for is the deadline. */
static void plan(struct hf__ticket *ticket)
{
    hf_client *client = ticket->gate->client;

    if (ticket->deadline_ns == HF_NEVER) {
        hf__timer_stop(&client->loop, &ticket->timer);
        return;
    }
    ticket->timer.fire = keeper_fire;
    hf__monitor_timer(client, &ticket->timer,
                      ticket->unwanted || ticket->lease_ms == 0
                          ? ticket->deadline_ns
                          : renewal_due(ticket));
}

/* No lease runs out by itself: max_hold is the deadline. */
static void cap_without_lease(struct hf__ticket *ticket)
{
    ticket->lost_reason = HF__LOST_MAX_HOLD;
    ticket->deadline_ns = ticket->until_ns;
    plan(ticket);
}

void hf__keeper_cap(struct hf__ticket *ticket, int64_t max_hold_ms,
                    uint32_t flags)
{
    hf_client *client = ticket->gate->client;

    ticket->unwanted =
        (flags & HF_NO_RENEW) != 0 || client->settings.renew == HF__RENEW_OFF;
    ticket->lost_reason = HF__LOST_EXPIRED;
    ticket->flags = flags;
    ticket->until_ns =
        max_hold_ms == 0
            ? HF_NEVER
            : hf__instant_add(client->now_ns, hf__ms_to_ns(max_hold_ms));
    if (ticket->lease_ms == 0)
        cap_without_lease(ticket);
}

int64_t hf__keeper_max_hold(const struct hf__ticket *ticket)
{
    return ticket->until_ns == HF_NEVER
               ? 0
               : (ticket->until_ns - ticket->granted_ns) / HF_MS;
}

bool hf__keeper_start(struct hf__ticket *ticket, const struct hf__grant *grant)
{
    ticket->lease_ms = grant->lease_ms;
    ticket->confirmed_ns = grant->sent_ns;
    ticket->deadline_ns = claim_end(ticket, grant->sent_ns);
    if (ticket->deadline_ns <= ticket->gate->client->now_ns)
        return false;
    answered(ticket);
    plan(ticket);
    return true;
}

void hf__keeper_renewed(struct hf__ticket *ticket,
                        const struct hf__grant *grant)
{
    hf_client *client = ticket->gate->client;
    int64_t deadline_ns;

    answered(ticket);
    if (ticket->state != HF__TICKET_HELD) {
        ticket->confirmed_ns = grant->sent_ns;
        return;
    }
    if (client->now_ns >= ticket->deadline_ns || seen_lost(ticket)) {
        /* Too late, or the owner knows it as LOST. */
        hf__ticket_lose(ticket, ticket->lost_reason, /* certain= */ false);
        return;
    }
    hf__metrics_renewed(&client->metrics, ticket->deadline_ns - client->now_ns);
    ticket->lease_ms = grant->lease_ms;
    deadline_ns = claim_end(ticket, grant->sent_ns);
    if (ticket->lease_ms == 0) {
        ticket->lost_reason = HF__LOST_MAX_HOLD;
        deadline_ns = ticket->until_ns;
    }
    if (ticket->lease_ms == 0 || (deadline_ns > ticket->deadline_ns &&
                                  grant->sent_ns < ticket->until_ns)) {
        ticket->confirmed_ns = grant->sent_ns;
        set_deadline(ticket, deadline_ns);
        move_holds(ticket, HF_HELD);
        plan(ticket);
    }
}

void hf__keeper_resume(struct hf__ticket *ticket)
{
    plan(ticket);
}

void hf__keeper_stop(struct hf__ticket *ticket)
{
    hf_client *client = ticket->gate->client;

    answered(ticket);
    hf__timer_stop(&client->loop, &ticket->timer);
    for (uint32_t i = 0; i < client->batch_n; i++) {
        if (client->batch[i] == ticket)
            client->batch[i] = client->batch[--client->batch_n];
    }
}

void hf__keeper_hurry(struct hf__ticket *ticket)
{
    /* A renewal that is not answered has used up its sign of life. */
    if (ticket->renewing || wanted(ticket))
        gather(ticket);
}

void hf__keeper_send(hf_client *client)
{
    uint32_t n = client->batch_n;
    struct hf__ticket *batch[HF__CLIENT_BATCH];

    if (HF_LIKELY(n == 0))
        return;
    memcpy(batch, client->batch, n * sizeof(struct hf__ticket *));
    client->batch_n = 0;
    if (hf__client_is_up(client) &&
        client->engine->ops->renew(client->engine, batch, n,
                                   /* err= */ NULL) == 0)
        return;
    for (uint32_t i = 0; i < n; i++)
        answered(batch[i]); /* nothing was sent: the timers go on */
}

static void beat_fire(struct hf__timer *timer)
{
    struct hf__ticket *ticket =
        HF_CONTAINER_OF(timer, struct hf__ticket, timer);

    gather(ticket);
    hf__keeper_beat(ticket);
}

void hf__keeper_beat(struct hf__ticket *ticket)
{
    hf_client *client = ticket->gate->client;

    uint32_t beats = HF__BEATS_WAITERS;

    if (ticket->state == HF__TICKET_PARKED)
        beats |= HF__BEATS_PARKED;
    if ((client->engine->ops->flags & beats) == 0)
        return;
    ticket->timer.fire = beat_fire;
    hf__monitor_timer(client, &ticket->timer,
                      client->now_ns + hf__ms_to_ns(ticket->ttl_ms) / 3);
}

void hf__keeper_alarm(struct hf__ticket *ticket)
{
    if (ticket->lease_ms != 0)
        move_holds(ticket, HF_JEOPARDY);
}

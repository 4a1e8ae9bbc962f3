/* SPDX-License-Identifier: MIT */
/*
 * leaving.c - take back every request whose outcome we never learnt.
 *
 * A ticket comes here when it is released, when its caller gave up, and when
 * it was lost. The first call may be a release; once that is unknown, or for
 * everything else, it is a withdrawal, which is right whatever state the
 * engine has the ticket in. It is repeated, with growing pauses, until the
 * engine has confirmed. Only then is the ticket, and with the last one the
 * gate, given back.
 *
 * With lock_delay a lost ticket is withdrawn that much later: a holder that was
 * stopped and goes on must not open the lock that the engine keeps closed.
 *
 * Failure: while the engine is away nothing is sent; a new connection starts
 * all of them. What is still here when the client closes ends with its lease.
 *
 * With the monitor held.
 */
#include "core/leaving.h"

#include "core/client.h"
#include "core/keeper.h"
#include "core/retry.h"

/* Is the lock of a lost ticket still to stay closed? Withdrawing it now would
 * open it, while what its holder began may still be under way. */
static bool kept_closed(struct hf__ticket *ticket)
{
    hf_client *client = ticket->gate->client;

    if (client->now_ns >= ticket->closed_until_ns)
        return false;
    hf__monitor_timer(client, &ticket->timer, ticket->closed_until_ns);
    return true;
}

static void send_it(struct hf__ticket *ticket)
{
    hf_client *client = ticket->gate->client;
    struct hf__engine *engine = client->engine;
    bool releasing = ticket->leaving_by == HF__BY_RELEASE;
    int rc;

    if (kept_closed(ticket))
        return;
    if (!hf__client_is_up(client)) {
        hf__client_connect(client);
        return; /* hf__leaving_hurry() comes with the connection */
    }
    if (releasing) {
        ticket->leaving_by = HF__BY_SENT_RELEASE;
        rc = engine->ops->release(engine, ticket, /* err= */ NULL);
    } else {
        if (ticket->leaving_by == HF__BY_SENT_RELEASE)
            ticket->leaving_by = HF__BY_DOUBTFUL_RELEASE;
        rc = engine->ops->withdraw(engine, ticket, /* err= */ NULL);
    }
    if (rc != 0)
        hf__leaving_unknown(ticket);
}

static void leaving_fire(struct hf__timer *timer)
{
    send_it(HF_CONTAINER_OF(timer, struct hf__ticket, timer));
}

void hf__leaving_take(struct hf__ticket *ticket, bool releasing)
{
    hf_client *client = ticket->gate->client;

    hf__keeper_stop(ticket);
    hf__list_remove(&ticket->link);
    hf__ticket_move(ticket, HF__TICKET_LEAVING);
    hf__list_append(&client->leaving, &ticket->link);
    ticket->gate->leaving++;
    ticket->leaving_by = releasing ? HF__BY_RELEASE : HF__BY_WITHDRAWAL;
    ticket->attempts = 0;
    ticket->timer.fire = leaving_fire;
    send_it(ticket);
}

void hf__leaving_take_lost(struct hf__ticket *ticket)
{
    const hf_client *client = ticket->gate->client;
    int64_t lost_ns = ticket->deadline_ns < client->now_ns ? ticket->deadline_ns
                                                           : client->now_ns;

    if (client->settings.lock_delay_ms > 0)
        ticket->closed_until_ns = hf__instant_add(
            lost_ns, hf__ms_to_ns(client->settings.lock_delay_ms));
    hf__leaving_take(ticket, /* releasing= */ false);
}

/* The answer to release() was lost, and nothing is left. Did we hold the lock
 * until we freed it? A lease that still runs proves it; a session proves
 * nothing, it may have ended, and freed the lock, before the release. */
static bool held_to_the_end(const struct hf__ticket *ticket)
{
    const hf_client *client = ticket->gate->client;

    if (HF__PLANTED("release_told_without_proof"))
        return true;
    return (client->engine->caps & HF_CAP_TOLD_BEFORE_REGRANT) != 0 &&
           client->now_ns < ticket->deadline_ns;
}

void hf__leaving_confirmed(struct hf__ticket *ticket, int rc)
{
    struct hf__gate *gate = ticket->gate;

    if (rc == 0 && ticket->leaving_by == HF__BY_DOUBTFUL_RELEASE &&
        !held_to_the_end(ticket))
        rc = HF_EUNKNOWN;

    hf__gate_pin(gate);
    if (rc == HF_ELOST && !hf__list_empty(&ticket->waiters))
        gate->client->metrics.lost[HF__LOST_TAKEN]++; /* found out just now */
    if (ticket->attempts > 0)
        gate->client->metrics.reaped++;
    hf__list_remove(&ticket->link);
    hf__ticket_move(ticket, HF__TICKET_GONE);
    hf__ticket_tell(ticket, rc);
    hf__ticket_free(ticket);
    gate->leaving--;
    hf__gate_unpin(gate);
}

void hf__leaving_unknown(struct hf__ticket *ticket)
{
    hf_client *client = ticket->gate->client;

    if (HF__PLANTED("withdrawal_sent_once"))
        return;
    hf__monitor_timer(client, &ticket->timer,
                      client->now_ns + hf__retry_pause_ns(&client->settings,
                                                          ticket->attempts++));
}

void hf__leaving_hurry(hf_client *client)
{
    struct hf__list all;

    /* They move to the end of the list as they are sent, and may go. */
    hf__list_init(&all);
    while (!hf__list_empty(&client->leaving)) {
        struct hf__list *link = hf__list_first(&client->leaving);

        hf__list_remove(link);
        hf__list_append(&all, link);
    }
    while (!hf__list_empty(&all)) {
        struct hf__list *link = hf__list_first(&all);
        struct hf__ticket *ticket =
            HF_CONTAINER_OF(link, struct hf__ticket, link);

        hf__list_remove(link);
        hf__list_append(&client->leaving, link);
        hf__timer_stop(&client->loop, &ticket->timer);
        send_it(ticket);
    }
}

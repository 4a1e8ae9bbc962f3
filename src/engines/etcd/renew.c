/* SPDX-License-Identifier: MIT */
/*
 * renew.c - renew and downgrade.
 *
 * renew is a keepalive of the lease, then one look at the keys of all tickets
 * with it: a key may have been broken while its lease lives. downgrade writes
 * the key's record anew, and the key keeps its place.
 *
 * Failure: a renewal without an answer is not reported; the core counts the
 * time. A key that is not there any more, or is another's, is a loss that is
 * certain.
 */
#include "engines/etcd/etcd.h"

/* ---- renew ------------------------------------------------------------- */

static bool is_renewing(struct hf__ticket_entry *entry, const void *lease)
{
    const struct hf__etcd_ticket *mine = hf__etcd_tickets_at(entry);

    return !hf__etcd_tickets_asks(mine) && mine->awaits_lease &&
           mine->lease == lease;
}

static void tell_renewed(struct hf__etcd *etcd, struct hf__ticket *ticket,
                         struct hf__pb kv, int64_t sent_ns)
{
    struct hf__etcd_ticket *mine = hf__etcd_ticket(etcd, ticket);
    struct hf__grant grant = {.token = mine->revision, .tokens = 1};

    if (hf__etcd_queue_read(kv).revision != mine->revision) {
        hf__etcd_acquire_place_lost(etcd, ticket);
        return;
    }
    hf__etcd_lease_claim(mine->lease, ticket, sent_ns, &grant);
    hf__up_renewed(&etcd->base, ticket, &grant);
}

static void on_checked(struct hf__etcd *etcd, struct hf__etcd_call *call,
                       const struct hf__etcd_reply *reply)
{
    const uint64_t *ids = call->data;
    size_t at = 0;

    if (reply->code != HF__ETCD_OK)
        return; /* in silence: the core counts the time */
    for (size_t i = 0; i < call->n; i++) {
        struct hf__pb range = hf__pb_inside(
            hf__pb_next(reply->root, HF__TXN_RESPONSES, &at), HF__OP_RANGE);
        struct hf__ticket *ticket =
            hf__ticket_table_find(&etcd->tickets, ids[i]);

        if (hf__pb_there(range) && ticket &&
            hf__etcd_ticket(etcd, ticket)->state == HF__ETCD_HELD &&
            hf__etcd_ticket(etcd, ticket)->lease_id == call->lease_id)
            tell_renewed(etcd, ticket, hf__etcd_queue_first_of(range),
                         (int64_t)call->ticket);
    }
}

/* A waiter's life is proved by its lease; it may also have missed its turn, or
 * its wake-up. */
static void renew_waiter(struct hf__etcd *etcd, struct hf__ticket *ticket,
                         int64_t sent_ns)
{
    struct hf__etcd_ticket *mine = hf__etcd_ticket(etcd, ticket);
    struct hf__grant grant = {.tokens = 1};

    if (mine->state != HF__ETCD_WAITING && mine->state != HF__ETCD_PARKED)
        return;
    hf__etcd_lease_claim(mine->lease, ticket, sent_ns, &grant);
    if (mine->state == HF__ETCD_PARKED)
        hf__etcd_condition_beat(etcd, ticket);
    else
        hf__etcd_wait_look(etcd, ticket);
    hf__up_renewed(&etcd->base, ticket, &grant);
}

/* One transaction for as many as fit; true: there may be more. */
static bool send_check(struct hf__etcd *etcd, struct hf__etcd_lease *lease,
                       int64_t sent_ns, size_t *at)
{
    struct hf__etcd_call *call =
        hf__etcd_connection_call(etcd, HF__CALL_TXN, on_checked);
    uint64_t *ids = hf__calloc(HF__ETCD_RENEWALS, sizeof(*ids));
    struct hf__ticket *ticket;
    size_t n = 0;

    while (n < HF__ETCD_RENEWALS &&
           (ticket = hf__ticket_table_next(&etcd->tickets, at, is_renewing,
                                           lease)) != NULL) {
        hf__etcd_ticket(etcd, ticket)->awaits_lease = false;
        if (hf__etcd_ticket(etcd, ticket)->state != HF__ETCD_HELD) {
            renew_waiter(etcd, ticket, sent_ns);
            continue;
        }
        if (!ids)
            continue;
        hf__etcd_queue_key_ticket(etcd, ticket);
        hf__etcd_queue_add_get(etcd, &call->rpc.body, HF__TXN_SUCCESS);
        ids[n++] = ticket->id;
    }
    call->data = ids;
    if (n == 0) {
        hf__etcd_connection_drop(call);
        return false;
    }
    call->n = n;
    call->ticket = (uint64_t)sent_ns; /* the lease counts from here */
    call->lease_id = lease->id;
    return hf__etcd_connection_send(call, /* err= */ NULL) == 0 &&
           n == HF__ETCD_RENEWALS;
}

void hf__etcd_renew_confirmed(struct hf__etcd *etcd,
                              struct hf__etcd_lease *lease,
                              const struct hf__etcd_reply *reply)
{
    struct hf__ticket *ticket;
    size_t at = 0;

    if (reply->code == HF__ETCD_OK) {
        while (send_check(etcd, lease, reply->sent_ns, &at))
            continue;
        hf__etcd_condition_look_at_news(etcd);
        return;
    }
    while ((ticket = hf__ticket_table_next(&etcd->tickets, &at, is_renewing,
                                           lease)) != NULL)
        hf__etcd_ticket(etcd, ticket)->awaits_lease = false;
}

/* It was called or unparked, and what it asked then had no answer. */
static bool goes_on(const struct hf__etcd *etcd, struct hf__ticket *ticket)
{
    const struct hf__etcd_ticket *mine = hf__etcd_ticket(etcd, ticket);

    return ticket->cond && mine->state == HF__ETCD_UNKNOWN &&
           !mine->under_way &&
           (hf__etcd_park_bears(etcd, ticket) || !mine->condition);
}

int hf__etcd_renew(struct hf__engine *engine, struct hf__ticket **tickets,
                   size_t n, hf_error *err)
{
    struct hf__etcd *etcd = (struct hf__etcd *)engine;

    if (!hf__etcd_connection_is_up(etcd))
        return hf__etcd_errors_not_up(etcd, err);
    for (size_t i = 0; i < n; i++) {
        struct hf__etcd_ticket *mine = hf__etcd_ticket(etcd, tickets[i]);

        if (goes_on(etcd, tickets[i]))
            hf__etcd_acquire_called(etcd, tickets[i]);
        if (mine->state != HF__ETCD_HELD && mine->state != HF__ETCD_WAITING &&
            mine->state != HF__ETCD_PARKED)
            continue;
        mine->awaits_lease = true;
        (void)hf__etcd_lease_renew(etcd, mine->lease, /* err= */ NULL);
    }
    return 0;
}

/* ---- downgrade --------------------------------------------------------- */

static void on_downgraded(struct hf__etcd *etcd, struct hf__etcd_call *call,
                          const struct hf__etcd_reply *reply)
{
    struct hf__ticket *ticket = hf__etcd_tickets_of(call);
    struct hf__grant grant = {.tokens = 1};

    if (!ticket || hf__etcd_ticket(etcd, ticket)->state != HF__ETCD_HELD)
        return;
    if (reply->code != HF__ETCD_OK) {
        hf__up_unknown(&etcd->base, ticket, &reply->err);
        return;
    }
    if (hf__pb_number(reply->root, HF__TXN_SUCCEEDED) == 0) {
        hf__etcd_tickets_forget(etcd, ticket);
        hf__up_lost(&etcd->base, ticket, HF__LOST_TAKEN);
        return;
    }
    ticket->mode = HF_SHARED;
    hf__etcd_lease_claim(hf__etcd_ticket(etcd, ticket)->lease, ticket,
                         reply->sent_ns, &grant);
    hf__up_renewed(&etcd->base, ticket, &grant);
}

int hf__etcd_renew_downgrade(struct hf__engine *engine,
                             struct hf__ticket *ticket, hf_error *err)
{
    struct hf__etcd *etcd = (struct hf__etcd *)engine;
    struct hf__etcd_ticket *mine = hf__etcd_ticket(etcd, ticket);
    struct hf__etcd_call *call;
    int mode = ticket->mode;

    if (!hf__etcd_connection_is_up(etcd))
        return hf__etcd_errors_not_up(etcd, err);
    call = hf__etcd_connection_call(etcd, HF__CALL_TXN, on_downgraded);
    hf__etcd_tickets_about(call, ticket);
    hf__etcd_queue_key_ticket(etcd, ticket);
    hf__etcd_queue_add_compare(etcd, &call->rpc.body, /* range= */ false,
                               mine->revision);
    ticket->mode = HF_SHARED; /* in the record; here when it is confirmed */
    hf__etcd_queue_add_put(etcd, &call->rpc.body, HF__TXN_SUCCESS, ticket);
    ticket->mode = mode;
    return hf__etcd_connection_send(call, err);
}

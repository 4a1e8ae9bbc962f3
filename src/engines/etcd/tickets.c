/* SPDX-License-Identifier: MIT */
/*
 * tickets.c - the tickets that a server may know, by number, and the moves that
 * each of them may make.
 */
#include "engines/etcd/etcd.h"

#define MAY(state) (1u << HF__ETCD_##state)

static const uint16_t moves[HF__ETCD_STATES] = {
    [HF__ETCD_IDLE] = MAY(ASKING) | MAY(PARKING),
    [HF__ETCD_ASKING] = MAY(ASKING) | MAY(WAITING) | MAY(HELD) | MAY(UNKNOWN) |
                        MAY(RELEASING) | MAY(IDLE),
    [HF__ETCD_CALLED] = MAY(ASKING) | MAY(WAITING) | MAY(HELD) | MAY(UNKNOWN) |
                        MAY(RELEASING) | MAY(IDLE),
    [HF__ETCD_WAITING] =
        MAY(ASKING) | MAY(WAITING) | MAY(HELD) | MAY(RELEASING) | MAY(IDLE),
    [HF__ETCD_HELD] = MAY(ASKING) | MAY(YIELDING) | MAY(RELEASING) | MAY(IDLE),
    [HF__ETCD_UNKNOWN] = MAY(ASKING) | MAY(CALLED) | MAY(PARKING) |
                         MAY(UNPARKING) | MAY(RELEASING) | MAY(IDLE),
    [HF__ETCD_PARKING] =
        MAY(PARKING) | MAY(PARKED) | MAY(UNKNOWN) | MAY(RELEASING) | MAY(IDLE),
    [HF__ETCD_PARKED] =
        MAY(PARKED) | MAY(CALLED) | MAY(UNPARKING) | MAY(RELEASING) | MAY(IDLE),
    [HF__ETCD_UNPARKING] = MAY(UNPARKING) | MAY(ASKING) | MAY(UNKNOWN) |
                           MAY(RELEASING) | MAY(IDLE),
    [HF__ETCD_YIELDING] = MAY(HELD) | MAY(RELEASING) | MAY(IDLE),
    [HF__ETCD_RELEASING] = MAY(RELEASING) | MAY(IDLE),
};

void hf__etcd_tickets_move(struct hf__etcd_ticket *mine,
                           enum hf__etcd_state state)
{
    assert(moves[mine->state] & (1u << state));
    mine->state = (uint8_t)state;
}

void hf__etcd_tickets_about(struct hf__etcd_call *call,
                            struct hf__ticket *ticket)
{
    call->ticket = ticket->id;
    call->lease_id = hf__etcd_ticket(call->etcd, ticket)->lease_id;
}

struct hf__ticket *hf__etcd_tickets_of(const struct hf__etcd_call *call)
{
    struct hf__ticket *ticket =
        hf__ticket_table_find(&call->etcd->tickets, call->ticket);

    return ticket && hf__etcd_ticket(call->etcd, ticket)->lease_id ==
                         call->lease_id
               ? ticket
               : NULL;
}

struct hf__ticket *hf__etcd_tickets_seek(const struct hf__etcd *etcd,
                                         hf__ticket_wanted_fn *wanted,
                                         const void *what)
{
    size_t bucket = 0;

    return hf__ticket_table_next(&etcd->tickets, &bucket, wanted, what);
}

int hf__etcd_tickets_ask(struct hf__etcd *etcd, struct hf__ticket *ticket,
                         hf__etcd_tickets_add_fn *add, hf__etcd_reply_fn *done,
                         hf_error *err)
{
    struct hf__etcd_call *call =
        hf__etcd_connection_call(etcd, HF__CALL_TXN, done);
    int rc;

    hf__etcd_tickets_about(call, ticket);
    add(etcd, &call->rpc.body, ticket);
    rc = hf__etcd_connection_send(call, err);
    if (rc == 0)
        hf__etcd_ticket(etcd, ticket)->asked_ns = call->rpc.sent_ns;
    return rc;
}

void hf__etcd_tickets_free_lease(struct hf__etcd *etcd,
                                 struct hf__etcd_ticket *mine)
{
    if (mine->state == HF__ETCD_HELD && mine->lease_id == mine->lease->id)
        hf__etcd_lease_hold(etcd, mine->lease, /* held= */ false);
}

void hf__etcd_tickets_forget(struct hf__etcd *etcd, struct hf__ticket *ticket)
{
    struct hf__etcd_ticket *mine = hf__etcd_ticket(etcd, ticket);

    if (mine->state == HF__ETCD_IDLE)
        return;
    hf__etcd_wait_stop(etcd, ticket);
    hf__etcd_tickets_free_lease(etcd, mine);
    (void)hf__ticket_table_remove(&etcd->tickets, &mine->entry);
    hf__etcd_condition_leave(etcd, ticket);
    hf__etcd_tickets_move(mine, HF__ETCD_IDLE);
    memset(mine, 0, sizeof(*mine));
}

void hf__etcd_tickets_gone(struct hf__etcd *etcd, struct hf__ticket *ticket,
                           int reason)
{
    hf__etcd_park_forget_old(etcd, ticket);
    hf__etcd_tickets_forget(etcd, ticket);
    hf__up_lost(&etcd->base, ticket, reason);
}

/* SPDX-License-Identifier: MIT */
/*
 * tickets.c - the tickets that the server may know, their moves, and outcomes
 * that any step may have.
 *
 * A call under way names its ticket by number and finds it here, or does not:
 * the ticket may be gone before the answer comes.
 */
#include "engines/zookeeper/zookeeper.h"

#define MAY(state) (1u << HF__ZK_##state)

static const uint16_t moves[HF__ZK_STATES] = {
    [HF__ZK_IDLE] = MAY(ASKING) | MAY(PARKING),
    [HF__ZK_ASKING] = MAY(ASKING) | MAY(WAITING) | MAY(HELD) | MAY(UNKNOWN) |
                      MAY(RELEASING) | MAY(WITHDRAWING) | MAY(IDLE),
    [HF__ZK_CALLED] = MAY(ASKING) | MAY(WAITING) | MAY(HELD) | MAY(UNKNOWN) |
                      MAY(RELEASING) | MAY(WITHDRAWING) | MAY(IDLE),
    [HF__ZK_WAITING] = MAY(ASKING) | MAY(WAITING) | MAY(HELD) | MAY(UNKNOWN) |
                       MAY(RELEASING) | MAY(WITHDRAWING) | MAY(IDLE),
    [HF__ZK_HELD] = MAY(ASKING) | MAY(YIELDING) | MAY(RELEASING) |
                    MAY(WITHDRAWING) | MAY(IDLE),
    [HF__ZK_UNKNOWN] = MAY(ASKING) | MAY(CALLED) | MAY(WAITING) | MAY(HELD) |
                       MAY(PARKING) | MAY(UNPARKING) | MAY(RELEASING) |
                       MAY(WITHDRAWING) | MAY(IDLE),
    [HF__ZK_PARKING] = MAY(PARKING) | MAY(PARKED) | MAY(UNKNOWN) |
                       MAY(RELEASING) | MAY(WITHDRAWING) | MAY(IDLE),
    [HF__ZK_PARKED] = MAY(PARKED) | MAY(CALLED) | MAY(UNPARKING) |
                      MAY(RELEASING) | MAY(WITHDRAWING) | MAY(IDLE),
    [HF__ZK_UNPARKING] = MAY(UNPARKING) | MAY(ASKING) | MAY(UNKNOWN) |
                         MAY(RELEASING) | MAY(WITHDRAWING) | MAY(IDLE),
    [HF__ZK_YIELDING] =
        MAY(HELD) | MAY(RELEASING) | MAY(WITHDRAWING) | MAY(IDLE),
    [HF__ZK_RELEASING] =
        MAY(UNKNOWN) | MAY(RELEASING) | MAY(WITHDRAWING) | MAY(IDLE),
    [HF__ZK_WITHDRAWING] =
        MAY(UNKNOWN) | MAY(RELEASING) | MAY(WITHDRAWING) | MAY(IDLE),
};

void hf__zk_tickets_move(struct hf__zk *zk, struct hf__zk_ticket *mine,
                         enum hf__zk_state state)
{
    bool held = mine->state == HF__ZK_HELD;

    assert(moves[mine->state] & (1u << state));
    mine->state = (uint8_t)state;
    if (held != (state == HF__ZK_HELD))
        hf__link_hold(&zk->link, !held);
}

/* ---- the table ----------------------------------------------------------- */

int hf__zk_tickets_know(struct hf__zk *zk, struct hf__ticket *ticket,
                        hf_error *err)
{
    struct hf__zk_ticket *mine = hf__zk_ticket(zk, ticket);

    if (mine->path)
        return 0;
    if (hf__zk_nodes_make_path(zk, ticket, mine) != 0)
        return hf__fail(err, HF_ENOMEM, "out of memory");
    (void)hf__ticket_table_add(&zk->tickets, &mine->entry, ticket);
    return 0;
}

void hf__zk_tickets_forget(struct hf__zk *zk, struct hf__ticket *ticket)
{
    struct hf__zk_ticket *mine = hf__zk_ticket(zk, ticket);

    if (!mine->path)
        return;
    (void)hf__ticket_table_remove(&zk->tickets, &mine->entry);
    hf__zk_condition_leave(zk, ticket);
    hf__zk_tickets_move(zk, mine, HF__ZK_IDLE);
    hf__free(mine->mutex);
    hf__free(mine->path);
    memset(mine, 0, sizeof(*mine));
}

static void forget(struct hf__ticket *ticket, void *zk)
{
    hf__zk_tickets_forget(zk, ticket);
}

void hf__zk_tickets_forget_all(struct hf__zk *zk)
{
    hf__ticket_table_each(&zk->tickets, forget, zk);
    hf__ticket_table_release(&zk->tickets);
}

/* ---- outcomes ------------------------------------------------------------ */

void hf__zk_tickets_unknown(struct hf__zk *zk, struct hf__ticket *ticket,
                            const hf_error *err)
{
    struct hf__zk_ticket *mine = hf__zk_ticket(zk, ticket);
    bool called = mine->state == HF__ZK_CALLED;

    if (!hf__zk_tickets_asks(mine) && mine->state != HF__ZK_PARKING &&
        mine->state != HF__ZK_UNPARKING && !hf__zk_tickets_leaves(mine))
        return;
    hf__zk_tickets_move(zk, mine, HF__ZK_UNKNOWN);
    if (!called) /* one that was goes on with the next renewal */
        hf__up_unknown(&zk->base, ticket, err);
}

/* One in line has no watch any more: it would wait for ever. */
static void cannot_go_on(struct hf__zk *zk, struct hf__ticket *ticket,
                         const hf_error *err)
{
    if (hf__zk_ticket(zk, ticket)->state == HF__ZK_WAITING)
        hf__zk_wait_lost_place(zk, ticket);
    else
        hf__zk_tickets_unknown(zk, ticket, err);
}

static void on_step(struct hf__zk *zk, const struct hf__zk_call *call,
                    struct hf__zk_reply *reply)
{
    struct hf__ticket *ticket = hf__zk_tickets_find(zk, call->ticket);
    hf_error err;

    if (!ticket)
        return;
    hf__zk_ticket(zk, ticket)->under_way = false;
    if (!reply)
        hf__zk_tickets_answer_lost(zk, ticket);
    else if (call->step(zk, ticket, call, reply, &err) != 0)
        cannot_go_on(zk, ticket, &err);
}

struct hf__zk_call hf__zk_tickets_step(const struct hf__ticket *ticket,
                                       hf__zk_step_fn *step)
{
    return (struct hf__zk_call){
        .done = on_step, .step = step, .ticket = ticket->id};
}

void hf__zk_tickets_answer_lost(struct hf__zk *zk, struct hf__ticket *ticket)
{
    hf_error err;

    (void)hf__zk_errors_lost(zk, &err);
    hf__zk_tickets_unknown(zk, ticket, &err);
}

void hf__zk_tickets_gone(struct hf__zk *zk, struct hf__ticket *ticket,
                         int reason)
{
    hf__zk_park_forget_old(zk, ticket);
    hf__zk_tickets_forget(zk, ticket);
    hf__up_lost(&zk->base, ticket, reason);
}

/* SPDX-License-Identifier: MIT */
/*
 * release.c - release and withdraw.
 *
 * We delete the node; the server then tells the next waiter. If we do not know
 * whether there is one, we list the children first (acquire.c goes on from
 * there). A slot of Curator's semaphore may have a second node, in the line for
 * its mutex: we delete it after the first. A ticket with a condition may have a
 * record there: one that holds leaves in one transaction that uses up its wake-up
 * (park.c); otherwise the record is deleted last, and the wake-up passes on.
 *
 * Failure: when an answer is lost the outcome is unknown. The core calls again;
 * a node that is not there any more was deleted.
 */
#include "engines/zookeeper/zookeeper.h"

static int leave_mutex(struct hf__zk *zk, struct hf__ticket *ticket,
                       hf_error *err);
static int leave_condition(struct hf__zk *zk, struct hf__ticket *ticket,
                           hf_error *err);

/* Certain: there is no node of it. */
static void report_left(struct hf__zk *zk, struct hf__ticket *ticket, int rc)
{
    hf__zk_tickets_forget(zk, ticket);
    hf__up_left(&zk->base, ticket, rc);
}

void hf__zk_release_failed(struct hf__zk *zk, struct hf__ticket *ticket,
                           const hf_error *why)
{
    struct hf__zk_ticket *mine = hf__zk_ticket(zk, ticket);
    hf_error err = *why;
    bool leaving = hf__zk_tickets_leaves(mine);

    if (mine->state == HF__ZK_PARKING) {
        hf__zk_park_failed(zk, ticket, &err);
        return;
    }
    if (ticket->cond && !leaving) {
        hf__zk_condition_lose(zk, ticket, HF__LOST_TAKEN);
        return;
    }
    if (mine->mutex) {
        mine->refused = err;
        if (leave_mutex(zk, ticket, &err) != 0)
            hf__zk_tickets_unknown(zk, ticket, &err);
        return;
    }
    hf__zk_tickets_forget(zk, ticket);
    if (leaving)
        hf__up_left(&zk->base, ticket, 0);
    else
        hf__up_failed(&zk->base, ticket, &err);
}

/* ---- deleting the nodes -------------------------------------------------- */

void hf__zk_release_done(struct hf__zk *zk, struct hf__ticket *ticket)
{
    struct hf__zk_ticket *mine = hf__zk_ticket(zk, ticket);
    hf_error err = mine->refused;

    if (hf__zk_tickets_leaves(mine)) {
        report_left(zk, ticket,
                    mine->state == HF__ZK_RELEASING &&
                            mine->node == HF__ZK_NODE_MISSING
                        ? HF_ELOST
                        : 0);
    } else if (err.code != 0) {
        hf__zk_release_failed(zk, ticket, &err);
    } else {
        hf__zk_tickets_forget(zk, ticket);
        hf__up_busy(&zk->base, ticket, /* again_ns= */ 0,
                    err.text[0] ? err.text : NULL);
    }
}

/* call->number: it was the node in the line for the mutex. */
static int on_deleted(struct hf__zk *zk, struct hf__ticket *ticket,
                      const struct hf__zk_call *call,
                      struct hf__zk_reply *reply, hf_error *err)
{
    struct hf__zk_ticket *mine = hf__zk_ticket(zk, ticket);

    if (reply->error != HF__ZK_OK && reply->error != HF__ZK_NO_NODE)
        return hf__zk_errors_read(zk, reply->error, err);
    if (call->number != 0)
        hf__zk_curator_semaphore_passed(mine);
    else
        hf__zk_nodes_lose(mine, reply->error == HF__ZK_NO_NODE
                                    ? HF__ZK_NODE_MISSING
                                    : HF__ZK_NODE_NONE);
    if (mine->mutex)
        return leave_mutex(zk, ticket, err);
    if (hf__zk_tickets_leaves(mine) && mine->record != HF__ZK_RECORD_NONE)
        return leave_condition(zk, ticket, err);
    hf__zk_release_done(zk, ticket);
    return 0;
}

static int leave_condition(struct hf__zk *zk, struct hf__ticket *ticket,
                           hf_error *err)
{
    if (hf__zk_ticket(zk, ticket)->record == HF__ZK_RECORD_UNSURE)
        return hf__zk_park_seek(zk, ticket, err);
    return hf__zk_condition_delete(zk, ticket, /* reason= */ 0, err);
}

static int leave_mutex(struct hf__zk *zk, struct hf__ticket *ticket,
                       hf_error *err)
{
    struct hf__zk_call call = hf__zk_tickets_step(ticket, on_deleted);

    call.number = true;
    return hf__zk_calls_delete(
        zk, hf__zk_wire_text_of(hf__zk_ticket(zk, ticket)->mutex), &call, err);
}

int hf__zk_release_node(struct hf__zk *zk, struct hf__ticket *ticket,
                        hf_error *err)
{
    const struct hf__zk_ticket *mine = hf__zk_ticket(zk, ticket);
    struct hf__zk_call call = hf__zk_tickets_step(ticket, on_deleted);

    return hf__zk_calls_delete(zk, hf__zk_nodes_own(mine), &call, err);
}

/* There may be a node, or is one, and we do not know its name. */
static bool is_unsure(const struct hf__zk_ticket *mine)
{
    return mine->node == HF__ZK_NODE_UNSURE || mine->node == HF__ZK_NODE_FOUND;
}

int hf__zk_release_begin(struct hf__zk *zk, struct hf__ticket *ticket,
                         hf_error *err)
{
    struct hf__zk_ticket *mine = hf__zk_ticket(zk, ticket);

    if (mine->node == HF__ZK_NODE_KNOWN && mine->state == HF__ZK_RELEASING &&
        hf__zk_park_bears(zk, ticket))
        return hf__zk_park_use_up(zk, ticket, err);
    if (mine->node == HF__ZK_NODE_KNOWN)
        return hf__zk_release_node(zk, ticket, err);
    if (!is_unsure(mine) && mine->mutex)
        return leave_mutex(zk, ticket, err);
    if (!is_unsure(mine) && mine->record != HF__ZK_RECORD_NONE)
        return leave_condition(zk, ticket, err);
    if (!is_unsure(mine)) {
        report_left(zk, ticket, mine->state == HF__ZK_RELEASING ? HF_ELOST : 0);
        return 0;
    }
    return hf__zk_acquire_look_behind(zk, ticket, err);
}

static int leave(struct hf__engine *engine, struct hf__ticket *ticket,
                 enum hf__zk_state state, hf_error *err)
{
    struct hf__zk *zk = (struct hf__zk *)engine;
    struct hf__zk_ticket *mine = hf__zk_ticket(zk, ticket);
    int rc;

    if (!mine->path) {
        /* Never asked for, or its end has been reported. */
        hf__up_left(engine, ticket, state == HF__ZK_RELEASING ? HF_ELOST : 0);
        return 0;
    }
    if (!hf__zk_connection_is_up(zk))
        return hf__zk_errors_not_up(zk, err);
    hf__zk_tickets_move(zk, mine, state);
    mine->watched = 0;
    mine->refused.code = 0;
    if (mine->under_way)
        return 0; /* its answer goes on from here */
    rc = hf__zk_release_begin(zk, ticket, err);
    if (rc != 0)
        hf__zk_tickets_move(zk, mine, HF__ZK_UNKNOWN);
    return rc;
}

int hf__zk_release(struct hf__engine *engine, struct hf__ticket *ticket,
                   hf_error *err)
{
    return leave(engine, ticket, HF__ZK_RELEASING, err);
}

int hf__zk_release_withdraw(struct hf__engine *engine,
                            struct hf__ticket *ticket, hf_error *err)
{
    return leave(engine, ticket, HF__ZK_WITHDRAWING, err);
}

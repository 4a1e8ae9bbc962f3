/* SPDX-License-Identifier: MIT */
/*
 * wait.c - how a waiter hears that it may look again.
 *
 * A waiter watches one node: the one that is in its way. When that goes, or
 * changes, the server sends an event, and the waiter lists the children again.
 * The first that waits for a slot watches the list, because any of the holders
 * may make room; the others watch the node before their own, whose owner marks
 * it when it has got a slot.
 */
#include "engines/zookeeper/zookeeper.h"

/* One in line that cannot go on: the core asks for it again. */
void hf__zk_wait_lost_place(struct hf__zk *zk, struct hf__ticket *ticket)
{
    struct hf__zk_ticket *mine = hf__zk_ticket(zk, ticket);

    if (mine->state != HF__ZK_WAITING)
        return;
    if (ticket->cond) {
        hf__zk_condition_lose(zk, ticket, HF__LOST_BROKEN);
        return;
    }
    hf__zk_tickets_move(zk, mine, HF__ZK_UNKNOWN);
    hf__up_lost(&zk->base, ticket, HF__LOST_BROKEN);
}

void hf__zk_wait_look_again(struct hf__zk *zk, struct hf__ticket *ticket,
                            bool watch)
{
    if (hf__zk_ticket(zk, ticket)->under_way)
        return;
    if (hf__zk_acquire_look(zk, ticket, watch,
                            /* err= */ NULL) != 0)
        hf__zk_wait_lost_place(zk, ticket);
}

/* The one before us is there, and watched; or it has gone already. */
static void on_watching(struct hf__zk *zk, const struct hf__zk_call *call,
                        struct hf__zk_reply *reply)
{
    struct hf__ticket *ticket = hf__zk_tickets_find(zk, call->ticket);
    char copy[HF__ZK_TEXTS];
    hf_lock_info row = {0};

    if (!ticket || !reply || hf__zk_ticket(zk, ticket)->state != HF__ZK_WAITING)
        return;
    if (reply->error != HF__ZK_OK)
        hf__zk_wait_look_again(zk, ticket, /* watch= */ false);
    else if (ticket->mode == HF_SLOT &&
             hf__zk_nodes_read(hf__zk_wire_text(&reply->in), copy, &row))
        hf__zk_wait_look_again(zk, ticket, /* watch= */ true);
}

static int watch(struct hf__zk *zk, struct hf__ticket *ticket,
                 const struct hf__zk_contender *before, hf_error *err)
{
    struct hf__zk_ticket *mine = hf__zk_ticket(zk, ticket);
    struct hf__zk_call call = {.done = on_watching, .ticket = ticket->id};
    struct hf__zk_wire_text path =
        hf__zk_nodes_below(zk, hf__zk_nodes_dir(mine), before->name);

    mine->watched = hf__zk_nodes_hash(zk, path);
    return hf__zk_calls_ask(zk, HF__ZK_GET_DATA, path, /* watch= */ true, &call,
                            err);
}

/* Not our turn. @watched: the list is watched already. */
void hf__zk_wait_stand(struct hf__zk *zk, struct hf__ticket *ticket,
                       const struct hf__zk_contender *before, bool first,
                       bool watched)
{
    struct hf__zk_ticket *mine = hf__zk_ticket(zk, ticket);
    bool asks = hf__zk_tickets_asks(mine);
    hf_error err;
    int rc = 0;

    mine->waited = true;
    if (!watched)
        rc = first ? hf__zk_acquire_look(zk, ticket, /* watch= */ true, &err)
                   : watch(zk, ticket, before, &err);
    if (rc != 0 && asks) {
        hf__zk_tickets_unknown(zk, ticket, &err);
        return;
    }
    hf__zk_tickets_move(zk, mine, HF__ZK_WAITING);
    if (rc != 0)
        hf__zk_wait_lost_place(zk, ticket);
    else if (asks)
        hf__up_queued(&zk->base, ticket);
}

struct event {
    struct hf__zk *zk;
    uint64_t hash; /* of the path */
};

static void look_at_event(struct hf__ticket *ticket, void *ctx)
{
    const struct event *event = ctx;
    struct hf__zk_ticket *mine = hf__zk_ticket(event->zk, ticket);

    if (mine->watched != event->hash)
        return;
    mine->watched = 0;
    if (mine->state == HF__ZK_WAITING)
        hf__zk_wait_look_again(event->zk, ticket, /* watch= */ false);
    else
        (void)hf__zk_renew_ask(event->zk, ticket,
                               /* err= */ NULL);
}

void hf__zk_wait_event(struct hf__zk *zk, struct hf__zk_wire_text path)
{
    struct event event = {zk, hf__zk_nodes_hash(zk, path)};

    hf__ticket_table_each(&zk->tickets, look_at_event, &event);
    hf__zk_condition_event(zk, event.hash);
}

/* SPDX-License-Identifier: MIT */
/*
 * renew.c - renewals and downgrades.
 *
 * A renewal is one trip to a majority (the barrier: neither a server without its
 * leader nor a leader that was replaced can answer it) and, behind it, one
 * question per ticket whether its node is there. The first question for a holder
 * also leaves a watch on the node, so that a lock which somebody breaks is LOST at
 * once.
 *
 * Failure: a renewal without an answer is not reported; the core counts the
 * time. A node that is gone is a certain loss.
 */
#include "engines/zookeeper/zookeeper.h"

/* ---- renewing ------------------------------------------------------------ */

static bool holds_or_waits(const struct hf__zk_ticket *mine)
{
    return mine->state == HF__ZK_HELD || mine->state == HF__ZK_WAITING;
}

/* The node of one that holds or waits. */
static void on_exists(struct hf__zk *zk, const struct hf__zk_call *call,
                      struct hf__zk_reply *reply)
{
    struct hf__ticket *ticket = hf__zk_tickets_find(zk, call->ticket);
    struct hf__zk_ticket *mine;
    struct hf__grant grant;

    if (!ticket || !reply)
        return;
    mine = hf__zk_ticket(zk, ticket);
    if (!holds_or_waits(mine) || mine->renamed != call->number)
        return; /* or it is about a node that we have replaced meanwhile */
    if (reply->error == HF__ZK_NO_NODE) {
        hf__zk_acquire_not_there(zk, ticket);
    } else if (reply->error == HF__ZK_OK) {
        if (mine->state == HF__ZK_HELD)
            mine->watched = hf__zk_nodes_hash(zk, hf__zk_nodes_own(mine));
        grant = hf__zk_acquire_grant(zk, ticket, mine->czxid);
        hf__up_renewed(&zk->base, ticket, &grant);
    }
}

/* One with a condition, which the core never asks for again. True: that is all
 * there is to do. One in line looks again, as its watch may be lost. */
static bool renew_parked(struct hf__zk *zk, struct hf__ticket *ticket)
{
    struct hf__zk_ticket *mine = hf__zk_ticket(zk, ticket);

    if (mine->state == HF__ZK_PARKED)
        hf__zk_condition_beat(zk, ticket);
    else if (mine->state == HF__ZK_UNKNOWN && !mine->under_way &&
             (hf__zk_park_bears(zk, ticket) || !mine->condition))
        hf__zk_acquire_called(zk, ticket);
    else if (mine->state == HF__ZK_WAITING && !mine->under_way)
        (void)hf__zk_acquire_look(zk, ticket, /* watch= */ false,
                                  /* err= */ NULL);
    return !holds_or_waits(mine);
}

/* Is its node there? Tell us, too, when it goes: somebody may break it. */
int hf__zk_renew_ask(struct hf__zk *zk, struct hf__ticket *ticket,
                     hf_error *err)
{
    struct hf__zk_ticket *mine = hf__zk_ticket(zk, ticket);
    struct hf__zk_call call = {
        .done = on_exists, .ticket = ticket->id, .number = mine->renamed};

    if (ticket->cond && renew_parked(zk, ticket))
        return 0;
    if (!holds_or_waits(mine))
        return 0;
    if (mine->node != HF__ZK_NODE_KNOWN)
        return mine->under_way
                   ? 0
                   : hf__zk_acquire_look(zk, ticket, /* watch= */ false, err);
    return hf__zk_calls_ask(zk, HF__ZK_EXISTS, hf__zk_nodes_own(mine),
                            /* watch= */ mine->state == HF__ZK_HELD, &call,
                            err);
}

int hf__zk_renew(struct hf__engine *engine, struct hf__ticket **tickets,
                 size_t n, hf_error *err)
{
    struct hf__zk *zk = (struct hf__zk *)engine;
    int rc;

    rc = hf__zk_calls_barrier(zk, err);
    for (size_t i = 0; i < n && rc == 0; i++)
        rc = hf__zk_renew_ask(zk, tickets[i], err);
    hf__zk_condition_look_at_news(zk);
    return rc;
}

/* ---- downgrading --------------------------------------------------------- */

/* The reader's node carries the writer's number, as Curator's does. */
static struct hf__zk_wire_text reader_path(struct hf__zk *zk,
                                           const struct hf__zk_ticket *mine)
{
    struct hf__zk_contender own;
    struct hf__zk_wire_text name = {mine->path + mine->dir_len + 1,
                                    mine->path_len - mine->dir_len - 1};

    if (!hf__zk_queue_read_contender(&own, name))
        return (struct hf__zk_wire_text){NULL, 0};
    (void)hf__zk_nodes_below(zk, hf__zk_nodes_dir(mine), hf__zk_nodes_id(mine));
    hf__buf_printf(&zk->scratch, "%s%010d", zk->dialect->marker[HF__ZK_READ],
                   (int)own.sequence);
    return hf__zk_nodes_spelled(zk);
}

static void on_downgraded(struct hf__zk *zk, const struct hf__zk_call *call,
                          struct hf__zk_reply *reply)
{
    struct hf__ticket *ticket = hf__zk_tickets_find(zk, call->ticket);
    struct hf__zk_ticket *mine;
    struct hf__zk_wire_text path;
    struct hf__grant grant;
    hf_error err;

    if (!ticket || hf__zk_ticket(zk, ticket)->state != HF__ZK_HELD)
        return;
    mine = hf__zk_ticket(zk, ticket);
    mine->renamed++;
    if (!reply) {
        /* The old node or the new one is there. */
        hf__zk_nodes_lose(mine, HF__ZK_NODE_UNSURE);
        (void)hf__zk_errors_lost(zk, &err);
        hf__up_unknown(&zk->base, ticket, &err);
        return;
    }
    if (hf__zk_multi_result(reply).error != HF__ZK_OK) {
        hf__zk_acquire_not_there(
            zk, ticket); /* only a node that is gone cannot be replaced */
        return;
    }
    path = reader_path(zk, mine);
    if (!path.text || !hf__zk_nodes_adopt(mine, path.text + mine->dir_len + 1,
                                          path.len - mine->dir_len - 1))
        hf__zk_nodes_lose(mine, HF__ZK_NODE_UNSURE);
    ticket->mode = HF_SHARED;
    grant = hf__zk_acquire_grant(zk, ticket, mine->czxid);
    hf__up_renewed(&zk->base, ticket, &grant);
}

/* In one transaction: make the reader's node, delete the writer's. */
int hf__zk_renew_downgrade(struct hf__engine *engine, struct hf__ticket *ticket,
                           hf_error *err)
{
    struct hf__zk *zk = (struct hf__zk *)engine;
    struct hf__zk_ticket *mine = hf__zk_ticket(zk, ticket);
    struct hf__zk_call call = {.done = on_downgraded, .ticket = ticket->id};
    struct hf__buf data = {0};
    size_t mark;
    int rc;

    if (!zk->dialect->marker[HF__ZK_READ])
        return hf__fail(err, HF_EUNSUPPORTED, "dialect=%s has no shared mode",
                        zk->dialect->name);
    if (!hf__zk_connection_is_up(zk) || mine->state != HF__ZK_HELD ||
        mine->node != HF__ZK_NODE_KNOWN)
        return hf__zk_errors_not_up(zk, err);
    hf__zk_nodes_write(zk, ticket, mine->czxid, /* held= */ false, &data);
    mark = hf__zk_calls_begin(zk, HF__ZK_MULTI);
    hf__zk_multi_create(zk, reader_path(zk, mine), hf__zk_wire_text_in(&data),
                        HF__ZK_EPHEMERAL);
    hf__zk_multi_delete(zk, hf__zk_nodes_own(mine));
    hf__buf_release(&data);
    rc = hf__zk_multi_end(zk, mark, &call, err);
    if (rc == 0) {
        mine->renamed++; /* what is known of the old node is not news */
        mine->watched = 0;
    }
    return rc;
}

/* SPDX-License-Identifier: MIT */
/*
 * medallion_seek.c - finding our node again when its name does not tell that it is ours.
 *
 * .NET's DistributedLock calls its nodes by marker and number alone. So where
 * the answer to a create was lost, the children are asked one by one, in one
 * trip, what they say; what we write ends with the ticket's ID. The number of
 * the one that is ours is kept, and the list is asked for once more.
 *
 * Failure: a child that cannot be read might be ours: nobody knows.
 */
#include "engines/zookeeper/zookeeper.h"

/* All children have been asked. */
static void sought(struct hf__zk *zk, struct hf__ticket *ticket)
{
    struct hf__zk_ticket *mine = hf__zk_ticket(zk, ticket);
    hf_error err;

    mine->under_way = false;
    if (mine->node != HF__ZK_NODE_FOUND && mine->seek_error != HF__ZK_OK) {
        (void)hf__zk_errors_read(zk, mine->seek_error, &err);
        hf__zk_tickets_unknown(zk, ticket, &err);
    } else if (mine->node != HF__ZK_NODE_FOUND) {
        hf__zk_acquire_not_there(zk, ticket);
    } else if (hf__zk_acquire_look(zk, ticket, /* watch= */ false, &err) != 0) {
        hf__zk_tickets_unknown(zk, ticket, &err);
    }
}

/* call->number is the child's. */
static void on_said(struct hf__zk *zk, const struct hf__zk_call *call,
                    struct hf__zk_reply *reply)
{
    struct hf__ticket *ticket = hf__zk_tickets_find(zk, call->ticket);
    struct hf__zk_ticket *mine;

    if (!ticket)
        return;
    mine = hf__zk_ticket(zk, ticket);
    mine->seeking--;
    if (reply && reply->error == HF__ZK_OK &&
        hf__zk_nodes_is_of(zk, ticket, hf__zk_wire_text(&reply->in))) {
        mine->node = HF__ZK_NODE_FOUND;
        mine->number = call->number;
    } else if (reply && reply->error != HF__ZK_OK &&
               reply->error != HF__ZK_NO_NODE) {
        mine->seek_error = reply->error;
    }
    if (mine->seeking > 0)
        return;
    if (reply) {
        sought(zk, ticket);
        return;
    }
    mine->under_way = false;
    hf__zk_tickets_answer_lost(zk, ticket);
}

int hf__zk_medallion_seek(struct hf__zk *zk, struct hf__ticket *ticket,
                          const struct hf__zk_queue *line, hf_error *err)
{
    struct hf__zk_ticket *mine = hf__zk_ticket(zk, ticket);
    int rc = 0;

    if (line->n > HF__ZK_ROWS)
        return hf__fail(err, HF_ENOSPACE, "%s: too many nodes to find ours",
                        zk->peer);
    mine->node = HF__ZK_NODE_UNSURE;
    mine->seek_error = HF__ZK_OK;
    for (uint32_t i = 0; i < line->n && rc == 0; i++) {
        struct hf__zk_call call = {.done = on_said,
                                   .ticket = ticket->id,
                                   .number = line->all[i].sequence};

        rc = hf__zk_calls_ask(
            zk, HF__ZK_GET_DATA,
            hf__zk_nodes_below(zk, hf__zk_nodes_dir(mine), line->all[i].name),
            /* watch= */ false, &call, err);
        if (rc == 0)
            mine->seeking++;
    }
    if (mine->seeking == 0)
        return rc;
    if (rc != 0) /* those that were not asked might be ours */
        mine->seek_error = HF__ZK_SESSION_MOVED;
    mine->under_way = true;
    return 0;
}

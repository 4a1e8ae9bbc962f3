/* SPDX-License-Identifier: MIT */
/*
 * cluster_ask.c - a slot that is on its way from one node to another.
 *
 * While a slot is moved, its keys are at the one node or at the other. The node
 * that has always served it goes on to serve the keys that it has, and answers
 * ASK to the rest: the other one may be asked about them, after the word ASKING.
 *
 * A lock of one key is asked for there at once. One of several might be torn:
 * the gate there, and its line still here. So this node is asked first whether
 * it has anything left of the lock. Nothing can be made here any more, so that
 * answer holds. The counter of tokens alone does not keep the lock back: it is
 * taken away here and put down there first, since a key that is at both ends
 * would stop the move of the slot.
 *
 * Redisson's locks of several keys are not asked for there: Redisson does not
 * either, and its counters cannot be taken along.
 *
 * Failure: something is left, or the other node is not connected. Then the call
 * is answered "try again", which is certain and which the core does.
 */
#include "engines/redis/cluster.h"
#include "engines/redis/connection.h"
#include "engines/redis/redisson.h"
#include "engines/redis/tickets.h"

static const char not_now[] = "-TRYAGAIN the lock is on its way\r\n";

/* What was asked, while this node is asked whether the lock is gone. */
struct asked {
    struct hf__redis_call call;
    struct hf__node *to;
    bool renewal; /* it was a renewal: no answer is one */
};

/* The last token, and for how many ms the server is to remember it. */
struct memory {
    uint64_t token; /* 0: none */
    int64_t keep_ms;
};

/* The other node gets the last token before the lock is asked for there. */
static void put_token(struct hf__redis *redis, struct hf__redis_ticket *mine,
                      const struct memory *last)
{
    struct hf__redis_call call = {.done = hf__redis_connection_ignore};
    struct hf__buf *out = &redis->stream.out;
    size_t mark;

    hf__redis_connection_put_asking(redis, mine);
    mark = hf__redis_connection_begin(redis, 6);
    hf__resp_arg_text(out, "SET");
    hf__resp_arg_begin(out, mine->key_len + 2);
    hf__buf_append(out, hf__redis_ticket_key(mine), mine->key_len);
    hf__buf_add(out, ":t");
    hf__resp_arg_end(out);
    hf__resp_arg_number(out, (int64_t)last->token);
    hf__resp_arg_text(out, "NX");
    hf__resp_arg_text(out, "PX");
    hf__resp_arg_number(out, last->keep_ms);
    (void)hf__redis_connection_end(redis, mark, &call, /* err= */ NULL);
}

/* Is this what the ticket still waits for? A grant that is given back is not
 * followed: the core asks for the ticket, or renews it, and that is. */
static bool is_wanted(struct hf__node *from, struct hf__ticket *ticket,
                      bool renewal)
{
    const struct hf__redis_ticket *mine = hf__redis_ticket(from->redis, ticket);
    struct hf__cluster_ticket *above =
        hf__cluster_ticket(from->cluster, ticket);

    if (mine->why || above->at != from ||
        above->redirects++ >= HF__CLUSTER_REDIRECTS)
        return false;
    if (renewal)
        return !hf__redis_ticket_asks(mine) && !hf__redis_ticket_leaves(mine);
    return hf__redis_ticket_asks(mine) || hf__redis_ticket_leaves(mine) ||
           above->call == HF__CLUSTER_DOWNGRADE;
}

/* False: it is not asked there, and nothing has changed. */
static bool go_on(struct hf__node *from, struct hf__node *to, uint64_t id,
                  bool renewal, const struct memory *last)
{
    struct hf__ticket *ticket = hf__redis_tickets_find(from->redis, id);
    struct hf__engine *engine = &to->redis->base;
    struct hf__redis_ticket *mine;
    hf_error err;

    if (!ticket || to->state != HF__PEER_UP ||
        !is_wanted(from, ticket, renewal))
        return false;
    hf__cluster_move(to, ticket);
    mine = hf__redis_ticket(to->redis, ticket);
    mine->importing = true;
    if (last && last->token != 0)
        put_token(to->redis, mine, last);
    if (renewal)
        (void)engine->ops->renew(engine, &ticket, 1, /* err= */ NULL);
    else if (hf__cluster_call(to, ticket, &err) != 0)
        hf__up_unknown(&to->cluster->base, ticket, &err);
    return true;
}

/* The answer of GONE: "h", or 16 digits and the ms behind them, or nothing. */
static bool read_gone(const struct hf__resp_value *value, struct memory *last)
{
    if (value->type != HF__RESP_TEXT || hf__resp_is(value, "h"))
        return false;
    last->token = 0;
    if (value->len <= 16 || value->len > 32)
        return true;
    last->token = hf__redis_tickets_digits(value->text, 16);
    last->keep_ms =
        (int64_t)hf__redis_tickets_digits(value->text + 16, value->len - 16);
    if (last->keep_ms <= 0)
        last->keep_ms = 600000;
    return true;
}

static void on_gone(struct hf__redis *redis, const struct hf__redis_call *call,
                    struct hf__resp *reply)
{
    struct hf__resp try_again = {not_now, not_now + sizeof(not_now) - 1};
    struct asked *asked = call->data;
    struct hf__resp_value value = hf__resp_first(reply);
    struct memory last;
    bool gone;

    gone =
        read_gone(&value, &last) && go_on(redis->base.up_owner, asked->to,
                                          call->ticket, asked->renewal, &last);
    if (!gone && !asked->renewal)
        asked->call.done(redis, &asked->call, reply ? &try_again : NULL);
    hf__free(asked);
}

static bool ask_whether_gone(struct hf__redis *redis,
                             const struct hf__redis_call *call,
                             struct hf__node *to)
{
    struct hf__ticket *ticket = hf__redis_tickets_find(redis, call->ticket);
    struct asked *asked = hf__malloc(sizeof(*asked));
    struct hf__redis_call ask = {
        .done = on_gone, .ticket = call->ticket, .data = asked};
    struct hf__redis_ticket *mine;
    size_t mark;

    if (!ticket || !asked) {
        hf__free(asked);
        return false;
    }
    asked->call = *call;
    asked->call.data = NULL;
    asked->to = to;
    asked->renewal = call->data != NULL;
    mine = hf__redis_ticket(redis, ticket);
    mark = hf__redis_connection_eval_begin(redis, HF__SCRIPT_NATIVE_GONE, 0, 1);
    hf__resp_arg(&redis->stream.out, hf__redis_ticket_key(mine), mine->key_len);
    if (hf__redis_connection_end(redis, mark, &ask, /* err= */ NULL) == 0)
        return true;
    hf__free(asked);
    return false;
}

bool hf__cluster_asked(struct hf__redis *redis,
                       const struct hf__redis_call *call,
                       const struct hf__slot_redirect *to)
{
    struct hf__node *from = redis->base.up_owner;
    struct hf__node *node;
    bool taken;

    if (!call->movable || (redis->kind && redis->kind->derived))
        return false;
    node = hf__cluster_node(from->cluster, to->to.host, to->to.port, from,
                            /* err= */ NULL);
    if (!node || node == from)
        return false;
    hf__cluster_connect_node(node); /* for the next time, if it is new */
    if (node->state != HF__PEER_UP)
        return false;
    taken = redis->dialect == &hf__redis_native
                ? ask_whether_gone(redis, call, node)
                : go_on(from, node, call->ticket, call->data != NULL,
                        /* last= */ NULL);
    if (taken)
        hf__free(call->data); /* the tickets of a renewal: this one */
    return taken;
}

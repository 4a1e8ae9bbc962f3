/* SPDX-License-Identifier: MIT */
/* redisson_renew.c - renewals of Redisson's locks. */
#include "engines/redis/connection.h"
#include "engines/redis/redisson.h"
#include "engines/redis/tickets.h"
#include "engines/redis/verbs.h"

/* To a reader-writer lock a writer is another owner. */
void hf__redisson_renew_put(struct hf__redis *redis, struct hf__ticket *ticket)
{
    struct hf__buf *out = &redis->stream.out;
    bool writes =
        redis->base.caps & HF_CAP_DOWNGRADE && ticket->mode == HF_EXCLUSIVE;
    const char *end = writes ? ":write" : "";
    char owner[HF__REDISSON_OWNER];
    size_t len = hf__redisson_owner(redis, ticket->id, owner);

    hf__resp_arg_begin(out, len + strlen(end));
    hf__buf_append(out, owner, len);
    hf__buf_add(out, end);
    hf__resp_arg_end(out);
    hf__redisson_put_lease(redis, ticket);
    hf__redisson_put_mode(redis, ticket);
}

void hf__redisson_renew_answered(struct hf__redis *redis,
                                 struct hf__ticket *ticket,
                                 const struct hf__resp_value *said,
                                 int64_t sent_ns)
{
    const struct hf__redis_ticket *mine = hf__redis_ticket(redis, ticket);
    struct hf__grant grant = {
        .tokens = 1, .lease_ms = ticket->ttl_ms, .sent_ns = sent_ns};

    if (hf__redis_ticket_asks(mine) || hf__redis_ticket_waits(mine) ||
        hf__redis_ticket_leaves(mine) || said->type != HF__RESP_NUMBER)
        return;
    if (said->number == 1) {
        hf__redis_sync_renewed(redis, ticket, &grant);
    } else {
        hf__redis_release_lost(redis, ticket, HF__LOST_TAKEN);
    }
}

/* Holders, in one trip; waiters look again, each by itself. */
int hf__redisson_renew(struct hf__redis *redis, struct hf__ticket **tickets,
                       size_t n, hf_error *err)
{
    size_t hold = 0;
    int rc = 0;

    for (size_t i = 0; i < n; i++) {
        struct hf__redis_ticket *mine = hf__redis_ticket(redis, tickets[i]);
        struct hf__ticket *holder = tickets[i];

        if (mine->state == HF__REDIS_WAITING)
            rc = hf__redisson_acquire_try(redis, tickets[i], err);
        if (hf__redis_ticket_waits(mine))
            continue;
        tickets[i] = tickets[hold]; /* those who hold come first */
        tickets[hold++] = holder;
    }
    if (hold > 0)
        rc = hf__redis_renew(redis, tickets, hold, err);
    return rc;
}

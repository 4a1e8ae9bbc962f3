/* SPDX-License-Identifier: MIT */
/*
 * native_renew.c - renewals in our own layout.
 *
 * A waiter renews every third of its lease: that proves its life, and finds a
 * grant whose push was lost. The first in line also looks when the holder's
 * lease ends.
 */
#include "engines/redis/connection.h"
#include "engines/redis/native.h"
#include "engines/redis/tickets.h"
#include "engines/redis/verbs.h"

/* The renewal of a grant that was pushed, before replicas are asked: is it one? */
static void confirmed(struct hf__redis *redis, struct hf__ticket *ticket,
                      const struct hf__resp_value *said)
{
    struct hf__redis_ticket *mine = hf__redis_ticket(redis, ticket);

    if (said->text[0] == 'h')
        return; /* yes */
    if (said->text[0] != 'w' || !mine->in_line) {
        hf__redis_release_lost(redis, ticket, HF__LOST_TAKEN);
        return;
    }
    hf__redis_ticket_to(mine, HF__REDIS_WAITING);
    mine->sync = 0;
}

void hf__native_renew_answered(struct hf__redis *redis,
                               struct hf__ticket *ticket,
                               const struct hf__resp_value *said,
                               int64_t sent_ns)
{
    struct hf__redis_ticket *mine = hf__redis_ticket(redis, ticket);
    struct hf__grant grant = {
        .tokens = 1, .lease_ms = ticket->ttl_ms, .sent_ns = sent_ns};

    if (said->type != HF__RESP_TEXT || said->len == 0)
        return;
    if (mine->state == HF__REDIS_SYNCING) {
        confirmed(redis, ticket, said);
        return;
    }
    if (hf__redis_ticket_asks(mine) || hf__redis_ticket_leaves(mine))
        return;
    if (said->text[0] == 'h' && hf__redis_ticket_waits(mine)) {
        hf__native_granted(
            redis, ticket,
            hf__redis_tickets_digits(said->text + 1, said->len - 1), sent_ns,
            /* pushed= */ false);
    } else if (said->text[0] == 'h' ||
               (said->text[0] == 'w' && hf__redis_ticket_waits(mine))) {
        mine->confirmed_ns = sent_ns;
        if (hf__redis_ticket_waits(mine))
            hf__redis_watch(redis, mine,
                            said->text[1] == '-'
                                ? -1
                                : (int64_t)hf__redis_tickets_digits(
                                      said->text + 1, said->len - 1));
        hf__redis_sync_renewed(redis, ticket, &grant);
    } else if (HF__PLANTED("renewal_ignores_the_owner")) {
        hf__redis_sync_renewed(redis, ticket, &grant);
    } else {
        hf__redis_release_lost(redis, ticket, HF__LOST_TAKEN);
    }
}

/* A waiter whose lock is at another server now listens there first. */
int hf__native_renew(struct hf__redis *redis, struct hf__ticket **tickets,
                     size_t n, hf_error *err)
{
    for (size_t i = 0; redis->in_cluster && i < n; i++) {
        struct hf__redis_ticket *mine = hf__redis_ticket(redis, tickets[i]);
        int rc = hf__redis_ticket_waits(mine)
                     ? hf__native_wait_hear(redis, mine, err)
                     : 0;

        if (rc != 0)
            return rc;
    }
    return hf__redis_renew(redis, tickets, n, err);
}

void hf__native_renew_put(struct hf__redis *redis, struct hf__ticket *ticket)
{
    const struct hf__redis_ticket *mine = hf__redis_ticket(redis, ticket);
    struct hf__buf *out = &redis->stream.out;
    char token[16];

    memset(token, '0', sizeof(token));
    if (!hf__redis_ticket_waits(mine))
        hf__redis_tickets_put_digits(token, ticket->token, sizeof(token));
    hf__resp_arg_begin(out, HF__RECORD_HEAD_WIDTH + sizeof(token));
    hf__buf_append(out, mine->record, HF__RECORD_HEAD_WIDTH);
    hf__buf_append(out, token, sizeof(token));
    hf__resp_arg_end(out);
}

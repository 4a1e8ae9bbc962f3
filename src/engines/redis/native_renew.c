/* SPDX-License-Identifier: MIT */
/*
 * native_renew.c - renewals in our own layout.
 *
 * A waiter renews every third of its lease: that proves its life, and finds a
 * grant whose push was lost. So does who is parked on a condition. The first in
 * line also looks when the holder's lease ends.
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

    if (said->text[0] == 'h' || said->text[0] == 'b')
        return; /* yes */
    if (said->text[0] != 'w' || mine->state != HF__REDIS_CALLED) {
        hf__redis_release_lost(redis, ticket, HF__LOST_TAKEN);
        return;
    }
    hf__redis_ticket_to(mine, HF__REDIS_WAITING);
    mine->sync = 0;
}

/* The number behind the letter: digits, or "-1". */
static int64_t number_of(const struct hf__resp_value *said)
{
    return said->len > 1 && said->text[1] == '-'
               ? -1
               : (int64_t)hf__redis_tickets_digits(said->text + 1,
                                                   said->len - 1);
}

/* Who waits is told what the server has of it. */
static void found(struct hf__redis *redis, struct hf__ticket *ticket,
                  const struct hf__resp_value *said,
                  const struct hf__grant *renewed)
{
    struct hf__redis_ticket *mine = hf__redis_ticket(redis, ticket);
    bool parked = hf__redis_ticket_parks(mine);
    char is = said->text[0];

    if (is == 'h' || is == 'b') {
        hf__native_granted(redis, ticket, (uint64_t)number_of(said),
                           renewed->sent_ns, is == 'b' ? HF__NATIVE_WOKEN : 0u);
    } else if (is == 'w' && parked) {
        hf__native_acquire_queued(redis, ticket, number_of(said),
                                  renewed->sent_ns);
    } else if (is == 'w' || (is == 'p' && parked)) {
        mine->confirmed_ns = renewed->sent_ns;
        if (is == 'w')
            hf__redis_watch(redis, mine, number_of(said));
        hf__up_renewed(&redis->base, ticket, renewed);
    } else if (HF__PLANTED("renewal_ignores_the_owner")) {
        hf__up_renewed(&redis->base, ticket, renewed);
    } else {
        hf__redis_release_lost(redis, ticket, HF__LOST_TAKEN);
    }
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
    if (mine->state == HF__REDIS_SYNCING || mine->state == HF__REDIS_CALLED) {
        confirmed(redis, ticket, said);
        return;
    }
    if (hf__redis_ticket_asks(mine) || hf__redis_ticket_leaves(mine) ||
        mine->state == HF__REDIS_YIELDING)
        return;
    if (hf__redis_ticket_hears(mine)) {
        found(redis, ticket, said, &grant);
    } else if (said->text[0] == 'h' || said->text[0] == 'b') {
        mine->confirmed_ns = sent_ns;
        grant.token = (uint64_t)number_of(said);
        grant.woken = said->text[0] == 'b';
        if (ticket->cond && ticket->token == 0) /* the core has not heard */
            hf__up_granted(&redis->base, ticket, &grant);
        else
            hf__redis_sync_renewed(redis, ticket, &grant);
    } else if (HF__PLANTED("renewal_ignores_the_owner")) {
        hf__redis_sync_renewed(redis, ticket, &grant);
    } else {
        hf__redis_release_lost(redis, ticket, HF__LOST_TAKEN);
    }
}

void hf__native_renew_give_up(struct hf__redis *redis,
                              struct hf__ticket *ticket)
{
    hf_error why;

    (void)hf__fail(&why, HF_EUNAVAILABLE,
                   "%s: it may have lost a signal, and is not the server that "
                   "'%s' waited at",
                   redis->peer, ticket->name);
    hf__redis_sync_give_back(redis, ticket, &why);
}

/* A waiter whose lock is at another server now, or whose connection is new,
 * listens there first. */
int hf__native_renew(struct hf__redis *redis, struct hf__ticket **tickets,
                     size_t n, hf_error *err)
{
    for (size_t i = 0; i < n; i++) {
        struct hf__redis_ticket *mine = hf__redis_ticket(redis, tickets[i]);
        int rc = 0;

        if (mine->state == HF__REDIS_STALE)
            hf__native_renew_give_up(redis, tickets[i]);
        else if (hf__redis_ticket_hears(mine))
            rc = hf__native_wait_hear(redis, mine, err);
        if (rc != 0)
            return rc;
    }
    return hf__redis_renew(redis, tickets, n, err);
}

void hf__native_renew_put(struct hf__redis *redis, struct hf__ticket *ticket)
{
    const struct hf__redis_ticket *mine = hf__redis_ticket(redis, ticket);
    bool waits = hf__redis_ticket_hears(mine);
    /* It may have parked by then, though we do not know it yet: a park that is
     * under way comes before this call. */
    bool parked = ticket->cond && ticket->token == 0;
    struct hf__buf *out = &redis->stream.out;
    char token[16];

    memset(token, '0', sizeof(token));
    if (!waits)
        hf__redis_tickets_put_digits(token, ticket->token, sizeof(token));
    hf__resp_arg_begin(out, HF__RECORD_HEAD_WIDTH + sizeof(token) + parked);
    hf__buf_append(out, mine->record, HF__RECORD_HEAD_WIDTH);
    hf__buf_append(out, token, sizeof(token));
    hf__buf_append(out, "p", parked);
    hf__resp_arg_end(out);
}

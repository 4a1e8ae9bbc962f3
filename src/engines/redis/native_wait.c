/* SPDX-License-Identifier: MIT */
/* native_wait.c - where a waiter hears of its grant, in our own layout. */
#include <stdlib.h>

#include "engines/redis/connection.h"
#include "engines/redis/native.h"
#include "engines/redis/tickets.h"
#include "engines/redis/verbs.h"

/* A letter, the ticket's number, its nonce. */
enum { PUSH_HEAD = 1 + 12 + 16 };

int hf__native_wait_hear(struct hf__redis *redis, struct hf__redis_ticket *mine,
                         hf_error *err)
{
    struct hf__buf *to = &redis->scratch;
    int rc = 0;

    if (!redis->in_cluster)
        return hf__redis_connection_subscribe(redis, err);
    if (!mine->channel) {
        to->len = 0;
        hf__buf_append(to, hf__redis_ticket_key(mine), mine->key_len);
        hf__buf_add(to, ":i:");
        hf__buf_add(to, redis->identity);
        if (hf__buf_failed(to)) {
            hf__buf_release(to);
            return hf__fail(err, HF_ENOMEM, "out of memory");
        }
        rc = hf__redis_wait_join(redis, mine, to->text, to->len, err);
    }
    return rc == 0 ? hf__redis_wait_listen(redis, mine, err) : rc;
}

/* Is the push about a ticket of ours, and from somebody who could read its
 * record? A user who may publish sees the channels; not the nonce. */
static struct hf__ticket *pushed_to(struct hf__redis *redis,
                                    const struct hf__resp_value *said)
{
    struct hf__ticket *ticket;
    char number[13];

    if (said->len < PUSH_HEAD)
        return NULL;
    memcpy(number, said->text + 1, 12);
    number[12] = '\0';
    ticket = hf__redis_tickets_find(redis, strtoull(number, NULL, 16));
    if (!ticket ||
        memcmp(said->text + 13,
               hf__redis_ticket(redis, ticket)->record + HF__RECORD_NONCE,
               16) != 0)
        return NULL;
    return ticket;
}

/* "g" ticket nonce token: granted; "w" likewise, woken by a signal. "b" ticket
 * nonce: somebody broke it. A token that has been is no grant; a renewal finds
 * the one that is. */
void hf__native_wait_heard(struct hf__redis *redis,
                           const struct hf__resp_value *channel,
                           const struct hf__resp_value *said)
{
    struct hf__ticket *ticket = pushed_to(redis, said);
    struct hf__redis_ticket *mine;
    uint64_t token;

    (void)channel; /* all are ours alone */
    if (!ticket)
        return;
    mine = hf__redis_ticket(redis, ticket);
    if ((said->text[0] == 'g' || said->text[0] == 'w') &&
        hf__redis_ticket_hears(mine) && said->len == PUSH_HEAD + 16) {
        token = hf__redis_tickets_digits(said->text + PUSH_HEAD, 16);
        if (token > hf__redis_ticket_name(redis, ticket)->token)
            hf__native_granted(
                redis, ticket, token, mine->confirmed_ns,
                HF__NATIVE_PUSHED |
                    (said->text[0] == 'w' ? HF__NATIVE_WOKEN : 0u));
    } else if (said->text[0] == 'b' &&
               HF__REDIS_IS(mine, HF__REDIS_BIT(HELD) | HF__REDIS_BIT(SYNCING) |
                                      HF__REDIS_BIT(CALLED))) {
        hf__redis_release_lost(redis, ticket, HF__LOST_BROKEN);
    }
}

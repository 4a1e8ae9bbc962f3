/* SPDX-License-Identifier: MIT */
/*
 * renew.c - renewals: many tickets in one trip, whatever the dialect.
 *
 * One script has a key for each ticket, and as many arguments as the dialect
 * puts behind them; the answer is a list with a value for each. Calls name
 * tickets by number, because the core may give one back meanwhile. In a
 * cluster a script works in one slot, so each ticket has its own script, all
 * in one write.
 *
 * Failure: no answer, or one that is not a list. Then the core counts the time;
 * the dialect reports a ticket that was still asking.
 */
#include "engines/redis/connection.h"
#include "engines/redis/errors.h"
#include "engines/redis/redis.h"
#include "engines/redis/tickets.h"
#include "engines/redis/verbs.h"

struct batch {
    uint32_t n;
    uint64_t tickets[];
};

static void on_renewed(struct hf__redis *redis,
                       const struct hf__redis_call *call,
                       struct hf__resp *reply);

/* All of them are known here. */
static int send_batch(struct hf__redis *redis, struct batch *batch,
                      hf_error *err)
{
    const struct hf__redis_dialect *dialect = redis->dialect;
    struct hf__ticket *first = hf__redis_tickets_find(redis, batch->tickets[0]);
    struct hf__redis_call call = {.done = on_renewed,
                                  .ticket = first->id,
                                  .data = batch,
                                  .movable = true};
    uint32_t n = batch->n;
    size_t mark;

    hf__redis_connection_put_asking(redis, hf__redis_ticket(redis, first));
    mark = hf__redis_connection_script_begin(redis, redis->renew_script, n,
                                             n * dialect->renewal.arguments);

    for (uint32_t i = 0; i < n; i++) {
        const struct hf__redis_ticket *mine = hf__redis_ticket(
            redis, hf__redis_tickets_find(redis, batch->tickets[i]));

        hf__resp_arg(&redis->stream.out, hf__redis_ticket_key(mine),
                     mine->key_len);
    }
    for (uint32_t i = 0; i < n; i++)
        dialect->renewal.put(redis,
                             hf__redis_tickets_find(redis, batch->tickets[i]));
    return hf__redis_connection_end(redis, mark, &call, err);
}

static void tell_silence(struct hf__redis *redis, const struct batch *batch)
{
    for (uint32_t i = 0; i < batch->n && redis->dialect->renewal.silent; i++) {
        struct hf__ticket *ticket =
            hf__redis_tickets_find(redis, batch->tickets[i]);

        if (ticket)
            redis->dialect->renewal.silent(redis, ticket);
    }
}

/* The script was not there: ask again for those that are still here. */
static void renew_again(struct hf__redis *redis, struct batch *batch)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < batch->n; i++) {
        struct hf__ticket *ticket =
            hf__redis_tickets_find(redis, batch->tickets[i]);

        if (!ticket)
            continue;
        hf__redis_sync_again(redis, ticket);
        batch->tickets[n++] = batch->tickets[i];
    }
    batch->n = n;
    if (n > 0 && send_batch(redis, batch, /* err= */ NULL) == 0)
        return;
    tell_silence(redis, batch);
    hf__free(batch);
}

static void on_renewed(struct hf__redis *redis,
                       const struct hf__redis_call *call,
                       struct hf__resp *reply)
{
    struct batch *batch = call->data;
    struct hf__resp_value value = hf__resp_first(reply);

    if (hf__redis_connection_script_lost(redis, &value, redis->renew_script)) {
        renew_again(redis, batch);
        return;
    }
    if (value.type != HF__RESP_LIST || value.count != batch->n)
        tell_silence(redis, batch);
    for (uint32_t i = 0;
         value.type == HF__RESP_LIST && i < value.count && i < batch->n; i++) {
        struct hf__ticket *ticket =
            hf__redis_tickets_find(redis, batch->tickets[i]);
        struct hf__resp_value said = hf__resp_next(reply);

        hf__resp_skip(reply, &said);
        if (ticket && value.count == batch->n)
            redis->dialect->renewal.answered(redis, ticket, &said,
                                             call->sent_ns);
    }
    hf__free(batch);
}

static int renew_some(struct hf__redis *redis, struct hf__ticket **tickets,
                      size_t n, hf_error *err)
{
    struct batch *batch =
        hf__malloc(sizeof(*batch) + n * sizeof(batch->tickets[0]));
    bool given_back = false; /* that is reported when it is done */
    int rc;

    if (!batch)
        return hf__fail(err, HF_ENOMEM, "out of memory");
    batch->n = 0;
    for (size_t i = 0; i < n; i++) {
        const struct hf__redis_ticket *mine =
            hf__redis_ticket(redis, tickets[i]);

        given_back |= mine->why != NULL;
        if (mine->record && !mine->why)
            batch->tickets[batch->n++] = tickets[i]->id;
    }
    rc = batch->n > 0 ? send_batch(redis, batch, err) : HF_EINTERNAL;
    if (rc != 0)
        hf__free(batch);
    return given_back ? 0 : rc;
}

int hf__redis_renew(struct hf__redis *redis, struct hf__ticket **tickets,
                    size_t n, hf_error *err)
{
    size_t most = redis->in_cluster ? 1 : HF__REDIS_RENEWALS; /* one slot */
    int rc = 0;

    for (size_t i = 0; i < n && rc == 0; i += most)
        rc = renew_some(redis, tickets + i, n - i < most ? n - i : most, err);
    return rc;
}

/* SPDX-License-Identifier: MIT */
/*
 * renew.c - renewals: many tickets in one trip, whatever the dialect.
 *
 * A beat is one script with a key for each ticket and as many arguments as the
 * dialect puts behind it; the answer is a list with a value for each. Tickets
 * are named by their numbers while it is under way: the core may give one back
 * meanwhile. In a cluster a script works in one slot, so each ticket has its
 * own, all in one write.
 *
 * Failure: no answer, or one that is none. Then nobody knows, and the core
 * counts the time; a ticket that was asking hears so by the dialect.
 */
#include "engines/redis/connection.h"
#include "engines/redis/errors.h"
#include "engines/redis/redis.h"
#include "engines/redis/tickets.h"
#include "engines/redis/verbs.h"

struct beats {
    uint32_t n;
    uint64_t tickets[];
};

static void on_beaten(struct hf__redis *redis,
                      const struct hf__redis_call *call,
                      struct hf__resp *reply);

/* All of them are known here. */
static int send_beats(struct hf__redis *redis, struct beats *beats,
                      hf_error *err)
{
    const struct hf__redis_dialect *dialect = redis->dialect;
    struct hf__ticket *first = hf__redis_tickets_find(redis, beats->tickets[0]);
    struct hf__redis_call call = {
        .done = on_beaten, .ticket = first->id, .data = beats, .movable = true};
    uint32_t n = beats->n;
    size_t mark;

    hf__redis_connection_put_asking(redis, hf__redis_ticket(redis, first));
    mark = hf__redis_connection_script_begin(redis, dialect->beat_script(redis),
                                             n, n * dialect->beat_arguments);

    for (uint32_t i = 0; i < n; i++) {
        const struct hf__redis_ticket *mine = hf__redis_ticket(
            redis, hf__redis_tickets_find(redis, beats->tickets[i]));

        hf__resp_arg(&redis->stream.out, hf__redis_ticket_key(mine),
                     mine->key_len);
    }
    for (uint32_t i = 0; i < n; i++)
        dialect->put_beat(redis,
                          hf__redis_tickets_find(redis, beats->tickets[i]));
    return hf__redis_connection_end(redis, mark, &call, err);
}

static void tell_silence(struct hf__redis *redis, const struct beats *beats)
{
    for (uint32_t i = 0; i < beats->n && redis->dialect->not_beaten; i++) {
        struct hf__ticket *ticket =
            hf__redis_tickets_find(redis, beats->tickets[i]);

        if (ticket)
            redis->dialect->not_beaten(redis, ticket);
    }
}

/* The script was not there: ask again for those that are still here. */
static void beat_again(struct hf__redis *redis, struct beats *beats)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < beats->n; i++) {
        if (hf__redis_tickets_find(redis, beats->tickets[i]))
            beats->tickets[n++] = beats->tickets[i];
    }
    beats->n = n;
    (void)hf__redis_connection_script_load(redis,
                                           redis->dialect->beat_script(redis));
    if (n > 0 && send_beats(redis, beats, /* err= */ NULL) == 0)
        return;
    tell_silence(redis, beats);
    hf__free(beats);
}

static void on_beaten(struct hf__redis *redis,
                      const struct hf__redis_call *call, struct hf__resp *reply)
{
    struct beats *beats = call->data;
    struct hf__resp_value value = {0};

    if (reply)
        value = hf__resp_next(reply);
    if (hf__redis_errors_is_noscript(&value)) {
        beat_again(redis, beats);
        return;
    }
    if (value.type != HF__RESP_LIST || value.count != beats->n)
        tell_silence(redis, beats);
    for (uint32_t i = 0;
         value.type == HF__RESP_LIST && i < value.count && i < beats->n; i++) {
        struct hf__ticket *ticket =
            hf__redis_tickets_find(redis, beats->tickets[i]);
        struct hf__resp_value said = hf__resp_next(reply);

        hf__resp_skip(reply, &said);
        if (ticket && value.count == beats->n)
            redis->dialect->beaten(redis, ticket, &said, call->sent_ns);
    }
    hf__free(beats);
}

static int beat_some(struct hf__redis *redis, struct hf__ticket **tickets,
                     size_t n, hf_error *err)
{
    struct beats *beats =
        hf__malloc(sizeof(*beats) + n * sizeof(beats->tickets[0]));
    int rc;

    if (!beats)
        return hf__fail(err, HF_ENOMEM, "out of memory");
    beats->n = 0;
    for (size_t i = 0; i < n; i++) {
        if (hf__redis_ticket(redis, tickets[i])->record)
            beats->tickets[beats->n++] = tickets[i]->id;
    }
    rc = beats->n > 0 ? send_beats(redis, beats, err) : HF_EINTERNAL;
    if (rc != 0)
        hf__free(beats);
    return rc;
}

int hf__redis_renew(struct hf__redis *redis, struct hf__ticket **tickets,
                    size_t n, hf_error *err)
{
    size_t most = redis->in_cluster ? 1 : HF__REDIS_BEATS; /* one slot */
    int rc = 0;

    for (size_t i = 0; i < n && rc == 0; i += most)
        rc = beat_some(redis, tickets + i, n - i < most ? n - i : most, err);
    return rc;
}

/* SPDX-License-Identifier: MIT */
/*
 * native.c - our own layout: first come first served, handed on by push.
 *
 *   native_acquire.c    asking, with a script or without one
 *   native_wait.c       wake-ups
 *   native_renew.c      renewals, also of waiters
 *   native_condition.c  waiting for a condition, and signals
 *
 * A waiter stands in line at the server. The script of the client that releases
 * grants to the first waiter that lives, and pushes the grant to its connection.
 *
 * A grant counts from when the last answered request of its ticket was SENT,
 * also when it is pushed: the push does not say when it happened.
 *
 * One script serves release and withdrawal.
 *
 * Failure: an error of the server that may have come half-way through a script
 * is followed by a release, and reported when that is done (release.c).
 */
#include "engines/redis/native.h"

#include "config/name.h"
#include "engines/redis/connection.h"
#include "engines/redis/tickets.h"
#include "engines/redis/verbs.h"

static void key(struct hf__redis *redis, const char *name, size_t len)
{
    const char *prefix = redis->base.host->settings->prefix;
    struct hf__buf *to = &redis->scratch;
    char whole[128 + HF_NAME_MAX + 1];
    char encoded[3 * sizeof(whole) + 1];
    size_t prefix_len = redis->prefix_len;
    size_t n;

    assert(prefix_len + len <= sizeof(whole));
    memcpy(whole, prefix, prefix_len);
    memcpy(whole + prefix_len, name, len);
    n = hf__name_encode(whole, prefix_len + len, encoded, sizeof(encoded));
    to->len = 0;
    hf__buf_add(to, "hf:{");
    hf__buf_append(to, encoded, n);
    hf__buf_add(to, "}");
}

void hf__native_granted(struct hf__redis *redis, struct hf__ticket *ticket,
                        uint64_t token, int64_t sent_ns, unsigned how)
{
    struct hf__redis_ticket *mine = hf__redis_ticket(redis, ticket);
    struct hf__redis_name *name = hf__redis_ticket_name(redis, ticket);
    uint32_t reserve = ticket->reserve < 999 ? ticket->reserve : 999;
    struct hf__grant grant = {
        .token = token,
        .tokens = reserve,
        .lease_ms = ticket->ttl_ms,
        .sent_ns = sent_ns,
        .woken = (how & HF__NATIVE_WOKEN) != 0,
    };

    mine->watch_ns = 0;
    mine->confirmed_ns = sent_ns;
    hf__redis_wait_part(redis, mine);
    if (name->token < token + reserve - 1)
        name->token = token + reserve - 1;
    hf__redis_sync_granted(redis, ticket, &grant,
                           (how & HF__NATIVE_PUSHED) != 0);
}

static int send_release(struct hf__redis *redis, struct hf__ticket *ticket,
                        hf__redis_reply_fn *done, void *data, hf_error *err)
{
    struct hf__redis_ticket *mine = hf__redis_ticket(redis, ticket);
    struct hf__redis_call call = {
        .done = done, .ticket = ticket->id, .data = data, .movable = !data};
    struct hf__buf *out = &redis->stream.out;
    size_t mark;

    mark = hf__redis_connection_ticket_begin(
        redis, ticket, HF__SCRIPT_NATIVE_RELEASE, ticket->cond ? 3 : 2);
    hf__resp_arg(out, mine->record, HF__RECORD_TICKET_WIDTH);
    /* A holder is known by its ticket; a waiter by the whole record. */
    hf__resp_arg(out, mine->record,
                 mine->state == HF__REDIS_RELEASING ? 0 : mine->record_len);
    if (ticket->cond)
        hf__resp_arg(out, "p", 1);
    return hf__redis_connection_end(redis, mark, &call, err);
}

static int downgrade(struct hf__redis *redis, struct hf__ticket *ticket,
                     hf_error *err)
{
    struct hf__redis_ticket *mine = hf__redis_ticket(redis, ticket);
    struct hf__redis_call call = {.done = hf__redis_release_downgraded,
                                  .ticket = ticket->id,
                                  .sent_ns = hf__now(),
                                  .movable = true};
    struct hf__buf *out = &redis->stream.out;
    size_t mark;

    mark = hf__redis_connection_ticket_begin(redis, ticket,
                                             HF__SCRIPT_NATIVE_DOWNGRADE, 2);
    mine->record[HF__RECORD_MODE] = 's';
    hf__resp_arg(out, mine->record, mine->record_len);
    hf__resp_arg_number(out, (int64_t)ticket->token);
    return hf__redis_connection_end(redis, mark, &call, err);
}

const struct hf__redis_dialect hf__redis_native = {
    .name = "native",
    .caps = HF__REDIS_CAPS,
    .acquire = hf__native_acquire,
    .release_script = HF__SCRIPT_NATIVE_RELEASE,
    .send_release = send_release,
    .renew = hf__native_renew,
    .renewal = {HF__SCRIPT_NATIVE_RENEW, 1, hf__native_renew_put,
                hf__native_renew_answered, NULL},
    .downgrade_script = HF__SCRIPT_NATIVE_DOWNGRADE,
    .downgrade = downgrade,
    .park = hf__native_condition_park,
    .unpark = hf__native_condition_unpark,
    .key = key,
    .heard = hf__native_wait_heard,
};

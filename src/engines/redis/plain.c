/* SPDX-License-Identifier: MIT */
/*
 * plain.c - the lock that everybody has: SET key value NX PX.
 *
 * redsync, node-redlock, redis-py, Spring and others see the same lock: the key
 * is prefix and name as they are, the value a text that only its owner knows,
 * and release and renewal compare it. Nobody stands in line, nobody is woken,
 * there is no token: while a caller waits, the core asks again by its retry
 * policy.
 *
 * Our value begins with 128 random bits and the number of the ticket; behind
 * them it says who we are, for people. SET NX GET answers with the value that
 * is in the way, so one trip also tells who holds it, or that it is ourselves:
 * an answer that was lost.
 *
 * To others a value is a text to compare. Where somebody expects the shape that
 * a library gives it, or host and process should not be seen, the setting mode
 * names the shape: then it is 80 random bits and the number of the ticket.
 */
#include "engines/common/caps.h"
#include "engines/common/holder.h"
#include "engines/redis/connection.h"
#include "engines/redis/redis.h"
#include "engines/redis/tickets.h"
#include "engines/redis/verbs.h"

#include <stdio.h>

/* What the value of a lock looks like: the setting mode. */
struct hf__plain_shape {
    const char *mode;
    uint32_t len;
    void (*put)(const uint8_t bytes[16], char *to);
};

static void put_hex(const uint8_t bytes[16], char *to)
{
    for (int i = 0; i < 16; i++)
        (void)snprintf(to + 2 * (size_t)i, 3, "%02x", bytes[i]);
}

static void put_base64(const uint8_t bytes[16], char *to)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                 "abcdefghijklmnopqrstuvwxyz0123456789+/";
    uint32_t bits;

    for (int i = 0; i < 15; i += 3) {
        bits = (uint32_t)bytes[i] << 16 | (uint32_t)bytes[i + 1] << 8 |
               bytes[i + 2];
        for (int shift = 18; shift >= 0; shift -= 6)
            *to++ = digits[bits >> shift & 63];
    }
    *to++ = digits[bytes[15] >> 2];
    *to++ = digits[(bytes[15] & 3) << 4];
    *to++ = '=';
    *to = '=';
}

static void put_uuid(const uint8_t bytes[16], char *to)
{
    char hex[33];

    put_hex(bytes, hex);
    hf__redis_tickets_put_uuid(hex, to);
}

static const struct hf__plain_shape shapes[] = {
    {"hex", 32, put_hex},       /* node-redlock, redis-py */
    {"base64", 24, put_base64}, /* redsync */
    {"uuid", 36, put_uuid},     /* Spring */
};

static int open_shape(struct hf__redis *redis, hf_error *err)
{
    const char *mode = redis->base.host->settings->mode;

    for (size_t i = 0; i < HF_COUNT_OF(shapes); i++) {
        if (strcmp(mode, shapes[i].mode) == 0)
            redis->shape = &shapes[i];
    }
    if (redis->shape || mode[0] == '\0' || strcmp(mode, "named") == 0)
        return 0;
    return hf__fail(err, HF_ECONFIG,
                    "mode=%s: dialect=plain has named, hex, base64 and uuid",
                    mode);
}

/* The value lies at the end of the record's head, which plain does not use:
 * ticket, colon, texts. */
enum { VALUE_AT = HF__RECORD_TEXTS - HF__RECORD_TICKET_WIDTH - 1 };

static void key(struct hf__redis *redis, const char *name, size_t len)
{
    struct hf__buf *to = &redis->scratch;

    to->len = 0;
    hf__buf_add(to, redis->base.host->settings->prefix);
    hf__buf_append(to, name, len);
}

static const char *value_of(const struct hf__redis *redis,
                            const struct hf__redis_ticket *mine)
{
    return mine->record +
           (redis->shape ? HF__RECORD_TEXTS - redis->shape->len : VALUE_AT);
}

static size_t value_len(const struct hf__redis *redis,
                        const struct hf__redis_ticket *mine)
{
    return redis->shape ? redis->shape->len : mine->record_len - VALUE_AT;
}

/* In the shape of others: the identity, and the number of the ticket. */
static void put_shaped(const struct hf__redis *redis, uint64_t id, char *record)
{
    char text[40];
    uint8_t bytes[16];

    memcpy(bytes, redis->base.host->identity, 10);
    for (int i = 0; i < 6; i++)
        bytes[10 + i] = (uint8_t)(id >> (40 - 8 * i));
    redis->shape->put(bytes, text);
    memcpy(record + HF__RECORD_TEXTS - redis->shape->len, text,
           redis->shape->len);
}

static int start(struct hf__redis *redis, struct hf__ticket *ticket,
                 hf_error *err)
{
    struct hf__redis_ticket *mine = hf__redis_ticket(redis, ticket);
    int rc = hf__redis_tickets_ask(redis, ticket, /* token= */ 0, err);

    if (rc != 0 || mine->again)
        return rc;
    if (redis->shape) {
        put_shaped(redis, ticket->id, mine->record);
        return 0;
    }
    memcpy(mine->record + VALUE_AT, mine->record, HF__RECORD_TICKET_WIDTH);
    mine->record[HF__RECORD_TEXTS - 1] = ':';
    return 0;
}

static int64_t lease_ms(const struct hf__redis *redis,
                        const struct hf__ticket *ticket)
{
    return ticket->ttl_ms + redis->base.host->settings->lock_delay_ms;
}

/* ---- asking ------------------------------------------------------------ */

static int send_set(struct hf__redis *redis, struct hf__ticket *ticket,
                    hf_error *err);

static void granted(struct hf__redis *redis, struct hf__ticket *ticket,
                    int64_t sent_ns)
{
    struct hf__grant grant = {
        .tokens = 1, .lease_ms = ticket->ttl_ms, .sent_ns = sent_ns};

    hf__redis_sync_granted(redis, ticket, &grant, /* pushed= */ false);
}

static void busy(struct hf__redis *redis, struct hf__ticket *ticket,
                 const struct hf__resp_value *value)
{
    size_t head = HF__RECORD_TICKET_WIDTH + 1;
    char record[HF__RECORD_TEXTS + HF__REDIS_TEXTS];
    char holder[160];
    bool ours = value->len > head && value->len < HF__REDIS_TEXTS &&
                value->text[HF__RECORD_TICKET_WIDTH] == ':';

    if (ours) {
        memset(record, '0', HF__RECORD_TEXTS);
        memcpy(record + HF__RECORD_TEXTS, value->text + head,
               value->len - head);
        hf__redis_tickets_record_holder(record,
                                        HF__RECORD_TEXTS + value->len - head,
                                        holder, sizeof(holder));
    }
    hf__redis_tickets_forget(redis, ticket);
    hf__up_rival(ticket, hf__holder_rival(value->text, value->len));
    hf__up_busy(&redis->base, ticket, /* again_ns= */ 0, ours ? holder : NULL);
}

static void on_set(struct hf__redis *redis, const struct hf__redis_call *call,
                   struct hf__resp *reply)
{
    struct hf__resp_value value;
    struct hf__ticket *ticket =
        hf__redis_release_asking(redis, call, reply, &value);
    const struct hf__redis_ticket *mine;
    hf_error err;

    if (!ticket)
        return;
    mine = hf__redis_ticket(redis, ticket);
    if (value.type == HF__RESP_NULL) {
        granted(redis, ticket, call->sent_ns);
    } else if (value.type == HF__RESP_TEXT &&
               value.len == value_len(redis, mine) &&
               memcmp(value.text, value_of(redis, mine), value.len) == 0) {
        /* Ours already: its lease began when we do not know. */
        if (hf__redis_renew(redis, &ticket, 1, &err) != 0)
            hf__redis_release_unknown(redis, ticket);
    } else if (value.type == HF__RESP_TEXT) {
        busy(redis, ticket, &value);
    } else {
        hf__redis_release_refused(redis, ticket, &value);
    }
}

static int send_set(struct hf__redis *redis, struct hf__ticket *ticket,
                    hf_error *err)
{
    struct hf__redis_ticket *mine = hf__redis_ticket(redis, ticket);
    struct hf__redis_call call = {
        .done = on_set, .ticket = ticket->id, .movable = true};
    struct hf__buf *out = &redis->stream.out;
    size_t mark;

    hf__redis_connection_put_asking(redis, mine);
    mark = hf__redis_connection_begin(redis, 7);
    hf__resp_arg(out, "SET", 3);
    hf__resp_arg(out, hf__redis_ticket_key(mine), mine->key_len);
    hf__resp_arg(out, value_of(redis, mine), value_len(redis, mine));
    hf__resp_arg(out, "NX", 2);
    hf__resp_arg(out, "GET", 3);
    hf__resp_arg(out, "PX", 2);
    hf__resp_arg_number(out, lease_ms(redis, ticket));
    return hf__redis_connection_end(redis, mark, &call, err);
}

static int acquire(struct hf__redis *redis, struct hf__ticket *ticket,
                   hf_error *err)
{
    int rc = start(redis, ticket, err);

    if (rc != 0)
        return rc;
    rc = send_set(redis, ticket, err);
    return rc == 0 ? 0 : hf__redis_tickets_not_asked(redis, ticket, err);
}

/* ---- leaving ----------------------------------------------------------- */

static int send_release(struct hf__redis *redis, struct hf__ticket *ticket,
                        hf__redis_reply_fn *done, void *data, hf_error *err)
{
    struct hf__redis_ticket *mine = hf__redis_ticket(redis, ticket);
    struct hf__redis_call call = {
        .done = done, .ticket = ticket->id, .data = data, .movable = !data};
    size_t mark;

    mark = hf__redis_connection_ticket_begin(redis, ticket,
                                             HF__SCRIPT_PLAIN_RELEASE, 1);
    hf__resp_arg(&redis->stream.out, value_of(redis, mine),
                 value_len(redis, mine));
    return hf__redis_connection_end(redis, mark, &call, err);
}

/* ---- renewing ---------------------------------------------------------- */

static void put_renewal(struct hf__redis *redis, struct hf__ticket *ticket)
{
    const struct hf__redis_ticket *mine = hf__redis_ticket(redis, ticket);

    hf__resp_arg(&redis->stream.out, value_of(redis, mine),
                 value_len(redis, mine));
    hf__resp_arg_number(&redis->stream.out, lease_ms(redis, ticket));
}

static void renewed(struct hf__redis *redis, struct hf__ticket *ticket,
                    const struct hf__resp_value *said, int64_t sent_ns)
{
    struct hf__redis_ticket *mine = hf__redis_ticket(redis, ticket);
    bool ours = hf__resp_number(said, 0) == 1;
    struct hf__grant grant = {
        .tokens = 1, .lease_ms = ticket->ttl_ms, .sent_ns = sent_ns};

    if (hf__redis_ticket_leaves(mine))
        return;
    if (hf__redis_ticket_asks(mine) && ours) {
        granted(redis, ticket, sent_ns);
    } else if (hf__redis_ticket_asks(mine)) {
        if (send_set(redis, ticket, /* err= */ NULL) != 0)
            hf__redis_release_unknown(redis, ticket);
    } else if (ours) {
        hf__redis_sync_renewed(redis, ticket, &grant);
    } else {
        hf__redis_release_lost(redis, ticket, HF__LOST_TAKEN);
    }
}

/* Nobody knows: who asked hears so, who renews counts the time. */
static void not_renewed(struct hf__redis *redis, struct hf__ticket *ticket)
{
    if (hf__redis_ticket_asks(hf__redis_ticket(redis, ticket)))
        hf__redis_release_unknown(redis, ticket);
}

const struct hf__redis_dialect hf__redis_plain = {
    .name = "plain",
    .caps = HF__CAPS_LEASED | HF_CAP_VERSIONS | HF_CAP_BREAK,
    .open = open_shape,
    .acquire = acquire,
    .release_script = HF__SCRIPT_PLAIN_RELEASE,
    .send_release = send_release,
    .renew = hf__redis_renew,
    .renewal = {HF__SCRIPT_PLAIN_RENEW, 2, put_renewal, renewed, not_renewed},
    .key = key,
};

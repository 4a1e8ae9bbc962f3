/* SPDX-License-Identifier: MIT */
/*
 * native.c - our own layout: first come first served, handed on by push.
 *
 * ASKING. A name that nobody contends for is taken without a script: SET NX
 * and INCR of the token travel in one write. INCR alone could repeat a token
 * after the server lost data, so it is used only on a name whose token a script
 * has based on the server's clock on this same connection, at most five
 * minutes ago: losing data breaks connections. Whatever goes wrong on that
 * path (it is taken, the counter has gone) is sorted out by the script, which
 * may be asked again and again for one ticket.
 *
 * WAITING. A waiter stands in line at the server. Who releases grants to the
 * first one that lives, and pushes the grant to its connection. The waiter
 * renews every third of its lease: that proves its life, and would find a grant
 * whose push was lost. The first in line also looks when the holder's lease
 * ends.
 *
 * A grant counts from when the last answered request of its ticket was SENT,
 * also when it is pushed: the push does not say when it happened.
 *
 * LEAVING is one script for release, withdrawal and reaping.
 *
 * Failure: an error of the server that may have come half-way through a script
 * is followed by a release, and reported when that is done (release.c).
 */
#include <stdlib.h>

#include "config/name.h"
#include "engines/redis/connection.h"
#include "engines/redis/errors.h"
#include "engines/redis/redis.h"
#include "engines/redis/tickets.h"
#include "engines/redis/verbs.h"

#define BASED_NS (300 * HF_SECOND)
/* Nor by more than so many µs: the server's memory of the last token ends when
 * its clock is ten minutes beyond what the script saw. */
#define BASED_US UINT64_C(300000000)
/* A node of a cluster keeps its connections when it loses a slot and gets it
 * back; but not within a second. */
#define BASED_IN_CLUSTER_NS HF_SECOND
/* Smaller numbers were counted up from nothing. */
#define TOKEN_MIN INT64_C(1000000000000000)

/* After so many grants at once, nobody seems to contend any more. */
enum { QUIET = 8 };
/* A letter, the ticket's number, its nonce. */
enum { PUSH_HEAD = 1 + 12 + 16 };

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

/* ---- reports ----------------------------------------------------------- */

static void granted(struct hf__redis *redis, struct hf__ticket *ticket,
                    uint64_t token, int64_t sent_ns, bool pushed)
{
    struct hf__redis_ticket *mine = hf__redis_ticket(redis, ticket);
    struct hf__redis_name *name =
        hf__redis_ticket_name(redis, ticket->name, ticket->name_len);
    uint32_t reserve = ticket->reserve < 999 ? ticket->reserve : 999;
    struct hf__grant grant = {
        .token = token,
        .tokens = reserve,
        .lease_ms = ticket->ttl_ms,
        .sent_ns = sent_ns,
    };

    mine->watch_ns = 0;
    mine->confirmed_ns = sent_ns;
    hf__redis_wait_part(redis, mine);
    if (name->token < token + reserve - 1)
        name->token = token + reserve - 1;
    hf__redis_sync_granted(redis, ticket, &grant, pushed);
}

static void busy(struct hf__redis *redis, struct hf__ticket *ticket,
                 struct hf__resp *reply)
{
    struct hf__resp_value record;
    char holder[160];

    (void)hf__resp_next(reply); /* how long its lease lasts */
    record = hf__resp_next(reply);
    holder[0] = '\0';
    if (record.type == HF__RESP_TEXT && record.len > HF__RECORD_TEXTS)
        hf__redis_tickets_record_holder(record.text, record.len, holder,
                                        sizeof(holder));
    hf__redis_tickets_forget(redis, ticket);
    hf__up_busy(&redis->base, ticket, /* again_ns= */ 0,
                holder[0] ? holder : NULL);
}

static void queued(struct hf__redis *redis, struct hf__ticket *ticket,
                   int64_t watch_ms, int64_t sent_ns)
{
    struct hf__redis_ticket *mine = hf__redis_ticket(redis, ticket);

    hf__redis_ticket_to(mine, HF__REDIS_WAITING);
    mine->confirmed_ns = sent_ns;
    hf__redis_watch(redis, mine, watch_ms);
    hf__up_queued(&redis->base, ticket);
}

/* ---- leaving ----------------------------------------------------------- */

static int release_script(const struct hf__redis *redis)
{
    (void)redis;
    return HF__SCRIPT_NATIVE_RELEASE;
}

static int send_release(struct hf__redis *redis, struct hf__ticket *ticket,
                        hf__redis_reply_fn *done, void *data, hf_error *err)
{
    struct hf__redis_ticket *mine = hf__redis_ticket(redis, ticket);
    struct hf__redis_call call = {
        .done = done, .ticket = ticket->id, .data = data, .movable = !data};
    struct hf__buf *out = &redis->stream.out;
    size_t mark;

    hf__redis_connection_put_asking(redis, mine);
    mark = hf__redis_connection_script_begin(redis, HF__SCRIPT_NATIVE_RELEASE,
                                             1, 2);
    hf__resp_arg(out, hf__redis_ticket_key(mine), mine->key_len);
    hf__resp_arg(out, mine->record, HF__RECORD_TICKET_WIDTH);
    /* A holder is known by its ticket; a waiter by the whole record. */
    hf__resp_arg(out, mine->record,
                 mine->state == HF__REDIS_RELEASING ? 0 : mine->record_len);
    return hf__redis_connection_end(redis, mark, &call, err);
}

/* ---- asking ------------------------------------------------------------ */

static void on_acquired(struct hf__redis *redis,
                        const struct hf__redis_call *call,
                        struct hf__resp *reply);

/* Make sure that a grant is heard: on the client's own channel, or in a
 * cluster on one for this name, which is in the slot of its lock. */
static int hear(struct hf__redis *redis, struct hf__redis_ticket *mine,
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

/* In a cluster a channel is subscribed to and left again for each wait: a name
 * that seems quiet is tried first. */
static bool may_wait(struct hf__redis *redis, const struct hf__ticket *ticket)
{
    return !ticket->nowait &&
           (!redis->in_cluster ||
            hf__redis_ticket_name(redis, ticket->name, ticket->name_len)
                ->contended);
}

static int send_acquire(struct hf__redis *redis, struct hf__ticket *ticket,
                        hf_error *err)
{
    struct hf__redis_ticket *mine = hf__redis_ticket(redis, ticket);
    struct hf__redis_call call = {
        .done = on_acquired, .ticket = ticket->id, .movable = true};
    struct hf__buf *out = &redis->stream.out;
    bool wait = may_wait(redis, ticket);
    size_t mark;
    int rc;

    if (wait) {
        rc = hear(redis, mine, err);
        if (rc != 0)
            return rc;
    }
    hf__redis_connection_put_asking(redis, mine);
    mark = hf__redis_connection_script_begin(redis, HF__SCRIPT_NATIVE_ACQUIRE,
                                             1, 3);
    hf__resp_arg(out, hf__redis_ticket_key(mine), mine->key_len);
    hf__resp_arg(out, mine->record, mine->record_len);
    hf__resp_arg(out, wait ? "1" : "0", 1);
    hf__resp_arg(out, mine->state == HF__REDIS_TRIED ? "1" : "0", 1);
    return hf__redis_connection_end(redis, mark, &call, err);
}

/* Ask by the script, from inside an answer. */
static void ask_on(struct hf__redis *redis, struct hf__ticket *ticket)
{
    hf_error err;

    if (send_acquire(redis, ticket, &err) != 0) {
        hf__redis_ticket_doubt(hf__redis_ticket(redis, ticket));
        hf__up_unknown(&redis->base, ticket, &err);
    }
}

static void acquired(struct hf__redis *redis, struct hf__ticket *ticket,
                     const struct hf__redis_call *call, struct hf__resp *reply)
{
    struct hf__redis_name *name =
        hf__redis_ticket_name(redis, ticket->name, ticket->name_len);
    struct hf__resp_value letter = hf__resp_next(reply);
    struct hf__resp_value number;

    if (hf__resp_is(&letter, "b") && !ticket->nowait && !name->contended) {
        name->contended = QUIET;
        ask_on(redis, ticket);
        return;
    }
    if (hf__resp_is(&letter, "b")) {
        busy(redis, ticket, reply);
        return;
    }
    number = hf__resp_next(reply);
    if (hf__resp_is(&letter, "q")) {
        name->contended = QUIET;
        queued(redis, ticket, hf__resp_number(&number, -1), call->sent_ns);
        return;
    }
    if (name->contended > 0)
        name->contended--;
    name->based_ns = call->sent_ns;
    name->based = (uint64_t)hf__resp_number(&number, 0);
    granted(redis, ticket, name->based, call->sent_ns, /* pushed= */ false);
}

static void on_acquired(struct hf__redis *redis,
                        const struct hf__redis_call *call,
                        struct hf__resp *reply)
{
    struct hf__ticket *ticket = hf__redis_tickets_find(redis, call->ticket);
    struct hf__redis_ticket *mine =
        ticket ? hf__redis_ticket(redis, ticket) : NULL;
    struct hf__resp_value value;

    if (!mine || !hf__redis_ticket_asks(mine))
        return; /* withdrawn meanwhile */
    if (!reply) {
        hf__redis_release_unknown(redis, ticket);
        return;
    }
    value = hf__resp_next(reply);
    if (hf__redis_errors_is_noscript(&value)) {
        (void)hf__redis_connection_script_load(redis,
                                               HF__SCRIPT_NATIVE_ACQUIRE);
        ask_on(redis, ticket);
    } else if (value.type != HF__RESP_LIST || value.count < 2) {
        hf__redis_release_refused(redis, ticket, &value);
    } else {
        acquired(redis, ticket, call, reply);
    }
}

/* ---- the way without a script ------------------------------------------ */

static void on_counted(struct hf__redis *redis,
                       const struct hf__redis_call *call,
                       struct hf__resp *reply)
{
    struct hf__ticket *ticket = hf__redis_tickets_find(redis, call->ticket);
    struct hf__redis_ticket *mine =
        ticket ? hf__redis_ticket(redis, ticket) : NULL;
    struct hf__resp_value value;

    if (!mine || !hf__redis_ticket_asks(mine))
        return;
    if (!reply) {
        hf__redis_release_unknown(redis, ticket);
        return;
    }
    value = hf__resp_next(reply);
    if (mine->state != HF__REDIS_TRIED && value.type == HF__RESP_NUMBER &&
        value.number >= TOKEN_MIN) {
        granted(redis, ticket, (uint64_t)value.number - (ticket->reserve - 1),
                call->sent_ns, /* pushed= */ false);
        return;
    }
    if (mine->state == HF__REDIS_TRIED)
        hf__redis_ticket_name(redis, ticket->name, ticket->name_len)
            ->contended = QUIET;
    hf__redis_ticket_to(mine, HF__REDIS_TRIED);
    ask_on(redis, ticket);
}

/* The answer to SET NX; that to INCR follows. */
static void on_set(struct hf__redis *redis, const struct hf__redis_call *call,
                   struct hf__resp *reply)
{
    struct hf__ticket *ticket = hf__redis_tickets_find(redis, call->ticket);
    struct hf__redis_ticket *mine =
        ticket ? hf__redis_ticket(redis, ticket) : NULL;
    struct hf__resp_value value;

    if (!mine || !reply || mine->state != HF__REDIS_ASKING)
        return;
    value = hf__resp_next(reply);
    if (!hf__resp_is(&value, "OK"))
        hf__redis_ticket_to(mine, HF__REDIS_TRIED);
}

static int send_fast(struct hf__redis *redis, struct hf__ticket *ticket,
                     hf_error *err)
{
    struct hf__redis_ticket *mine = hf__redis_ticket(redis, ticket);
    struct hf__redis_call call = {.ticket = ticket->id, .sent_ns = hf__now()};
    struct hf__buf *out = &redis->stream.out;
    const char *lock = hf__redis_ticket_key(mine);
    size_t mark = out->len;
    int rc;

    hf__resp_literal(out, "*6\r\n$3\r\nSET\r\n");
    hf__resp_arg(out, lock, mine->key_len);
    hf__resp_arg(out, mine->record, mine->record_len);
    hf__resp_literal(out, "$2\r\nNX\r\n$2\r\nPX\r\n");
    hf__resp_arg_number(out, ticket->ttl_ms +
                                 redis->base.host->settings->lock_delay_ms);
    call.done = on_set;
    rc = hf__redis_connection_end(redis, mark, &call, err);
    if (rc != 0)
        return rc;

    mark = out->len;
    hf__resp_literal(out, "*3\r\n$6\r\nINCRBY\r\n");
    hf__resp_arg_begin(out, mine->key_len + 2);
    hf__buf_append(out, lock, mine->key_len);
    hf__resp_literal(out, ":t\r\n");
    hf__resp_arg_number(out, ticket->reserve);
    call.done = on_counted;
    if (hf__redis_connection_end(redis, mark, &call, err) != 0)
        ask_on(redis, ticket); /* SET is on its way */
    return 0;
}

static int acquire(struct hf__redis *redis, struct hf__ticket *ticket,
                   hf_error *err)
{
    struct hf__redis_name *name =
        hf__redis_ticket_name(redis, ticket->name, ticket->name_len);
    struct hf__redis_ticket *mine = hf__redis_ticket(redis, ticket);
    bool known = mine->record != NULL;
    bool quick;
    int rc;

    rc = hf__redis_tickets_know(redis, ticket, err);
    if (rc != 0)
        return rc;
    if (!known) /* and never again: the line is searched for the record */
        hf__redis_tickets_put_digits(mine->record + HF__RECORD_TOKEN,
                                     name->token, 16);
    quick = ticket->mode == HF_EXCLUSIVE && !ticket->nowait && !known &&
            name->contended == 0 && name->based_ns != 0 &&
            ticket->reserve < 999 && name->token - name->based < BASED_US &&
            ticket->sent_ns - name->based_ns <
                (redis->in_cluster ? BASED_IN_CLUSTER_NS : BASED_NS);
    hf__redis_ticket_to(mine, HF__REDIS_ASKING);
    mine->again = known;
    rc = quick ? send_fast(redis, ticket, err)
               : send_acquire(redis, ticket, err);
    return rc == 0 ? 0 : hf__redis_tickets_not_asked(redis, ticket, known, err);
}

/* ---- renewals ---------------------------------------------------------- */

static void renewed(struct hf__redis *redis, struct hf__ticket *ticket,
                    const struct hf__resp_value *said, int64_t sent_ns)
{
    struct hf__redis_ticket *mine = hf__redis_ticket(redis, ticket);
    struct hf__grant grant = {
        .tokens = 1, .lease_ms = ticket->ttl_ms, .sent_ns = sent_ns};

    if (hf__redis_ticket_asks(mine) || hf__redis_ticket_leaves(mine) ||
        said->type != HF__RESP_TEXT || said->len == 0)
        return;
    if (said->text[0] == 'h' && hf__redis_ticket_waits(mine)) {
        granted(redis, ticket,
                hf__redis_tickets_digits(said->text + 1, said->len - 1),
                sent_ns, /* pushed= */ false);
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
    } else {
        hf__redis_tickets_forget(redis, ticket);
        hf__up_lost(&redis->base, ticket, HF__LOST_TAKEN);
    }
}

static int renew_script(const struct hf__redis *redis)
{
    (void)redis;
    return HF__SCRIPT_NATIVE_RENEW;
}

/* Who is in line at another server now listens there first. */
static int renew(struct hf__redis *redis, struct hf__ticket **tickets, size_t n,
                 hf_error *err)
{
    for (size_t i = 0; redis->in_cluster && i < n; i++) {
        struct hf__redis_ticket *mine = hf__redis_ticket(redis, tickets[i]);
        int rc = hf__redis_ticket_waits(mine) ? hear(redis, mine, err) : 0;

        if (rc != 0)
            return rc;
    }
    return hf__redis_renew(redis, tickets, n, err);
}

/* The head of the record, and the token. */
static void put_renewal(struct hf__redis *redis, struct hf__ticket *ticket)
{
    const struct hf__redis_ticket *mine = hf__redis_ticket(redis, ticket);
    struct hf__buf *out = &redis->stream.out;
    char token[16];

    hf__redis_tickets_put_digits(
        token, hf__redis_ticket_waits(mine) ? 0 : ticket->token, 16);
    hf__resp_arg_begin(out, HF__RECORD_HEAD_WIDTH + sizeof(token));
    hf__buf_append(out, mine->record, HF__RECORD_HEAD_WIDTH);
    hf__buf_append(out, token, sizeof(token));
    hf__resp_arg_end(out);
}

/* ---- downgrade --------------------------------------------------------- */

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

    hf__redis_connection_put_asking(redis, mine);
    mark = hf__redis_connection_script_begin(redis, HF__SCRIPT_NATIVE_DOWNGRADE,
                                             1, 2);
    mine->record[HF__RECORD_MODE] = 's';
    hf__resp_arg(out, hf__redis_ticket_key(mine), mine->key_len);
    hf__resp_arg(out, mine->record, mine->record_len);
    hf__resp_arg_number(out, (int64_t)ticket->token);
    return hf__redis_connection_end(redis, mark, &call, err);
}

/* ---- pushes ------------------------------------------------------------ */

/* Is the push about a ticket of ours, and from somebody who could read its
 * record? Whoever may publish sees the channels; not the nonce. */
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

/* "g" ticket nonce token: granted. "b" ticket nonce: somebody broke it. A token
 * that has been is no grant; a renewal finds the one that is. */
static void heard(struct hf__redis *redis, const struct hf__resp_value *channel,
                  const struct hf__resp_value *said)
{
    struct hf__ticket *ticket = pushed_to(redis, said);
    struct hf__redis_ticket *mine;
    uint64_t token;

    (void)channel; /* all are ours alone */
    if (!ticket)
        return;
    mine = hf__redis_ticket(redis, ticket);
    if (said->text[0] == 'g' && hf__redis_ticket_waits(mine) &&
        said->len == PUSH_HEAD + 16) {
        token = hf__redis_tickets_digits(said->text + PUSH_HEAD, 16);
        if (token >
            hf__redis_ticket_name(redis, ticket->name, ticket->name_len)->token)
            granted(redis, ticket, token, mine->confirmed_ns,
                    /* pushed= */ true);
    } else if (said->text[0] == 'b' && !hf__redis_ticket_waits(mine) &&
               !hf__redis_ticket_asks(mine) && !hf__redis_ticket_leaves(mine)) {
        hf__redis_tickets_forget(redis, ticket);
        hf__up_lost(&redis->base, ticket, HF__LOST_BROKEN);
    }
}

const struct hf__redis_dialect hf__redis_native = {
    .name = "native",
    .caps = HF_CAP_FENCED | HF_CAP_FIFO | HF_CAP_SHARED | HF_CAP_SLOTS |
            HF_CAP_PUSH | HF_CAP_LEASED | HF_CAP_DISTRIBUTED |
            HF_CAP_DOWNGRADE | HF_CAP_VERSIONS | HF_CAP_LIST | HF_CAP_BREAK |
            HF_CAP_CHECK_TOKEN | HF_CAP_LOCK_DELAY | HF_CAP_TOLD_BEFORE_REGRANT,
    .acquire = acquire,
    .release_script = release_script,
    .send_release = send_release,
    .renew = renew,
    .renew_script = renew_script,
    .renew_arguments = 1,
    .put_renewal = put_renewal,
    .renewed = renewed,
    .downgrade_script = HF__SCRIPT_NATIVE_DOWNGRADE,
    .downgrade = downgrade,
    .key = key,
    .heard = heard,
};

/* SPDX-License-Identifier: MIT */
/*
 * native_acquire.c - asking for a lock in our own layout.
 *
 * A name that nobody contends for is taken without a script: SET NX and INCR of
 * the token travel in one write. INCR alone could repeat a token after the
 * server lost data, so it is used only on a name whose token a script has based
 * on the server's clock on this same connection, at most five minutes ago:
 * losing data breaks connections. Whatever goes wrong there (the lock is taken,
 * the counter has gone) is sorted out by the script, which may be asked again
 * and again for one ticket.
 *
 * A try of a name that was taken the last time reads the lock first: GET shows
 * that it still is, and who has it, in one command.
 */
#include "engines/redis/connection.h"
#include "engines/redis/native.h"
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

/* ---- reports ----------------------------------------------------------- */

static bool is_record(const struct hf__resp_value *value)
{
    return value->type == HF__RESP_TEXT && value->len > HF__RECORD_TEXTS;
}

/* The holder's @record is in the way. */
static void busy(struct hf__redis *redis, struct hf__ticket *ticket,
                 const struct hf__resp_value *record)
{
    char holder[160];

    holder[0] = '\0';
    if (is_record(record))
        hf__redis_tickets_record_holder(record->text, record->len, holder,
                                        sizeof(holder));
    hf__redis_ticket_name(redis, ticket)->taken = true;
    hf__redis_tickets_forget(redis, ticket);
    hf__up_busy(&redis->base, ticket, /* again_ns= */ 0,
                holder[0] ? holder : NULL);
}

void hf__native_acquire_queued(struct hf__redis *redis,
                               struct hf__ticket *ticket, int64_t watch_ms,
                               int64_t sent_ns)
{
    struct hf__redis_ticket *mine = hf__redis_ticket(redis, ticket);

    hf__redis_ticket_to(mine, HF__REDIS_WAITING);
    mine->confirmed_ns = sent_ns;
    hf__redis_watch(redis, mine, watch_ms);
    hf__up_queued(&redis->base, ticket);
}

/* ---- by the script ----------------------------------------------------- */

static void on_acquired(struct hf__redis *redis,
                        const struct hf__redis_call *call,
                        struct hf__resp *reply);

/* In a cluster a channel is subscribed to and left again for each wait: a name
 * that seems quiet is tried first. */
static bool may_wait(struct hf__redis *redis, struct hf__ticket *ticket)
{
    return !ticket->nowait && (!redis->in_cluster ||
                               hf__redis_ticket_name(redis, ticket)->contended);
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
        rc = hf__native_wait_hear(redis, mine, err);
        if (rc != 0)
            return rc;
    }
    mark = hf__redis_connection_ticket_begin(redis, ticket,
                                             HF__SCRIPT_NATIVE_ACQUIRE, 3);
    hf__resp_arg(out, mine->record, mine->record_len);
    hf__resp_arg(out, wait ? "1" : "0", 1);
    hf__resp_arg(out, mine->state == HF__REDIS_TRIED ? "1" : "0", 1);
    return hf__redis_connection_end(redis, mark, &call, err);
}

/* Ask by the script, from inside an answer. */
static void ask_on(struct hf__redis *redis, struct hf__ticket *ticket)
{
    hf_error err;

    if (send_acquire(redis, ticket, &err) != 0)
        hf__redis_release_doubtful(redis, ticket, &err);
}

static void acquired(struct hf__redis *redis, struct hf__ticket *ticket,
                     const struct hf__redis_call *call, struct hf__resp *reply)
{
    struct hf__redis_name *name = hf__redis_ticket_name(redis, ticket);
    struct hf__resp_value letter = hf__resp_next(reply);
    struct hf__resp_value number = hf__resp_next(reply);
    struct hf__resp_value record;

    if (hf__resp_is(&letter, "b") && !ticket->nowait && !name->contended) {
        name->contended = QUIET;
        ask_on(redis, ticket);
        return;
    }
    if (hf__resp_is(&letter, "b")) {
        record = hf__resp_next(reply); /* behind the rest of its lease */
        busy(redis, ticket, &record);
        return;
    }
    if (hf__resp_is(&letter, "q")) {
        name->contended = QUIET;
        hf__native_acquire_queued(redis, ticket, hf__resp_number(&number, -1),
                                  call->sent_ns);
        return;
    }
    if (name->contended > 0)
        name->contended--;
    name->taken = false;
    name->based_ns = call->sent_ns;
    name->based = (uint64_t)hf__resp_number(&number, 0);
    hf__native_granted(redis, ticket, name->based, call->sent_ns, /* how= */ 0);
}

static void on_acquired(struct hf__redis *redis,
                        const struct hf__redis_call *call,
                        struct hf__resp *reply)
{
    struct hf__resp_value value;
    struct hf__ticket *ticket =
        hf__redis_release_asking(redis, call, reply, &value);

    if (!ticket)
        return;
    if (hf__redis_connection_script_lost(redis, &value,
                                         HF__SCRIPT_NATIVE_ACQUIRE)) {
        ask_on(redis, ticket);
    } else if (value.type != HF__RESP_LIST || value.count < 2) {
        hf__redis_release_refused(redis, ticket, &value);
    } else {
        acquired(redis, ticket, call, reply);
    }
}

/* ---- a try of what was taken the last time ------------------------------- */

/* In the fast form the gate is the record of the one that holds it, and of
 * nobody else; it goes with the lease. */
static void on_glanced(struct hf__redis *redis,
                       const struct hf__redis_call *call,
                       struct hf__resp *reply)
{
    struct hf__resp_value gate;
    struct hf__ticket *ticket =
        hf__redis_release_asking(redis, call, reply, &gate);

    if (!ticket)
        return;
    if (is_record(&gate) && gate.text[HF__GATE_FORM] != '~') {
        busy(redis, ticket, &gate);
        return;
    }
    hf__redis_ticket_name(redis, ticket)->taken = false;
    ask_on(redis, ticket);
}

static int send_glance(struct hf__redis *redis, struct hf__ticket *ticket,
                       hf_error *err)
{
    struct hf__redis_ticket *mine = hf__redis_ticket(redis, ticket);
    struct hf__redis_call call = {.done = on_glanced, .ticket = ticket->id};
    size_t mark = hf__redis_connection_begin(redis, 2);

    hf__resp_literal(&redis->stream.out, "$3\r\nGET\r\n");
    hf__resp_arg(&redis->stream.out, hf__redis_ticket_key(mine), mine->key_len);
    return hf__redis_connection_end(redis, mark, &call, err);
}

/* ---- the way without a script ------------------------------------------ */

static void on_counted(struct hf__redis *redis,
                       const struct hf__redis_call *call,
                       struct hf__resp *reply)
{
    struct hf__resp_value value;
    struct hf__ticket *ticket =
        hf__redis_release_asking(redis, call, reply, &value);
    struct hf__redis_ticket *mine;

    if (!ticket)
        return;
    mine = hf__redis_ticket(redis, ticket);
    if (mine->state != HF__REDIS_TRIED && value.type == HF__RESP_NUMBER &&
        value.number >= TOKEN_MIN) {
        hf__native_granted(redis, ticket,
                           (uint64_t)value.number - (ticket->reserve - 1),
                           call->sent_ns, /* how= */ 0);
        return;
    }
    if (mine->state == HF__REDIS_TRIED)
        hf__redis_ticket_name(redis, ticket)->contended = QUIET;
    hf__redis_ticket_to(mine, HF__REDIS_TRIED);
    ask_on(redis, ticket);
}

/* The answer to SET NX; that to INCR follows. */
static void on_set(struct hf__redis *redis, const struct hf__redis_call *call,
                   struct hf__resp *reply)
{
    struct hf__redis_ticket *mine = hf__redis_tickets_mine(redis, call->ticket);
    struct hf__resp_value value = hf__resp_first(reply);

    if (mine && reply && mine->state == HF__REDIS_ASKING &&
        !hf__resp_is(&value, "OK"))
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

int hf__native_acquire(struct hf__redis *redis, struct hf__ticket *ticket,
                       hf_error *err)
{
    struct hf__redis_name *name = hf__redis_ticket_name(redis, ticket);
    struct hf__redis_ticket *mine = hf__redis_ticket(redis, ticket);
    bool glance;
    bool quick;
    int rc = hf__redis_tickets_ask(redis, ticket, name->token, err);

    if (rc != 0)
        return rc;
    glance =
        name->taken && ticket->nowait && !mine->again && !redis->in_cluster;
    quick = ticket->mode == HF_EXCLUSIVE && !ticket->nowait && !mine->again &&
            name->contended == 0 && name->based_ns != 0 &&
            ticket->reserve < 999 && name->token - name->based < BASED_US &&
            ticket->sent_ns - name->based_ns <
                (redis->in_cluster ? BASED_IN_CLUSTER_NS : BASED_NS);
    rc = quick    ? send_fast(redis, ticket, err)
         : glance ? send_glance(redis, ticket, err)
                  : send_acquire(redis, ticket, err);
    return rc == 0 ? 0 : hf__redis_tickets_not_asked(redis, ticket, err);
}

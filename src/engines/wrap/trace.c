/* SPDX-License-Identifier: MIT */
/*
 * trace.c - the engine that logs: "trace+local:" logs every call and report.
 *
 * One line for each, at level HF_LOG_INFO, through the log hook:
 *
 *     acquire 'jobs' #12, exclusive, ttl 30 s
 *     acquire 'jobs' #12 → granted token 1763, lease 30 s, in 41 µs
 *     release 'jobs' #12
 *     release 'jobs' #12 → left, in 7 µs
 *
 * "#12" is the ticket: one request of this client at the engine, from acquire
 * to its end. A line with an arrow is a report of the engine, named after the
 * last call for that ticket, which need not be its cause: the engine also
 * grants to waiters, and reports losses. The time counts from that call.
 *
 * Nothing fails here: calls and reports pass unchanged, and a line for which
 * there is no memory is left out.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "core/client.h"
#include "engines/wrap/wrap.h"

struct trace {
    struct hf__wrap wrap;
    int64_t connect_ns; /* when connect() was called */
};

/* Our bytes of every ticket. */
struct trace_ticket {
    const char *call; /* the last one */
    int64_t called_ns;
};

enum { SPAN_SIZE = 32, LINE_SIZE = 640 };

static const char *const lost_names[HF__LOST_REASONS] = {
    [HF__LOST_EXPIRED] = "expired",   [HF__LOST_TAKEN] = "taken",
    [HF__LOST_SESSION] = "session",   [HF__LOST_BROKEN] = "broken",
    [HF__LOST_MAX_HOLD] = "max_hold", [HF__LOST_NO_BEAT] = "no_beat",
};

/* "41 µs", "1500 ms", "30 s". */
static const char *span(char *text, int64_t ns)
{
    if (ns < HF_MS)
        (void)snprintf(text, SPAN_SIZE, "%" PRId64 " µs", ns / 1000);
    else if (ns < 10 * HF_SECOND && ns % HF_SECOND != 0)
        (void)snprintf(text, SPAN_SIZE, "%" PRId64 " ms", ns / HF_MS);
    else
        (void)snprintf(text, SPAN_SIZE, "%" PRId64 " s", ns / HF_SECOND);
    return text;
}

static const char *mode_name(int mode)
{
    static const char *const names[] = {"exclusive", "shared", "slot"};

    return names[mode];
}

HF_PRINTF(2, 3)
static void tell(struct hf__engine *engine, const char *format, ...)
{
    char line[LINE_SIZE];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    hf__monitor_log(hf__wrap_client(engine), HF_LOG_INFO, "%s", line);
}

/* ---- calls down --------------------------------------------------------- */

static void tell_call(struct hf__engine *engine, struct hf__ticket *ticket,
                      const char *call)
{
    struct trace_ticket *mine = hf__engine_ticket(engine, ticket);

    mine->call = call;
    mine->called_ns = hf__now();
    tell(engine, "%s '%s' #%" PRIu64, call, ticket->name, ticket->id);
}

/* A call that could not be made. */
static int tell_failure(struct hf__engine *engine, const char *call, int rc,
                        const hf_error *err)
{
    if (rc != 0)
        tell(engine, "%s → not made: %s: %s", call, hf_errname(rc),
             err ? err->text : "");
    return rc;
}

static int trace_open(struct hf__engine *engine, hf_error *err)
{
    return hf__wrap_open(engine, &hf__trace_up, err);
}

static int trace_connect(struct hf__engine *engine, hf_error *err)
{
    struct trace *self = (struct trace *)engine;

    self->connect_ns = hf__now();
    tell(engine, "connect");
    return tell_failure(engine, "connect",
                        engine->inner->ops->connect(engine->inner, err), err);
}

static int trace_acquire(struct hf__engine *engine, struct hf__ticket *ticket,
                         hf_error *err)
{
    struct trace_ticket *mine = hf__engine_ticket(engine, ticket);
    char ttl[SPAN_SIZE];

    mine->call = "acquire";
    mine->called_ns = hf__now();
    tell(engine, "acquire '%s' #%" PRIu64 ", %s%s, ttl %s", ticket->name,
         ticket->id, mode_name(ticket->mode), ticket->nowait ? ", once" : "",
         span(ttl, ticket->ttl_ms * HF_MS));
    return tell_failure(engine, "acquire",
                        engine->inner->ops->acquire(engine->inner, ticket, err),
                        err);
}

#define TRACE_CALL(slot)                                                       \
    static int trace_##slot(struct hf__engine *engine,                         \
                            struct hf__ticket *ticket, hf_error *err)          \
    {                                                                          \
        tell_call(engine, ticket, #slot);                                      \
        return tell_failure(                                                   \
            engine, #slot,                                                     \
            engine->inner->ops->slot(engine->inner, ticket, err), err);        \
    }
TRACE_CALL(withdraw)
TRACE_CALL(release)
TRACE_CALL(downgrade)
TRACE_CALL(unpark)

static int trace_renew(struct hf__engine *engine, struct hf__ticket **tickets,
                       size_t n, hf_error *err)
{
    for (size_t i = 0; i < n; i++)
        tell_call(engine, tickets[i], "renew");
    return tell_failure(
        engine, "renew",
        engine->inner->ops->renew(engine->inner, tickets, n, err), err);
}

static int trace_park(struct hf__engine *engine, struct hf__ticket *ticket,
                      struct hf__ticket *old, hf_error *err)
{
    struct trace_ticket *mine = hf__engine_ticket(engine, ticket);

    mine->call = "park";
    mine->called_ns = hf__now();
    tell(engine, "park '%s' #%" PRIu64 " on '%s', gives up #%" PRIu64,
         ticket->name, ticket->id, ticket->cond, old->id);
    return tell_failure(
        engine, "park",
        engine->inner->ops->park(engine->inner, ticket, old, err), err);
}

static int trace_signal(struct hf__engine *engine, struct hf__query *query,
                        hf_error *err)
{
    tell(engine, "%s '%s' of '%s' #%" PRIu64,
         query->all ? "broadcast" : "signal", query->cond, query->name,
         query->ticket);
    return tell_failure(engine, "signal",
                        engine->inner->ops->signal(engine->inner, query, err),
                        err);
}

/* Queries: log the call; trace_answer() logs the answer. */
#define TRACE_QUERY(slot, word)                                                \
    static int trace_##slot(struct hf__engine *engine,                         \
                            struct hf__query *query, hf_error *err)            \
    {                                                                          \
        tell(engine, "%s '%s'", word,                                          \
             query->name     ? query->name                                     \
             : query->prefix ? query->prefix                                   \
                             : "");                                            \
        return tell_failure(                                                   \
            engine, word, engine->inner->ops->slot(engine->inner, query, err), \
            err);                                                              \
    }
TRACE_QUERY(list, "list")
TRACE_QUERY(check_token, "check_token")
TRACE_QUERY(break_lock, "break")
TRACE_QUERY(version_read, "version_read")
TRACE_QUERY(version_commit, "version_commit")
TRACE_QUERY(doctor, "doctor")
TRACE_QUERY(board_post, "board_post")
TRACE_QUERY(board_read, "board_read")
TRACE_QUERY(connection, "connection")
TRACE_QUERY(finish, "finish")

/* ---- reports up --------------------------------------------------------- */

/* "acquire 'jobs' #12 → granted token 17, in 41 µs". */
HF_PRINTF(3, 4)
static void tell_report(struct hf__engine *engine, struct hf__ticket *ticket,
                        const char *format, ...)
{
    const struct trace_ticket *mine = hf__engine_ticket(engine, ticket);
    char what[LINE_SIZE / 2];
    char took[SPAN_SIZE];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(what, sizeof(what), format, args);
    va_end(args);
    tell(engine, "%s '%s' #%" PRIu64 " → %s, in %s",
         mine->call ? mine->call : "", ticket->name, ticket->id, what,
         span(took, hf__now() - mine->called_ns));
}

static void trace_connected(void *owner)
{
    struct trace *self = owner;
    char took[SPAN_SIZE];

    hf__wrap_connected(owner);
    tell(owner, "connect → connected, in %s",
         span(took, hf__now() - self->connect_ns));
    hf__up_connected(owner);
}

static void trace_down(void *owner, const hf_error *err)
{
    tell(owner, "connect → down: %s", err->text);
    hf__up_down(owner, err);
}

static void trace_granted(void *owner, struct hf__ticket *ticket,
                          const struct hf__grant *grant)
{
    char lease[SPAN_SIZE];

    tell_report(owner, ticket, "granted token %" PRIu64 ", lease %s%s%s%s",
                grant->token,
                grant->lease_ms ? span(lease, grant->lease_ms * HF_MS)
                                : "without end",
                grant->by ? ", by " : "", grant->by ? grant->by : "",
                grant->woken ? ", woken" : "");
    hf__up_granted(owner, ticket, grant);
}

static void trace_queued(void *owner, struct hf__ticket *ticket)
{
    tell_report(owner, ticket, "queued");
    hf__up_queued(owner, ticket);
}

static void trace_parked(void *owner, struct hf__ticket *ticket)
{
    tell_report(owner, ticket, "parked");
    hf__up_parked(owner, ticket);
}

static void trace_busy(void *owner, struct hf__ticket *ticket, int64_t again_ns,
                       const char *holder)
{
    tell_report(owner, ticket, "busy: held by %s", holder ? holder : "another");
    hf__up_busy(owner, ticket, again_ns, holder);
}

static void trace_failed(void *owner, struct hf__ticket *ticket,
                         const hf_error *err)
{
    tell_report(owner, ticket, "failed: %s: %s", hf_errname(err->code),
                err->text);
    hf__up_failed(owner, ticket, err);
}

static void trace_unknown(void *owner, struct hf__ticket *ticket,
                          const hf_error *err)
{
    tell_report(owner, ticket, "unknown: %s", err->text);
    hf__up_unknown(owner, ticket, err);
}

static void trace_renewed(void *owner, struct hf__ticket *ticket,
                          const struct hf__grant *grant)
{
    char lease[SPAN_SIZE];

    tell_report(owner, ticket, "renewed, lease %s%s%s",
                grant->lease_ms ? span(lease, grant->lease_ms * HF_MS)
                                : "without end",
                grant->by ? ", by " : "", grant->by ? grant->by : "");
    hf__up_renewed(owner, ticket, grant);
}

static void trace_lost(void *owner, struct hf__ticket *ticket, int reason)
{
    tell_report(owner, ticket, "lost: %s", lost_names[reason]);
    hf__up_lost(owner, ticket, reason);
}

static void trace_left(void *owner, struct hf__ticket *ticket, int rc)
{
    tell_report(owner, ticket, "left%s",
                rc == HF_ELOST ? ", it was not ours any more" : "");
    hf__up_left(owner, ticket, rc);
}

static void trace_answer(void *owner, struct hf__query *query, int rc,
                         const hf_error *err)
{
    tell(owner, "answer → %s%s%s", hf_errname(rc), rc != 0 && err ? ": " : "",
         rc != 0 && err ? err->text : "");
    hf__up_answer(owner, query, rc, err);
}

static void trace_changed(void *owner, const char *name)
{
    tell(owner, "changed %s%s%s", name ? "'" : "", name ? name : "anything",
         name ? "'" : "");
    hf__up_changed(owner, name);
}

const struct hf__engine_up hf__trace_up = HF__ENGINE_UP(trace_);

const struct hf__engine_ops hf__engine_trace = {
    .name = "trace",
    .schemes = "trace",
    .dialects = "",
    .size = sizeof(struct trace),
    .ticket_size = sizeof(struct trace_ticket),
    .open = trace_open,
    .connect = trace_connect,
    .close = hf__wrap_close,
    .acquire = trace_acquire,
    .withdraw = trace_withdraw,
    .release = trace_release,
    .renew = trace_renew,
    .downgrade = trace_downgrade,
    .pass = hf__wrap_pass,
    .park = trace_park,
    .unpark = trace_unpark,
    .signal = trace_signal,
    .list = trace_list,
    .check_token = trace_check_token,
    .break_lock = trace_break_lock,
    .version_read = trace_version_read,
    .version_commit = trace_version_commit,
    .doctor = trace_doctor,
    .board_post = trace_board_post,
    .board_read = trace_board_read,
    .connection = trace_connection,
    .finish = trace_finish,
    .watch = hf__wrap_watch,
    .unwatch = hf__wrap_unwatch,
    .wait = hf__wrap_wait,
    .attend = hf__wrap_attend,
    .kick = hf__wrap_kick,
    .sentry = hf__wrap_sentry,
    .flush = hf__wrap_flush,
};

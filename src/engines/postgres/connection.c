/* SPDX-License-Identifier: MIT */
/*
 * connection.c - one connection: calls and their answers, in order.
 *
 * All of it by libpq, in its pipeline mode, without blocking. A call is one or
 * more prepared statements and a Sync, sent in one write: one transaction, one
 * answer. Statements are prepared with their first use on a connection, in the
 * same write. Calls may be sent before the ones before them are answered.
 *
 * libpq has a result for everything that was sent, in order, and NULL after
 * each; the steps of a call say which is whose.
 *
 * Failure: a call without an answer in time ends the connection, since nothing
 * after it can be known either. Calls under way are told (answer NULL), then
 * the mode. A statement that waits for a lock is patient, and has no such time.
 * An answer that is not of the shape that its statement has (schema.c), or does
 * not end, ends the connection as well.
 */
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "engines/postgres/postgres.h"

/* What libpq has room for at first. */
enum { SMALL_READ = 16 * 1024 };

/* ---- errors -------------------------------------------------------------- */

/* How the server's code for an error reads in ours. A code of two letters is a
 * class; the first that matches counts. */
static const struct {
    const char *state;
    int code;
    const char *hint;
} states[] = {
    {"28", HF_EAUTH, "user or password is wrong"},
    {"42501", HF_EAUTH, "the role lacks a right; holdfast(7) lists them"},
    {"3D000", HF_ECONFIG, "there is no such database"},
    {"42P01", HF_ECONFIG, "the tables of holdfast(7) are missing"},
    {"42703", HF_ECONFIG,
     "the table is of another make; Spring's is that of 7.0 or later"},
    {"42P10", HF_ECONFIG, "the table has no unique index on its key"},
    {"23502", HF_ECONFIG,
     "a column must have a value: owner_column=… gives it one"},
    {"22", HF_EINVAL, "the column cannot have this"},
    {"25006", HF_EUNAVAILABLE, "it is read-only: a standby, or set so"},
    {"40P01", HF_EDEADLK, "the server found a deadlock"},
    {"53100", HF_ENOSPACE, "its disk is full"},
    {"53200", HF_ENOSPACE, "it is out of memory or of room for locks"},
    {"53300", HF_EUNAVAILABLE, "it has too many connections"},
    {"53", HF_ENOSPACE, "it is out of something"},
    {"57", HF_EUNAVAILABLE, "it stops, starts, or was told to end this"},
    {"08", HF_EUNAVAILABLE, "the connection failed"},
    {"40", HF_EUNAVAILABLE, "the transaction has to be tried again"},
};

int hf__session_explain(const struct hf__session *session,
                        const struct hf__pg_error *error, hf_error *err)
{
    const struct hf__settings *settings = session->engine->base.host->settings;
    const char *text = error ? error->text : "no answer";

    if (session->engine->own_lock && hf__pg_error_is(error, "22012"))
        return hf__fail(err, HF_ENOTFOUND,
                        "%s: table %s has no row whose %s is the name",
                        session->engine->peer, settings->table, settings->key);
    for (size_t i = 0; i < HF_COUNT_OF(states); i++) {
        if (hf__pg_error_is(error, states[i].state))
            return hf__fail(err, states[i].code, "%s: %s (%s)",
                            session->engine->peer, states[i].hint, text);
    }
    return hf__fail(err, HF_EINTERNAL, "%s: %s", session->engine->peer, text);
}

void hf__session_explain_lost(const struct hf__session *session, hf_error *err)
{
    if (session->fatal.code != 0)
        (void)hf__fail_pass(err, &session->fatal);
    else
        (void)hf__fail(err, HF_EUNAVAILABLE, "%s: the connection was lost",
                       session->engine->peer);
}

/* libpq's text has several lines; the first says enough. */
static void keep_message(struct hf__session *session)
{
    const char *text = hf__pq.PQerrorMessage(session->conn);

    if (text[0] == '\0')
        text = "the connection was lost";
    if (session->fatal.code == 0)
        (void)hf__fail(&session->fatal, HF_EUNAVAILABLE, "%s: %.*s",
                       session->engine->peer, (int)strcspn(text, "\n"), text);
}

/* The server says why it ends the session. */
static void keep_reason(struct hf__session *session,
                        const struct hf__pg_error *error)
{
    if (hf__pg_error_is(error, "57"))
        (void)hf__session_explain(session, error, &session->fatal);
    else
        (void)hf__fail(&session->fatal, HF_EUNAVAILABLE, "%s: %s",
                       session->engine->peer, error->text);
}

/* ---- the end of a connection --------------------------------------------- */

static bool take_call(struct hf__session *session,
                      struct hf__session_call *ret_call)
{
    if (session->calls_n == 0)
        return false;
    *ret_call = session->calls[session->calls_first];
    session->calls_first = (session->calls_first + 1) % session->calls_size;
    session->calls_n--;
    session->engine->base.under_way--;
    return true;
}

int hf__session_watch(struct hf__session *session, uint32_t events,
                      hf_error *err)
{
    struct hf__loop *loop = session->engine->base.host->loop;
    int rc = 0;

    if (session->io.slot == 0) {
        session->io.fd = hf__pq.PQsocket(session->conn);
        rc = hf__io_start(loop, &session->io, events);
    } else if (session->watched != events) {
        rc = hf__io_change(loop, &session->io, events);
    }
    session->watched = events;
    return rc == 0 ? 0 : hf__fail(err, HF_ENOMEM, "out of memory");
}

static void unwatch(struct hf__session *session)
{
    if (session->io.slot != 0)
        hf__io_stop(session->engine->base.host->loop, &session->io);
}

static void close_conn(struct hf__session *session, bool forked)
{
    int fd = session->conn ? hf__pq.PQsocket(session->conn) : -1;

    int cancel_state;

    if (!forked)
        hf__session_forget_hosts(session);
    if (!session->conn)
        return;
    if (forked) {
        if (fd >= 0)
            (void)close(fd); /* a word to the server would end the parent's */
        session->conn = NULL;
        return;
    }
    unwatch(session);
    hf__pg_answer_clear(&session->answer);
    cancel_state = hf__pq_begin();
    hf__pq.PQfinish(session->conn);
    hf__pq_end(cancel_state);
    session->conn = NULL;
}

void hf__session_ghost(struct hf__session *session, struct hf__ghost *ret_ghost)
{
    if (session->pid == 0)
        return;
    ret_ghost->pid = session->pid;
    memcpy(ret_ghost->started, session->started, sizeof(session->started));
    session->pid = 0;
}

void hf__session_stop(struct hf__session *session, bool forked)
{
    hf__session_resolve_stop(session, forked);
    close_conn(session, forked);
    if (forked)
        return;
    session->engine->base.under_way -= session->calls_n;
    session->calls_n = 0;
    hf__free(session->calls);
    session->calls = NULL;
    session->calls_size = 0;
    session->state = HF__SESSION_IDLE;
    session->prepared = 0;
    session->closing = false;
}

static void end(struct hf__session *session)
{
    hf_error err = session->fatal;
    struct hf__session_call call;

    hf__session_explain_lost(session, &err);
    hf__session_resolve_stop(session, /* forked= */ false);
    close_conn(session, /* forked= */ false);
    session->state = HF__SESSION_IDLE;
    session->prepared = 0;
    session->closing = false;
    session->next = (struct hf__session_call){0};
    while (take_call(session, &call))
        call.done(session, &call, /* answer= */ NULL);
    session->engine->mode->down(session, &err);
}

void hf__session_fail(struct hf__session *session, const hf_error *err)
{
    if (session->fatal.code == 0)
        session->fatal = *err;
    if (session->reading) { /* libpq is in use above us: soon */
        session->closing = true;
    } else if (session->state != HF__SESSION_IDLE) {
        end(session);
    }
}

void hf__session_refuse(struct hf__session *session, int code, const char *why)
{
    hf_error err;

    (void)hf__fail(&err, code, "%s: %s", session->engine->peer, why);
    hf__session_fail(session, &err);
}

int64_t hf__session_overdue(struct hf__session *session, int64_t now_ns)
{
    const struct hf__settings *settings = session->engine->base.host->settings;
    int64_t limit_ms = settings->io_timeout_ms;
    const char *what = "no answer";
    int64_t since_ns;
    hf_error err;

    if (session->state == HF__SESSION_IDLE)
        return HF_NEVER;
    if (session->closing) {
        end(session);
        return HF_NEVER;
    }
    if (session->state < HF__SESSION_UP) {
        since_ns = session->connect_ns;
        limit_ms = settings->connect_timeout_ms;
        what = "no connection";
    } else {
        const struct hf__session_call *first =
            &session->calls[session->calls_first];

        if (session->calls_n == 0 || first->patient)
            return HF_NEVER;
        since_ns = first->sent_ns;
    }
    if (now_ns < since_ns + hf__ms_to_ns(limit_ms))
        return since_ns + hf__ms_to_ns(limit_ms);
    (void)hf__fail(&err, HF_EUNAVAILABLE, "%s: %s within %lld ms",
                   session->engine->peer, what, (long long)limit_ms);
    hf__session_fail(session, &err);
    return HF_NEVER;
}

/* ---- sending ------------------------------------------------------------- */

/* What was put together cannot be sent whole: end the session, soon. Without
 * a Sync the server does nothing that outlives it. */
static int give_up(struct hf__session *session, hf_error *err)
{
    keep_message(session);
    session->next = (struct hf__session_call){0};
    session->closing = true;
    hf__postgres_wake(session->engine, hf__now());
    return hf__fail_pass(err, &session->fatal);
}

static void add_step(struct hf__session *session,
                     enum hf__pg_statement statement, bool prepare)
{
    struct hf__session_call *next = &session->next;

    assert(next->steps_n < HF_COUNT_OF(next->steps));
    next->steps[next->steps_n++] = (struct hf__session_step){
        .statement = (uint8_t)statement, .prepare = prepare};
}

static bool prepare(struct hf__session *session,
                    enum hf__pg_statement statement)
{
    if (session->prepared >> statement & 1)
        return true;
    session->prepared |= UINT64_C(1) << statement;
    add_step(session, statement, /* prepare= */ true);
    return hf__pq.PQsendPrepare(session->conn, hf__pg_statement_name(statement),
                                hf__pg_statement(session->engine, statement),
                                /* nParams= */ 0, /* paramTypes= */ NULL) != 0;
}

static bool execute(struct hf__session *session,
                    enum hf__pg_statement statement, const char *const *values,
                    int n)
{
    add_step(session, statement, /* prepare= */ false);
    return hf__pq.PQsendQueryPrepared(
               session->conn, hf__pg_statement_name(statement), n, values,
               /* paramLengths= */ NULL, /* paramFormats= */ NULL,
               /* resultFormat= */ 0) != 0;
}

int hf__session_add(struct hf__session *session,
                    enum hf__pg_statement statement, const char *const *values,
                    int n, hf_error *err)
{
    int cancel_state;
    bool sent;

    if (session->state != HF__SESSION_UP || session->closing)
        return hf__fail(err, HF_EUNAVAILABLE, "%s: not connected",
                        session->engine->peer);
    cancel_state = hf__pq_begin();
    sent =
        prepare(session, statement) && execute(session, statement, values, n);
    hf__pq_end(cancel_state);
    return sent ? 0 : give_up(session, err);
}

/* Room for one more call. */
static int reserve_call(struct hf__session *session)
{
    uint32_t before = session->calls_size;
    uint32_t size = before == 0 ? 16 : 2 * before;
    struct hf__session_call *calls;

    if (session->calls_n < before)
        return 0;
    calls = hf__malloc(size * sizeof(*calls));
    if (!calls)
        return HF_ENOMEM;
    for (uint32_t i = 0; before > 0 && i < session->calls_n; i++)
        calls[i] = session->calls[(session->calls_first + i) % before];
    hf__free(session->calls);
    session->calls = calls;
    session->calls_size = size;
    session->calls_first = 0;
    return 0;
}

/* @call is under way now, with the statements that were added. */
static int begin_call(struct hf__session *session,
                      const struct hf__session_call *call, hf_error *err)
{
    struct hf__session_call *next = &session->next;
    int64_t limit_ms = session->engine->base.host->settings->io_timeout_ms;

    if (reserve_call(session) != 0) {
        (void)hf__fail(&session->fatal, HF_ENOMEM, "out of memory");
        return give_up(session, err);
    }
    next->done = call->done;
    next->ticket = call->ticket;
    next->query = call->query;
    next->patient = call->patient;
    next->sent_ns = call->sent_ns != 0 ? call->sent_ns : hf__now();
    session->spoke_ns = next->sent_ns;
    session->calls[(session->calls_first + session->calls_n++) %
                   session->calls_size] = *next;
    session->engine->base.under_way++;
    if (!call->patient)
        hf__postgres_wake(session->engine,
                          next->sent_ns + hf__ms_to_ns(limit_ms));
    *next = (struct hf__session_call){0};
    return 0;
}

bool hf__session_awaits(const struct hf__session *session,
                        hf__session_done_fn *done, uint64_t ticket)
{
    for (uint32_t i = 0; i < session->calls_n; i++) {
        const struct hf__session_call *call =
            &session->calls[(session->calls_first + i) % session->calls_size];

        if (call->done == done && call->ticket == ticket)
            return true;
    }
    return false;
}

void hf__session_ignore(struct hf__session *session,
                        const struct hf__session_call *call,
                        const struct hf__pg_answer *answer)
{
    (void)session;
    (void)call;
    (void)answer;
}

/* Send as much as the socket takes; the loop sees to the rest. */
static bool flush(struct hf__session *session)
{
    int left = hf__pq.PQflush(session->conn);

    return left >= 0 &&
           hf__session_watch(session, left > 0 ? EPOLLIN | EPOLLOUT : EPOLLIN,
                             /* err= */ NULL) == 0;
}

/* A call of which a part may have been sent is under way: it is told when the
 * session ends. */
int hf__session_send(struct hf__session *session,
                     const struct hf__session_call *call, hf_error *err)
{
    int rc = begin_call(session, call, err);
    int cancel_state;

    if (rc != 0)
        return rc;
    cancel_state = hf__pq_begin();
    if (!hf__pq.PQpipelineSync(session->conn) || !flush(session))
        (void)give_up(session, /* err= */ NULL);
    hf__pq_end(cancel_state);
    return 0;
}

void hf__session_say(struct hf__session *session, const char *text)
{
    int cancel_state = hf__pq_begin();

    if (!hf__pq.PQsendQuery(session->conn, text) || !flush(session))
        (void)give_up(session, /* err= */ NULL);
    hf__pq_end(cancel_state);
}

/* ---- reading ------------------------------------------------------------- */

/* What a call was to prepare from its current step on is prepared again with
 * its next use. */
static void unprepare(struct hf__session *session,
                      const struct hf__session_call *call)
{
    for (uint32_t i = call->step; i < call->steps_n; i++) {
        if (call->steps[i].prepare)
            session->prepared &= ~(UINT64_C(1) << call->steps[i].statement);
    }
}

static void fail_step(struct hf__session *session,
                      const struct hf__session_call *call, PGresult *result)
{
    hf__pg_answer_fail(&session->answer, result);
    hf__pq.PQclear(result);
    if (session->answer.why.fatal)
        keep_reason(session, &session->answer.why);
    unprepare(session, call);
}

/* False: that is not what a server says here. */
static bool take_step(struct hf__session *session,
                      struct hf__session_call *call, PGresult *result)
{
    const struct hf__session_step *step = &call->steps[call->step];

    if (call->told || call->step == call->steps_n) {
        hf__pq.PQclear(result);
        return false;
    }
    call->told = true;
    switch (hf__pq.PQresultStatus(result)) {
    case PGRES_FATAL_ERROR:
        fail_step(session, call, result);
        return true;
    case PGRES_PIPELINE_ABORTED: /* after an error */
        hf__pq.PQclear(result);
        return session->answer.error != NULL;
    default:
        break;
    }
    if (!step->prepare)
        return hf__pg_answer_add(&session->answer, result,
                                 hf__pg_statement_shape(step->statement));
    hf__pq.PQclear(result);
    return true;
}

/* The Sync of the first call is answered. */
static bool finish_call(struct hf__session *session)
{
    struct hf__session_call call;

    if (session->calls[session->calls_first].step !=
        session->calls[session->calls_first].steps_n)
        return false;
    (void)take_call(session, &call);
    session->received_from = 0;
    call.done(session, &call, &session->answer);
    hf__pg_answer_clear(&session->answer);
    return true;
}

/* @result is one of libpq's, or NULL, which ends what one step has. */
static bool take_result(struct hf__session *session, PGresult *result)
{
    struct hf__session_call *call = &session->calls[session->calls_first];

    if (!result) {
        bool told = call->told;

        call->step++;
        call->told = false;
        return told;
    }
    if (hf__pq.PQresultStatus(result) != PGRES_PIPELINE_SYNC)
        return take_step(session, call, result);
    hf__pq.PQclear(result);
    return finish_call(session);
}

/* Of what is said in the greeting, only the last answer counts. */
static bool take_said(struct hf__session *session, PGresult *result)
{
    struct hf__pg_answer *answer = &session->answer;
    ExecStatusType status = hf__pq.PQresultStatus(result);

    if (!result) {
        hf__session_greeted(session);
        hf__pg_answer_clear(answer);
    } else if (status == PGRES_FATAL_ERROR) {
        hf__pg_answer_fail(answer, result);
        hf__pq.PQclear(result);
        if (answer->why.fatal)
            keep_reason(session, &answer->why);
    } else {
        hf__pg_answer_clear(answer);
        if (status == PGRES_TUPLES_OK &&
            hf__pq.PQnfields(result) == (int)strlen(hf__pg_greeting_shape) - 1)
            return hf__pg_answer_add(answer, result, hf__pg_greeting_shape);
        hf__pq.PQclear(result);
    }
    return true;
}

static bool is_owed(const struct hf__session *session)
{
    return !session->closing &&
           (session->state == HF__SESSION_GREETING ||
            (session->state == HF__SESSION_UP && session->calls_n > 0));
}

/* All that has come whole. False: the connection is of no use any more. */
static bool take_results(struct hf__session *session)
{
    while (is_owed(session) && !hf__pq.PQisBusy(session->conn)) {
        PGresult *result = hf__pq.PQgetResult(session->conn);
        bool good = session->state == HF__SESSION_GREETING
                        ? take_said(session, result)
                        : take_result(session, result);

        if (hf__pq.PQstatus(session->conn) == CONNECTION_BAD)
            return false;
        if (!good) {
            hf__session_refuse(session, HF_EUNAVAILABLE,
                               "it answers what cannot be");
            return true;
        }
    }
    return true;
}

/* What is said to a channel after a transaction comes with its answer, and is
 * about it: it is heard after it. */
static void take_notifications(struct hf__session *session)
{
    const struct hf__postgres_mode *mode = session->engine->mode;
    PGnotify *notify;

    while (session->state == HF__SESSION_UP && !session->closing &&
           (notify = hf__pq.PQnotifies(session->conn)) != NULL) {
        session->received_from = 0;
        if (mode->notified)
            mode->notified(session->engine, notify->extra);
        hf__pq.PQfreemem(notify);
    }
}

/* What came on its socket so far; a Unix socket does not tell, and there each
 * read counts as a small one. */
static int64_t count_bytes(const struct hf__session *session)
{
    struct tcp_info info = {0};
    socklen_t len = sizeof(info);

    if (getsockopt(session->io.fd, IPPROTO_TCP, TCP_INFO, &info, &len) == 0 &&
        info.tcpi_bytes_received > 0)
        return (int64_t)info.tcpi_bytes_received;
    return session->received + SMALL_READ;
}

/* Bytes are counted from the first time that an answer came in part, until it
 * is whole. */
static void limit_bytes(struct hf__session *session)
{
    int64_t now = count_bytes(session);

    if (session->received_from == 0)
        session->received_from = now;
    session->received = now;
    if (now - session->received_from > HF__PG_BYTES_MAX)
        hf__session_refuse(session, HF_EUNAVAILABLE, "its answer does not end");
}

static bool has_more(const struct hf__session *session)
{
    int n = 0;

    return ioctl(session->io.fd, FIONREAD, &n) == 0 && n > 0;
}

/* TLS may have more than libpq has room for, and the socket nothing: once it is
 * empty libpq reads once more. */
static bool read_all(struct hf__session *session)
{
    bool more = true;

    while (hf__pq.PQconsumeInput(session->conn)) {
        if (!take_results(session))
            return false;
        if (!more || !is_owed(session))
            return true;
        limit_bytes(session);
        more = has_more(session);
        if (!more && !hf__pq.PQsslInUse(session->conn))
            return true;
    }
    return false;
}

static void on_ready(struct hf__io *io, uint32_t events)
{
    struct hf__session *session = HF_CONTAINER_OF(io, struct hf__session, io);

    session->reading = true;
    if (session->calls_n == 0)
        limit_bytes(session);
    if (!read_all(session)) {
        keep_message(session);
        session->closing = true;
    }
    take_notifications(session);
    if ((events & EPOLLOUT) != 0 && session->state == HF__SESSION_UP &&
        !session->closing && !flush(session))
        (void)give_up(session, /* err= */ NULL);
    session->reading = false;
    if (session->closing)
        end(session);
}

/* ---- from libpq's connecting to calls, and back to the caller -------------- */

/* What the server says aside: when nothing was asked, also why it ends. */
static void on_notice(void *arg, const PGresult *result)
{
    struct hf__session *session = arg;
    struct hf__pg_error notice;

    hf__pg_error_read(result, &notice);
    if (notice.fatal)
        keep_reason(session, &notice);
    else
        hf__engine_log(&session->engine->base, HF_LOG_INFO, "%s: %s",
                       session->engine->peer, notice.text);
}

void hf__session_made(struct hf__session *session)
{
    session->io.ready = on_ready;
    session->received_from = 0;
    session->state = HF__SESSION_GREETING;
    (void)hf__pq.PQsetnonblocking(session->conn, 1);
}

void hf__session_hear_notices(struct hf__session *session)
{
    (void)hf__pq.PQsetNoticeReceiver(session->conn, on_notice, session);
}

int hf__session_open(struct hf__session *session, hf_error *err)
{
    if (!hf__pq.PQenterPipelineMode(session->conn))
        return give_up(session, err);
    session->state = HF__SESSION_UP;
    return 0;
}

int hf__session_lend(struct hf__session *session, hf_error *err)
{
    int cancel_state = hf__pq_begin();
    bool lent = hf__pq.PQexitPipelineMode(session->conn) &&
                hf__pq.PQsetnonblocking(session->conn, 0) == 0;

    hf__pq_end(cancel_state);
    if (!lent)
        return give_up(session, err);
    unwatch(session);
    session->state = HF__SESSION_LENT;
    return 0;
}

int hf__session_take_back(struct hf__session *session, bool *ret_whole)
{
    PGTransactionStatusType status = hf__pq.PQtransactionStatus(session->conn);
    int cancel_state = hf__pq_begin();
    bool ours = hf__pq.PQstatus(session->conn) == CONNECTION_OK &&
                status != PQTRANS_ACTIVE &&
                hf__pq.PQsetnonblocking(session->conn, 1) == 0 &&
                hf__pq.PQenterPipelineMode(session->conn);

    hf__pq_end(cancel_state);
    session->state = HF__SESSION_UP;
    *ret_whole = status == PQTRANS_INTRANS;
    if (ours && hf__session_watch(session, EPOLLIN, /* err= */ NULL) == 0)
        return 0;
    hf__session_refuse(session, HF_EUNAVAILABLE,
                       "the connection came back lost, or in the middle of a "
                       "statement");
    return HF_EUNAVAILABLE;
}

/* SPDX-License-Identifier: MIT */
/*
 * calls.c - the calls of a connection: statements that we send, and their
 * answers, in order.
 *
 * A call is one or more prepared statements and a Sync, sent in one write: one
 * transaction, one answer. Statements are prepared with their first use on a
 * connection, in the same write. A call may be sent before the ones before it
 * are answered.
 *
 * libpq has a result for everything that we sent, in order, and NULL after
 * each; the steps of a call tell which statement a result belongs to.
 *
 * Failure: a result that does not have the shape of its statement
 * (statements.c), or an answer that does not end, ends the connection.
 */
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "engines/postgres/postgres.h"

/* What libpq has room for at first. */
enum { SMALL_READ = 16 * 1024 };

/* ---- sending ------------------------------------------------------------- */

static void add_step(struct hf__pg_conn *conn, enum hf__pg_statement statement,
                     bool prepare)
{
    struct hf__pg_call *next = &conn->next;

    assert(next->steps_n < HF_COUNT_OF(next->steps));
    next->steps[next->steps_n++] = (struct hf__pg_step){
        .statement = (uint8_t)statement, .prepare = prepare};
}

static bool prepare(struct hf__pg_conn *conn, enum hf__pg_statement statement)
{
    if (conn->prepared[statement])
        return true;
    conn->prepared[statement] = true;
    add_step(conn, statement, /* prepare= */ true);
    return hf__pq.PQsendPrepare(conn->pq, hf__pg_statement_name(statement),
                                hf__pg_statement(conn->engine, statement),
                                /* nParams= */ 0, /* paramTypes= */ NULL) != 0;
}

static bool execute(struct hf__pg_conn *conn, enum hf__pg_statement statement,
                    const char *const *values, int n)
{
    add_step(conn, statement, /* prepare= */ false);
    return hf__pq.PQsendQueryPrepared(
               conn->pq, hf__pg_statement_name(statement), n, values,
               /* paramLengths= */ NULL, /* paramFormats= */ NULL,
               /* resultFormat= */ 0) != 0;
}

/* If this fails, so does hf__pg_calls_send(). */
void hf__pg_calls_add(struct hf__pg_conn *conn, enum hf__pg_statement statement,
                      const char *const *values, int n)
{
    int cancel_state;

    if (!hf__pg_connection_is_up(conn))
        return;
    cancel_state = hf__pq_begin();
    if (!prepare(conn, statement) || !execute(conn, statement, values, n))
        (void)hf__pg_connection_give_up(conn, /* err= */ NULL);
    hf__pq_end(cancel_state);
}

/* @call is under way now, with the statements that were added. */
static int begin_call(struct hf__pg_conn *conn, const struct hf__pg_call *call,
                      hf_error *err)
{
    struct hf__pg_call *next = &conn->next;
    int64_t limit_ms = conn->engine->base.host->settings->io_timeout_ms;

    next->done = call->done;
    next->ticket = call->ticket;
    next->query = call->query;
    next->number = call->number;
    next->patient = call->patient;
    next->sent_ns = call->sent_ns != 0 ? call->sent_ns : hf__now();
    conn->spoke_ns = next->sent_ns;
    if (!hf__calls_add(&conn->calls, next)) {
        (void)hf__fail(&conn->fatal, HF_ENOMEM, "out of memory");
        return hf__pg_connection_give_up(conn, err);
    }
    conn->engine->base.under_way++;
    if (!call->patient)
        hf__pg_wake(conn->engine, next->sent_ns + hf__ms_to_ns(limit_ms));
    *next = (struct hf__pg_call){0};
    return 0;
}

bool hf__pg_calls_finish(struct hf__pg_conn *conn,
                         const struct hf__pg_answer *answer)
{
    struct hf__pg_call call;

    if (!hf__calls_take(&conn->calls, &call))
        return false;
    conn->engine->base.under_way--;
    call.mine = hf__pg_tickets_find(conn->engine, call.ticket);
    if (call.ticket == 0 || call.mine || call.query)
        call.done(conn, &call, answer);
    return true;
}

bool hf__pg_calls_has(const struct hf__pg_conn *conn, hf__pg_done_fn *done,
                      uint64_t ticket)
{
    for (uint32_t i = 0; i < conn->calls.n; i++) {
        const struct hf__pg_call *call = hf__calls_at(&conn->calls, i);

        if (call->done == done && call->ticket == ticket)
            return true;
    }
    return false;
}

void hf__pg_calls_ignore(struct hf__pg_conn *conn,
                         const struct hf__pg_call *call,
                         const struct hf__pg_answer *answer)
{
    (void)conn;
    (void)call;
    (void)answer;
}

/* Send as much as the socket takes; the loop sees to the rest. */
static bool flush(struct hf__pg_conn *conn)
{
    int left = hf__pq.PQflush(conn->pq);

    return left >= 0 && hf__pg_connection_watch(
                            conn, left > 0 ? EPOLLIN | EPOLLOUT : EPOLLIN,
                            /* err= */ NULL) == 0;
}

/* A call of which a part may have been sent is under way: it is told when the
 * connection ends. */
int hf__pg_calls_send(struct hf__pg_conn *conn, const struct hf__pg_call *call,
                      hf_error *err)
{
    int rc = hf__pg_connection_is_up(conn) ? begin_call(conn, call, err)
                                           : hf__pg_errors_lost(conn, err);
    int cancel_state;

    if (rc != 0)
        return rc;
    cancel_state = hf__pq_begin();
    if (!hf__pq.PQpipelineSync(conn->pq) || !flush(conn))
        (void)hf__pg_connection_give_up(conn, /* err= */ NULL);
    hf__pq_end(cancel_state);
    return 0;
}

int hf__pg_calls_send_one(struct hf__pg_conn *conn,
                          enum hf__pg_statement statement,
                          const char *const *values, int n,
                          const struct hf__pg_call *call, hf_error *err)
{
    hf__pg_calls_add(conn, statement, values, n);
    return hf__pg_calls_send(conn, call, err);
}

void hf__pg_calls_send_text(struct hf__pg_conn *conn, const char *text)
{
    int cancel_state = hf__pq_begin();

    if (!hf__pq.PQsendQuery(conn->pq, text) || !flush(conn))
        (void)hf__pg_connection_give_up(conn, /* err= */ NULL);
    hf__pq_end(cancel_state);
}

/* ---- reading ------------------------------------------------------------- */

/* What a call was to prepare from its current step on is prepared again with
 * its next use. */
static void unprepare(struct hf__pg_conn *conn, const struct hf__pg_call *call)
{
    for (uint32_t i = call->step; i < call->steps_n; i++) {
        if (call->steps[i].prepare)
            conn->prepared[call->steps[i].statement] = false;
    }
}

static void fail_step(struct hf__pg_conn *conn, const struct hf__pg_call *call,
                      PGresult *result)
{
    hf__pg_answer_fail(&conn->answer, result);
    hf__pq.PQclear(result);
    if (conn->answer.why.fatal)
        hf__pg_connection_ended_by(conn, &conn->answer.why);
    unprepare(conn, call);
}

/* False: that is not what a server says here. */
static bool take_step(struct hf__pg_conn *conn, struct hf__pg_call *call,
                      PGresult *result)
{
    const struct hf__pg_step *step = &call->steps[call->step];

    if (call->told || call->step == call->steps_n) {
        hf__pq.PQclear(result);
        return false;
    }
    call->told = true;
    switch (hf__pq.PQresultStatus(result)) {
    case PGRES_FATAL_ERROR:
        fail_step(conn, call, result);
        return true;
    case PGRES_PIPELINE_ABORTED: /* after an error */
        hf__pq.PQclear(result);
        return conn->answer.error != NULL;
    default:
        break;
    }
    if (!step->prepare)
        return hf__pg_answer_add(&conn->answer, result,
                                 hf__pg_statement_shape(step->statement));
    hf__pq.PQclear(result);
    return true;
}

/* The Sync of the first call is answered. */
static bool finish_call(struct hf__pg_conn *conn)
{
    const struct hf__pg_call *first = hf__calls_at(&conn->calls, 0);

    if (first->step != first->steps_n)
        return false;
    conn->received_from = 0;
    (void)hf__pg_calls_finish(conn, &conn->answer);
    hf__pg_answer_clear(&conn->answer);
    return true;
}

/* @result is one of libpq's, or NULL, which ends what one step has. */
static bool take_result(struct hf__pg_conn *conn, PGresult *result)
{
    struct hf__pg_call *call = hf__calls_at(&conn->calls, 0);

    if (!result) {
        bool told = call->told;

        call->step++;
        call->told = false;
        return told;
    }
    if (hf__pq.PQresultStatus(result) != PGRES_PIPELINE_SYNC)
        return take_step(conn, call, result);
    hf__pq.PQclear(result);
    return finish_call(conn);
}

/* Of the first statements only the last answer counts. */
static bool take_first(struct hf__pg_conn *conn, PGresult *result)
{
    struct hf__pg_answer *answer = &conn->answer;
    ExecStatusType status = hf__pq.PQresultStatus(result);

    if (!result) {
        hf__pg_connect_answered(conn);
        hf__pg_answer_clear(answer);
    } else if (status == PGRES_FATAL_ERROR) {
        hf__pg_answer_fail(answer, result);
        hf__pq.PQclear(result);
        if (answer->why.fatal)
            hf__pg_connection_ended_by(conn, &answer->why);
    } else {
        hf__pg_answer_clear(answer);
        if (status == PGRES_TUPLES_OK &&
            hf__pq.PQnfields(result) ==
                (int)strlen(hf__pg_statements_first_shape) - 1)
            return hf__pg_answer_add(answer, result,
                                     hf__pg_statements_first_shape);
        hf__pq.PQclear(result);
    }
    return true;
}

static bool is_owed(const struct hf__pg_conn *conn)
{
    return !conn->closing &&
           (conn->state == HF__CONN_STARTING ||
            (conn->state == HF__CONN_UP && conn->calls.n > 0));
}

/* All that has come whole. False: the connection is of no use any more. */
static bool take_results(struct hf__pg_conn *conn)
{
    while (is_owed(conn) && !hf__pq.PQisBusy(conn->pq)) {
        PGresult *result = hf__pq.PQgetResult(conn->pq);
        bool good = conn->state == HF__CONN_STARTING
                        ? take_first(conn, result)
                        : take_result(conn, result);

        if (hf__pq.PQstatus(conn->pq) == CONNECTION_BAD)
            return false;
        if (!good) {
            hf__pg_connection_refuse(conn, HF_EUNAVAILABLE,
                                     "it answers what cannot be");
            return true;
        }
    }
    return true;
}

/* What is said to a channel after a transaction comes with its answer, and is
 * about it: we handle it after the answer. */
static void take_notifications(struct hf__pg_conn *conn)
{
    const struct hf__pg_mode *mode = conn->engine->mode;
    PGnotify *notify;

    while (hf__pg_connection_is_up(conn) &&
           (notify = hf__pq.PQnotifies(conn->pq)) != NULL) {
        conn->received_from = 0;
        if (mode->notified)
            mode->notified(conn->engine, notify->extra);
        hf__pq.PQfreemem(notify);
    }
}

/* What came on its socket so far; a Unix socket does not tell, and there each
 * read counts as a small one. */
static int64_t count_bytes(const struct hf__pg_conn *conn)
{
    struct tcp_info info = {0};
    socklen_t len = sizeof(info);

    if (getsockopt(conn->io.fd, IPPROTO_TCP, TCP_INFO, &info, &len) == 0 &&
        info.tcpi_bytes_received > 0)
        return (int64_t)info.tcpi_bytes_received;
    return conn->received + SMALL_READ;
}

/* Bytes are counted from the first time that an answer came in part, until it
 * is whole. */
static void limit_bytes(struct hf__pg_conn *conn)
{
    int64_t now = count_bytes(conn);

    if (conn->received_from == 0)
        conn->received_from = now;
    conn->received = now;
    if (now - conn->received_from > HF__PG_BYTES_MAX)
        hf__pg_connection_refuse(conn, HF_EUNAVAILABLE,
                                 "its answer does not end");
}

static bool has_more(const struct hf__pg_conn *conn)
{
    int n = 0;

    return ioctl(conn->io.fd, FIONREAD, &n) == 0 && n > 0;
}

/* TLS may have more than libpq has room for, and the socket nothing: once it is
 * empty libpq reads once more. */
static bool read_all(struct hf__pg_conn *conn)
{
    bool more = true;

    while (hf__pq.PQconsumeInput(conn->pq)) {
        if (!take_results(conn))
            return false;
        if (!more || !is_owed(conn))
            return true;
        limit_bytes(conn);
        more = has_more(conn);
        if (!more && !hf__pq.PQsslInUse(conn->pq))
            return true;
    }
    return false;
}

static void on_ready(struct hf__io *io, uint32_t events)
{
    struct hf__pg_conn *conn = HF_CONTAINER_OF(io, struct hf__pg_conn, io);

    conn->reading = true;
    if (conn->calls.n == 0)
        limit_bytes(conn);
    if (!read_all(conn)) {
        hf__pg_connection_lost(conn);
        conn->closing = true;
    }
    take_notifications(conn);
    if ((events & EPOLLOUT) != 0 && hf__pg_connection_is_up(conn) &&
        !flush(conn))
        (void)hf__pg_connection_give_up(conn, /* err= */ NULL);
    conn->reading = false;
    if (conn->closing)
        hf__pg_connection_end(conn);
}

void hf__pg_calls_start(struct hf__pg_conn *conn, const char *text)
{
    conn->io.ready = on_ready;
    conn->received_from = 0;
    conn->state = HF__CONN_STARTING;
    (void)hf__pq.PQsetnonblocking(conn->pq, 1);
    hf__pg_calls_send_text(conn, text);
}

int hf__pg_calls_open(struct hf__pg_conn *conn, hf_error *err)
{
    if (!hf__pq.PQenterPipelineMode(conn->pq))
        return hf__pg_connection_give_up(conn, err);
    conn->state = HF__CONN_UP;
    return 0;
}

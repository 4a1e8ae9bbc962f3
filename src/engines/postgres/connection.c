/* SPDX-License-Identifier: MIT */
/*
 * connection.c - one connection: its states, and its end.
 *
 * All of it by libpq, without blocking; in its pipeline mode, except while it
 * connects and while the caller has it.
 *
 * Failure: a call without an answer in time ends the connection, since nothing
 * after it can be known either. Calls under way are told (answer NULL), then
 * the mode. A statement that waits for a lock is patient, and has no such time.
 */
#include <unistd.h>

#include "engines/postgres/postgres.h"

/* libpq's text has several lines; the first says enough. */
void hf__pg_connection_lost(struct hf__pg_conn *conn)
{
    const char *text = hf__pq.PQerrorMessage(conn->pq);

    if (text[0] == '\0')
        text = "the connection was lost";
    if (conn->fatal.code == 0)
        (void)hf__fail(&conn->fatal, HF_EUNAVAILABLE, "%s: %.*s",
                       conn->engine->peer, (int)strcspn(text, "\n"), text);
}

/* The server says why it ends the session. */
void hf__pg_connection_ended_by(struct hf__pg_conn *conn,
                                const struct hf__pg_error *error)
{
    if (hf__pg_errors_is(error, "57"))
        (void)hf__pg_errors_explain(conn, error, &conn->fatal);
    else
        (void)hf__fail(&conn->fatal, HF_EUNAVAILABLE, "%s: %s",
                       conn->engine->peer, error->text);
}

/* What was put together cannot be sent whole: end the session, soon. Without
 * a Sync the server does nothing that outlives it. */
int hf__pg_connection_give_up(struct hf__pg_conn *conn, hf_error *err)
{
    hf__pg_connection_lost(conn);
    conn->next = (struct hf__pg_call){0};
    conn->closing = true;
    hf__pg_wake(conn->engine, hf__now());
    return hf__fail_pass(err, &conn->fatal);
}

/* ---- the end of a connection --------------------------------------------- */

int hf__pg_connection_watch(struct hf__pg_conn *conn, uint32_t events,
                            hf_error *err)
{
    struct hf__loop *loop = conn->engine->base.host->loop;
    int rc = 0;

    if (conn->io.slot == 0) {
        conn->io.fd = hf__pq.PQsocket(conn->pq);
        rc = hf__io_start(loop, &conn->io, events);
    } else if (conn->watched != events) {
        rc = hf__io_change(loop, &conn->io, events);
    }
    conn->watched = events;
    return rc == 0 ? 0 : hf__fail(err, HF_ENOMEM, "out of memory");
}

static void unwatch(struct hf__pg_conn *conn)
{
    if (conn->io.slot != 0)
        hf__io_stop(conn->engine->base.host->loop, &conn->io);
}

static void close_conn(struct hf__pg_conn *conn, bool forked)
{
    int fd = conn->pq ? hf__pq.PQsocket(conn->pq) : -1;

    int cancel_state;

    if (!forked)
        hf__pg_hosts_forget(conn);
    if (!conn->pq)
        return;
    if (forked) {
        if (fd >= 0)
            (void)close(fd); /* a word to the server would end the parent's */
        conn->pq = NULL;
        return;
    }
    unwatch(conn);
    hf__pg_answer_clear(&conn->answer);
    cancel_state = hf__pq_begin();
    hf__pq.PQfinish(conn->pq);
    hf__pq_end(cancel_state);
    conn->pq = NULL;
}

void hf__pg_connection_orphan(struct hf__pg_conn *conn,
                              struct hf__pg_orphan *ret_orphan)
{
    if (conn->pid == 0)
        return;
    ret_orphan->pid = conn->pid;
    memcpy(ret_orphan->started, conn->started, sizeof(conn->started));
    conn->pid = 0;
}

static void reset(struct hf__pg_conn *conn)
{
    conn->state = HF__CONN_IDLE;
    memset(conn->prepared, 0, sizeof(conn->prepared));
    conn->closing = false;
}

void hf__pg_connection_stop(struct hf__pg_conn *conn, bool forked)
{
    hf__pg_hosts_stop(conn, forked);
    close_conn(conn, forked);
    if (forked)
        return;
    conn->engine->base.under_way -= conn->calls.n;
    hf__calls_release(&conn->calls);
    reset(conn);
}

void hf__pg_connection_end(struct hf__pg_conn *conn)
{
    hf_error err = conn->fatal;

    (void)hf__pg_errors_lost(conn, &err);
    hf__pg_hosts_stop(conn, /* forked= */ false);
    close_conn(conn, /* forked= */ false);
    reset(conn);
    conn->next = (struct hf__pg_call){0};
    while (hf__pg_calls_finish(conn, /* answer= */ NULL))
        ;
    conn->engine->mode->down(conn, &err);
}

void hf__pg_connection_fail(struct hf__pg_conn *conn, const hf_error *err)
{
    if (conn->fatal.code == 0)
        conn->fatal = *err;
    if (conn->reading) { /* libpq is in use above us: soon */
        conn->closing = true;
    } else if (conn->state != HF__CONN_IDLE) {
        hf__pg_connection_end(conn);
    }
}

void hf__pg_connection_refuse(struct hf__pg_conn *conn, int code,
                              const char *why)
{
    hf_error err;

    (void)hf__fail(&err, code, "%s: %s", conn->engine->peer, why);
    hf__pg_connection_fail(conn, &err);
}

int64_t hf__pg_connection_overdue(struct hf__pg_conn *conn, int64_t now_ns)
{
    const struct hf__settings *settings = conn->engine->base.host->settings;
    int64_t limit_ms = settings->io_timeout_ms;
    const char *what = "no answer";
    int64_t since_ns;
    hf_error err;

    if (conn->state == HF__CONN_IDLE)
        return HF_NEVER;
    if (conn->closing) {
        hf__pg_connection_end(conn);
        return HF_NEVER;
    }
    if (conn->state < HF__CONN_UP) {
        since_ns = conn->connect_ns;
        limit_ms = settings->connect_timeout_ms;
        what = "no connection";
    } else {
        const struct hf__pg_call *first =
            conn->calls.n > 0 ? hf__calls_at(&conn->calls, 0) : NULL;

        if (!first || first->patient)
            return HF_NEVER;
        since_ns = first->sent_ns;
    }
    if (now_ns < since_ns + hf__ms_to_ns(limit_ms))
        return since_ns + hf__ms_to_ns(limit_ms);
    (void)hf__fail(&err, HF_EUNAVAILABLE, "%s: %s within %lld ms",
                   conn->engine->peer, what, (long long)limit_ms);
    hf__pg_connection_fail(conn, &err);
    return HF_NEVER;
}

/* ---- from libpq's connecting to calls, and back to the caller -------------- */

/* What the server says aside: when nothing was asked, also why it ends. */
static void on_notice(void *arg, const PGresult *result)
{
    struct hf__pg_conn *conn = arg;
    struct hf__pg_error notice;

    hf__pg_errors_read(result, &notice);
    if (notice.fatal)
        hf__pg_connection_ended_by(conn, &notice);
    else
        hf__engine_log(&conn->engine->base, HF_LOG_INFO, "%s: %s",
                       conn->engine->peer, notice.text);
}

void hf__pg_connection_log_notices(struct hf__pg_conn *conn)
{
    (void)hf__pq.PQsetNoticeReceiver(conn->pq, on_notice, conn);
}

int hf__pg_connection_to_caller(struct hf__pg_conn *conn, hf_error *err)
{
    int cancel_state = hf__pq_begin();
    bool left = hf__pq.PQexitPipelineMode(conn->pq) &&
                hf__pq.PQsetnonblocking(conn->pq, 0) == 0;

    hf__pq_end(cancel_state);
    if (!left)
        return hf__pg_connection_give_up(conn, err);
    unwatch(conn);
    conn->state = HF__CONN_WITH_CALLER;
    return 0;
}

int hf__pg_connection_from_caller(struct hf__pg_conn *conn, bool *ret_whole)
{
    PGTransactionStatusType status = hf__pq.PQtransactionStatus(conn->pq);
    int cancel_state = hf__pq_begin();
    bool ours = hf__pq.PQstatus(conn->pq) == CONNECTION_OK &&
                status != PQTRANS_ACTIVE &&
                hf__pq.PQsetnonblocking(conn->pq, 1) == 0 &&
                hf__pq.PQenterPipelineMode(conn->pq);

    hf__pq_end(cancel_state);
    conn->state = HF__CONN_UP;
    *ret_whole = status == PQTRANS_INTRANS;
    if (ours && hf__pg_connection_watch(conn, EPOLLIN, /* err= */ NULL) == 0)
        return 0;
    hf__pg_connection_refuse(
        conn, HF_EUNAVAILABLE,
        "the connection came back lost, or in the middle of a "
        "statement");
    return HF_EUNAVAILABLE;
}

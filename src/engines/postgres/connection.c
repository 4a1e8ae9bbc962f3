/* SPDX-License-Identifier: MIT */
/*
 * connection.c - one connection: calls and their answers, in order.
 *
 * libpq makes it: addresses, which are resolved before it sees them, TLS,
 * passwords. Then socket and TLS are borrowed from it, and what is said is said
 * by us (wire.c): libpq would ask for the columns of every answer and copy it
 * twice, which was a third of what a lock in a session costs. It gets them back
 * when the connection is lent or closed.
 *
 * A call is one or more prepared statements and a Sync, sent in one write: one
 * transaction, one answer. Statements are prepared with their first use on a
 * connection, in the same write.
 *
 * The greeting goes first: what the session is set to, and who it is: the
 * server's number for it and when it began. Both together name a backend for
 * good, also after a restart of the server, so that a connection that we lose
 * can be ended at the server.
 *
 * Failure: a call without an answer in time ends the connection, since nothing
 * after it can be known either. Calls under way are told (answer NULL), then
 * the mode. A statement that waits for a lock is patient, and has no such time.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "engines/postgres/postgres.h"
#include "net/tls.h"

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
    const char *text = error ? error->text : "no answer";

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

static void close_conn(struct hf__session *session, bool forked)
{
    int fd = session->conn ? hf__pq.PQsocket(session->conn) : -1;

    if (!forked)
        hf__session_forget_hosts(session);
    hf__stream_stop(&session->stream, forked);
    if (!session->conn)
        return;
    if (forked) {
        if (fd >= 0)
            (void)close(fd); /* a word to the server would end the parent's */
        session->conn = NULL;
        return;
    }
    if (session->io.slot != 0)
        hf__io_stop(session->engine->base.host->loop, &session->io);
    hf__pq.PQfinish(session->conn);
    session->conn = NULL;
    session->answering = false;
    hf__buf_release(&session->heard);
    hf__pg_answer_release(&session->answer);
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
    if (session->reading) { /* its stream is in use above us */
        session->closing = true;
        hf__postgres_wake(session->engine, hf__now());
    } else if (session->state != HF__SESSION_IDLE) {
        end(session);
    }
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

/* What was put together cannot be sent whole: end the session, soon. */
static int give_up(struct hf__session *session, hf_error *err)
{
    if (session->fatal.code == 0)
        (void)hf__fail(&session->fatal, HF_ENOMEM, "out of memory");
    session->next = (struct hf__session_call){0};
    session->closing = true;
    hf__postgres_wake(session->engine, hf__now());
    return hf__fail_pass(err, &session->fatal);
}

int hf__session_add(struct hf__session *session,
                    enum hf__pg_statement statement, const char *const *values,
                    int n, hf_error *err)
{
    const char *name = hf__pg_statement_name(statement);
    struct hf__session_call *next = &session->next;
    struct hf__buf *out = &session->stream.out;

    if (session->state != HF__SESSION_UP || session->closing)
        return hf__fail(err, HF_EUNAVAILABLE, "%s: not connected",
                        session->engine->peer);
    if ((session->prepared >> statement & 1) == 0) {
        hf__pg_put_prepare(out, name,
                           hf__pg_statement(session->engine, statement));
        session->prepared |= UINT64_C(1) << statement;
        next->prepares[next->prepares_n++] = (uint8_t)statement;
    }
    hf__pg_put_execute(out, name, values, n);
    return 0;
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

    if (reserve_call(session) != 0)
        return give_up(session, err);
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

void hf__session_ignore(struct hf__session *session,
                        const struct hf__session_call *call,
                        const struct hf__pg_answer *answer)
{
    (void)session;
    (void)call;
    (void)answer;
}

int hf__session_send(struct hf__session *session,
                     const struct hf__session_call *call, hf_error *err)
{
    struct hf__stream *stream = &session->stream;

    hf__pg_put_sync(&stream->out);
    if (hf__buf_failed(&stream->out))
        return give_up(session, err);
    if (begin_call(session, call, err) != 0)
        return HF_ENOMEM;
    hf__stream_flush(stream);
    return 0;
}

/* ---- reading ------------------------------------------------------------- */

static void refuse(struct hf__session *session, int code, const char *why)
{
    hf_error err;

    (void)hf__fail(&err, code, "%s: %s", session->engine->peer, why);
    hf__session_fail(session, &err);
}

/* What could not be prepared is prepared again with its next use. */
static void finish_call(struct hf__session *session)
{
    struct hf__session_call call;

    if (!take_call(session, &call))
        return;
    for (uint32_t i = call.prepared_n; i < call.prepares_n; i++)
        session->prepared &= ~(UINT64_C(1) << call.prepares[i]);
    call.done(session, &call, &session->answer);
    hf__pg_answer_clear(&session->answer);
}

static void greeting_done(struct hf__session *session);

/* What is said to a channel after a transaction comes with its answer, and is
 * about it: it is heard after it. */
static bool hear(struct hf__session *session,
                 const struct hf__pg_message *message)
{
    const struct hf__postgres_mode *mode = session->engine->mode;
    const char *text = hf__pg_notification(message);

    if (!mode->notified || !text)
        return text != NULL;
    if (!session->answering) {
        mode->notified(session->engine, text);
        return true;
    }
    hf__buf_append(&session->heard, text, strlen(text) + 1);
    return !hf__buf_failed(&session->heard);
}

static void hear_all(struct hf__session *session)
{
    struct hf__buf heard = session->heard;

    session->heard = (struct hf__buf){0};
    for (size_t at = 0; at < heard.len; at += strlen(heard.text + at) + 1)
        session->engine->mode->notified(session->engine, heard.text + at);
    hf__buf_release(&heard);
}

/* The server has nothing more to say, and waits for us. */
static void ready(struct hf__session *session,
                  const struct hf__pg_message *message)
{
    session->status = message->len > 0 ? message->body[0] : HF__WIRE_IDLE;
    session->answering = false;
    if (session->state == HF__SESSION_GREETING)
        greeting_done(session);
    else if (session->calls_n > 0)
        finish_call(session);
    if (session->heard.len > 0)
        hear_all(session);
}

/* False: that is not what a server says here. */
static bool take_message(struct hf__session *session,
                         const struct hf__pg_message *message)
{
    struct hf__session_call *call =
        session->calls_n > 0 ? &session->calls[session->calls_first] : NULL;
    bool asked = call || session->state == HF__SESSION_GREETING;
    struct hf__pg_error error;

    switch (message->type) {
    case HF__WIRE_PREPARED:
        if (call && call->prepared_n < call->prepares_n)
            call->prepared_n++;
        return true;
    case HF__WIRE_COLUMNS: /* of the greeting: only its last answer counts */
        hf__pg_answer_clear(&session->answer);
        return true;
    case HF__WIRE_ERROR:
        hf__pg_error_read(message, &error);
        if (error.fatal)
            keep_reason(session, &error);
        return !asked || hf__pg_answer_add(&session->answer, message);
    case HF__WIRE_ROW:
    case HF__WIRE_DONE:
        return asked && hf__pg_answer_add(&session->answer, message);
    case HF__WIRE_NOTIFIED:
        return hear(session, message);
    case HF__WIRE_READY:
        ready(session, message);
        return true;
    case HF__WIRE_BOUND:
        session->answering = true;
        return true;
    case HF__WIRE_NOTICE:
    case HF__WIRE_SETTING:
        return true;
    default:
        return false;
    }
}

static void received(struct hf__stream *stream)
{
    struct hf__session *session =
        HF_CONTAINER_OF(stream, struct hf__session, stream);
    struct hf__pg_message message;
    size_t len;
    int rc = HF__WIRE_WHOLE;

    session->reading = true;
    while (!session->closing && stream->state == HF__STREAM_OPEN) {
        rc = hf__pg_next(stream->in.text + stream->in_at,
                         stream->in.len - stream->in_at, &message, &len);
        if (rc != HF__WIRE_WHOLE)
            break;
        stream->in_at += len;
        if (!take_message(session, &message))
            rc = HF__WIRE_BAD;
        if (rc == HF__WIRE_BAD)
            break;
    }
    if (rc == HF__WIRE_BAD)
        refuse(session, HF_EUNAVAILABLE,
               "it says what cannot be, or there is no memory for it");
    session->reading = false;
}

static void closed(struct hf__stream *stream, const hf_error *err)
{
    struct hf__session *session =
        HF_CONTAINER_OF(stream, struct hf__session, stream);

    if (session->fatal.code == 0)
        (void)hf__fail(&session->fatal, HF_EUNAVAILABLE, "%s: %s",
                       session->engine->peer, err->text);
    end(session);
}

/* ---- greeting ------------------------------------------------------------ */

static bool is_set(const struct hf__pg_result *result, int column)
{
    return hf__pg_text(result, 0, column)[0] == 't';
}

static void send_text(struct hf__session *session, const char *text)
{
    hf__pg_put_query(&session->stream.out, text);
    if (hf__buf_failed(&session->stream.out))
        refuse(session, HF_ENOMEM, "out of memory");
    else
        hf__stream_flush(&session->stream);
}

/* Are sequence and tables there? If not, they are made first, once: false. */
static bool know_tables(struct hf__session *session,
                        const struct hf__pg_result *result)
{
    struct hf__postgres *postgres = session->engine;

    postgres->fenced = is_set(result, 3);
    postgres->tables = is_set(result, 4);
    if (postgres->mode->tables && hf__pg_text(result, 0, 4)[0] == 'o') {
        refuse(session, HF_ECONFIG,
               "the table holdfast_place is of an older version of holdfast: "
               "drop it when nobody uses that any more");
        return false;
    }
    if (!(postgres->fenced && postgres->tables) && session->making == 0) {
        session->making = 1;
        send_text(session, hf__pg_schema(postgres));
        return false;
    }
    if (postgres->tables || !postgres->mode->tables)
        return true;
    refuse(session, HF_EAUTH,
           "the tables of holdfast(7) are missing, and the role may not "
           "create them");
    return false;
}

/* Where grants are pushed, the main session hears of them: true, and what the
 * greeting asks is answered once more. */
static bool begins_to_listen(struct hf__session *session)
{
    struct hf__postgres *postgres = session->engine;
    struct hf__buf text = {0};

    if (!postgres->mode->listens || session->listening)
        return false;
    session->listening = true;
    hf__buf_printf(&text, "LISTEN hf_%s; %s", postgres->identity,
                   hf__pg_greeting(postgres));
    if (hf__buf_failed(&text))
        refuse(session, HF_ENOMEM, "out of memory");
    else
        send_text(session, hf__buf_text(&text));
    hf__buf_release(&text);
    return true;
}

/* The columns of the greeting's last statement: schema.c. */
static void greeted(struct hf__session *session,
                    const struct hf__pg_result *result)
{
    session->pid = (int32_t)hf__pg_number(result, 0, 0, 0);
    hf__text_copy(session->started, sizeof(session->started),
                  hf__pg_text(result, 0, 1));
    if (session->pid != hf__pq.PQbackendPID(session->conn)) {
        refuse(session, HF_EUNSUPPORTED,
               "there is a connection pooler in between; a lock needs a "
               "session of its own: connect to the server itself");
        return;
    }
    if (is_set(result, 2)) {
        refuse(session, HF_EUNAVAILABLE,
               "it is a standby; target_session_attrs=read-write finds the "
               "primary among several hosts");
        return;
    }
    if (!know_tables(session, result) || begins_to_listen(session))
        return;
    session->state = HF__SESSION_UP;
    session->timeout_ms = 0;
    session->marked = false;
    session->engine->mode->up(session);
}

static void greeting_done(struct hf__session *session)
{
    const struct hf__pg_answer *answer = &session->answer;
    bool good = !answer->error && answer->last->rows == 1;
    hf_error err;

    if (good) {
        greeted(session, answer->last);
    } else if (session->making == 1) { /* they could not be made */
        session->making = 2;
        send_text(session, hf__pg_greeting(session->engine));
    } else {
        (void)hf__session_explain(session, answer->error, &err);
        hf__session_fail(session, &err);
    }
    hf__pg_answer_clear(&session->answer);
}

/* ---- borrowing and lending ------------------------------------------------ */

/* Socket and TLS are libpq's. */
static int borrow(struct hf__session *session, hf_error *err)
{
    struct hf__stream *stream = &session->stream;
    struct hf__tls *tls = NULL;
    int rc = 0;

    stream->loop = session->engine->base.host->loop;
    stream->received = received;
    stream->closed = closed;
    if (hf__pq.PQgssEncInUse(session->conn))
        return hf__fail(err, HF_EUNSUPPORTED,
                        "%s: GSSAPI encrypts it: use TLS, or "
                        "gssencmode=disable",
                        session->engine->peer);
    if (hf__pq.PQsslInUse(session->conn))
        rc = hf__tls_borrow(hf__pq.PQsslStruct(session->conn, "OpenSSL"),
                            HF__PQ_FILE, &tls, err);
    if (rc == 0)
        rc =
            hf__stream_borrow(stream, hf__pq.PQsocket(session->conn), tls, err);
    if (rc != 0)
        hf__tls_free(tls);
    return rc;
}

static void watch(struct hf__session *session, uint32_t events)
{
    struct hf__loop *loop = session->engine->base.host->loop;

    if (session->io.slot != 0) {
        (void)hf__io_change(loop, &session->io, events);
        return;
    }
    session->io.fd = hf__pq.PQsocket(session->conn);
    (void)hf__io_start(loop, &session->io, events);
}

/* libpq has seen that it is in a transaction. */
static void lent(struct hf__session *session)
{
    hf__io_stop(session->engine->base.host->loop, &session->io);
    (void)hf__pq.PQsetnonblocking(session->conn, 0);
    session->state = HF__SESSION_LENT;
    finish_call(session);
}

static void lending_ready(struct hf__io *io, uint32_t events)
{
    struct hf__session *session = HF_CONTAINER_OF(io, struct hf__session, io);
    PGconn *conn = session->conn;
    int unsent = hf__pq.PQflush(conn);

    (void)events;
    if (unsent < 0 || !hf__pq.PQconsumeInput(conn)) {
        keep_message(session);
        end(session);
        return;
    }
    watch(session, unsent > 0 ? EPOLLIN | EPOLLOUT : EPOLLIN);
    while (!hf__pq.PQisBusy(conn)) {
        PGresult *result = hf__pq.PQgetResult(conn);

        if (!result) {
            lent(session);
            return;
        }
        hf__pq.PQclear(result);
    }
}

int hf__session_lend(struct hf__session *session,
                     const struct hf__session_call *call, hf_error *err)
{
    hf__stream_stop(&session->stream, /* forked= */ false);
    session->state = HF__SESSION_LENDING;
    session->io.ready = lending_ready;
    if (hf__pq.PQsetnonblocking(session->conn, 1) != 0 ||
        !hf__pq.PQsendQuery(session->conn, "")) {
        keep_message(session);
        return give_up(session, err);
    }
    watch(session, EPOLLIN | EPOLLOUT);
    return begin_call(session, call, err);
}

static char status_of(const PGconn *conn)
{
    switch (hf__pq.PQtransactionStatus(conn)) {
    case PQTRANS_INTRANS:
        return HF__WIRE_IN_TRANSACTION;
    case PQTRANS_INERROR:
        return HF__WIRE_FAILED;
    default:
        return HF__WIRE_IDLE;
    }
}

int hf__session_take_back(struct hf__session *session)
{
    hf_error err;

    session->state = HF__SESSION_UP;
    session->status = status_of(session->conn);
    if (hf__pq.PQstatus(session->conn) == CONNECTION_OK &&
        hf__pq.PQtransactionStatus(session->conn) != PQTRANS_ACTIVE &&
        borrow(session, &err) == 0)
        return 0;
    refuse(session, HF_EUNAVAILABLE,
           "the connection came back lost, or in the middle of a statement");
    return HF_EUNAVAILABLE;
}

/* ---- connecting ---------------------------------------------------------- */

/* libpq knows a wrong password or certificate only as a text. */
static bool is_refused(const struct hf__session *session, const char *text)
{
    return hf__pq.PQconnectionNeedsPassword(session->conn) ||
           strstr(text, "certificate verify failed") ||
           strstr(text, "server certificate for") ||
           strstr(text, "server does not support SSL") ||
           strstr(text, "authentication failed") ||
           strstr(text, "no password supplied") ||
           (strstr(text, "role \"") && strstr(text, "does not exist")) ||
           strstr(text, "no pg_hba.conf entry");
}

static void connecting_failed(struct hf__session *session)
{
    const char *text = hf__pq.PQerrorMessage(session->conn);
    int code = HF_EUNAVAILABLE;
    hf_error err;

    if (is_refused(session, text))
        code = HF_EAUTH;
    else if (strstr(text, "database \"") && strstr(text, "does not exist"))
        code = HF_ECONFIG;
    (void)hf__fail(&err, code, "%s: %.*s", session->engine->peer,
                   (int)strcspn(text, "\n"), text);
    hf__session_fail(session, &err);
}

static void greet(struct hf__session *session)
{
    hf_error err;

    if (hf__pq.PQserverVersion(session->conn) < 140000) {
        refuse(session, HF_EUNSUPPORTED,
               "PostgreSQL 14 or later is needed: older ones have no "
               "idle_session_timeout, which is the lease");
        return;
    }
    if (borrow(session, &err) != 0) {
        hf__session_fail(session, &err);
        return;
    }
    session->state = HF__SESSION_GREETING;
    send_text(session, hf__pg_greeting(session->engine));
}

static void connecting_ready(struct hf__io *io, uint32_t events)
{
    struct hf__session *session = HF_CONTAINER_OF(io, struct hf__session, io);

    (void)events;
    hf__session_connecting(session);
}

void hf__session_connecting(struct hf__session *session)
{
    struct hf__loop *loop = session->engine->base.host->loop;
    PostgresPollingStatusType status;

    session->state = HF__SESSION_CONNECTING;
    session->io.ready = connecting_ready;
    if (session->io.slot != 0) /* it may close the socket and open another */
        hf__io_stop(loop, &session->io);
    status = hf__pq.PQconnectPoll(session->conn);
    if (status == PGRES_POLLING_OK)
        greet(session);
    else if (status == PGRES_POLLING_FAILED)
        connecting_failed(session);
    else
        watch(session, status == PGRES_POLLING_WRITING ? EPOLLOUT : EPOLLIN);
}

int hf__session_start(struct hf__session *session, hf_error *err)
{
    const struct hf__settings *settings = session->engine->base.host->settings;

    session->fatal.code = 0;
    session->closing = false;
    hf__pg_answer_clear(&session->answer);
    session->making = 0;
    session->listening = false;
    session->connect_ns = hf__now();
    session->state = HF__SESSION_RESOLVING;
    hf__postgres_wake(session->engine,
                      session->connect_ns +
                          hf__ms_to_ns(settings->connect_timeout_ms));
    return hf__session_resolve(session, err);
}

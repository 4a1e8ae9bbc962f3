/* SPDX-License-Identifier: MIT */
/*
 * connection.c - one connection: calls and their answers, in order.
 *
 * libpq is used without ever letting it wait: addresses are resolved before it
 * sees them, sending is by PQflush() and the loop, and nothing is read that
 * PQisBusy() has not promised. A call is one or more prepared statements and a
 * Sync, sent in one write (pipeline mode): one transaction, one answer.
 * Statements are prepared with their first use on a connection, in the same
 * write.
 *
 * The greeting goes before pipeline mode: what the session is set to, and who
 * it is: the server's number for it and when it began. Both together name a
 * backend for good, also after a restart of the server, so that a connection
 * that we lose can be ended at the server.
 *
 * Failure: a call without an answer in time ends the connection, since nothing
 * after it can be known either. Calls under way are told (answer NULL), then
 * the mode. A statement that waits for a lock is patient, and has no such time.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "engines/postgres/postgres.h"

/* ---- errors -------------------------------------------------------------- */

bool hf__session_is(const PGresult *error, const char *sqlstate)
{
    const char *state =
        error ? hf__pq.PQresultErrorField(error, PG_DIAG_SQLSTATE) : NULL;

    return state && strncmp(state, sqlstate, strlen(sqlstate)) == 0;
}

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
                        const PGresult *error, hf_error *err)
{
    const char *text =
        error ? hf__pq.PQresultErrorField(error, PG_DIAG_MESSAGE_PRIMARY) : "";

    for (size_t i = 0; i < HF_COUNT_OF(states); i++) {
        if (hf__session_is(error, states[i].state))
            return hf__fail(err, states[i].code, "%s: %s (%s)",
                            session->engine->peer, states[i].hint,
                            text ? text : "");
    }
    return hf__fail(err, HF_EINTERNAL, "%s: %s", session->engine->peer,
                    text ? text : "an error without a text");
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

/* An error between answers says why the server ends the connection. */
static void on_notice(void *arg, const PGresult *notice)
{
    struct hf__session *session = arg;

    if (hf__session_is(notice, "57"))
        (void)hf__session_explain(session, notice, &session->fatal);
}

const char *hf__session_text(const PGresult *result, int row, int column)
{
    if (!result || hf__pq.PQntuples(result) <= row ||
        hf__pq.PQnfields(result) <= column)
        return "";
    return hf__pq.PQgetvalue(result, row, column);
}

int64_t hf__session_number(const PGresult *result, int row, int column,
                           int64_t standard)
{
    if (!result || hf__pq.PQntuples(result) <= row ||
        hf__pq.PQnfields(result) <= column ||
        hf__pq.PQgetisnull(result, row, column))
        return standard;
    return strtoll(hf__pq.PQgetvalue(result, row, column), NULL, 10);
}

bool hf__session_changed(PGresult *result)
{
    return strtoll(hf__pq.PQcmdTuples(result), NULL, 10) > 0;
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

static void clear_answer(struct hf__session *session)
{
    for (int i = 0; i < session->answer.n; i++)
        hf__pq.PQclear(session->answer.results[i]);
    memset(&session->answer, 0, sizeof(session->answer));
}

static void close_conn(struct hf__session *session, bool forked)
{
    if (!forked)
        hf__session_forget_hosts(session);
    if (!session->conn)
        return;
    if (forked) {
        int fd = hf__pq.PQsocket(session->conn);

        if (fd >= 0)
            (void)close(fd); /* a word to the server would end the parent's */
        session->conn = NULL;
        return;
    }
    if (session->io.slot != 0)
        hf__io_stop(session->engine->base.host->loop, &session->io);
    clear_answer(session);
    hf__pq.PQfinish(session->conn);
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
    if (session->reading)
        session->closing = true; /* libpq is in use above us */
    else if (session->state != HF__SESSION_IDLE)
        end(session);
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
    if (session->state != HF__SESSION_UP) {
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

static void watch(struct hf__session *session, uint32_t events)
{
    struct hf__loop *loop = session->engine->base.host->loop;

    if (session->io.slot != 0 && session->watched == events)
        return;
    if (session->io.slot == 0) {
        session->io.fd = hf__pq.PQsocket(session->conn);
        (void)hf__io_start(loop, &session->io, events);
    } else {
        (void)hf__io_change(loop, &session->io, events);
    }
    session->watched = events;
}

static void flush(struct hf__session *session)
{
    int rc = hf__pq.PQflush(session->conn);

    if (rc < 0) { /* the loop will tell: the socket is readable */
        keep_message(session);
        session->closing = true;
        hf__postgres_wake(session->engine, hf__now());
    } else {
        watch(session, rc > 0 ? EPOLLIN | EPOLLOUT : EPOLLIN);
    }
}

/* What was put together cannot be sent whole: end the session, soon. */
static int give_up(struct hf__session *session, hf_error *err)
{
    keep_message(session);
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

    if (session->state != HF__SESSION_UP || session->closing)
        return hf__fail(err, HF_EUNAVAILABLE, "%s: not connected",
                        session->engine->peer);
    if ((session->prepared >> statement & 1) == 0) {
        if (!hf__pq.PQsendPrepare(session->conn, name,
                                  hf__pg_statement(session->engine, statement),
                                  0, NULL))
            return give_up(session, err);
        session->prepared |= UINT64_C(1) << statement;
        next->prepares |= UINT64_C(1) << statement;
        next->order |= 1u << next->results++;
    }
    if (!hf__pq.PQsendQueryPrepared(session->conn, name, n, values, NULL, NULL,
                                    0))
        return give_up(session, err);
    next->results++;
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

int hf__session_send(struct hf__session *session,
                     const struct hf__session_call *call, hf_error *err)
{
    struct hf__session_call *next = &session->next;
    int64_t limit_ms = session->engine->base.host->settings->io_timeout_ms;

    if (reserve_call(session) != 0) {
        (void)hf__fail(&session->fatal, HF_ENOMEM, "out of memory");
        return give_up(session, err);
    }
    if (!hf__pq.PQpipelineSync(session->conn))
        return give_up(session, err);
    next->done = call->done;
    next->ticket = call->ticket;
    next->query = call->query;
    next->patient = call->patient;
    next->sent_ns = call->sent_ns != 0 ? call->sent_ns : hf__now();
    next->results = 0;
    session->spoke_ns = next->sent_ns;
    session->calls[(session->calls_first + session->calls_n++) %
                   session->calls_size] = *next;
    session->engine->base.under_way++;
    if (!call->patient)
        hf__postgres_wake(session->engine,
                          next->sent_ns + hf__ms_to_ns(limit_ms));
    *next = (struct hf__session_call){0};
    flush(session);
    return 0;
}

/* ---- reading ------------------------------------------------------------- */

static void finish_call(struct hf__session *session)
{
    struct hf__session_call call;

    (void)take_call(session, &call);
    session->prepared &= ~(call.prepares & ~call.prepared);
    call.done(session, &call, &session->answer);
    clear_answer(session);
}

/* The statement that the next bit of @call->prepares names worked. */
static void note_prepared(struct hf__session_call *call)
{
    uint64_t left = call->prepares & ~call->prepared;

    call->prepared |= left & (~left + 1);
}

static void keep_result(struct hf__session *session, PGresult *result)
{
    struct hf__session_call *call = &session->calls[session->calls_first];
    ExecStatusType status = hf__pq.PQresultStatus(result);
    bool is_prepare = (call->order >> call->results++ & 1) != 0;
    struct hf__session_answer *answer = &session->answer;

    if (is_prepare && status == PGRES_COMMAND_OK) {
        note_prepared(call);
        hf__pq.PQclear(result);
        return;
    }
    if (answer->n == HF__PG_RESULTS) {
        hf__pq.PQclear(result);
        return;
    }
    if (status == PGRES_FATAL_ERROR && !answer->error)
        answer->error = result;
    answer->results[answer->n++] = result;
    answer->last = result;
}

static void read_answers(struct hf__session *session)
{
    while (!session->closing && session->calls_n > 0 &&
           !hf__pq.PQisBusy(session->conn)) {
        PGresult *result = hf__pq.PQgetResult(session->conn);

        if (!result) {
            if (hf__pq.PQstatus(session->conn) == CONNECTION_BAD)
                break;
            continue; /* the end of a statement's results */
        }
        if (hf__pq.PQresultStatus(result) == PGRES_PIPELINE_SYNC) {
            hf__pq.PQclear(result);
            finish_call(session);
        } else {
            keep_result(session, result);
        }
    }
}

static void read_notifications(struct hf__session *session)
{
    const struct hf__postgres_mode *mode = session->engine->mode;
    PGnotify *notify;

    while (!session->closing &&
           (notify = hf__pq.PQnotifies(session->conn)) != NULL) {
        if (mode->notified)
            mode->notified(session->engine, notify->extra);
        hf__pq.PQfreemem(notify);
    }
}

/* ---- greeting ------------------------------------------------------------ */

static void refuse(struct hf__session *session, int code, const char *why)
{
    hf_error err;

    (void)hf__fail(&err, code, "%s: %s", session->engine->peer, why);
    hf__session_fail(session, &err);
}

static bool is_set(const PGresult *result, int column)
{
    return hf__session_text(result, 0, column)[0] == 't';
}

static void send_text(struct hf__session *session, const char *text)
{
    if (hf__pq.PQsendQuery(session->conn, text))
        flush(session);
    else
        refuse(session, HF_EUNAVAILABLE, "the greeting cannot be sent");
}

/* Are sequence and tables there? If not, they are made first, once: false. */
static bool know_tables(struct hf__session *session, const PGresult *result)
{
    struct hf__postgres *postgres = session->engine;

    postgres->fenced = is_set(result, 3);
    postgres->tables = is_set(result, 4);
    if (postgres->mode->tables && hf__session_text(result, 0, 4)[0] == 'o') {
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
static void greeted(struct hf__session *session, const PGresult *result)
{
    session->pid = (int32_t)hf__session_number(result, 0, 0, 0);
    hf__text_copy(session->started, sizeof(session->started),
                  hf__session_text(result, 0, 1));
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
    if (hf__pq.PQenterPipelineMode(session->conn) != 1) {
        refuse(session, HF_EINTERNAL, "pipeline mode is not to be had");
        return;
    }
    session->state = HF__SESSION_UP;
    session->timeout_ms = 0;
    session->marked = false;
    session->lent = false;
    clear_answer(session);
    session->engine->mode->up(session);
}

/* Simple statements; what the last of them answers counts. */
static void read_greeting(struct hf__session *session)
{
    while (!session->closing && session->state == HF__SESSION_GREETING &&
           !hf__pq.PQisBusy(session->conn)) {
        PGresult *result = hf__pq.PQgetResult(session->conn);
        struct hf__session_answer *answer = &session->answer;

        if (result) {
            clear_answer(session);
            answer->results[answer->n++] = result;
            if (hf__pq.PQresultStatus(result) == PGRES_FATAL_ERROR)
                answer->error = result;
            continue;
        }
        if (answer->n == 0 || answer->error ||
            hf__pq.PQntuples(answer->results[0]) != 1) {
            hf_error err;

            if (session->making == 1) { /* they could not be made */
                session->making = 2;
                clear_answer(session);
                send_text(session, hf__pg_greeting(session->engine));
                continue;
            }
            (void)hf__session_explain(session, answer->error, &err);
            hf__session_fail(session, &err);
            return;
        }
        greeted(session, answer->results[0]);
    }
}

static void session_ready(struct hf__io *io, uint32_t events)
{
    struct hf__session *session = HF_CONTAINER_OF(io, struct hf__session, io);

    if (events & EPOLLOUT)
        flush(session);
    session->reading = true;
    if (!hf__pq.PQconsumeInput(session->conn)) {
        keep_message(session);
        session->closing = true;
    }
    if (session->state == HF__SESSION_GREETING)
        read_greeting(session);
    if (session->state == HF__SESSION_UP) {
        read_answers(session);
        read_notifications(session);
    }
    if (hf__pq.PQstatus(session->conn) == CONNECTION_BAD) {
        keep_message(session);
        session->closing = true;
    }
    session->reading = false;
    if (session->closing)
        end(session);
}

/* ---- lending -------------------------------------------------------------- */

int hf__session_lend(struct hf__session *session, hf_error *err)
{
    if (hf__pq.PQexitPipelineMode(session->conn) != 1 ||
        hf__pq.PQsetnonblocking(session->conn, 0) != 0)
        return hf__fail(err, HF_EINTERNAL, "%s: the connection is in use",
                        session->engine->peer);
    hf__io_stop(session->engine->base.host->loop, &session->io);
    session->lent = true;
    return 0;
}

int hf__session_take_back(struct hf__session *session)
{
    session->lent = false;
    if (hf__pq.PQstatus(session->conn) == CONNECTION_OK &&
        hf__pq.PQtransactionStatus(session->conn) != PQTRANS_ACTIVE &&
        hf__pq.PQsetnonblocking(session->conn, 1) == 0 &&
        hf__pq.PQenterPipelineMode(session->conn) == 1) {
        watch(session, EPOLLIN);
        return 0;
    }
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
    if (hf__pq.PQserverVersion(session->conn) < 140000) {
        refuse(session, HF_EUNSUPPORTED,
               "PostgreSQL 14 or later is needed: older ones have no "
               "idle_session_timeout, which is the lease");
        return;
    }
    session->state = HF__SESSION_GREETING;
    session->io.ready = session_ready;
    if (hf__pq.PQsetnonblocking(session->conn, 1) != 0)
        connecting_failed(session);
    else
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
    (void)hf__pq.PQsetNoticeReceiver(session->conn, on_notice, session);
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
    session->making = 0;
    session->listening = false;
    session->connect_ns = hf__now();
    session->state = HF__SESSION_RESOLVING;
    hf__postgres_wake(session->engine,
                      session->connect_ns +
                          hf__ms_to_ns(settings->connect_timeout_ms));
    return hf__session_resolve(session, err);
}

/* SPDX-License-Identifier: MIT */
/*
 * connect.c - connecting, and the first statements on a connection.
 *
 * libpq makes the connection: addresses, which we have resolved (hosts.c), TLS,
 * passwords.
 *
 * The first statements set the session up, and tell which backend serves it:
 * its process and when it was started. Both together name a backend for good,
 * also after a restart of the server, so that the server can end a session
 * whose connection we lose.
 *
 * Failure: an error ends the connection.
 */
#include "engines/postgres/postgres.h"

/* ---- the first statements ------------------------------------------------ */

static bool is_set(const struct hf__pg_result *result, int column)
{
    return hf__pg_answer_text(result, 0, column)[0] == 't';
}

/* Are sequence and tables there? If not, they are made first, once: false. */
static bool know_tables(struct hf__pg_conn *conn,
                        const struct hf__pg_result *result)
{
    struct hf__pg *postgres = conn->engine;
    const char *tables = hf__pg_answer_text(result, 0, 4);
    /* Made by an earlier version; a role that cannot make the rest does without
     * conditions, or without a board. */
    bool lacks_some = tables[0] == 'w';

    if (postgres->own_texts[HF__PG_OWN_LOCK]) /* it needs none of ours */
        return true;
    postgres->fenced = is_set(result, 3);
    postgres->tables = tables[0] == 't' || lacks_some;
    postgres->conditions =
        postgres->tables && strcmp(tables, "without conditions") != 0;
    if (postgres->mode->tables && tables[0] == 'o') {
        hf__pg_connection_refuse(
            conn, HF_ECONFIG,
            "the table holdfast_place is of an older version of holdfast: "
            "drop it when nobody uses that any more");
        return false;
    }
    if (!(postgres->fenced && postgres->tables &&
          !(lacks_some && postgres->mode->tables)) &&
        conn->tables == HF__TABLES_UNTRIED) {
        conn->tables = HF__TABLES_MAKING;
        hf__pg_calls_send_text(conn, hf__pg_statements_make(postgres));
        return false;
    }
    if (postgres->tables || !postgres->mode->tables)
        return true;
    hf__pg_connection_refuse(
        conn, HF_EAUTH,
        "the tables of holdfast(7) are missing, and the role may not "
        "create them");
    return false;
}

/* Where grants are pushed, the main connection listens for them: true, and the
 * first statements are answered once more. */
static bool begins_to_listen(struct hf__pg_conn *conn)
{
    struct hf__pg *postgres = conn->engine;
    struct hf__buf text = {0};

    if (!postgres->mode->listens || conn->listening)
        return false;
    conn->listening = true;
    hf__buf_printf(&text, "LISTEN hf_%.*s; %s", HF__PG_CHANNEL,
                   postgres->identity, hf__pg_statements_first(postgres));
    if (hf__buf_failed(&text))
        hf__pg_connection_refuse(conn, HF_ENOMEM, "out of memory");
    else
        hf__pg_calls_send_text(conn, hf__buf_text(&text));
    hf__buf_release(&text);
    return true;
}

/* The columns of the last of the first statements: {with} in fragments.sql. */
static void is_known(struct hf__pg_conn *conn,
                     const struct hf__pg_result *result)
{
    conn->pid = (int32_t)hf__pg_answer_number(result, 0, 0, 0);
    hf__text_copy(conn->started, sizeof(conn->started),
                  hf__pg_answer_text(result, 0, 1));
    if (conn->pid != hf__pq.PQbackendPID(conn->pq)) {
        hf__pg_connection_refuse(
            conn, HF_EUNSUPPORTED,
            "there is a connection pooler in between; a lock needs a "
            "session of its own: connect to the server itself");
        return;
    }
    if (is_set(result, 2)) {
        hf__pg_connection_refuse(
            conn, HF_EUNAVAILABLE,
            "it is a standby; target_session_attrs=read-write finds the "
            "primary among several hosts");
        return;
    }
    if (!know_tables(conn, result) || begins_to_listen(conn))
        return;
    if (hf__pg_calls_open(conn, /* err= */ NULL) != 0)
        return;
    conn->timeout_ms = 0;
    conn->has_second_key = false;
    conn->engine->mode->up(conn);
}

void hf__pg_connect_answered(struct hf__pg_conn *conn)
{
    const struct hf__pg_answer *answer = &conn->answer;
    bool good = !answer->error && answer->last->rows == 1;
    hf_error err;

    if (good) {
        is_known(conn, answer->last);
    } else if (conn->tables == HF__TABLES_MAKING) {
        conn->tables = HF__TABLES_UNMADE;
        hf__pg_calls_send_text(conn, hf__pg_statements_first(conn->engine));
    } else {
        (void)hf__pg_errors_explain(conn, answer->error, &err);
        hf__pg_connection_fail(conn, &err);
    }
}

/* ---- connecting ---------------------------------------------------------- */

/* libpq knows a wrong password or certificate only as a text. */
static bool is_refused(const struct hf__pg_conn *conn, const char *text)
{
    return hf__pq.PQconnectionNeedsPassword(conn->pq) ||
           strstr(text, "certificate verify failed") ||
           strstr(text, "server certificate for") ||
           strstr(text, "private key") || strstr(text, "certificate file") ||
           strstr(text, "server does not support SSL") ||
           strstr(text, "authentication failed") ||
           strstr(text, "no password supplied") ||
           (strstr(text, "role \"") && strstr(text, "does not exist")) ||
           strstr(text, "no pg_hba.conf entry");
}

static void connecting_failed(struct hf__pg_conn *conn)
{
    const char *text = hf__pq.PQerrorMessage(conn->pq);
    int code = HF_EUNAVAILABLE;
    hf_error err;

    if (is_refused(conn, text))
        code = HF_EAUTH;
    else if (strstr(text, "database \"") && strstr(text, "does not exist"))
        code = HF_ECONFIG;
    (void)hf__fail(&err, code, "%s: %.*s", conn->engine->peer,
                   (int)strcspn(text, "\n"), text);
    hf__pg_connection_fail(conn, &err);
}

static void send_first(struct hf__pg_conn *conn)
{
    if (hf__pq.PQserverVersion(conn->pq) < 140000) {
        hf__pg_connection_refuse(
            conn, HF_EUNSUPPORTED,
            "PostgreSQL 14 or later is needed: older ones have no "
            "idle_session_timeout, which is the lease");
        return;
    }
    hf__pg_calls_start(conn, hf__pg_statements_first(conn->engine));
}

static void connecting_ready(struct hf__io *io, uint32_t events)
{
    struct hf__pg_conn *conn = HF_CONTAINER_OF(io, struct hf__pg_conn, io);

    (void)events;
    hf__pg_connect_poll(conn);
}

void hf__pg_connect_poll(struct hf__pg_conn *conn)
{
    struct hf__loop *loop = conn->engine->base.host->loop;
    PostgresPollingStatusType status;
    hf_error err;

    conn->state = HF__CONN_CONNECTING;
    conn->io.ready = connecting_ready;
    if (conn->io.slot != 0) /* it may close the socket and open another */
        hf__io_stop(loop, &conn->io);
    status = hf__pq.PQconnectPoll(conn->pq);
    if (status == PGRES_POLLING_OK)
        send_first(conn);
    else if (status == PGRES_POLLING_FAILED)
        connecting_failed(conn);
    else if (hf__pg_connection_watch(
                 conn, status == PGRES_POLLING_WRITING ? EPOLLOUT : EPOLLIN,
                 &err) != 0)
        hf__pg_connection_fail(conn, &err);
}

int hf__pg_connect_start(struct hf__pg_conn *conn, hf_error *err)
{
    const struct hf__settings *settings = conn->engine->base.host->settings;

    if (conn->calls.slot_size == 0)
        hf__calls_init(&conn->calls, sizeof(struct hf__pg_call));
    conn->fatal.code = 0;
    conn->closing = false;
    hf__pg_answer_clear(&conn->answer);
    conn->tables = HF__TABLES_UNTRIED;
    conn->listening = false;
    conn->connect_ns = hf__now();
    conn->state = HF__CONN_RESOLVING;
    hf__pg_wake(conn->engine,
                conn->connect_ns + hf__ms_to_ns(settings->connect_timeout_ms));
    return hf__pg_hosts_resolve(conn, err);
}

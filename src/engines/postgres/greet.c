/* SPDX-License-Identifier: MIT */
/*
 * greet.c - connecting, and the first words on a connection.
 *
 * libpq makes the connection: addresses, which are resolved before it sees them
 * (settings.c), TLS, passwords.
 *
 * The greeting goes first: what the session is set to, and who it is: the
 * server's number for it and when it began. Both together name a backend for
 * good, also after a restart of the server, so that a connection that we lose
 * can be ended at the server.
 *
 * Failure: whatever does not end well ends the session.
 */
#include "engines/postgres/postgres.h"

/* ---- greeting ------------------------------------------------------------ */

static bool is_set(const struct hf__pg_result *result, int column)
{
    return hf__pg_text(result, 0, column)[0] == 't';
}

/* Are sequence and tables there? If not, they are made first, once: false. */
static bool know_tables(struct hf__session *session,
                        const struct hf__pg_result *result)
{
    struct hf__postgres *postgres = session->engine;

    if (postgres->own_lock) /* it needs none of ours */
        return true;
    postgres->fenced = is_set(result, 3);
    postgres->tables = is_set(result, 4);
    if (postgres->mode->tables && hf__pg_text(result, 0, 4)[0] == 'o') {
        hf__session_refuse(
            session, HF_ECONFIG,
            "the table holdfast_place is of an older version of holdfast: "
            "drop it when nobody uses that any more");
        return false;
    }
    if (!(postgres->fenced && postgres->tables) && session->making == 0) {
        session->making = 1;
        hf__session_say(session, hf__pg_schema(postgres));
        return false;
    }
    if (postgres->tables || !postgres->mode->tables)
        return true;
    hf__session_refuse(
        session, HF_EAUTH,
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
    hf__buf_printf(&text, "LISTEN hf_%.*s; %s", HF__PG_CHANNEL,
                   postgres->identity, hf__pg_greeting(postgres));
    if (hf__buf_failed(&text))
        hf__session_refuse(session, HF_ENOMEM, "out of memory");
    else
        hf__session_say(session, hf__buf_text(&text));
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
        hf__session_refuse(
            session, HF_EUNSUPPORTED,
            "there is a connection pooler in between; a lock needs a "
            "session of its own: connect to the server itself");
        return;
    }
    if (is_set(result, 2)) {
        hf__session_refuse(
            session, HF_EUNAVAILABLE,
            "it is a standby; target_session_attrs=read-write finds the "
            "primary among several hosts");
        return;
    }
    if (!know_tables(session, result) || begins_to_listen(session))
        return;
    if (hf__session_open(session, /* err= */ NULL) != 0)
        return;
    session->timeout_ms = 0;
    session->marked = false;
    session->engine->mode->up(session);
}

void hf__session_greeted(struct hf__session *session)
{
    const struct hf__pg_answer *answer = &session->answer;
    bool good = !answer->error && answer->last->rows == 1;
    hf_error err;

    if (good) {
        greeted(session, answer->last);
    } else if (session->making == 1) { /* they could not be made */
        session->making = 2;
        hf__session_say(session, hf__pg_greeting(session->engine));
    } else {
        (void)hf__session_explain(session, answer->error, &err);
        hf__session_fail(session, &err);
    }
}

/* ---- connecting ---------------------------------------------------------- */

/* libpq knows a wrong password or certificate only as a text. */
static bool is_refused(const struct hf__session *session, const char *text)
{
    return hf__pq.PQconnectionNeedsPassword(session->conn) ||
           strstr(text, "certificate verify failed") ||
           strstr(text, "server certificate for") ||
           strstr(text, "private key") || strstr(text, "certificate file") ||
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
        hf__session_refuse(
            session, HF_EUNSUPPORTED,
            "PostgreSQL 14 or later is needed: older ones have no "
            "idle_session_timeout, which is the lease");
        return;
    }
    hf__session_made(session);
    hf__session_say(session, hf__pg_greeting(session->engine));
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
    hf_error err;

    session->state = HF__SESSION_CONNECTING;
    session->io.ready = connecting_ready;
    if (session->io.slot != 0) /* it may close the socket and open another */
        hf__io_stop(loop, &session->io);
    status = hf__pq.PQconnectPoll(session->conn);
    if (status == PGRES_POLLING_OK)
        greet(session);
    else if (status == PGRES_POLLING_FAILED)
        connecting_failed(session);
    else if (hf__session_watch(
                 session, status == PGRES_POLLING_WRITING ? EPOLLOUT : EPOLLIN,
                 &err) != 0)
        hf__session_fail(session, &err);
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

/* SPDX-License-Identifier: MIT */
/*
 * for_update.c - mode=for_update: a lock that is a transaction, and its
 * connection for the caller's own statements.
 *
 * The transaction inserts a row with the name, and deletes it at once. Until it
 * ends nobody else can insert that row, and however it ends, nothing of it
 * stays.
 *
 * Once the caller has the connection the lock has no lease: the server does not
 * end a silent transaction any more, and we leave the connection alone until the
 * lock is released.
 *
 * Failure: a connection that was lost meanwhile is noticed when it comes back.
 */
#include "engines/postgres/advisory.h"

/* ---- its statements ------------------------------------------------------ */

/* How long a transaction waits for a lock: for a try the least there is. */
static void add_timeout(struct hf__pg_conn *conn, bool wait, const char *ms)
{
    if (!wait)
        hf__pg_calls_add(conn, HF__STMT_FOR_UPDATE_LOCK_TIMEOUT, &ms, 1);
}

void hf__pg_for_update_add_lock(struct hf__pg_ticket *mine, bool wait)
{
    struct hf__pg_conn *conn = mine->conn;
    bool own = mine->engine->own_texts[HF__PG_OWN_LOCK] != NULL;
    char whole[HF__PG_WHOLE];
    const char *values[] = {whole, whole};

    hf__pg_names_whole(mine->engine, mine->entry.ticket->name, whole);
    hf__pg_calls_add(conn, HF__STMT_FOR_UPDATE_BEGIN, NULL, 0);
    add_timeout(conn, wait, "1");
    hf__pg_calls_add(conn,
                     own ? HF__STMT_OWN_ROW_LOCK : HF__STMT_FOR_UPDATE_INSERT,
                     values, own ? 2 : 1);
    add_timeout(conn, wait, "0");
    if (!own)
        hf__pg_calls_add(conn, HF__STMT_FOR_UPDATE_DELETE, values, 1);
}

/* What was done in the transaction counts if it is the one that was begun with
 * the lock, and in order: a caller may have ended it. */
void hf__pg_for_update_add_end(struct hf__pg_ticket *mine)
{
    bool had = mine->transaction[0] != '\0';
    const char *values[] = {mine->transaction};

    if (!hf__pg_tickets_releases(mine) || mine->unsure) {
        hf__pg_calls_add(mine->conn, HF__STMT_FOR_UPDATE_ROLLBACK, NULL, 0);
        return;
    }
    if (had) {
        mine->owed = HF__PG_OWES_COMMIT;
        hf__pg_calls_add(mine->conn, HF__STMT_FOR_UPDATE_SAME, values, 1);
    }
    hf__pg_calls_add(mine->conn, HF__STMT_FOR_UPDATE_COMMIT, NULL, 0);
}

/* ---- hf_sql_connection() -------------------------------------------------- */

/* The keeper need not renew what the caller has. */
static void last_as_long_as_the_session(struct hf__pg_ticket *mine)
{
    struct hf__grant forever = {.tokens = 1, .sent_ns = hf__now()};

    hf__up_renewed(&mine->engine->base, mine->entry.ticket, &forever);
}

bool hf__pg_for_update_renew(struct hf__pg_ticket *mine)
{
    if (mine->conn->state != HF__CONN_WITH_CALLER)
        return false;
    last_as_long_as_the_session(mine);
    return true;
}

static int gone(const struct hf__pg *postgres, hf_error *err)
{
    return hf__fail(err, HF_ELOST, "%s: the transaction is gone",
                    postgres->peer);
}

/* Also the queries that came meanwhile: they hang behind @query. */
static void answer(struct hf__pg_conn *conn, struct hf__query *query, int rc,
                   const hf_error *err)
{
    struct hf__pg_ticket *mine =
        hf__pg_tickets_find(conn->engine, query->ticket);

    if (mine)
        mine->borrower = NULL;
    while (query) {
        struct hf__query *next = query->engine_data;

        query->connection = rc == 0 ? conn->pq : NULL;
        hf__up_answer(&conn->engine->base, query, rc, err);
        query = next;
    }
}

static int ask(struct hf__pg_ticket *mine, struct hf__query *query,
               hf_error *err);

/* It has no lease any more. A renewal may have come in between: then we ask
 * once more. */
static void on_ready(struct hf__pg_conn *conn, const struct hf__pg_call *call,
                     const struct hf__pg_answer *what)
{
    struct hf__pg_ticket *mine = call->mine;
    hf_error err;
    int rc;

    if (!what || what->error || !mine || mine->state != HF__PG_HELD ||
        mine->conn != conn) {
        rc = gone(conn->engine, &err);
    } else if (conn->calls.n > 0) {
        rc = ask(mine, call->query, &err);
    } else {
        hf__text_copy(mine->transaction, sizeof(mine->transaction),
                      hf__pg_answer_text(what->last, 0, 0));
        last_as_long_as_the_session(mine);
        rc = hf__pg_connection_to_caller(conn, &err);
        if (rc == 0)
            answer(conn, call->query, 0, /* err= */ NULL);
    }
    if (rc != 0)
        answer(conn, call->query, rc, &err);
}

static int ask(struct hf__pg_ticket *mine, struct hf__query *query,
               hf_error *err)
{
    struct hf__pg_call call = {
        .done = on_ready, .ticket = mine->entry.ticket->id, .query = query};
    const char *values[] = {"0"};
    int rc;

    hf__pg_calls_add(mine->conn, HF__STMT_SESSION_TIMEOUT, values, 1);
    rc = hf__pg_calls_send_one(mine->conn, HF__STMT_FOR_UPDATE_TRANSACTION,
                               NULL, 0, &call, err);
    if (rc == 0)
        mine->conn->timeout_ms = 0;
    return rc;
}

int hf__pg_for_update_connection(struct hf__engine *engine,
                                 struct hf__query *query, hf_error *err)
{
    struct hf__pg *postgres = hf__pg_of(engine);
    struct hf__pg_ticket *mine = hf__pg_tickets_find(postgres, query->ticket);
    int rc;

    if (!hf__advisory_transacts(postgres))
        return hf__fail(err, HF_EUNSUPPORTED,
                        "a lock of mode=%s is no transaction: use "
                        "mode=for_update",
                        postgres->mode->name);
    if (!mine || mine->state != HF__PG_HELD)
        return gone(postgres, err);
    query->engine_data = NULL;
    if (mine->conn->state == HF__CONN_WITH_CALLER) {
        answer(mine->conn, query, 0, /* err= */ NULL);
        return 0;
    }
    if (mine->borrower) {
        query->engine_data = mine->borrower->engine_data;
        mine->borrower->engine_data = query;
        return 0;
    }
    rc = ask(mine, query, err);
    if (rc == 0)
        mine->borrower = query;
    return rc;
}

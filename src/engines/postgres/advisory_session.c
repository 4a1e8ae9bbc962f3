/* SPDX-License-Identifier: MIT */
/*
 * advisory_session.c - sessions that hold locks, and what is left when one is
 * lost.
 *
 * The main connection has any number of locks, one of the pool has one.
 *
 * Failure: a session that ends takes its locks with it: LOST, at once. Its
 * backend may not know yet (an orphan); the main connection has it ended, and a
 * withdrawal is final when it has gone.
 */
#include "engines/postgres/advisory.h"

/* ---- where a ticket is --------------------------------------------------- */

void hf__advisory_session_join_main(struct hf__pg_ticket *mine)
{
    struct hf__pg *postgres = mine->engine;

    mine->conn = &postgres->main;
    hf__list_append(&postgres->held[(uint64_t)mine->key % HF__PG_BUCKETS],
                    &mine->link);
    postgres->held_n++;
}

void hf__advisory_session_leave(struct hf__pg_ticket *mine)
{
    struct hf__pg_conn *conn = mine->conn;

    if (!conn)
        return;
    hf__advisory_names_drop(mine);
    mine->conn = NULL;
    if (conn == hf__pg_main(mine)) {
        hf__list_remove(&mine->link);
        mine->engine->held_n--;
        return;
    }
    conn->user = NULL;
    if (hf__pg_connection_is_up(conn))
        hf__sql_pool_give(&mine->engine->pool, &conn->link);
}

/* ---- orphans ------------------------------------------------------------- */

int hf__advisory_session_about(struct hf__pg_conn *main,
                               enum hf__pg_statement statement,
                               const struct hf__pg_orphan *orphan,
                               struct hf__pg_call *call, hf_error *err)
{
    char pid[HF__PG_DIGITS];
    const char *values[] = {hf__pg_names_decimal(orphan->pid, pid),
                            orphan->started};

    return hf__pg_calls_send_one(main, statement, values, 2, call, err);
}

/* The server has heard it. Without an answer the next main connection tries. */
static void on_ended(struct hf__pg_conn *conn, const struct hf__pg_call *call,
                     const struct hf__pg_answer *answer)
{
    struct hf__pg_orphan *orphans = conn->engine->orphans;

    for (size_t i = 0; i < HF__PG_ORPHANS && answer; i++) {
        if (orphans[i].number == call->number)
            orphans[i].pid = 0;
    }
}

static void end_orphans(struct hf__pg *postgres)
{
    for (size_t i = 0; i < HF__PG_ORPHANS; i++) {
        const struct hf__pg_orphan *orphan = &postgres->orphans[i];
        struct hf__pg_call call = {.done = on_ended, .number = orphan->number};

        if (orphan->pid != 0)
            (void)hf__advisory_session_about(&postgres->main,
                                             HF__STMT_BACKEND_END, orphan,
                                             &call, /* err= */ NULL);
    }
}

/* @conn was lost, and its backend may live on. */
static void remember_orphan(struct hf__pg_conn *conn)
{
    struct hf__pg_orphan *orphans = conn->engine->orphans;

    if (conn->pid == 0)
        return;
    memmove(orphans + 1, orphans, (HF__PG_ORPHANS - 1) * sizeof(*orphans));
    hf__pg_connection_orphan(conn, &orphans[0]);
    orphans[0].number = ++conn->engine->orphans_n;
}

/* ---- tickets of a session that is lost ------------------------------------ */

void hf__advisory_session_lose(struct hf__pg_ticket *mine)
{
    hf__advisory_session_leave(mine);
    hf__pg_tickets_lost(mine, HF__LOST_SESSION);
}

void hf__advisory_session_cut(struct hf__pg_ticket *mine)
{
    const struct hf__pg_conn *conn = mine->conn;
    bool was_queued = mine->owed == HF__PG_OWES_GRANT;
    hf_error err;

    (void)hf__pg_errors_lost(conn ? conn : hf__pg_main(mine), &err);
    if (conn) {
        mine->orphan.pid = conn->pid;
        memcpy(mine->orphan.started, conn->started, sizeof(conn->started));
    }
    hf__advisory_session_leave(mine);
    hf__pg_tickets_move(mine, HF__PG_ORPHAN);
    if (was_queued)
        hf__advisory_session_lose(mine);
    else
        hf__pg_tickets_unknown(mine, &err);
}

static void lose(struct hf__pg_ticket *mine)
{
    struct hf__pg *postgres = mine->engine;
    bool cancelled = mine->state == HF__PG_CANCELLING;
    int64_t key = mine->key;

    if (mine->state == HF__PG_HELD)
        hf__advisory_session_lose(mine);
    else
        hf__advisory_session_cut(mine);
    if (cancelled)
        hf__advisory_release_stopped(postgres, key);
}

/* ---- sessions that come and go ------------------------------------------- */

static void main_down(struct hf__pg *postgres, const hf_error *err)
{
    for (size_t i = 0; i < HF__PG_BUCKETS; i++) {
        while (!hf__list_empty(&postgres->held[i]))
            lose(HF_CONTAINER_OF(hf__list_first(&postgres->held[i]),
                                 struct hf__pg_ticket, link));
    }
    remember_orphan(&postgres->main);
    hf__pg_down(postgres, err);
}

void hf__advisory_session_down(struct hf__pg_conn *conn, const hf_error *err)
{
    struct hf__pg *postgres = conn->engine;

    if (conn == &postgres->main) {
        main_down(postgres, err);
        return;
    }
    if (conn == postgres->opening) { /* the pool is told by open() */
        postgres->opening = NULL;
        return;
    }
    if (conn->user)
        lose(conn->user);
    if (!conn->unpooled) {
        remember_orphan(conn);
        end_orphans(postgres);
        hf__sql_pool_gone(&postgres->pool, &conn->link, err);
    }
    hf__pg_connection_stop(conn, /* forked= */ false);
    hf__free(conn);
}

void hf__advisory_session_up(struct hf__pg_conn *conn)
{
    struct hf__pg *postgres = conn->engine;

    if (conn != &postgres->main) {
        hf__sql_pool_ready(&postgres->pool, &conn->link);
        return;
    }
    end_orphans(postgres);
    hf__pg_connected(postgres);
}

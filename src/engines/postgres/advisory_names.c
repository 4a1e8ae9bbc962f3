/* SPDX-License-Identifier: MIT */
/*
 * advisory_names.c - two names that share a key are an error, not one lock.
 *
 * The server knows a lock by 64 bits. To tell a name from another with the same
 * ones, a session that asks for or has a lock also has a shared lock on a second
 * key: 64 bits of another hash, in the server's other space of keys. It is taken
 * before the lock and freed after it. Hence a session that has the key in a
 * snapshot of pg_locks, and not the second key, has it under another name. A
 * client that finds a lock taken looks there, and a waiter looks again and again
 * (advisory_wait.c). Nothing is written, and nothing stays when the session
 * ends.
 *
 * The second key of the name that a session used last stays for a second, so
 * that taking a lock again and again costs no more than the lock. More of them
 * would take from the room that all sessions of the server share for locks.
 */
#include "engines/postgres/advisory.h"

/* A session that has been silent for so long frees its second key. */
#define QUIET_NS HF_SECOND

/* The statement that frees the lock frees the second key as well. */
static bool has_second_key(const struct hf__pg_ticket *mine)
{
    return mine->conn && !hf__advisory_transacts(mine->engine) &&
           mine->state != HF__PG_RELEASING && mine->state != HF__PG_STUCK;
}

static void add(struct hf__pg_ticket *mine, enum hf__pg_statement statement)
{
    char first[HF__PG_DIGITS];
    char second[HF__PG_DIGITS];
    uint64_t bits = (uint64_t)mine->second_key;
    const char *values[] = {
        hf__pg_names_decimal((int32_t)(bits >> 32), first),
        hf__pg_names_decimal((int32_t)mine->second_key, second)};

    hf__pg_calls_add(mine->conn, statement, values, 2);
}

void hf__advisory_names_lock(struct hf__pg_ticket *mine)
{
    struct hf__pg_conn *conn = mine->conn;

    if (conn->has_second_key && conn->second_key == mine->second_key)
        conn->has_second_key = false; /* from now on it is the ticket's */
    else
        add(mine, HF__STMT_ADVISORY_SECOND_LOCK);
}

/* True: it stays. */
static bool stays(struct hf__pg_ticket *mine)
{
    struct hf__pg_conn *conn = mine->conn;

    if (mine->unsure || conn->has_second_key)
        return false;
    conn->has_second_key = true;
    conn->second_key = mine->second_key;
    hf__pg_wake(mine->engine, hf__now() + QUIET_NS);
    return true;
}

void hf__advisory_names_unlock(struct hf__pg_ticket *mine)
{
    if (has_second_key(mine) && !stays(mine))
        add(mine, HF__STMT_ADVISORY_SECOND_UNLOCK);
}

void hf__advisory_names_drop(struct hf__pg_ticket *mine)
{
    struct hf__pg_call call = {.done = hf__pg_calls_ignore};

    if (!has_second_key(mine) || !hf__pg_connection_is_up(mine->conn) ||
        stays(mine))
        return;
    add(mine, HF__STMT_ADVISORY_SECOND_UNLOCK);
    (void)hf__pg_calls_send(mine->conn, &call, /* err= */ NULL);
}

/* ---- looking ------------------------------------------------------------- */

void hf__advisory_names_collide(struct hf__pg_ticket *mine, const char *by)
{
    hf_error err;

    (void)hf__fail(&err, HF_ECONFIG,
                   "%s: the key of '%.80s' is held under another name, by %.80s"
                   ": rename one, or use mode=table",
                   mine->engine->peer, mine->entry.ticket->name, by);
    hf__pg_tickets_failed(mine, &err);
}

static void set_checked(struct hf__pg_ticket *mine, int64_t when_ns)
{
    struct hf__pg_name *name = hf__pg_names_find(mine->engine, mine->key);

    name->second_key = mine->second_key;
    name->checked_ns = when_ns;
}

bool hf__advisory_names_is_checked(struct hf__pg_ticket *mine)
{
    const struct hf__pg_name *name = hf__pg_names_find(mine->engine, mine->key);

    return name->checked_ns != 0 && name->second_key == mine->second_key &&
           hf__now() - name->checked_ns < HF__PG_CHECKED_NS;
}

void hf__advisory_names_add_check(struct hf__pg_ticket *mine)
{
    char key[HF__PG_DIGITS];
    char second[HF__PG_DIGITS];
    const char *values[] = {hf__pg_names_decimal(mine->key, key),
                            hf__pg_names_decimal(mine->second_key, second)};

    hf__pg_calls_add(hf__pg_main(mine), HF__STMT_ADVISORY_OTHER_NAME, values,
                     2);
}

void hf__advisory_names_add_checked(struct hf__pg_ticket *mine,
                                    const struct hf__pg_result *answer,
                                    int64_t sent_ns)
{
    bool other = answer->rows > 0;

    set_checked(mine, other ? 0 : sent_ns);
    if (other)
        (void)hf__advisory_release_cancel(mine, /* err= */ NULL);
}

static void on_checked(struct hf__pg_conn *conn, const struct hf__pg_call *call,
                       const struct hf__pg_answer *answer)
{
    struct hf__pg_ticket *mine = call->mine;
    char by[40];

    if (mine->state != HF__PG_CHECKING)
        return;
    hf__pg_tickets_move(mine, HF__PG_NOWHERE);
    if (!answer || answer->error) {
        hf__pg_tickets_lost_answer(mine, conn);
    } else if (answer->last->rows > 0) {
        (void)snprintf(by, sizeof(by), "the server's process %s",
                       hf__pg_answer_text(answer->last, 0, 0));
        hf__advisory_names_collide(mine, by);
    } else {
        set_checked(mine, call->sent_ns);
        hf__advisory_acquire_checked(mine);
    }
}

void hf__advisory_names_check(struct hf__pg_ticket *mine)
{
    struct hf__pg_call call = {.done = on_checked,
                               .ticket = mine->entry.ticket->id};

    if (hf__advisory_names_is_checked(mine)) {
        hf__advisory_acquire_checked(mine);
        return;
    }
    hf__pg_tickets_move(mine, HF__PG_CHECKING);
    hf__advisory_names_add_check(mine);
    if (hf__pg_calls_send(hf__pg_main(mine), &call, /* err= */ NULL) != 0)
        hf__advisory_session_cut(mine);
}

/* ---- tidying up ---------------------------------------------------------- */

/* Without locks it needs neither a lease, by which the server would end it, nor
 * a second key. */
static int64_t relax(struct hf__pg_conn *conn, int64_t now_ns)
{
    struct hf__pg_call call = {.done = hf__pg_calls_ignore};
    int64_t half_ns = hf__ms_to_ns(conn->timeout_ms) / 2;
    int64_t quiet_ns = half_ns > 0 && half_ns < QUIET_NS ? half_ns : QUIET_NS;
    const char *values[] = {"0"};

    if (!hf__pg_connection_is_up(conn) ||
        (conn->timeout_ms == 0 && !conn->has_second_key))
        return HF_NEVER;
    if (now_ns < conn->spoke_ns + quiet_ns)
        return conn->spoke_ns + quiet_ns;
    hf__pg_calls_add(conn, HF__STMT_SESSION_TIMEOUT, values, 1);
    if (hf__pg_calls_send_one(conn, HF__STMT_ADVISORY_UNLOCK_ALL, NULL, 0,
                              &call, NULL) == 0) {
        conn->timeout_ms = 0;
        conn->has_second_key = false;
    }
    return HF_NEVER;
}

int64_t hf__advisory_names_relax(struct hf__pg *postgres, int64_t now_ns)
{
    int64_t next_ns = postgres->held_n > 0 ? now_ns + QUIET_NS
                                           : relax(&postgres->main, now_ns);

    HF_LIST_EACH(&postgres->pool.all, link) {
        struct hf__pg_conn *conn =
            HF_CONTAINER_OF(link, struct hf__pg_conn, link.all);
        int64_t due_ns = conn->user ? HF_NEVER : relax(conn, now_ns);

        if (due_ns < next_ns)
            next_ns = due_ns;
    }
    return next_ns;
}

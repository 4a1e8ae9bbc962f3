/* SPDX-License-Identifier: MIT */
/*
 * advisory_acquire.c - mode=advisory: session locks of the server; and
 * mode=for_update: a row that a session's transaction holds.
 *
 * A lock lives as long as its session, so the session's idle_session_timeout is
 * the lease: the server ends the session of a client that stands still, with all
 * that the session held. Hence one session has locks of one lease only, and
 * renewing is one ping for all of them.
 *
 * A client tries a name that nobody contends for on the main connection, where
 * any number of locks is held. It waits on a connection of the pool, inside the
 * server, which serves waiters in their order; the lock then stays on that
 * connection, alone. The server grants a session what it has already, so no
 * session is ever asked twice for one key, not even by two owners here.
 *
 * In mode=for_update every lock has a connection of the pool, and a transaction
 * (for_update.c).
 *
 * The lease of a grant counts from when the statement that waited was sent. If
 * that was long ago, one more trip makes sure that the session is still there.
 *
 * Failure: what ends in an error is undone before it is reported
 * (advisory_release.c).
 */
#include "engines/postgres/advisory.h"

/* After so many grants at once, nobody seems to contend any more. */
enum { QUIET = 8 };
/* A wait that is not over by then is looked at: does it stand in line? */
#define LOOK_NS (20 * HF_MS)
/* Before a waiter that got no connection asks again. */
#define REST_NS (100 * HF_MS)

/* ---- granted ------------------------------------------------------------- */

static void granted(struct hf__pg_ticket *mine, int64_t sent_ns)
{
    struct hf__pg_name *name = hf__pg_names_find(mine->engine, mine->key);
    struct hf__grant grant = {
        .token = mine->token,
        .tokens = 1,
        .lease_ms = hf__advisory_lease(mine),
        .sent_ns = sent_ns,
    };

    if (mine->conn == hf__pg_main(mine) && name->contended > 0)
        name->contended--;
    hf__pg_tickets_move(mine, HF__PG_HELD);
    mine->owed = HF__PG_OWES_NOTHING;
    mine->confirmed_ns = sent_ns;
    hf__up_granted(&mine->engine->base, mine->entry.ticket, &grant);
}

static void on_accepted(struct hf__pg_conn *conn,
                        const struct hf__pg_call *call,
                        const struct hf__pg_answer *answer)
{
    struct hf__pg_ticket *mine = call->mine;

    (void)conn;
    if (mine->state != HF__PG_ACCEPTING)
        return;
    if (!answer)
        hf__advisory_session_cut(mine);
    else if (hf__pg_tickets_leaves(mine))
        hf__advisory_release_or_cut(mine);
    else
        granted(mine, call->sent_ns);
}

/* Granted, so long after it was asked for that the lease may be over. */
static void accept_it(struct hf__pg_ticket *mine)
{
    struct hf__pg_call call = {.done = on_accepted,
                               .ticket = mine->entry.ticket->id};

    hf__pg_tickets_move(mine, HF__PG_ACCEPTING);
    if (hf__pg_calls_send_one(mine->conn, HF__STMT_PING, NULL, 0, &call,
                              NULL) != 0)
        hf__advisory_session_cut(mine);
}

/* ---- asking -------------------------------------------------------------- */

static void want_connection(struct hf__pg_ticket *mine, bool refused);

static void busy(struct hf__pg_ticket *mine)
{
    hf__advisory_session_leave(mine);
    hf__pg_tickets_move(mine, HF__PG_NOWHERE);
    if (hf__pg_tickets_leaves(mine)) {
        hf__pg_tickets_left(mine, 0);
        return;
    }
    if (!mine->entry.ticket->nowait)
        hf__pg_names_find(mine->engine, mine->key)->contended = QUIET;
    mine->known = HF__PG_KNOWN_TAKEN;
    hf__advisory_names_check(mine);
}

void hf__advisory_acquire_checked(struct hf__pg_ticket *mine)
{
    bool taken = mine->known == HF__PG_KNOWN_TAKEN;

    if (taken && mine->entry.ticket->nowait)
        hf__pg_tickets_busy(mine, /* holder= */ NULL);
    else
        want_connection(mine, taken);
}

static void on_answer(struct hf__pg_ticket *mine,
                      const struct hf__pg_call *call,
                      const struct hf__pg_answer *answer)
{
    bool transacts = hf__advisory_transacts(mine->engine);
    int64_t third_ns = hf__ms_to_ns(hf__advisory_lease(mine)) / 3;

    if (answer->error) {
        hf__advisory_release_undo(mine, answer->error);
    } else if (!transacts && answer->last->rows == 0) {
        busy(mine);
    } else if (hf__pg_tickets_leaves(mine)) {
        hf__advisory_release_or_cut(mine);
    } else {
        if (!transacts)
            mine->token = (uint64_t)hf__pg_answer_number(answer->last, 0, 0, 0);
        if (hf__now() - call->sent_ns > third_ns)
            accept_it(mine);
        else
            granted(mine, call->sent_ns);
    }
}

/* A wait that was told to stop is over before what waits for that goes on. */
static void on_asked(struct hf__pg_conn *conn, const struct hf__pg_call *call,
                     const struct hf__pg_answer *answer)
{
    struct hf__pg_ticket *mine = call->mine;
    struct hf__pg *postgres = conn->engine;
    bool cancelled = mine->state == HF__PG_CANCELLING;
    int64_t key = mine->key;

    if (mine->state != HF__PG_ASKING && mine->state != HF__PG_WAITING &&
        !cancelled)
        return;
    mine->watch_ns = 0;
    if (answer)
        on_answer(mine, call, answer);
    else
        hf__advisory_session_cut(mine);
    if (cancelled)
        hf__advisory_release_stopped(postgres, key);
}

static void add_lock(struct hf__pg_ticket *mine, bool wait)
{
    bool shared = mine->entry.ticket->mode == HF_SHARED;
    char key[HF__PG_DIGITS];
    const char *values[] = {hf__pg_names_decimal(mine->key, key)};

    hf__advisory_names_lock(mine);
    hf__pg_calls_add(mine->conn,
                     wait     ? shared ? HF__STMT_ADVISORY_WAIT_SHARED
                                       : HF__STMT_ADVISORY_WAIT
                     : shared ? HF__STMT_ADVISORY_TRY_SHARED
                              : HF__STMT_ADVISORY_TRY,
                     values, 1);
}

/* Ask on @mine->conn, which gets the ticket's lease if it has another. */
static int ask_on(struct hf__pg_ticket *mine, bool wait)
{
    struct hf__pg_conn *conn = mine->conn;
    struct hf__pg_call call = {
        .done = on_asked, .ticket = mine->entry.ticket->id, .patient = wait};
    int64_t lease_ms = hf__advisory_lease(mine);
    char room[HF__PG_DIGITS];
    const char *values[] = {hf__pg_names_decimal(lease_ms, room)};

    if (conn->timeout_ms != lease_ms) {
        hf__pg_calls_add(conn, HF__STMT_SESSION_TIMEOUT, values, 1);
        conn->timeout_ms = lease_ms;
        hf__pg_wake(mine->engine, hf__now() + hf__ms_to_ns(lease_ms) / 2);
    }
    if (hf__advisory_transacts(mine->engine))
        hf__pg_for_update_add_lock(mine, wait);
    else
        add_lock(mine, wait);
    return hf__pg_calls_send(conn, &call, /* err= */ NULL);
}

void hf__advisory_acquire_queued(struct hf__pg_ticket *mine)
{
    bool told = mine->owed == HF__PG_OWES_GRANT;

    mine->watch_ns = 0;
    if (told || hf__pg_tickets_leaves(mine))
        return;
    mine->owed = HF__PG_OWES_GRANT;
    hf__up_queued(&mine->engine->base, mine->entry.ticket);
}

/* ---- a connection of the pool -------------------------------------------- */

void hf__advisory_acquire_rest(struct hf__pg_ticket *mine)
{
    hf__pg_tickets_move(mine, HF__PG_RESTING);
    hf__advisory_wait_watch(mine, REST_NS);
}

static void no_connection(struct hf__pg_ticket *mine, const hf_error *err)
{
    if (hf__pg_tickets_asks(mine))
        hf__pg_tickets_failed(mine, err);
    else
        hf__advisory_acquire_rest(mine);
}

static void got_connection(struct hf__sql_want *want, struct hf__sql_link *link,
                           const hf_error *err)
{
    struct hf__pg_ticket *mine =
        HF_CONTAINER_OF(want, struct hf__pg_ticket, want);
    struct hf__pg_conn *conn = (struct hf__pg_conn *)link;
    bool wait = !mine->entry.ticket->nowait;

    if (!conn) {
        no_connection(mine, err);
        return;
    }
    mine->conn = conn;
    conn->user = mine;
    hf__pg_tickets_move(mine, HF__PG_WAITING);
    if (ask_on(mine, wait) != 0)
        hf__advisory_session_cut(mine);
    else if (wait)
        hf__advisory_wait_watch(mine, LOOK_NS);
}

/* @refused: it was tried, and another client has it. */
static void want_connection(struct hf__pg_ticket *mine, bool refused)
{
    hf_error err;

    hf__pg_tickets_move(mine, HF__PG_WANTING);
    mine->want.got = got_connection;
    if (hf__sql_pool_take(&mine->engine->pool, &mine->want, &err) != 0)
        no_connection(mine, &err);
    else if (refused && mine->state == HF__PG_WANTING)
        hf__advisory_acquire_queued(mine); /* a connection will come */
}

/* ---- where to ask -------------------------------------------------------- */

/* The ticket that has, or asks for, the key of @mine on the main connection. */
static struct hf__pg_ticket *find_on_main(const struct hf__pg_ticket *mine)
{
    struct hf__list *bucket =
        &mine->engine->held[(uint64_t)mine->key % HF__PG_BUCKETS];

    HF_LIST_EACH(bucket, link) {
        struct hf__pg_ticket *other =
            HF_CONTAINER_OF(link, struct hf__pg_ticket, link);

        if (other->key == mine->key)
            return other;
    }
    return NULL;
}

/* The main connection has no transactions, and locks of one lease only. */
static bool fits_main(const struct hf__pg_ticket *mine)
{
    const struct hf__pg *postgres = mine->engine;

    return !hf__advisory_transacts(postgres) &&
           (postgres->held_n == 0 ||
            postgres->main.timeout_ms == hf__advisory_lease(mine));
}

static void ask_main(struct hf__pg_ticket *mine)
{
    hf__advisory_session_join_main(mine);
    hf__pg_tickets_move(mine, HF__PG_ASKING);
    if (ask_on(mine, /* wait= */ false) != 0)
        hf__advisory_session_cut(mine);
}

static void ask(struct hf__pg_ticket *mine)
{
    const struct hf__pg_name *name = hf__pg_names_find(mine->engine, mine->key);
    const struct hf__pg_ticket *ours = find_on_main(mine);
    const struct hf__ticket *ticket = mine->entry.ticket;

    mine->known = HF__PG_KNOWN_NOTHING;
    mine->unsure = false;
    if (ours && strcmp(ours->entry.ticket->name, ticket->name) != 0)
        hf__advisory_names_collide(mine, ours->entry.ticket->name);
    else if (ours) /* what we have exclusively ourselves is not free */
        want_connection(mine, ticket->mode == HF_EXCLUSIVE && !ticket->nowait);
    else if (name->contended > 0 && !ticket->nowait &&
             mine->engine->pool.n_idle > 0)
        hf__advisory_names_check(mine);
    else if (!fits_main(mine))
        want_connection(mine, /* refused= */ false);
    else
        ask_main(mine);
}

int hf__advisory_acquire(struct hf__pg *postgres, struct hf__ticket *ticket,
                         hf_error *err)
{
    struct hf__pg_ticket *mine = hf__pg_ticket(postgres, ticket);
    bool queued = mine->owed == HF__PG_OWES_GRANT;

    hf__pg_tickets_know(postgres, ticket);
    if (queued && mine->state != HF__PG_HELD) { /* it has kept its place */
        hf__up_queued(&postgres->base, ticket);
        return 0;
    }
    mine->owed = HF__PG_OWES_ANSWER;
    switch (mine->state) {
    case HF__PG_HELD: /* its answer was lost on the way */
        accept_it(mine);
        return 0;
    case HF__PG_STUCK: /* first that has to be undone */
        return hf__advisory_release_unlock(mine, err);
    case HF__PG_ORPHAN:
        hf__pg_tickets_move(mine, HF__PG_NOWHERE);
        ask(mine);
        return 0;
    case HF__PG_NOWHERE:
        ask(mine);
        return 0;
    default:
        return 0; /* the answer that is under way ends it */
    }
}

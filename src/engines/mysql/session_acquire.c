/* SPDX-License-Identifier: MIT */
/*
 * session_acquire.c - how a session or transaction gets a lock.
 *
 * A lock is tried first; if it is not free, its ticket waits inside the server,
 * in a statement that ends with the grant. A connection that is there anyway
 * tries and waits in one.
 *
 * Failure: an error of the server is certain. A session that is lost ends in
 * session.c.
 */
#include "engines/mysql/mysql.h"

/* The longest wait of one statement; the server then lets us ask again. */
enum { WAIT_S = 3600 };

static bool is_get_lock(const struct hf__mysql *mysql)
{
    return mysql->mode == &hf__mysql_get_lock_mode;
}

/* Is this an answer of the session that the ticket has? A lost one is told by
 * its end. */
static bool is_current(const struct hf__mysql_ticket *mine,
                       const struct hf__mysql_call *call,
                       const struct hf__mysql_reply *reply)
{
    return reply && mine->on == call->connection;
}

static void granted(struct hf__mysql *mysql, struct hf__ticket *ticket,
                    int64_t sent_ns)
{
    struct hf__mysql_ticket *mine = hf__mysql_ticket(mysql, ticket);
    struct hf__grant grant = {
        .tokens = 1, .lease_ms = ticket->ttl_ms, .sent_ns = sent_ns};

    hf__mysql_tickets_move(mine, HF__MYSQL_HELD);
    hf__mysql_session_stored(mine, HF__MYSQL_HAS_LOCK);
    hf__up_granted(&mysql->base, ticket, &grant);
}

void hf__mysql_session_acquire_refused(struct hf__mysql *mysql,
                                       struct hf__ticket *ticket,
                                       const hf_error *err)
{
    bool waiting = hf__mysql_ticket(mysql, ticket)->state == HF__MYSQL_WAITING;
    hf_error why = *err;

    mysql->proven = false;
    hf__mysql_session_forget(mysql, ticket, /* clean= */ false);
    if (waiting) /* ask again, and report that */
        hf__up_lost(&mysql->base, ticket, HF__LOST_SESSION);
    else
        hf__up_failed(&mysql->base, ticket, &why);
}

static void explain(struct hf__mysql *mysql, struct hf__ticket *ticket,
                    const struct hf__mysql_reply *reply)
{
    hf_error err;

    (void)hf__mysql_errors_read(mysql, reply, &err);
    hf__mysql_session_acquire_refused(mysql, ticket, &err);
}

/* ---- waiting ------------------------------------------------------------- */

static hf__mysql_answered_fn on_waited;

/* Wait inside the server. */
static void stand_in_line(struct hf__mysql *mysql, struct hf__ticket *ticket)
{
    struct hf__mysql_ticket *mine = hf__mysql_ticket(mysql, ticket);
    int64_t wait_ms = (int64_t)WAIT_S * 1000;
    bool first = mine->state == HF__MYSQL_ASKING;

    if (hf__mysql_call_prepared(mine->on, ticket, mine->texts->wait, on_waited,
                                wait_ms, NULL) != 0) {
        hf__mysql_connection_break(mine->on);
        return;
    }
    hf__mysql_tickets_move(mine, HF__MYSQL_WAITING);
    if (first)
        hf__up_queued(&mysql->base, ticket);
}

/* We hold it: the lease counts from this statement. */
static void on_confirmed(struct hf__mysql *mysql, struct hf__ticket *ticket,
                         struct hf__mysql_call *call,
                         struct hf__mysql_reply *reply)
{
    const struct hf__mysql_ticket *mine = hf__mysql_ticket(mysql, ticket);

    if (!is_current(mine, call, reply) ||
        (mine->state != HF__MYSQL_ASKING && mine->state != HF__MYSQL_WAITING))
        return;
    if (reply->code == 0)
        granted(mysql, ticket, call->sent_ns);
    else if (mine->state == HF__MYSQL_WAITING)
        hf__mysql_connection_break(mine->on);
    else
        hf__mysql_tickets_answer_lost(mysql, ticket);
}

static int confirm(struct hf__mysql_connection *connection,
                   struct hf__ticket *ticket, hf_error *err)
{
    return hf__mysql_call_ask(connection, ticket, "DO 1", on_confirmed, err);
}

/* The server does not answer before it is asked, so the lease counts from the
 * asking. If that is long ago a statement is sent: the answer may have come just
 * now, or have lain there while we were stopped. */
static void waited(struct hf__mysql *mysql, struct hf__ticket *ticket,
                   int64_t sent_ns)
{
    const struct hf__mysql_ticket *mine = hf__mysql_ticket(mysql, ticket);

    if (hf__now() - sent_ns < hf__ms_to_ns(ticket->ttl_ms) / 3)
        granted(mysql, ticket, sent_ns);
    else if (confirm(mine->on, ticket, NULL) != 0)
        hf__mysql_connection_break(mine->on);
}

static void on_waited(struct hf__mysql *mysql, struct hf__ticket *ticket,
                      struct hf__mysql_call *call,
                      struct hf__mysql_reply *reply)
{
    const struct hf__mysql_ticket *mine = hf__mysql_ticket(mysql, ticket);

    if (!is_current(mine, call, reply) || mine->state != HF__MYSQL_WAITING ||
        hf__mysql_schema_make(call, reply))
        return;
    if (reply->code == 0) {
        if (is_get_lock(mysql) ||
            hf__mysql_for_update_locked(mysql, ticket, reply))
            waited(mysql, ticket, call->sent_ns);
    } else if ((hf__mysql_errors_is_taken(reply) ||
                hf__mysql_errors_is_collision(reply)) &&
               hf__now() - call->sent_ns >= HF_SECOND) {
        stand_in_line(mysql, ticket); /* the server's limit for one wait */
    } else {
        explain(mysql, ticket, reply);
    }
}

/* ---- a session of the pool ----------------------------------------------- */

static void got_session(struct hf__sql_want *want, struct hf__sql_link *link,
                        const hf_error *err)
{
    struct hf__mysql_ticket *mine =
        HF_CONTAINER_OF(want, struct hf__mysql_ticket, want);
    struct hf__ticket *ticket = mine->entry.ticket;
    struct hf__mysql *mysql = mine->mysql;
    bool waits;

    if (!link) {
        hf__mysql_session_acquire_refused(mysql, ticket, err);
        return;
    }
    hf__mysql_session_bind(mine, hf__mysql_pool_connection(link));
    waits = is_get_lock(mysql) || (mysql->proven && !ticket->nowait);
    if (hf__mysql_lease_need(mine->on, ticket, NULL) != 0 ||
        (!waits && hf__mysql_call_prepared(mine->on, ticket, mine->texts->try,
                                           hf__mysql_session_acquire_tried, 0,
                                           NULL) != 0))
        hf__mysql_connection_break(mine->on); /* session.c reports it */
    else if (waits)
        stand_in_line(mysql, ticket);
}

static int take_session(struct hf__mysql *mysql, struct hf__mysql_ticket *mine,
                        hf_error *err)
{
    mine->want.got = got_session;
    return hf__sql_pool_take(&mysql->pool, &mine->want, err);
}

/* ---- trying -------------------------------------------------------------- */

static void not_free(struct hf__mysql *mysql, struct hf__ticket *ticket)
{
    struct hf__mysql_ticket *mine = hf__mysql_ticket(mysql, ticket);
    hf_error err;

    if (ticket->nowait) {
        hf__mysql_session_forget(mysql, ticket, /* clean= */ false);
        hf__up_busy(&mysql->base, ticket, /* again_ns= */ 0, NULL);
    } else if (!is_get_lock(mysql)) {
        stand_in_line(mysql, ticket);
    } else {
        hf__mysql_session_unbind(mine);
        if (take_session(mysql, mine, &err) != 0)
            hf__mysql_session_acquire_refused(mysql, ticket, &err);
    }
}

/* It is ours: unless it was withdrawn while it was asked for. */
static void taken(struct hf__mysql *mysql, struct hf__ticket *ticket,
                  int64_t sent_ns)
{
    struct hf__mysql_ticket *mine = hf__mysql_ticket(mysql, ticket);

    if (!hf__mysql_tickets_leaves(mine)) {
        granted(mysql, ticket, sent_ns);
        return;
    }
    /* Held until the server says otherwise: if this release fails, the next
     * withdrawal has to repeat it. */
    hf__mysql_session_stored(mine, HF__MYSQL_HAS_LOCK);
    if (hf__mysql_session_release_send(mysql, ticket, NULL) != 0)
        hf__mysql_tickets_answer_lost(mysql, ticket);
}

void hf__mysql_session_acquire_tried(struct hf__mysql *mysql,
                                     struct hf__ticket *ticket,
                                     struct hf__mysql_call *call,
                                     struct hf__mysql_reply *reply)
{
    struct hf__mysql_ticket *mine = hf__mysql_ticket(mysql, ticket);
    bool leaves = hf__mysql_tickets_leaves(mine);

    if (!is_current(mine, call, reply))
        return;
    mine->under_way = !leaves && hf__mysql_schema_make(call, reply);
    if (mine->under_way)
        return;
    if (reply->code == 0) {
        if (is_get_lock(mysql) ||
            hf__mysql_for_update_locked(mysql, ticket, reply))
            taken(mysql, ticket, call->sent_ns);
    } else if (leaves) {
        hf__mysql_session_left(mysql, ticket, /* held= */ false);
    } else if (hf__mysql_errors_is_taken(reply) ||
               hf__mysql_errors_is_collision(reply)) {
        not_free(mysql, ticket);
    } else {
        explain(mysql, ticket, reply);
    }
}

/* ---- asking -------------------------------------------------------------- */

static int ask(struct hf__mysql *mysql, struct hf__ticket *ticket,
               hf_error *err)
{
    struct hf__mysql_ticket *mine = hf__mysql_ticket(mysql, ticket);
    int rc;

    if (mine->orphan.serial != 0)
        return hf__mysql_orphans_end(mysql, ticket, err);
    /* A connection that is there anyway asks and waits in one. */
    if (!is_get_lock(mysql) || (!ticket->nowait && mysql->pool.n_idle > 0))
        return take_session(mysql, mine, err);
    hf__mysql_session_bind(mine, &mysql->main);
    if (hf__mysql_get_lock_has_name(mysql, ticket)) {
        not_free(mysql, ticket);
        return 0;
    }
    mine->under_way = true;
    rc = hf__mysql_lease_need(&mysql->main, ticket, err);
    if (rc == 0)
        rc = hf__mysql_call_prepared(&mysql->main, ticket, mine->texts->try,
                                     hf__mysql_session_acquire_tried, 0, err);
    if (rc != 0)
        hf__mysql_session_unbind(mine);
    return rc;
}

void hf__mysql_session_acquire_ask(struct hf__mysql *mysql,
                                   struct hf__ticket *ticket)
{
    if (ask(mysql, ticket, NULL) != 0)
        hf__mysql_tickets_answer_lost(mysql, ticket);
}

int hf__mysql_session_acquire(struct hf__mysql *mysql,
                              struct hf__ticket *ticket, hf_error *err)
{
    struct hf__mysql_ticket *mine = hf__mysql_ticket(mysql, ticket);
    bool known;
    int rc;

    if (mine->state == HF__MYSQL_WAITING && mine->on) {
        hf__up_queued(&mysql->base, ticket); /* the report was lost */
        return 0;
    }
    known = hf__mysql_tickets_ask(mysql, ticket);
    mine->texts = hf__mysql_statement_of_lock(mysql, ticket);
    if (mine->on && mine->stored >= HF__MYSQL_HAS_LOCK)
        rc = confirm(mine->on, ticket, err);
    else
        rc = ask(mysql, ticket, err);
    return rc == 0 ? 0 : hf__mysql_tickets_not_asked(mysql, ticket, known, rc);
}

/* SPDX-License-Identifier: MIT */
/*
 * session.c - mode=get_lock and mode=for_update: the server holds the lock for
 * a session of ours, wakes the next one, and frees it when the session ends.
 *
 * get_lock    A free lock is taken on the main connection, which may have any
 *             number of them. Who has to wait does it inside the server, on a
 *             connection of the pool, and the lock then stays on that one.
 * for_update  A transaction on a connection of the pool holds a row. The caller
 *             may use the same transaction (hf_sql_connection).
 *
 * The lease is wait_timeout, in whole seconds: a session that says nothing for
 * so long is ended by the server. A renewal is any word. With nobody to talk to
 * a session that has held something for a moment is listened to, so that its end
 * is noticed when it happens.
 *
 * Failure: with its session a lock is lost, and that is told at once: the server
 * may give it to the next one. The lost session may still be alive there, and
 * hold or wait. It is a ghost until the main connection has ended it
 * (connection.c). What was being asked for, or left, is certain only then.
 */
#include "engines/mysql/mysql.h"

enum { WAIT_S = 3600 };

static bool is_get_lock(const struct hf__mysql *mysql)
{
    return mysql->mode == &hf__mysql_get_lock;
}

/* ---- whose session ----------------------------------------------------- */

static void bind_session(struct hf__mysql_ticket *mine,
                         struct hf__mysql_connection *connection)
{
    mine->on = connection;
    if (connection == &connection->mysql->main)
        connection->mysql->main_users++;
    else
        connection->ticket = mine->self->id;
}

/* The ticket has nothing to do with its session any more. */
static void unbind(struct hf__mysql *mysql, struct hf__mysql_ticket *mine)
{
    struct hf__mysql_connection *connection = mine->on;

    hf__mysql_set_held(mysql, mine, false);
    mine->trying = false;
    mine->on = NULL;
    if (!connection)
        return;
    if (connection == &mysql->main) {
        mysql->main_users--;
    } else {
        connection->ticket = 0;
        connection->lent = false;
    }
    hf__mysql_rest(connection);
}

static void on_cleaned(struct hf__mysql *mysql, struct hf__mysql_call *call,
                       struct hf__mysql_reply *reply)
{
    if (reply && reply->code != 0)
        hf__mysql_connection_break(call->connection);
    else if (reply)
        hf__sql_pool_give(&mysql->pool, &call->connection->link);
}

/* The ticket goes, and its session is for the next one; unless it is @clean,
 * there may be a transaction. */
static void forget(struct hf__mysql *mysql, struct hf__ticket *ticket,
                   bool clean)
{
    struct hf__mysql_ticket *mine = hf__mysql_ticket(mysql, ticket);
    struct hf__mysql_connection *connection = mine->on;
    struct hf__mysql_call *call;

    hf__sql_pool_forget(&mysql->pool, &mine->want);
    unbind(mysql, mine);
    hf__mysql_ticket_forget(mysql, ticket);
    if (!connection || connection == &mysql->main)
        return;
    if (clean) {
        hf__sql_pool_give(&mysql->pool, &connection->link);
        return;
    }
    call = hf__mysql_call_new(on_cleaned, NULL);
    if (call)
        hf__buf_add(&call->sql, hf__mysql_for_update_undo);
    if (!call || hf__mysql_call_send(connection, call, NULL) != 0)
        hf__mysql_connection_break(connection);
}

static void left(struct hf__mysql *mysql, struct hf__ticket *ticket, bool held)
{
    const struct hf__mysql_ticket *mine = hf__mysql_ticket(mysql, ticket);
    int rc = mine->unsure               ? HF_EUNKNOWN
             : mine->releasing && !held ? HF_ELOST
                                        : 0;

    forget(mysql, ticket, /* clean= */ true);
    hf__up_left(&mysql->base, ticket, rc);
}

static void unknown(struct hf__mysql *mysql, struct hf__ticket *ticket)
{
    hf_error err;

    (void)hf__mysql_explain_lost(mysql, &err);
    hf__mysql_ticket(mysql, ticket)->asking = false;
    hf__mysql_ticket(mysql, ticket)->waiting = false;
    hf__up_unknown(&mysql->base, ticket, &err);
}

/* ---- ghosts ------------------------------------------------------------ */

static int ask(struct hf__mysql *mysql, struct hf__ticket *ticket,
               hf_error *err);

/* The ghost is gone: what the ticket waits for can go on. */
static void exorcised(struct hf__mysql *mysql, struct hf__ticket *ticket)
{
    struct hf__mysql_ticket *mine = hf__mysql_ticket(mysql, ticket);

    mine->ghost.serial = 0;
    if (mine->leaving)
        left(mysql, ticket, /* held= */ false);
    else if (mine->asking && ask(mysql, ticket, NULL) != 0)
        unknown(mysql, ticket);
}

static int exorcise(struct hf__mysql *mysql, struct hf__ticket *ticket,
                    hf_error *err);

static void on_exorcised(struct hf__mysql *mysql, struct hf__mysql_call *call,
                         struct hf__mysql_reply *reply)
{
    struct hf__ticket *ticket = hf__mysql_ticket_find(mysql, call->ticket);
    struct hf__mysql_ticket *mine =
        ticket ? hf__mysql_ticket(mysql, ticket) : NULL;

    if (!mine || mine->ghost.serial == 0)
        return;
    mine->exorcising = false;
    if (hf__mysql_is_ended(reply))
        exorcised(mysql, ticket);
    else if (!hf__mysql_is_ending(&mine->ghost, reply) ||
             exorcise(mysql, ticket, NULL) != 0)
        unknown(mysql, ticket);
}

/* End the session that was lost with @ticket. */
static int exorcise(struct hf__mysql *mysql, struct hf__ticket *ticket,
                    hf_error *err)
{
    struct hf__mysql_ticket *mine = hf__mysql_ticket(mysql, ticket);
    struct hf__mysql_call *call = hf__mysql_call_new(on_exorcised, err);
    int rc;

    if (!call)
        return HF_ENOMEM;
    call->ticket = ticket->id;
    hf__mysql_end_session(mysql, &mine->ghost, &call->sql);
    mine->exorcising = true;
    rc = hf__mysql_call_send(&mysql->main, call, err);
    if (rc != 0)
        mine->exorcising = false;
    return rc;
}

static void end_ghosts(struct hf__mysql *mysql);

static void on_ended(struct hf__mysql *mysql, struct hf__mysql_call *call,
                     struct hf__mysql_reply *reply)
{
    for (size_t i = 0; i < HF_COUNT_OF(mysql->ghosts); i++) {
        struct hf__mysql_session *ghost = &mysql->ghosts[i];

        if (ghost->serial != call->ticket)
            continue;
        ghost->ending = false;
        if (reply && !hf__mysql_is_ending(ghost, reply))
            ghost->serial = 0; /* or the server ends it by wait_timeout */
    }
    end_ghosts(mysql);
}

/* End what is left of sessions that nobody waits for. */
static void end_ghosts(struct hf__mysql *mysql)
{
    for (size_t i = 0; i < HF_COUNT_OF(mysql->ghosts); i++) {
        struct hf__mysql_session *ghost = &mysql->ghosts[i];
        struct hf__mysql_call *call = NULL;

        if (ghost->serial != 0 && !ghost->ending &&
            hf__mysql_is_up(mysql, NULL) == 0)
            call = hf__mysql_call_new(on_ended, NULL);
        if (!call)
            continue;
        call->ticket = ghost->serial;
        hf__mysql_end_session(mysql, ghost, &call->sql);
        ghost->ending = hf__mysql_call_send(&mysql->main, call, NULL) == 0;
    }
}

/* ---- lost sessions ----------------------------------------------------- */

struct hf__ticket *hf__mysql_session_gone(
    struct hf__mysql_connection *connection)
{
    struct hf__mysql *mysql = connection->mysql;
    struct hf__ticket *ticket =
        hf__mysql_ticket_find(mysql, connection->ticket);
    struct hf__mysql_ticket *mine;

    if (!ticket)
        return NULL;
    mine = hf__mysql_ticket(mysql, ticket);
    mine->ghost = connection->session;
    mine->unsure = mine->leaving && mine->lent; /* was it committed? */
    unbind(mysql, mine);
    return ticket;
}

/* Its lock, or its place in line, has ended with its session. */
static void lose(struct hf__mysql *mysql, struct hf__ticket *ticket)
{
    struct hf__mysql_ticket *mine = hf__mysql_ticket(mysql, ticket);

    if (mine->asking || mine->leaving) {
        unknown(mysql, ticket);
        return;
    }
    if (mine->ghost.serial != 0) {
        memmove(mysql->ghosts + 1, mysql->ghosts,
                sizeof(mysql->ghosts) - sizeof(mysql->ghosts[0]));
        mysql->ghosts[0] = mine->ghost;
    }
    forget(mysql, ticket, /* clean= */ false);
    hf__up_lost(&mysql->base, ticket, HF__LOST_SESSION);
}

void hf__mysql_session_tell(struct hf__mysql *mysql, struct hf__ticket *ticket)
{
    lose(mysql, ticket);
    end_ghosts(mysql);
}

/* ---- asking ------------------------------------------------------------ */

static void granted(struct hf__mysql *mysql, struct hf__ticket *ticket,
                    int64_t sent_ns)
{
    struct hf__mysql_ticket *mine = hf__mysql_ticket(mysql, ticket);
    struct hf__grant grant = {
        .tokens = 1, .lease_ms = ticket->ttl_ms, .sent_ns = sent_ns};

    mine->asking = false;
    mine->waiting = false;
    hf__mysql_set_held(mysql, mine, true);
    hf__up_granted(&mysql->base, ticket, &grant);
}

static void busy(struct hf__mysql *mysql, struct hf__ticket *ticket)
{
    forget(mysql, ticket, /* clean= */ false);
    hf__up_busy(&mysql->base, ticket, /* again_ns= */ 0, /* holder= */ NULL);
}

static void refused(struct hf__mysql *mysql, struct hf__ticket *ticket,
                    const hf_error *err)
{
    bool waiting = hf__mysql_ticket(mysql, ticket)->waiting;
    hf_error why = *err;

    mysql->proven = false;
    forget(mysql, ticket, /* clean= */ false);
    if (waiting) /* it is asked for again, and told then */
        hf__up_lost(&mysql->base, ticket, HF__LOST_SESSION);
    else
        hf__up_failed(&mysql->base, ticket, &why);
}

static hf__mysql_done_fn on_left;
static void on_waited(struct hf__mysql *mysql, struct hf__mysql_call *call,
                      struct hf__mysql_reply *reply);
static void on_tried(struct hf__mysql *mysql, struct hf__mysql_call *call,
                     struct hf__mysql_reply *reply);

/* Wait inside the server. */
static void stand_in_line(struct hf__mysql *mysql, struct hf__ticket *ticket)
{
    struct hf__mysql_ticket *mine = hf__mysql_ticket(mysql, ticket);
    int64_t wait_ms = (int64_t)WAIT_S * 1000;
    bool first = mine->asking;

    if (hf__mysql_ask_prepared(mine->on, ticket, mine->texts->wait, on_waited,
                               wait_ms, NULL) != 0) {
        hf__mysql_connection_break(mine->on);
        return;
    }
    mine->asking = false;
    mine->waiting = true;
    if (first)
        hf__up_queued(&mysql->base, ticket);
}

static void got_session(struct hf__sql_want *want, struct hf__sql_link *link,
                        const hf_error *err)
{
    struct hf__mysql_ticket *mine =
        HF_CONTAINER_OF(want, struct hf__mysql_ticket, want);
    struct hf__ticket *ticket = mine->self;
    struct hf__mysql *mysql;

    if (!link) {
        refused(mine->mysql, ticket, err);
        return;
    }
    mysql = hf__mysql_connection_of(link)->mysql;
    bind_session(mine, hf__mysql_connection_of(link));
    if (hf__mysql_need_lease(mine->on, ticket, NULL) != 0)
        hf__mysql_connection_break(mine->on);
    else if (is_get_lock(mysql) || (mysql->proven && !ticket->nowait))
        stand_in_line(mysql, ticket);
    else if (hf__mysql_ask_prepared(mine->on, ticket, mine->texts->try,
                                    on_tried, 0, NULL) != 0)
        unknown(mysql, ticket);
}

static int take_session(struct hf__mysql *mysql, struct hf__ticket *ticket,
                        hf_error *err)
{
    struct hf__mysql_ticket *mine = hf__mysql_ticket(mysql, ticket);

    mine->mysql = mysql;
    mine->want.got = got_session;
    return hf__sql_pool_take(&mysql->pool, &mine->want, err);
}

/* It was not free. */
static void not_free(struct hf__mysql *mysql, struct hf__ticket *ticket)
{
    struct hf__mysql_ticket *mine = hf__mysql_ticket(mysql, ticket);
    hf_error err;

    if (ticket->nowait) {
        busy(mysql, ticket);
    } else if (!is_get_lock(mysql)) {
        stand_in_line(mysql, ticket);
    } else {
        unbind(mysql, mine);
        if (take_session(mysql, ticket, &err) != 0)
            refused(mysql, ticket, &err);
    }
}

/* It is ours: unless it was withdrawn while it was asked for. */
static void taken(struct hf__mysql *mysql, struct hf__ticket *ticket,
                  int64_t sent_ns)
{
    struct hf__mysql_ticket *mine = hf__mysql_ticket(mysql, ticket);

    if (!mine->leaving) {
        granted(mysql, ticket, sent_ns);
        return;
    }
    /* Held until the server says otherwise: if this release fails, the next
     * withdrawal has to repeat it. */
    hf__mysql_set_held(mysql, mine, true);
    if (hf__mysql_ask_prepared(mine->on, ticket, mine->texts->leave, on_left, 0,
                               NULL) != 0)
        unknown(mysql, ticket);
}

/* A table of the application's is not ours to fill. */
static void no_row(struct hf__mysql *mysql, struct hf__ticket *ticket)
{
    const struct hf__settings *settings = mysql->base.host->settings;
    hf_error err;

    (void)hf__fail(&err, HF_ENOTFOUND,
                   "%s: table %s has no row whose %s is '%s%s'", mysql->peer,
                   settings->table, settings->key, settings->prefix,
                   ticket->name);
    refused(mysql, ticket, &err);
}

/* The answer to SELECT … FOR UPDATE: is the row locked? It may not be there
 * yet. Or it was locked for this statement alone, because the server had ended
 * the transaction, as it does with a deadlock. */
static bool has_row(struct hf__mysql *mysql, struct hf__ticket *ticket,
                    const struct hf__mysql_reply *reply)
{
    struct hf__mysql_ticket *mine = hf__mysql_ticket(mysql, ticket);
    bool found = reply->affected[reply->n - 1] == 1;

    mysql->proven = true;
    if (found && reply->in_transaction)
        return true;
    if (!found && mysql->own_row) {
        no_row(mysql, ticket);
        return false;
    }
    if (hf__mysql_ask(mine->on, ticket,
                      mysql->own_row ? hf__mysql_own_begin
                      : found        ? hf__mysql_for_update_begin
                                     : hf__mysql_for_update_make,
                      on_tried, 0, NULL) != 0)
        hf__mysql_connection_break(mine->on);
    return false;
}

static void on_tried(struct hf__mysql *mysql, struct hf__mysql_call *call,
                     struct hf__mysql_reply *reply)
{
    struct hf__ticket *ticket = hf__mysql_ticket_find(mysql, call->ticket);
    struct hf__mysql_ticket *mine =
        ticket ? hf__mysql_ticket(mysql, ticket) : NULL;
    hf_error err;

    if (!reply || !mine || mine->on != call->connection)
        return; /* a lost session is told by its end */
    mine->trying = false;
    if (!mine->leaving && hf__mysql_remake(call, reply)) {
        mine->trying = true;
    } else if (reply->code == 0) {
        if (is_get_lock(mysql) || has_row(mysql, ticket, reply))
            taken(mysql, ticket, call->sent_ns);
    } else if (mine->leaving) {
        left(mysql, ticket, /* held= */ false);
    } else if (hf__mysql_is_refused(reply) || hf__mysql_is_collision(reply)) {
        not_free(mysql, ticket);
    } else {
        (void)hf__mysql_explain(mysql, reply, &err);
        refused(mysql, ticket, &err);
    }
}

/* The lease counts from this word. */
static void on_accepted(struct hf__mysql *mysql, struct hf__mysql_call *call,
                        struct hf__mysql_reply *reply)
{
    struct hf__ticket *ticket = hf__mysql_ticket_find(mysql, call->ticket);
    struct hf__mysql_ticket *mine =
        ticket ? hf__mysql_ticket(mysql, ticket) : NULL;

    if (!reply || !mine || !mine->waiting || mine->on != call->connection)
        return;
    if (reply->code == 0)
        granted(mysql, ticket, call->sent_ns);
    else
        hf__mysql_connection_break(mine->on);
}

/* The server does not answer before it is asked, so the lease counts from the
 * asking. If that is long ago a word is sent: the answer may have come just now,
 * or have lain there while we were stopped. */
static void waited(struct hf__mysql *mysql, struct hf__ticket *ticket,
                   int64_t sent_ns)
{
    struct hf__mysql_ticket *mine = hf__mysql_ticket(mysql, ticket);

    if (hf__now() - sent_ns < hf__ms_to_ns(ticket->ttl_ms) / 3)
        granted(mysql, ticket, sent_ns);
    else if (hf__mysql_ask(mine->on, ticket, "DO 1", on_accepted, 0, NULL) != 0)
        hf__mysql_connection_break(mine->on);
}

static void on_waited(struct hf__mysql *mysql, struct hf__mysql_call *call,
                      struct hf__mysql_reply *reply)
{
    struct hf__ticket *ticket = hf__mysql_ticket_find(mysql, call->ticket);
    struct hf__mysql_ticket *mine =
        ticket ? hf__mysql_ticket(mysql, ticket) : NULL;
    hf_error err;

    if (!reply || !mine || !mine->waiting || mine->on != call->connection ||
        hf__mysql_remake(call, reply))
        return;
    if (reply->code == 0) {
        if (is_get_lock(mysql) || has_row(mysql, ticket, reply))
            waited(mysql, ticket, call->sent_ns);
    } else if (is_get_lock(mysql) || hf__mysql_is_collision(reply)) {
        stand_in_line(mysql, ticket);
    } else {
        (void)hf__mysql_explain(mysql, reply, &err);
        refused(mysql, ticket, &err);
    }
}

/* GET_LOCK is re-entrant in a session: does the main one have the name, or will
 * it, for another ticket of ours? One that is leaving has sent its RELEASE_LOCK
 * before us, or will send it when it hears that it was taken: twice taken and
 * once freed is ours. */
static bool is_mine(const struct hf__mysql *mysql,
                    const struct hf__ticket *than)
{
    for (size_t i = 0; i < HF__MYSQL_BUCKETS && mysql->main_users > 1; i++) {
        struct hf__ticket *ticket = mysql->tickets[i];

        for (; ticket; ticket = hf__mysql_ticket(mysql, ticket)->next) {
            const struct hf__mysql_ticket *mine =
                hf__mysql_ticket(mysql, ticket);

            if (ticket != than && mine->on == &mysql->main && !mine->leaving &&
                strcmp(ticket->name, than->name) == 0)
                return true;
        }
    }
    return false;
}

static int ask(struct hf__mysql *mysql, struct hf__ticket *ticket,
               hf_error *err)
{
    struct hf__mysql_ticket *mine = hf__mysql_ticket(mysql, ticket);
    int rc;

    if (mine->ghost.serial != 0)
        return exorcise(mysql, ticket, err);
    /* A connection that is there anyway asks and waits in one. */
    if (!is_get_lock(mysql) || (!ticket->nowait && mysql->pool.n_idle > 0))
        return take_session(mysql, ticket, err);
    bind_session(mine, &mysql->main);
    if (is_mine(mysql, ticket)) {
        not_free(mysql, ticket);
        return 0;
    }
    mine->trying = true;
    rc = hf__mysql_need_lease(&mysql->main, ticket, err);
    if (rc != 0)
        return rc;
    return hf__mysql_ask_prepared(&mysql->main, ticket, mine->texts->try,
                                  on_tried, 0, err);
}

static void on_asked_again(struct hf__mysql *mysql, struct hf__mysql_call *call,
                           struct hf__mysql_reply *reply)
{
    struct hf__ticket *ticket = hf__mysql_ticket_find(mysql, call->ticket);
    struct hf__mysql_ticket *mine =
        ticket ? hf__mysql_ticket(mysql, ticket) : NULL;

    if (!reply || !mine || !mine->asking || mine->on != call->connection)
        return;
    if (reply->code == 0)
        granted(mysql, ticket, call->sent_ns);
    else
        unknown(mysql, ticket);
}

/* An answer of ours was not heard. */
static int ask_again(struct hf__mysql *mysql, struct hf__ticket *ticket,
                     hf_error *err)
{
    struct hf__mysql_ticket *mine = hf__mysql_ticket(mysql, ticket);

    if (mine->held)
        return hf__mysql_ask(mine->on, ticket, "DO 1", on_asked_again, 0, err);
    mine->asking = false;
    hf__up_queued(&mysql->base, ticket);
    return 0;
}

static int acquire(struct hf__mysql *mysql, struct hf__ticket *ticket,
                   hf_error *err)
{
    struct hf__mysql_ticket *mine = hf__mysql_ticket(mysql, ticket);
    bool known = mine->known;
    int rc;

    hf__mysql_ticket_know(mysql, ticket);
    mine->texts = hf__mysql_lock_texts(mysql, ticket);
    mine->asking = true;
    if (mine->on && (mine->held || mine->waiting))
        return ask_again(mysql, ticket, err);
    mine->waiting = false;
    rc = ask(mysql, ticket, err);
    if (rc == 0)
        return 0;
    mine->asking = false;
    unbind(mysql, mine);
    if (!known) {
        hf__mysql_ticket_forget(mysql, ticket);
        return rc;
    }
    unknown(mysql, ticket);
    return 0;
}

/* ---- leaving ----------------------------------------------------------- */

static void on_left(struct hf__mysql *mysql, struct hf__mysql_call *call,
                    struct hf__mysql_reply *reply)
{
    struct hf__ticket *ticket = hf__mysql_ticket_find(mysql, call->ticket);
    struct hf__mysql_ticket *mine =
        ticket ? hf__mysql_ticket(mysql, ticket) : NULL;

    if (!reply || !mine || mine->on != call->connection)
        return;
    if (reply->code == 0) {
        /* Nobody but us has used the session, so it was still ours; or the
         * caller's transaction was still open, and has been committed. */
        left(mysql, ticket, !mine->lent || reply->was_in_transaction);
    } else if (mine->lent && mine->releasing) { /* not committed */
        forget(mysql, ticket, /* clean= */ false);
        hf__up_left(&mysql->base, ticket, HF_ELOST);
    } else { /* it may hold it still */
        unknown(mysql, ticket);
    }
}

/* The connection cannot be asked any more, or waits inside the server: it goes,
 * and its session is a ghost until it is ended. */
static int abandon_session(struct hf__mysql *mysql, struct hf__ticket *ticket,
                           hf_error *err)
{
    struct hf__mysql_ticket *mine = hf__mysql_ticket(mysql, ticket);
    struct hf__mysql_connection *connection = mine->on;

    mine->ghost = connection->session;
    unbind(mysql, mine);
    hf__mysql_pooled_drop(connection);
    return exorcise(mysql, ticket, err);
}

static int leave(struct hf__mysql *mysql, struct hf__ticket *ticket,
                 bool releasing, hf_error *err)
{
    struct hf__mysql_ticket *mine = hf__mysql_ticket(mysql, ticket);
    bool lent = mine->on && mine->on->lent;

    mine->asking = false;
    mine->leaving = true;
    mine->releasing = releasing;
    hf__sql_pool_forget(&mysql->pool, &mine->want);
    if (mine->ghost.serial != 0)
        return mine->exorcising ? 0 : exorcise(mysql, ticket, err);
    if (!mine->on || (mine->on == &mysql->main && !mine->trying &&
                      !mine->held && !mine->waiting)) {
        left(mysql, ticket, /* held= */ false);
        return 0;
    }
    if (mine->on == &mysql->main && mine->trying)
        return 0; /* on_tried() goes on */
    if (!mine->held)
        return abandon_session(mysql, ticket, err);
    if (lent) {
        mine->on->lent = false;
        hf__mysql_watch_idle(mine->on);
    }
    if (is_get_lock(mysql) || (releasing && !mine->lent))
        return hf__mysql_ask_prepared(mine->on, ticket, mine->texts->leave,
                                      on_left, 0, err);
    return hf__mysql_ask(mine->on, ticket,
                         releasing ? hf__mysql_for_update_leave
                                   : hf__mysql_for_update_undo,
                         on_left, 0, err);
}

/* ---- renewing ---------------------------------------------------------- */

static void on_renewed(struct hf__mysql *mysql, struct hf__mysql_call *call,
                       struct hf__mysql_reply *reply)
{
    struct hf__ticket *ticket = hf__mysql_ticket_find(mysql, call->ticket);
    struct hf__mysql_ticket *mine =
        ticket ? hf__mysql_ticket(mysql, ticket) : NULL;
    struct hf__grant grant = {.tokens = 1, .sent_ns = call->sent_ns};

    if (!reply || reply->code != 0 || !mine || mine->leaving ||
        mine->on != call->connection)
        return;
    grant.lease_ms = ticket->ttl_ms;
    hf__up_renewed(&mysql->base, ticket, &grant);
}

static int renew_one(struct hf__mysql *mysql, struct hf__ticket *ticket,
                     hf_error *err)
{
    struct hf__mysql_ticket *mine = hf__mysql_ticket(mysql, ticket);
    struct hf__grant forever = {.tokens = 1, .sent_ns = hf__now()};

    if (!mine->on) {
        forget(mysql, ticket, /* clean= */ false);
        hf__up_lost(&mysql->base, ticket, HF__LOST_SESSION);
        return 0;
    }
    if (mine->on->lent) {
        hf__up_renewed(&mysql->base, ticket, &forever);
        return 0;
    }
    return hf__mysql_ask(mine->on, ticket, "DO 1", on_renewed, 0, err);
}

static int renew(struct hf__mysql *mysql, struct hf__ticket **tickets, size_t n,
                 hf_error *err)
{
    int rc = 0;

    for (size_t i = 0; i < n && rc == 0; i++)
        rc = renew_one(mysql, tickets[i], err);
    return rc;
}

/* ---- the main connection ----------------------------------------------- */

/* One that the main session had; any may go while one is told. */
static struct hf__ticket *first_on_main(const struct hf__mysql *mysql)
{
    for (size_t i = 0; i < HF__MYSQL_BUCKETS; i++) {
        struct hf__ticket *ticket = mysql->tickets[i];

        for (; ticket; ticket = hf__mysql_ticket(mysql, ticket)->next) {
            if (hf__mysql_ticket(mysql, ticket)->on == &mysql->main)
                return ticket;
        }
    }
    return NULL;
}

/* What is left of the main session is ended before we are up again. */
static void lost(struct hf__mysql *mysql)
{
    while (mysql->main_users > 0) {
        struct hf__ticket *ticket = first_on_main(mysql);

        unbind(mysql, hf__mysql_ticket(mysql, ticket));
        lose(mysql, ticket);
    }
}

const struct hf__mysql_mode hf__mysql_get_lock = {
    .name = "get_lock",
    .caps = HF_CAP_PUSH | HF_CAP_LEASED | HF_CAP_DISTRIBUTED | HF_CAP_VERSIONS,
    .acquire = acquire,
    .leave = leave,
    .renew = renew,
    .downgrade = NULL,
    .attend = hf__mysql_relax,
    .lost = lost,
    .regained = end_ghosts,
};

const struct hf__mysql_mode hf__mysql_for_update = {
    .name = "for_update",
    .caps = HF_CAP_SHARED | HF_CAP_PUSH | HF_CAP_LEASED | HF_CAP_DISTRIBUTED |
            HF_CAP_VERSIONS,
    .acquire = acquire,
    .leave = leave,
    .renew = renew,
    .downgrade = NULL,
    .attend = hf__mysql_relax,
    .lost = lost,
    .regained = end_ghosts,
};

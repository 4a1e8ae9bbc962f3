/* SPDX-License-Identifier: MIT */
/*
 * for_update.c - mode=for_update: a transaction holds a row, and the caller may
 * use the same transaction.
 *
 * From then on the lock has no lease: the server is told not to end a silent
 * session, and we leave the connection alone until the lock is released.
 *
 * Failure: a connection that was lost while the caller had it is noticed at the
 * release.
 */
#include "engines/common/caps.h"
#include "engines/mysql/mysql.h"

/* We do not insert into a table of the application's. */
static void no_row(struct hf__mysql *mysql, struct hf__ticket *ticket)
{
    const struct hf__settings *settings = mysql->base.host->settings;
    hf_error err;

    (void)hf__fail(&err, HF_ENOTFOUND,
                   "%s: table %s has no row whose %s is '%s%s'", mysql->peer,
                   settings->table, settings->key, settings->prefix,
                   ticket->name);
    hf__mysql_session_acquire_refused(mysql, ticket, &err);
}

/* The row may not be there yet. Or it was locked for this statement alone,
 * because the server had ended the transaction, as it does with a deadlock. */
bool hf__mysql_for_update_locked(struct hf__mysql *mysql,
                                 struct hf__ticket *ticket,
                                 const struct hf__mysql_reply *reply)
{
    const struct hf__mysql_ticket *mine = hf__mysql_ticket(mysql, ticket);
    bool found = reply->affected[reply->n - 1] == 1;

    mysql->proven = true;
    if (found && reply->in_transaction)
        return true;
    if (!found && mysql->own_row) {
        no_row(mysql, ticket);
        return false;
    }
    if (hf__mysql_call_ask(mine->on, ticket,
                           mysql->own_row ? hf__mysql_sql_own_row_begin
                           : found        ? hf__mysql_sql_for_update_begin
                                          : hf__mysql_sql_for_update_make,
                           hf__mysql_session_acquire_tried, NULL) != 0)
        hf__mysql_connection_break(mine->on);
    return false;
}

/* ---- the caller's own statements ----------------------------------------- */

static void answer_lost(struct hf__mysql *mysql, struct hf__query *query)
{
    hf_error err;

    (void)hf__fail(&err, HF_ELOST, "%s: the transaction is gone", mysql->peer);
    hf__up_answer(&mysql->base, query, err.code, &err);
}

static void on_ready(struct hf__mysql *mysql, struct hf__mysql_call *call,
                     struct hf__mysql_reply *reply)
{
    struct hf__ticket *ticket = hf__mysql_tickets_find(mysql, call->ticket);
    struct hf__mysql_ticket *mine =
        ticket ? hf__mysql_ticket(mysql, ticket) : NULL;
    struct hf__grant forever = {.tokens = 1, .sent_ns = call->sent_ns};

    if (!reply || reply->code != 0 || !mine || hf__mysql_tickets_leaves(mine) ||
        mine->stored < HF__MYSQL_HAS_LOCK || mine->on != call->connection) {
        answer_lost(mysql, call->query);
        return;
    }
    mine->on->with_caller = true;
    mine->on->lease_s = 0;
    hf__mysql_session_stored(mine, HF__MYSQL_HAS_TRANSACTION);
    hf__mysql_connection_unwatch(mine->on);
    call->query->connection = mine->on->handle;
    hf__up_renewed(&mysql->base, ticket, &forever);
    hf__up_answer(&mysql->base, call->query, 0, /* err= */ NULL);
}

int hf__mysql_for_update_connection(struct hf__engine *engine,
                                    struct hf__query *query, hf_error *err)
{
    struct hf__mysql *mysql = (struct hf__mysql *)engine;
    struct hf__ticket *ticket = hf__mysql_tickets_find(mysql, query->ticket);
    const struct hf__mysql_ticket *mine =
        ticket ? hf__mysql_ticket(mysql, ticket) : NULL;
    struct hf__mysql_call *call;

    if (mysql->mode != &hf__mysql_for_update_mode)
        return hf__fail(err, HF_EUNSUPPORTED,
                        "a lock of mode=%s is no transaction: use "
                        "mode=for_update",
                        mysql->mode->name);
    if (!mine || mine->stored < HF__MYSQL_HAS_LOCK || !mine->on)
        return hf__fail(err, HF_ELOST, "%s: the transaction is gone",
                        mysql->peer);
    if (mine->on->with_caller) {
        query->connection = mine->on->handle;
        hf__up_answer(engine, query, 0, /* err= */ NULL);
        return 0;
    }
    call = hf__mysql_call_new(on_ready, err);
    if (!call)
        return HF_ENOMEM;
    call->ticket = ticket->id;
    call->query = query;
    hf__buf_printf(&call->sql,
                   "SET wait_timeout=%d,innodb_lock_wait_timeout=DEFAULT",
                   HF__MYSQL_IDLE_S);
    return hf__mysql_call_send(mine->on, call, err);
}

const struct hf__mysql_mode hf__mysql_for_update_mode = {
    .name = "for_update",
    .caps = HF__CAPS_SESSION | HF_CAP_SHARED,
    HF__MYSQL_OF_A_SESSION,
};

/* SPDX-License-Identifier: MIT */
/*
 * lend.c - mode=for_update: the connection of a lock for the caller's own
 * statements.
 *
 * From then on the lock has no lease: the server is told not to end a silent
 * session, and the connection is left alone until the lock is released.
 *
 * Failure: a connection that was lost meanwhile is noticed when it comes back.
 */
#include "engines/mysql/mysql.h"

static void on_lent(struct hf__mysql *mysql, struct hf__mysql_call *call,
                    struct hf__mysql_reply *reply)
{
    struct hf__ticket *ticket = hf__mysql_ticket_find(mysql, call->ticket);
    struct hf__mysql_ticket *mine =
        ticket ? hf__mysql_ticket(mysql, ticket) : NULL;
    struct hf__grant forever = {.tokens = 1, .sent_ns = call->sent_ns};
    hf_error err;

    if (!reply || reply->code != 0 || !mine || mine->leaving || !mine->held ||
        mine->on != call->connection) {
        (void)hf__fail(&err, HF_ELOST, "%s: the transaction is gone",
                       mysql->peer);
        hf__up_answer(&mysql->base, call->query, err.code, &err);
        return;
    }
    mine->on->lent = true;
    mine->on->lease_s = 0;
    mine->lent = true;
    hf__mysql_unwatch(mine->on);
    call->query->connection = mine->on->handle;
    hf__up_renewed(&mysql->base, ticket, &forever);
    hf__up_answer(&mysql->base, call->query, 0, /* err= */ NULL);
}

int hf__mysql_connection_op(struct hf__engine *engine, struct hf__query *query,
                            hf_error *err)
{
    struct hf__mysql *mysql = (struct hf__mysql *)engine;
    struct hf__ticket *ticket = hf__mysql_ticket_find(mysql, query->ticket);
    struct hf__mysql_ticket *mine =
        ticket ? hf__mysql_ticket(mysql, ticket) : NULL;
    struct hf__mysql_call *call;

    if (mysql->mode != &hf__mysql_for_update)
        return hf__fail(err, HF_EUNSUPPORTED,
                        "a lock of mode=%s is no transaction: use "
                        "mode=for_update",
                        mysql->mode->name);
    if (!mine || !mine->held || !mine->on)
        return hf__fail(err, HF_ELOST, "%s: the transaction is gone",
                        mysql->peer);
    if (mine->on->lent) {
        query->connection = mine->on->handle;
        hf__up_answer(engine, query, 0, /* err= */ NULL);
        return 0;
    }
    call = hf__mysql_call_new(on_lent, err);
    if (!call)
        return HF_ENOMEM;
    call->ticket = ticket->id;
    call->query = query;
    hf__buf_printf(&call->sql,
                   "SET wait_timeout=%d,innodb_lock_wait_timeout=DEFAULT",
                   HF__MYSQL_IDLE_S);
    return hf__mysql_call_send(mine->on, call, err);
}

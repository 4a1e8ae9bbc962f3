/* SPDX-License-Identifier: MIT */
/*
 * schema.c - our tables, which are made when the server first says that they
 * are missing.
 *
 *   holdfast_lock     mode=table: one row per name, never deleted, so that
 *                     tokens go on. The exclusive holder is in it: until, and
 *                     as holder ticket and record; if until is 0, those of the
 *                     last one
 *   holdfast_ticket   a row for each ticket that waits (role 0), or holds with
 *                     others (role 1)
 *   holdfast_cond     a row for each ticket that waits for a condition, and for
 *                     each that bears a wake-up: called is 0, or the number of
 *                     the signal. seq counts rows and signals of a name
 *   holdfast_row      mode=for_update: the row that a transaction holds
 *   holdfast_version  hf_version_commit()
 *
 * holdfast_lock.gate is 0 while a name has no rows in holdfast_ticket, and else
 * more than any instant. While it is 0 the row of the name is the whole lock,
 * and one statement of one row takes or frees it. Everything else first locks
 * that row, so that changes of one name are one after the other, in one text
 * that the server carries out without us: a client that stops in the middle
 * keeps no other waiting. Such a text begins a transaction, and calls.c undoes
 * what it has done if one of its statements fails. Its variables are those of
 * the session, and are set before they are read: @hf_….
 *
 * Waiters ask again; the first of those that are alive takes the lock when it
 * is free. A waiter that has not asked for its life is forgotten. Who is parked
 * does not close the gate: it has no row in holdfast_ticket before it is called.
 *
 * Instants are microseconds of the server's clock. A token is the greater of
 * the last one + 1 and that clock, so it goes on even after the table was lost.
 *
 * Failure: a table that cannot be made is an answer of the server to the call
 * that needed it.
 */
#include "engines/mysql/mysql.h"

static void on_made(struct hf__mysql *mysql, struct hf__mysql_call *call,
                    struct hf__mysql_reply *reply)
{
    struct hf__mysql_call *first = call->then;

    call->then = NULL;
    if (reply && reply->code == 0) {
        first->tables = HF__TABLES_MADE;
        (void)hf__mysql_call_send(first->connection, first, NULL);
        return;
    }
    first->tables = HF__TABLES_UNMADE;
    hf__mysql_call_tell(mysql, first, reply);
    hf__mysql_call_free(first);
}

bool hf__mysql_schema_make(struct hf__mysql_call *call,
                           const struct hf__mysql_reply *reply)
{
    static const struct hf__mysql_values none = {.name = ""};
    struct hf__mysql *mysql = call->connection->mysql;
    const char *text = mysql->dialect ? mysql->dialect_texts[HF__MYSQL_MAKE]
                                      : hf__mysql_sql_schema_make;
    struct hf__mysql_call *make;

    if (!reply || !hf__mysql_errors_is_no_table(reply) ||
        call->tables != HF__TABLES_UNTRIED || mysql->own_row || !text)
        return false;
    make = hf__mysql_call_new(on_made, NULL);
    if (!make)
        return false;
    hf__mysql_statement(mysql, &make->sql, text, &none);
    if (hf__mysql_call_send(call->connection, make, NULL) != 0)
        return false;
    make->then = call;
    call->tables = HF__TABLES_MAKING;
    return true;
}

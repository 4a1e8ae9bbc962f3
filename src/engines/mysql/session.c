/* SPDX-License-Identifier: MIT */
/*
 * session.c - locks of a session or transaction: whose session it is, and what
 * follows from its end.
 *
 * get_lock    A free lock is taken on the main connection, which may have any
 *             number of them. A ticket that has to wait does so inside the
 *             server, on a connection of the pool, and keeps that one for the
 *             lock.
 * for_update  A transaction on a connection of the pool holds a row. The caller
 *             may use the same transaction (hf_sql_connection).
 *
 * Failure: with its session a lock is lost, and that is told at once: the server
 * may give it to the next one. The lost session may still live at the server,
 * and hold or wait. It is an orphan until the main connection has ended it
 * (orphans.c); what was being asked for, or released, is certain only then.
 */
#include "engines/mysql/mysql.h"

void hf__mysql_session_stored(struct hf__mysql_ticket *mine,
                              enum hf__mysql_stored stored)
{
    bool before = mine->stored >= HF__MYSQL_HAS_LOCK;
    bool held = stored >= HF__MYSQL_HAS_LOCK;

    mine->stored = (uint8_t)stored;
    if (held != before)
        hf__link_hold(&mine->mysql->link, held);
}

void hf__mysql_session_bind(struct hf__mysql_ticket *mine,
                            struct hf__mysql_connection *connection)
{
    mine->on = connection;
    if (connection == &mine->mysql->main)
        mine->mysql->main_users++;
    else
        connection->ticket = mine->entry.ticket->id;
}

void hf__mysql_session_unbind(struct hf__mysql_ticket *mine)
{
    struct hf__mysql_connection *connection = mine->on;

    hf__mysql_session_stored(mine, HF__MYSQL_HAS_NOTHING);
    mine->under_way = false;
    mine->on = NULL;
    if (!connection)
        return;
    if (connection == &mine->mysql->main) {
        mine->mysql->main_users--;
    } else {
        connection->ticket = 0;
        connection->with_caller = false;
    }
    hf__mysql_lease_rest(connection);
}

static void on_cleaned(struct hf__mysql *mysql, struct hf__mysql_call *call,
                       struct hf__mysql_reply *reply)
{
    if (reply && reply->code != 0)
        hf__mysql_connection_break(call->connection);
    else if (reply)
        hf__sql_pool_give(&mysql->pool, &call->connection->link);
}

void hf__mysql_session_forget(struct hf__mysql *mysql,
                              struct hf__ticket *ticket, bool clean)
{
    struct hf__mysql_ticket *mine = hf__mysql_ticket(mysql, ticket);
    struct hf__mysql_connection *connection = mine->on;

    if (mine->state == HF__MYSQL_IDLE)
        return;
    hf__sql_pool_forget(&mysql->pool, &mine->want);
    hf__mysql_session_unbind(mine);
    hf__mysql_tickets_forget(mysql, ticket);
    if (!connection || connection == &mysql->main)
        return;
    if (clean)
        hf__sql_pool_give(&mysql->pool, &connection->link);
    else if (hf__mysql_call_say(connection, hf__mysql_sql_for_update_undo,
                                on_cleaned) != 0)
        hf__mysql_connection_break(connection);
}

void hf__mysql_session_left(struct hf__mysql *mysql, struct hf__ticket *ticket,
                            bool held)
{
    const struct hf__mysql_ticket *mine = hf__mysql_ticket(mysql, ticket);
    bool releasing = mine->state == HF__MYSQL_RELEASING;
    int rc = mine->unsure ? HF_EUNKNOWN : releasing && !held ? HF_ELOST : 0;

    hf__mysql_session_forget(mysql, ticket, /* clean= */ true);
    hf__up_left(&mysql->base, ticket, rc);
}

/* ---- lost sessions ----------------------------------------------------- */

struct hf__ticket *hf__mysql_session_gone(
    struct hf__mysql_connection *connection)
{
    struct hf__mysql *mysql = connection->mysql;
    struct hf__ticket *ticket =
        hf__mysql_tickets_find(mysql, connection->ticket);
    struct hf__mysql_ticket *mine;

    if (!ticket)
        return NULL;
    mine = hf__mysql_ticket(mysql, ticket);
    mine->orphan = connection->session;
    mine->unsure = hf__mysql_tickets_leaves(mine) && /* was it committed? */
                   mine->stored == HF__MYSQL_HAS_TRANSACTION;
    hf__mysql_session_unbind(mine);
    return ticket;
}

/* Its lock, or its place in line, has ended with its session. */
static void lose(struct hf__mysql *mysql, struct hf__ticket *ticket)
{
    struct hf__mysql_ticket *mine = hf__mysql_ticket(mysql, ticket);

    if ((mine->state == HF__MYSQL_ASKING &&
         !HF__PLANTED("place_lost_while_asking")) ||
        hf__mysql_tickets_leaves(mine)) {
        hf__mysql_tickets_answer_lost(mysql, ticket);
        return;
    }
    if (mine->state == HF__MYSQL_HELD && HF__PLANTED("session_end_not_told"))
        return;
    if (mine->orphan.serial != 0)
        hf__mysql_orphans_add(mysql, &mine->orphan);
    hf__mysql_session_forget(mysql, ticket, /* clean= */ false);
    hf__up_lost(&mysql->base, ticket, HF__LOST_SESSION);
}

void hf__mysql_session_tell(struct hf__mysql *mysql, struct hf__ticket *ticket)
{
    lose(mysql, ticket);
    hf__mysql_orphans_end_all(mysql);
}

static bool is_on_main(struct hf__ticket_entry *entry, const void *main)
{
    return HF_CONTAINER_OF(entry, struct hf__mysql_ticket, entry)->on == main;
}

/* What is left of the main session is ended before we are up again. */
void hf__mysql_session_main_lost(struct hf__mysql *mysql)
{
    struct hf__ticket *ticket;
    size_t bucket = 0;

    while ((ticket = hf__ticket_table_next(&mysql->tickets, &bucket, is_on_main,
                                           &mysql->main))) {
        hf__mysql_session_unbind(hf__mysql_ticket(mysql, ticket));
        lose(mysql, ticket);
    }
}

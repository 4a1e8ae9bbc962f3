/* SPDX-License-Identifier: MIT */
/*
 * bell.c - mode=table: who is before us in line rings when he goes.
 *
 * MariaDB cannot call its clients, but it wakes who waits in GET_LOCK. So
 * everybody who has to stand in line takes a lock of his own by GET_LOCK, on the
 * main connection: his bell. He keeps it while he holds, and frees it when he
 * has gone. Who comes after him waits for it, on a connection of the pool, and
 * asks for his turn when he has it.
 *
 * A bell is a hint and nothing else: whoever listens also looks, now and then.
 *
 * Failure: no connection in the pool, a holder that never stood in line, a
 * session that was lost with its bell: then there is nothing to hear, and
 * table.c looks more often.
 */
#include "engines/mysql/mysql.h"

enum { LISTEN_S = 5 };

static void on_nothing(struct hf__mysql *mysql, struct hf__mysql_call *call,
                       struct hf__mysql_reply *reply)
{
    (void)mysql;
    (void)call;
    (void)reply;
}

static void on_rung(struct hf__mysql *mysql, struct hf__mysql_call *call,
                    struct hf__mysql_reply *reply)
{
    struct hf__ticket *ticket = hf__mysql_ticket_find(mysql, call->ticket);
    struct hf__mysql_ticket *mine =
        ticket ? hf__mysql_ticket(mysql, ticket) : NULL;
    unsigned long *lengths;
    MYSQL_ROW row;

    if (mine) {
        mine->listening = false;
        mine->rang = reply && hf__mysql_row(reply, &row, &lengths) &&
                     hf__mysql_number(row[0]) == 1;
        if (mine->waiting && !mine->leaving)
            mine->rang = hf__mysql_table_ask(mysql, ticket) && mine->rang;
    }
    if (reply)
        hf__sql_pool_give(&mysql->pool, &call->connection->link);
}

static void listen_on(struct hf__mysql_ticket *mine,
                      struct hf__mysql_connection *connection)
{
    struct hf__mysql_call *call = hf__mysql_call_new(on_rung, NULL);

    if (call) {
        call->ticket = mine->self->id;
        call->wait_ms = LISTEN_S * INT64_C(1000);
        hf__buf_printf(&call->sql,
                       "SELECT GET_LOCK('holdfast-bell/%s',%d),"
                       "RELEASE_LOCK('holdfast-bell/%s')",
                       mine->before, LISTEN_S, mine->before);
    }
    if (call && hf__mysql_call_send(connection, call, NULL) == 0)
        mine->listening = true;
    else
        hf__mysql_connection_break(connection);
}

static void got_connection(struct hf__sql_want *want, struct hf__sql_link *link,
                           const hf_error *err)
{
    struct hf__mysql_ticket *mine =
        HF_CONTAINER_OF(want, struct hf__mysql_ticket, want);

    (void)err; /* then we look */
    if (link)
        listen_on(mine, hf__mysql_connection_of(link));
}

static bool is_ticket(const char *text)
{
    return text && strlen(text) == 48 && strspn(text, "0123456789ABCDEF") == 48;
}

void hf__mysql_bell_hang(struct hf__mysql *mysql, struct hf__ticket *ticket,
                         const char *before)
{
    struct hf__mysql_ticket *mine = hf__mysql_ticket(mysql, ticket);
    bool same = before && strcmp(before, mine->before) == 0;

    if (!mine->bell)
        mine->bell = hf__mysql_ask(&mysql->main, ticket, hf__mysql_bell_take,
                                   on_nothing, 0, NULL) == 0;
    /* He has rung and is still there: it was not him. */
    mine->silent = same && (mine->silent || mine->rang);
    mine->rang = false;
    hf__text_copy(mine->before, sizeof(mine->before),
                  is_ticket(before) ? before : "");
    if (mine->listening || mine->silent || mine->before[0] == '\0' ||
        (mine->want.link.next && !hf__list_empty(&mine->want.link)))
        return;
    mine->want.got = got_connection;
    (void)hf__sql_pool_take(&mysql->pool, &mine->want, NULL);
}

void hf__mysql_bell_heard(struct hf__mysql *mysql, struct hf__ticket *ticket)
{
    hf__sql_pool_forget(&mysql->pool, &hf__mysql_ticket(mysql, ticket)->want);
}

void hf__mysql_bell_ring(struct hf__mysql *mysql, struct hf__ticket *ticket)
{
    struct hf__mysql_ticket *mine = hf__mysql_ticket(mysql, ticket);

    if (mine->bell)
        (void)hf__mysql_ask(&mysql->main, ticket, hf__mysql_bell_free,
                            on_nothing, 0, NULL);
    mine->bell = false;
}

/* SPDX-License-Identifier: MIT */
/*
 * pool.c - the connections of the pool (engines/sql/pool.c), for tickets that
 * wait inside the server or hold a transaction.
 *
 * Failure: session.c tells the ticket of a connection that is lost; the pool
 * opens another one when a ticket wants it.
 */
#include "engines/mysql/mysql.h"

static void pooled_opened(struct hf__mysql_connection *connection)
{
    hf__sql_pool_ready(&connection->mysql->pool, &connection->link);
}

static void pooled_closed(struct hf__mysql_connection *connection,
                          const hf_error *err)
{
    struct hf__mysql *mysql = connection->mysql;
    struct hf__ticket *ticket = hf__mysql_session_gone(connection);

    hf__sql_pool_gone(&mysql->pool, &connection->link, err);
    hf__free(connection);
    if (ticket)
        hf__mysql_session_tell(mysql, ticket);
}

void hf__mysql_pool_drop(struct hf__mysql_connection *connection)
{
    struct hf__mysql *mysql = connection->mysql;
    hf_error err;

    (void)hf__mysql_errors_lost(mysql, &err);
    hf__mysql_connection_stop(connection, /* forked= */ false);
    hf__sql_pool_gone(&mysql->pool, &connection->link, &err);
    hf__free(connection);
}

static struct hf__sql_link *pool_open(void *owner, hf_error *err)
{
    struct hf__mysql *mysql = owner;
    struct hf__mysql_connection *connection =
        hf__calloc(1, sizeof(*connection));

    if (!connection) {
        (void)hf__fail(err, HF_ENOMEM, "out of memory");
        return NULL;
    }
    hf__mysql_connection_init(connection, mysql);
    connection->opened = pooled_opened;
    connection->closed = pooled_closed;
    if (hf__mysql_connection_start(connection, err) == 0)
        return &connection->link;
    hf__free(connection);
    return NULL;
}

static void on_pong(struct hf__mysql *mysql, struct hf__mysql_call *call,
                    struct hf__mysql_reply *reply)
{
    if (reply)
        hf__sql_pool_ready(&mysql->pool, &call->connection->link);
}

static void pool_close(void *owner, struct hf__sql_link *link)
{
    (void)owner;
    hf__mysql_connection_stop(hf__mysql_pool_connection(link),
                              /* forked= */ false);
    hf__free(hf__mysql_pool_connection(link));
}

static int pool_check(void *owner, struct hf__sql_link *link)
{
    if (hf__mysql_call_say(hf__mysql_pool_connection(link), "DO 1", on_pong) ==
        0)
        return 0;
    pool_close(owner, link);
    return HF_ENOMEM;
}

static void pool_wake(void *owner, int64_t due_ns)
{
    struct hf__mysql *mysql = owner;

    hf__link_wake(&mysql->link, due_ns);
}

void hf__mysql_pool_open(struct hf__mysql *mysql)
{
    static const struct hf__sql_pool_ops ops = {pool_open, pool_check,
                                                pool_close, pool_wake};

    hf__sql_pool_init(&mysql->pool, &ops, mysql, mysql->base.host->settings);
}

void hf__mysql_pool_close(struct hf__mysql *mysql, bool forked)
{
    if (!mysql->pool.ops)
        return;
    HF_LIST_EACH(&mysql->pool.all, link) {
        struct hf__mysql_connection *connection = hf__mysql_pool_connection(
            HF_CONTAINER_OF(link, struct hf__sql_link, all));

        hf__mysql_connection_stop(connection, forked);
        if (forked)
            continue;
        hf__list_remove(link);
        hf__free(connection);
    }
}

/* One that this run of the timer has not checked; it may free any of them. */
static struct hf__mysql_connection *unseen(const struct hf__mysql *mysql)
{
    HF_LIST_EACH(&mysql->pool.all, link) {
        struct hf__mysql_connection *connection = hf__mysql_pool_connection(
            HF_CONTAINER_OF(link, struct hf__sql_link, all));

        if (connection->round != mysql->round && !connection->with_caller)
            return connection;
    }
    return NULL;
}

void hf__mysql_pool_attend(struct hf__mysql *mysql, int64_t now_ns)
{
    struct hf__mysql_connection *connection;

    mysql->round++;
    for (connection = unseen(mysql); connection; connection = unseen(mysql)) {
        connection->round = mysql->round;
        hf__mysql_connection_begin(connection);
    }
    mysql->round++;
    for (connection = unseen(mysql); connection; connection = unseen(mysql)) {
        connection->round = mysql->round;
        hf__link_wake(&mysql->link,
                      hf__mysql_connection_check(connection, now_ns));
    }
    hf__sql_pool_expire(&mysql->pool, now_ns);
}

/* SPDX-License-Identifier: MIT */
/*
 * mysql_transaction_test.c - the application's own statements, inside of the
 * transaction that holds a lock, and on our rows.
 */
#include <mysqld_error.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/dynlib.h"
#include "event.h"
#include "live/sql/database.h"
#include "mysql.h"
#include <mysql.h>

#define QUICK "retry.base=1ms&retry.max_interval=20ms"

#define CALLERS(X)                                                             \
    X(mysql_query)                                                             \
    X(mysql_errno)                                                             \
    X(mysql_rollback)                                                          \
    X(mysql_thread_id)
DATABASE_LEND(CALLERS, "libmariadb.so.3", MYSQL)

TEST(transaction, is_committed_with_the_release)
{
    int port = mysql_fresh();
    hf_client *client = mysql_open(port, QUICK "&mode=for_update&ttl=1s");
    hf_hold *hold;
    MYSQL *mine;

    (void)mysql_do(port, "CREATE TABLE stock(n INT);"
                         "INSERT INTO stock VALUES(1);"
                         "GRANT ALL ON locks.stock TO locker@127.0.0.1");
    hold = client_acquire(client, "stock");
    mine = lend(hold);
    ASSERT_EQ(caller.mysql_query(mine, "UPDATE stock SET n=n-1"), 0);
    ASSERT_EQ(atoi(mysql_do(port, "SELECT n FROM stock")), 1);
    ASSERT_EQ(hf_check(hold), HF_HELD);
    client_release(hold);
    ASSERT_EQ(atoi(mysql_do(port, "SELECT n FROM stock")), 0);
}

TEST(transaction, that_was_rolled_back_or_killed_leaves_nothing)
{
    int port = mysql_fresh();
    hf_client *client = mysql_open(port, QUICK "&mode=for_update");
    hf_hold *hold;
    MYSQL *mine;
    int rc;

    (void)mysql_do(port, "CREATE TABLE stock(n INT);"
                         "INSERT INTO stock VALUES(1)");
    hold = client_acquire(client, "stock");
    mine = lend(hold);
    ASSERT_EQ(caller.mysql_query(mine, "UPDATE stock SET n=0"), 0);
    ASSERT_TRUE(caller.mysql_rollback(mine) == 0);
    ASSERT_EQ(hf_release(hold, NULL), HF_ELOST);

    hold = client_acquire(client, "stock");
    mine = lend(hold);
    ASSERT_EQ(caller.mysql_query(mine, "UPDATE stock SET n=0"), 0);
    (void)mysql_do(port, "KILL %lu", caller.mysql_thread_id(mine));
    rc = hf_release(hold, NULL);
    ASSERT_TRUE(rc == HF_ELOST || rc == HF_EUNKNOWN);
    EVENTUALLY(client_try(client, "stock", NULL) == 0);
    ASSERT_EQ(atoi(mysql_do(port, "SELECT n FROM stock")), 1);
}

static void *update_second(void *arg)
{
    static int code;

    (void)caller.mysql_query(arg, "UPDATE account SET n=n+1 WHERE id=2");
    code = caller.mysql_query(arg, "UPDATE account SET n=n+1 WHERE id=1");
    return code == 0 ? NULL : &code;
}

TEST(transaction, that_is_the_victim_of_a_deadlock_is_lost)
{
    int port = mysql_fresh();
    hf_client *client = mysql_open(port, QUICK "&mode=for_update");
    hf_hold *one;
    hf_hold *two;
    MYSQL *mine;
    pthread_t thread;
    void *other_failed;
    int failed;
    int first;
    int second;

    (void)mysql_do(port, "CREATE TABLE account(id INT PRIMARY KEY,n INT)"
                         " ENGINE=InnoDB;"
                         "INSERT INTO account VALUES(1,0),(2,0)");
    one = client_acquire(client, "one");
    two = client_acquire(client, "two");
    mine = lend(one);
    ASSERT_EQ(caller.mysql_query(mine, "UPDATE account SET n=n+1 WHERE id=1"),
              0);
    ASSERT_EQ(pthread_create(&thread, NULL, update_second, lend(two)), 0);
    EVENTUALLY(mysql_row_waits(port) == 1);
    failed = caller.mysql_query(mine, "UPDATE account SET n=n+1 WHERE id=2");
    (void)pthread_join(thread, &other_failed);
    ASSERT_TRUE((failed != 0) != (other_failed != NULL));
    if (failed)
        ASSERT_EQ(caller.mysql_errno(mine), ER_LOCK_DEADLOCK);
    first = hf_release(one, NULL);
    second = hf_release(two, NULL);
    ASSERT_EQ(first, failed ? HF_ELOST : 0);
    ASSERT_EQ(second, other_failed ? HF_ELOST : 0);
    ASSERT_EQ(atoi(mysql_do(port, "SELECT SUM(n) FROM account")), 2);
}

static void *lock_our_row(void *arg)
{
    (void)mysql_do(*(int *)arg,
                   "START TRANSACTION;SELECT token FROM holdfast_lock "
                   "FOR UPDATE;DO GET_LOCK('in',0);DO SLEEP(5);COMMIT");
    return NULL;
}

/* Longer than we let the server wait for a row, half of io_timeout. */
TEST(transaction, of_the_application_on_our_rows_is_waited_for)
{
    int port = mysql_fresh();
    hf_client *client = mysql_open(port, QUICK "&io_timeout=8s");
    hf_hold *hold = client_acquire(client, "jobs");
    pthread_t thread;

    ASSERT_EQ(pthread_create(&thread, NULL, lock_our_row, &port), 0);
    EVENTUALLY(atoi(mysql_do(port, "SELECT IS_USED_LOCK('in')")) > 0);
    client_release(hold);
    hold = client_acquire(client, "jobs");
    client_release(hold);
    ASSERT_EQ(pthread_join(thread, NULL), 0);
}

/* How many statements have had to wait for a row, ever. */
static int all_row_waits(int port)
{
    const char *value = strchr(
        mysql_do(port, "SHOW GLOBAL STATUS LIKE 'Innodb_row_lock_waits'"),
        '\t');

    return value ? atoi(value) : -1;
}

static hf_request *wait_for(hf_client *client, int port, int waits)
{
    hf_request *request = client_start(client, "jobs");

    EVENTUALLY(mysql_row_waits(port) == waits);
    return request;
}

/* A session that the caller has used had the server's limit then; it waits
 * without. */
TEST(transaction, is_waited_for_longer_than_the_limit_of_the_server)
{
    int port = server_port(MYSQL_START("--innodb-lock-wait-timeout=1",
                                       "--innodb-flush-log-at-trx-commit=0"));
    hf_client *client = mysql_open(port, QUICK "&mode=for_update");
    hf_client *first = mysql_open(port, QUICK "&mode=for_update");
    hf_client *second = mysql_open(port, QUICK "&mode=for_update");
    hf_hold *hold = client_acquire(first, "jobs");
    hf_request *requests[2];
    int waits;

    (void)lend(hold);
    client_release(hold);
    hold = client_acquire(client, "jobs");
    requests[0] = wait_for(first, port, 1);
    requests[1] = wait_for(second, port, 2);
    waits = all_row_waits(port);
    (void)mysql_do(port, "DO SLEEP(2.5)");
    ASSERT_EQ(all_row_waits(port), waits); /* nobody has asked again */
    client_release(hold);
    client_release(client_finish(requests[0]));
    client_release(client_finish(requests[1]));
}

TEST(transaction, is_not_what_the_other_modes_have)
{
    int port = mysql_fresh();
    hf_client *client = mysql_open(port, QUICK);
    hf_hold *hold = client_acquire(client, "jobs");
    void *connection;
    hf_error err;

    ASSERT_RC(hf_sql_connection(hold, &connection, &err), HF_EUNSUPPORTED,
              &err);
    ASSERT_HAS(err.text, "for_update");
    client_release(hold);
}

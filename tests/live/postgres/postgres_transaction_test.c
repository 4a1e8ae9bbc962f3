/* SPDX-License-Identifier: MIT */
/*
 * postgres_transaction_test.c - mode=for_update: the lock and the caller's own
 * statements in one transaction.
 */
#include <libpq-fe.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/dynlib.h"
#include "event.h"
#include "live/sql/database.h"
#include "postgres.h"

#define QUICK "retry.base=1ms&retry.max_interval=20ms"
#define TRANSACTION QUICK "&mode=for_update"

/* The caller's own statements. */
#define CALLERS(X)                                                             \
    X(PQexec)                                                                  \
    X(PQresultStatus)                                                          \
    X(PQclear)                                                                 \
    X(PQbackendPID)                                                            \
    X(PQtransactionStatus)
DATABASE_LEND(CALLERS, "libpq.so.5", PGconn)

static bool run(PGconn *conn, const char *statement)
{
    PGresult *result = caller.PQexec(conn, statement);
    bool works = caller.PQresultStatus(result) == PGRES_COMMAND_OK;

    caller.PQclear(result);
    return works;
}

static int stock(struct server *server)
{
    return atoi(postgres_do(server, "SELECT n FROM stock"));
}

static struct server *start_with_stock(void)
{
    struct server *server = postgres_start();

    (void)postgres_do(server, "CREATE TABLE stock AS SELECT 1 AS n");
    return server;
}

TEST(transaction, is_committed_with_the_release)
{
    struct server *server = start_with_stock();
    hf_client *client =
        postgres_open(server_port(server), TRANSACTION "&ttl=1s");
    hf_client *rival = postgres_open(server_port(server), TRANSACTION);
    hf_hold *hold = client_acquire(client, "stock");
    PGconn *conn = lend(hold);
    hf_error err;

    ASSERT_EQ(caller.PQtransactionStatus(conn), PQTRANS_INTRANS);
    ASSERT_TRUE(run(conn, "UPDATE stock SET n = n - 1"));
    ASSERT_EQ(stock(server), 1);
    ASSERT_TRUE(lend(hold) == conn);
    /* It is not the lease any more that keeps it. */
    (void)postgres_do(server, "SELECT pg_sleep(1.5)");
    ASSERT_EQ(hf_check(hold), HF_HELD);
    ASSERT_EQ(client_try(rival, "stock", NULL), HF_EBUSY);
    client_release(hold);
    ASSERT_EQ(stock(server), 0);
    ASSERT_OK(client_try(rival, "stock", &err), &err);
    ASSERT_STREQ(postgres_do(server, "SELECT count(*) FROM holdfast_row"),
                 "0\n");
}

/* What a caller should not do, or cannot help. */
static int release_after(struct server *server, hf_client *client,
                         const char *const *statements)
{
    hf_hold *hold = client_acquire(client, "stock");
    PGconn *conn = lend(hold);

    ASSERT_TRUE(run(conn, "UPDATE stock SET n = n - 1"));
    for (; *statements; statements++)
        (void)run(conn, *statements);
    if (statements[-1][0] == ' ')
        (void)postgres_do(server, "SELECT pg_terminate_backend(%d)",
                          caller.PQbackendPID(conn));
    return hf_release(hold, NULL);
}

TEST(transaction, that_was_ended_or_broken_is_lost_with_what_it_did)
{
    static const char *const cases[][3] = {
        {"ROLLBACK"},
        {"ROLLBACK", "BEGIN"},
        {"SELECT 1 / 0"},
        {"CREATE TABLE stock ()"},
        {" -- and it is ended by an administrator"},
    };
    struct server *server = start_with_stock();
    hf_client *client = postgres_open(server_port(server), TRANSACTION);
    hf_error err;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int rc = release_after(server, client, cases[i]);

        if (cases[i][0][0] == ' ')
            ASSERT_TRUE(rc == HF_ELOST || rc == HF_EUNKNOWN);
        else
            ASSERT_EQ(rc, HF_ELOST);
        ASSERT_EQ(stock(server), 1);
        EVENTUALLY(client_try(client, "stock", &err) == 0);
    }
    ASSERT_EQ(postgres_leftovers(server), 0);
}

static void *update_second(void *arg)
{
    static int failed;

    (void)run(arg, "UPDATE account SET n = n + 1 WHERE id = 2");
    return run(arg, "UPDATE account SET n = n + 1 WHERE id = 1") ? NULL
                                                                 : &failed;
}

TEST(transaction, that_is_the_victim_of_a_deadlock_is_lost)
{
    struct server *server = postgres_start();
    hf_client *client = postgres_open(server_port(server), TRANSACTION);
    hf_hold *one = client_acquire(client, "one");
    hf_hold *two = client_acquire(client, "two");
    PGconn *mine = lend(one);
    pthread_t thread;
    void *other_failed;
    bool works;

    (void)postgres_do(server, "CREATE TABLE account (id int PRIMARY KEY, n "
                              "int); INSERT INTO account VALUES (1, 0), "
                              "(2, 0)");
    ASSERT_TRUE(run(mine, "UPDATE account SET n = n + 1 WHERE id = 1"));
    ASSERT_EQ(pthread_create(&thread, NULL, update_second, lend(two)), 0);
    EVENTUALLY(atoi(postgres_do(server, "SELECT count(*) FROM pg_locks "
                                        "WHERE NOT granted")) == 1);
    works = run(mine, "UPDATE account SET n = n + 1 WHERE id = 2");
    (void)pthread_join(thread, &other_failed);
    ASSERT_TRUE(works == (other_failed != NULL));
    ASSERT_EQ(hf_release(one, NULL), works ? 0 : HF_ELOST);
    ASSERT_EQ(hf_release(two, NULL), other_failed ? HF_ELOST : 0);
    ASSERT_EQ(atoi(postgres_do(server, "SELECT sum(n) FROM account")), 2);
}

static void *lend_it(void *hold)
{
    return lend(hold);
}

TEST(transaction, is_lent_to_all_threads_that_ask_at_once)
{
    struct server *server = postgres_start();
    hf_client *client = postgres_open(server_port(server), TRANSACTION);

    for (int round = 0; round < 10; round++) {
        hf_hold *hold = client_acquire(client, "jobs");
        pthread_t threads[4];
        void *lent[4];

        for (size_t i = 0; i < HF_COUNT_OF(threads); i++)
            ASSERT_EQ(pthread_create(&threads[i], NULL, lend_it, hold), 0);
        for (size_t i = 0; i < HF_COUNT_OF(threads); i++) {
            (void)pthread_join(threads[i], &lent[i]);
            ASSERT_TRUE(lent[i] != NULL && lent[i] == lent[0]);
        }
        client_release(hold);
    }
}

TEST(transaction, is_not_what_the_other_modes_have)
{
    struct server *server = postgres_start();
    hf_client *client = postgres_open(server_port(server), QUICK);
    hf_hold *hold = client_acquire(client, "jobs");
    void *connection;
    hf_error err;

    ASSERT_RC(hf_sql_connection(hold, &connection, &err), HF_EUNSUPPORTED,
              &err);
    ASSERT_HAS(err.text, "for_update");
    client_release(hold);
}

/* SPDX-License-Identifier: MIT */
/*
 * mysql_for_update.c URL - the lock and the data in one transaction.
 *
 * Two want the last seat. The naive form looks in a transaction without locking
 * anything: both see it free, and both book it. With mode=for_update the second
 * waits in the database until the first has committed, and the booking is
 * committed with the release: a lock that was lost has booked nothing.
 */
#include <holdfast.h>
#include <stdio.h>

#include "mysql_plain.h"

#define SEAT "SELECT COUNT(*) FROM booking"

static long long naive(const char *url)
{
    MYSQL *one = plain_open(url);
    MYSQL *two = plain_open(url);
    long long booked;

    plain_do(one, "START TRANSACTION");
    plain_do(two, "START TRANSACTION");
    long long free_for_one = plain_do(one, SEAT) == 0;
    long long free_for_two = plain_do(two, SEAT) == 0;
    if (free_for_one)
        plain_do(one, "INSERT INTO booking VALUES('one')");
    if (free_for_two)
        plain_do(two, "INSERT INTO booking VALUES('two')");
    plain_do(one, "COMMIT");
    plain_do(two, "COMMIT");
    booked = plain_do(one, SEAT);
    mysql_close(one);
    mysql_close(two);
    return booked;
}

static void must(int rc, const hf_error *err)
{
    if (rc == 0)
        return;
    fprintf(stderr, "mysql_for_update: %s\n", err->text);
    exit(2);
}

/* Book the seat if it is free, on the connection that holds the lock. */
static int book(hf_hold *hold, const char *who)
{
    void *connection;
    int is_free;
    hf_error err;

    must(hf_sql_connection(hold, &connection, &err), &err);
    is_free = plain_do(connection, SEAT) == 0;
    if (is_free)
        plain_do(connection, "INSERT INTO booking VALUES('%s')", who);
    must(hf_release(hold, &err), &err);
    return is_free;
}

int main(int argc, char **argv)
{
    const char *url = argc > 1 ? argv[1] : "";
    MYSQL *theatre = plain_open(url);
    hf_config *config = hf_config_new();
    hf_client *client;
    hf_request *waiting;
    hf_hold *hold;
    hf_error err;
    long long naive_booked;
    long long booked;
    int first;
    int second;

    plain_do(theatre, "CREATE OR REPLACE TABLE booking(who VARCHAR(16))");
    naive_booked = naive(url);
    printf("naive: the last seat was sold %lld times\n", naive_booked);
    plain_do(theatre, "DELETE FROM booking");

    must(hf_config_set(config, "mode", "for_update", &err), &err);
    must(hf_open(url, config, &client, &err), &err);
    hf_config_free(config);
    must(hf_acquire(client, "seat 14", NULL, &hold, &err), &err);
    /* The second one waits, inside the database. */
    must(hf_acquire_start(client, "seat 14", NULL, NULL, NULL, &waiting, &err),
         &err);
    first = book(hold, "one");
    must(hf_request_wait(waiting, HF_FOREVER, &hold, &err), &err);
    hf_request_free(waiting);
    second = book(hold, "two");
    booked = plain_do(theatre, SEAT);
    printf("holdfast: the last seat was sold %lld time, the second one %s\n",
           booked, second ? "got it too" : "found it taken");

    plain_do(theatre, "DROP TABLE booking");
    hf_close(client);
    mysql_close(theatre);
    return naive_booked == 2 && booked == 1 && first && !second ? 0 : 1;
}

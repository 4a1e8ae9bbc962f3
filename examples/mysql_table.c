/* SPDX-License-Identifier: MIT */
/*
 * mysql_table.c URL - a row as a lock.
 *
 * The naive form asks whether somebody has the row, and then makes it: two who
 * ask at once both hear that nobody has. And a row of somebody who died stays.
 * holdfast takes the row in one statement, and gives it a lease.
 */
#include <holdfast.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mysql_plain.h"

/* How many believe that they have it. */
static int naive(const char *url)
{
    MYSQL *one = plain_open(url);
    MYSQL *two = plain_open(url);
    int holders = 0;

    plain_do(one, "CREATE OR REPLACE TABLE naive_lock(name VARCHAR(64))");
    long long free_for_one = plain_do(one, "SELECT COUNT(*) FROM naive_lock "
                                           "WHERE name='nightly'") == 0;
    long long free_for_two = plain_do(two, "SELECT COUNT(*) FROM naive_lock "
                                           "WHERE name='nightly'") == 0;
    if (free_for_one)
        holders +=
            plain_do(one, "INSERT INTO naive_lock VALUES('nightly')") > 0;
    if (free_for_two)
        holders +=
            plain_do(two, "INSERT INTO naive_lock VALUES('nightly')") > 0;
    plain_do(one, "DROP TABLE naive_lock");
    mysql_close(one);
    mysql_close(two);
    return holders;
}

static hf_client *open_client(const char *url)
{
    hf_client *client;
    hf_error err;

    if (hf_open(url, NULL, &client, &err) != 0) {
        fprintf(stderr, "mysql_table: %s\n", err.text);
        exit(2);
    }
    return client;
}

/* Another process takes the lock and dies with it. */
static void take_and_die(const char *url)
{
    hf_opts opts = HF_OPTS_INIT;
    hf_hold *hold;
    hf_error err;
    pid_t child = fork();

    if (child == 0) {
        opts.ttl_ms = 1000;
        _exit(hf_acquire(open_client(url), "nightly", &opts, &hold, &err) != 0);
    }
    waitpid(child, NULL, 0);
}

int main(int argc, char **argv)
{
    hf_opts at_once = HF_OPTS_INIT;
    const char *url = argc > 1 ? argv[1] : "";
    hf_client *one;
    hf_client *two;
    hf_hold *hold;
    hf_hold *other;
    hf_error err;
    int believe;
    int rc;

    believe = naive(url);
    printf("naive: %d hold the lock at once\n", believe);

    take_and_die(url);
    one = open_client(url);
    two = open_client(url);
    /* Waits for the second that is left of the dead one's lease. */
    if (hf_acquire(one, "nightly", NULL, &hold, &err) != 0) {
        fprintf(stderr, "mysql_table: %s\n", err.text);
        return 1;
    }
    at_once.wait_ms = 0;
    rc = hf_acquire(two, "nightly", &at_once, &other, &err);
    printf("holdfast: the dead one's lock was taken over, "
           "the second hears: %s\n",
           rc == HF_EBUSY ? "busy"
           : rc == 0      ? "yours"
                          : err.text);
    hf_release(hold, NULL);
    hf_close(one);
    hf_close(two);
    return believe == 2 && rc == HF_EBUSY ? 0 : 1;
}

/* SPDX-License-Identifier: MIT */
/* mysql.h - a MariaDB or MySQL server for a test, and a word with it. */
#ifndef HF_LIVE_MYSQL_H
#define HF_LIVE_MYSQL_H

#include "proxy.h"
#include "server.h"
#include "test.h"
#include "test_client.h"

/* The server that with_mysql.sh has started, as new: its port. */
int mysql_fresh(void);
/* A server of the test's own, with @options beside the usual (ending with NULL;
 * or none: NULL); stopped when the test is over. */
struct server *mysql_start(const char *const *options);
#define MYSQL_START(...) mysql_start((const char *const[]){__VA_ARGS__, NULL})
/* Carry out statements as root, in "locks"; the fields of the answer, valid
 * until the next call. */
const char *mysql_do(int port, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* "mysql://locker:…@127.0.0.1:PORT/locks?QUERY", valid until the end
 * of the test. */
const char *mysql_url(int port, const char *query);

/* A client that is closed when the test is over. */
hf_client *mysql_open(int port, const char *query);
bool mysql_is_mariadb(int port);
/* How many statements wait for a row. The tables of InnoDB's transactions do not
 * tell: they stay as they are for whoever asks ten times a second. */
int mysql_row_waits(int port);
/* End every session of our user, behind its back. */
void mysql_kill_all(int port);

#endif

/* SPDX-License-Identifier: MIT */
/* postgres.h - a PostgreSQL server for a test, and a word with it. */
#ifndef HF_LIVE_POSTGRES_H
#define HF_LIVE_POSTGRES_H

#include <stdio.h>

#include "proxy.h"
#include "server.h"
#include "test.h"
#include "test_client.h"

/* A server without clients or tables, the same one for every test. It trusts
 * everybody but the roles "secret", whose password is asked for, and "guarded",
 * which has to use TLS. */
struct server *postgres_start(void);
/* End it as a crash does. */
void postgres_quit(struct server *server);
/* … and start it again. */
void postgres_crash(struct server *server);
/* Run one statement; what it prints, valid until the next call. */
const char *postgres_do(struct server *server, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Start one statement that does not end by itself: it sleeps, or waits for an
 * advisory lock. End it while it sleeps. */
FILE *postgres_begin(struct server *server, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void postgres_end(struct server *server, FILE *psql);
/* Rows and advisory locks that nobody should have any more. */
int postgres_leftovers(struct server *server);
/* "postgresql://postgres@127.0.0.1:PORT/postgres?QUERY", valid until the end
 * of the test. */
const char *postgres_url(int port, const char *query);

/* A client that is closed when the test is over. */
hf_client *postgres_open(int port, const char *query);
/* A new server with two of them. */
struct rivals postgres_rivals(const char *query);
/* The same, with a proxy before the first. */
struct rivals postgres_proxied(const char *query, const char *rival_query);

#endif

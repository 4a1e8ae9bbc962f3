/* SPDX-License-Identifier: MIT */
/* redis.h - a Redis server for a test, and a word with it. */
#ifndef HF_LIVE_REDIS_H
#define HF_LIVE_REDIS_H

#include "proxy.h"
#include "server.h"
#include "test.h"
#include "test_client.h"

/* The server to start: HOLDFAST_TEST_REDIS_SERVER, or redis-server. */
const char *redis_program(void);
/* A server without persistence; stopped when the test is over. */
struct server *redis_start(void);
/* One that a kill and a restart make forget nothing. */
struct server *redis_start_durable(void);
/* The words of @n lists, each of which ends with NULL, as one list. */
const char *const *redis_words(const char *const *const lists[], size_t n);
/* One with @more options; they end with NULL. */
struct server *redis_start_with(const char *const *more);
/* The same by a program that starts it: "env", …; it ends with NULL, too. */
struct server *redis_start_under(const char *const *prefix,
                                 const char *const *more);
/* One that speaks TLS on @port as well, or 0: on its only port; it shows
 * @name.crt of @dir (certificates.h). */
struct server *redis_start_tls(int port, const char *dir, const char *name,
                               const char *const *more);
/* Send one line; the answer as the server wrote it, valid until the next
 * call. */
const char *redis_do(struct server *server, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* How often @command, "set" or "script|load", was carried out. */
long redis_calls(struct server *server, const char *command);
/* How many keys there are that should not be: everything but tokens, and a board
 * without notices, that have a TTL. */
int redis_leftovers(struct server *server);
/* "redis://127.0.0.1:PORT?QUERY", valid until the end of the test. */
const char *redis_url(int port, const char *query);

/* A client that is closed when the test is over. */
hf_client *redis_open(int port, const char *query);
/* A new server with two of them. */
struct rivals redis_rivals(const char *query);
/* The same, with a proxy before the first. */
struct rivals redis_proxied(const char *query, const char *rival_query);
/* Ask for @name, which another holds; returns when @client alone waits for it at
 * @server. */
hf_request *redis_stand_in_line(hf_client *client, struct server *server,
                                const char *name);

#endif

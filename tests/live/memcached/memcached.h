/* SPDX-License-Identifier: MIT */
/* memcached.h - a Memcached server for a test, and a word with it. */
#ifndef HF_LIVE_MEMCACHED_H
#define HF_LIVE_MEMCACHED_H

#include "proxy.h"
#include "server.h"
#include "test.h"
#include "test_client.h"

/* A server with @megabytes of memory, and one more @option, or NULL; stopped
 * when the test is over. */
struct server *memcached_start(const char *megabytes, const char *option);
/* Send these lines (the last line end is added); what is answered up to a line
 * that begins with @last, valid until the next call. */
const char *memcached_do(struct server *server, const char *last,
                         const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Is there an item with this key? */
bool memcached_has(struct server *server, const char *key);
/* A client that is closed when the test is over. */
hf_client *memcached_open(int port, const char *query);
/* The URL of that, valid until the end of the test. */
const char *memcached_url(int port, const char *query);

#endif

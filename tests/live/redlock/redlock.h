/* SPDX-License-Identifier: MIT */
/* redlock.h - several Redis servers for a test. */
#ifndef HF_LIVE_REDLOCK_H
#define HF_LIVE_REDLOCK_H

#include "../redis/redis.h"

enum { NODES = 5 };

/* Five of them. */
void redlock_start(struct server *servers[NODES]);
/* "redlock://127.0.0.1:P1,…?QUERY", valid until the end of the test. */
const char *redlock_url(const int ports[NODES], const char *query);
/* A client of these servers, closed when the test is over. */
hf_client *redlock_open(struct server *const servers[NODES], const char *query);
/* Start them, and open one. */
hf_client *redlock_begin(struct server *servers[NODES], const char *query);
/* The same, with a port for each. */
hf_client *redlock_open_ports(const int ports[NODES], const char *query);
/* How many of the servers have a key called @name. */
int redlock_votes(struct server *const servers[NODES], const char *name);
/* Take and release @name @n times. */
void redlock_pairs(hf_client *client, const char *name, int n);

#endif

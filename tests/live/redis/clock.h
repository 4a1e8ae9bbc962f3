/* SPDX-License-Identifier: MIT */
/* clock.h - a Redis server whose clock a test sets. */
#ifndef HF_LIVE_CLOCK_H
#define HF_LIVE_CLOCK_H

#include "redis.h"

/* @durable: "yes", it forgets nothing; or "no". */
struct server *clock_start_server(const char *durable);
/* Its clock is so far ahead of ours from now on. */
void clock_set_ahead(struct server *server, int64_t ahead_s);

#endif

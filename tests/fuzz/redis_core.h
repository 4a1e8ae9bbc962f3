/* SPDX-License-Identifier: MIT */
/*
 * redis_core.h - the core, played for the fuzz targets of the Redis engines.
 *
 * It asks for a few locks and puts a few questions, checks what it is told, and
 * gives tickets back as soon as their end is reported, so that a stale use of
 * one is seen.
 */
#ifndef HF_TESTS_REDIS_CORE_H
#define HF_TESTS_REDIS_CORE_H

#include "config.h"
#include "engine.h"
#include "engines/redis/redis.h"
#include "fuzz.h"

struct redis_core {
    struct hf__engine *engine;
    struct hf__loop loop;
    struct hf__settings settings;
    struct hf__engine_host host;
    struct hf__url *url;
    hf_config *config;
};

void redis_core_open(struct redis_core *core, const struct hf__engine_ops *ops,
                     const char *url, const char *dialect, const char *mode);
/* All that was asked must have been answered. */
void redis_core_close(struct redis_core *core);
void redis_core_ask(struct hf__engine *engine);
/* Has the engine said so? */
bool redis_core_connected(void);
/* Time passes: all timers that were ever started. */
void redis_core_fire(void);
/* Bytes came. */
void redis_core_feed(struct hf__stream *stream, const void *bytes, size_t len);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * fuzz_core.h - the core, played for the fuzz targets of whole engines.
 *
 * It asks for a few locks and puts a few questions, checks what it is told, and
 * gives tickets back as soon as their end is reported, so that a stale use of
 * one is seen.
 */
#ifndef HF_TESTS_FUZZ_CORE_H
#define HF_TESTS_FUZZ_CORE_H

#include "config/config.h"
#include "engines/engine.h"
#include "fuzz.h"
#include "net/stream.h"

struct fuzz_core {
    struct hf__engine *engine;
    struct hf__loop loop;
    struct hf__settings settings;
    struct hf__engine_host host;
    struct hf__url *url;
    hf_config *config;
};

void fuzz_core_open(struct fuzz_core *core, const struct hf__engine_ops *ops,
                    const char *url, const char *dialect, const char *mode);
/* All that was asked must have been answered. */
void fuzz_core_close(struct fuzz_core *core);
void fuzz_core_ask(struct hf__engine *engine);
/* Half of what is granted is kept, and downgraded; the rest is released. */
void fuzz_core_hold(bool hold);
/* Renew what is in line or held. */
void fuzz_core_beat(struct hf__engine *engine);
/* Has the engine said so? */
bool fuzz_core_connected(void);
/* Time passes: all timers that were ever started. */
void fuzz_core_fire(void);
/* What the engine has of a ticket that it reported as lost is withdrawn, if this
 * says that there is something; without it, nothing is. */
void fuzz_core_keeps(bool (*keeps)(struct hf__engine *engine,
                                   struct hf__ticket *ticket));
/* The real world but for its clock; NULL: with that as well. */
void fuzz_core_clock(int64_t (*now_ns)(void));
/* Time is the fuzzer's, a second with each fuzz_core_fire(), and no number is
 * random. For all inputs of the target. */
void fuzz_core_own_world(void);
/* Bytes came. */
void fuzz_core_feed(struct hf__stream *stream, const void *bytes, size_t len);

#endif

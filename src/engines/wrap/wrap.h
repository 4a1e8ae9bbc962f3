/* SPDX-License-Identifier: MIT */
/*
 * wrap.h - what all engines around an engine share.
 *
 * The core makes the chain (memory, ops, host, inner) and calls the outermost
 * engine. That one opens, connects and closes the inner engine, receives its
 * reports, and shows the inner engine's name, flags and capabilities as its
 * own: for the core "trace+local:" is the local engine.
 */
#ifndef HF_WRAP_WRAP_H
#define HF_WRAP_WRAP_H

#include "engines/engine.h"

extern const struct hf__engine_up hf__trace_up;
extern const struct hf__engine_up hf__fault_up;

/* The head of every wrapper's struct. */
struct hf__wrap {
    struct hf__engine base;
    struct hf__engine_ops ops; /* the wrapper's, without what inner lacks */
};

/* Open the inner engine, which reports to @up, and narrow our own table to what
 * the inner one can do. */
int hf__wrap_open(struct hf__engine *engine, const struct hf__engine_up *up,
                  hf_error *err);
void hf__wrap_close(struct hf__engine *engine, bool forked);
/* The inner engine is connected: take over its capabilities. */
void hf__wrap_connected(struct hf__engine *engine);
/* The client at the end of the chain. */
hf_client *hf__wrap_client(const struct hf__engine *engine);

/* Calls that a wrapper may pass on as they are. */
int hf__wrap_pass(struct hf__engine *engine, struct hf__ticket *ticket,
                  uint64_t *ret_token);
int hf__wrap_finish(struct hf__engine *engine, struct hf__query *query,
                    hf_error *err);
void hf__wrap_watch(struct hf__engine *engine, struct hf__feed *feed);
void hf__wrap_unwatch(struct hf__engine *engine, struct hf__feed *feed);
void hf__wrap_wait(struct hf__engine *engine, int64_t until_ns);
void hf__wrap_attend(struct hf__engine *engine);
void hf__wrap_kick(struct hf__engine *engine);
void hf__wrap_sentry(struct hf__engine *engine, bool on);
void hf__wrap_flush(struct hf__engine *engine);

#endif

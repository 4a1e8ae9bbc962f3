/* SPDX-License-Identifier: MIT */
/*
 * session.h - the session: greeting, timeouts, its end.
 */
#ifndef HF_ZOOKEEPER_SESSION_H
#define HF_ZOOKEEPER_SESSION_H

#include "engines/zookeeper/wire.h"

struct hf__zk;
struct hf__zk_call;

/* Its timeout, as the server granted it. */
int64_t hf__zk_session_ns(const struct hf__zk *zk);
/* The lease that it is good for. */
int64_t hf__zk_session_lease_ms(const struct hf__zk *zk);
/* The longest time in which we send nothing. */
int64_t hf__zk_session_silence_ns(const struct hf__zk *zk);
/* The timeout that we ask for. */
int32_t hf__zk_session_wanted_ms(const struct hf__zk *zk);
/* How long an answer may take. */
int64_t hf__zk_session_patience_ns(const struct hf__zk *zk);
/* Note what an answer proves of the session. */
void hf__zk_session_prove(struct hf__zk *zk, const struct hf__zk_call *call,
                          int32_t error);
/* Write the greeting; the caller checks zk->stream.out. */
void hf__zk_session_greet(struct hf__zk *zk);
void hf__zk_session_on_greeting(struct hf__zk *zk, struct hf__zk_wire *in);
void hf__zk_session_on_auth(struct hf__zk *zk, int32_t error);
/* The server has ended it: nothing of ours is left there. */
void hf__zk_session_expired(struct hf__zk *zk);
/* End it ourselves. */
void hf__zk_session_close(struct hf__zk *zk);

#endif

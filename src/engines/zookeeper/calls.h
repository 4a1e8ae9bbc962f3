/* SPDX-License-Identifier: MIT */
/*
 * calls.h - the calls of the connection: sending them, and their answers.
 */
#ifndef HF_ZOOKEEPER_CALLS_H
#define HF_ZOOKEEPER_CALLS_H

#include "engines/engine.h"
#include "engines/zookeeper/wire.h"

struct hf__zk;
struct hf__zk_call;

struct hf__zk_reply {
    int32_t error;
    struct hf__zk_wire in;
};

/* The answer to a call. @reply is NULL when the connection was lost before it
 * came. */
typedef void hf__zk_reply_fn(struct hf__zk *zk, const struct hf__zk_call *call,
                             struct hf__zk_reply *reply);

/* The answer to a step of @ticket; non-zero: it cannot go on, and its outcome is
 * unknown. */
typedef int hf__zk_step_fn(struct hf__zk *zk, struct hf__ticket *ticket,
                           const struct hf__zk_call *call,
                           struct hf__zk_reply *reply, hf_error *err);

struct hf__zk_call {
    hf__zk_reply_fn *done;
    hf__zk_step_fn *step;    /* of hf__zk_tickets_step(): it is under way */
    uint64_t ticket;         /* its id; 0: none. A pointer might outlive it */
    uint64_t condition;      /* its id; 0: none */
    struct hf__query *query; /* lives until it is answered */
    int32_t number;          /* the callee's */
    int32_t type; /* HF__ZK_EXISTS, …: what its answer looks like */
    int32_t xid;
    int64_t sent_ns;
    int64_t known_ns; /* of a write: hf__zk_lease_known() */
};

enum { HF__ZK_ANY_VERSION = -1 };

/* A call that waits until the write before it is answered. */
struct hf__zk_pending {
    struct hf__zk_pending *next;
    struct hf__zk_call call;
    size_t len;
    char bytes[];
};

/* Does it go through the leader? Those of one flight are sent together. */
bool hf__zk_calls_writes(const struct hf__zk_call *call);
/* Begin a request: its fields follow, by hf__zk_wire_put_*() into
 * zk->stream.out, then hf__zk_calls_end(). */
size_t hf__zk_calls_begin(struct hf__zk *zk, int32_t type);
/* @mark is what _begin() returned. Non-zero takes the request back. */
int hf__zk_calls_end(struct hf__zk *zk, size_t mark,
                     const struct hf__zk_call *call, hf_error *err);
/* Forget a request that was begun and cannot be ended. */
void hf__zk_calls_take_back(struct hf__zk *zk, size_t mark);
/* Write the length of the frame that begins at @mark. */
void hf__zk_calls_close_frame(struct hf__zk *zk, size_t mark);
/* The requests that are a path and a yes or no. */
int hf__zk_calls_ask(struct hf__zk *zk, int32_t type,
                     struct hf__zk_wire_text path, bool watch,
                     const struct hf__zk_call *call, hf_error *err);
/* For a call whose answer says nothing that matters. */
hf__zk_reply_fn hf__zk_calls_ignore;
/* A round trip to the leader: later reads see what this session had written, and
 * what others had, unless this server is the leader. It proves nothing of the
 * session: one that was replaced, and does not know it yet, answers it, too. */
int hf__zk_calls_sync(struct hf__zk *zk, hf_error *err);
/* Later reads see everything that any server has answered for before, and the
 * session is proven: a majority has answered. It costs the ensemble a write. */
int hf__zk_calls_barrier(struct hf__zk *zk, hf_error *err);
int hf__zk_calls_delete(struct hf__zk *zk, struct hf__zk_wire_text path,
                        const struct hf__zk_call *call, hf_error *err);
/* create2 or createContainer. */
int hf__zk_calls_create(struct hf__zk *zk, struct hf__zk_wire_text path,
                        struct hf__zk_wire_text data, int32_t kind,
                        const struct hf__zk_call *call, hf_error *err);
/* setData, if the node has this version. */
int hf__zk_calls_set(struct hf__zk *zk, struct hf__zk_wire_text path,
                     struct hf__zk_wire_text data, int32_t version,
                     const struct hf__zk_call *call, hf_error *err);
/* The oldest call under way; there is one. */
const struct hf__zk_call *hf__zk_calls_oldest(const struct hf__zk *zk);
/* The oldest call goes to @call; false: there is none. */
bool hf__zk_calls_take(struct hf__zk *zk, struct hf__zk_call *call);
/* No write is under way: the calls that waited are the next flight. */
void hf__zk_calls_send_pending(struct hf__zk *zk);
/* Send what was gathered: the flight leaves. */
hf__engine_flush_fn hf__zk_calls_flush;
/* Calls are under way: ping if it is time; returns when it will be. */
int64_t hf__zk_calls_nudge(struct hf__zk *zk, int64_t now_ns);
/* The connection is gone: tell each call so. */
void hf__zk_calls_lose(struct hf__zk *zk);
/* Forget them; nobody hears of it. */
void hf__zk_calls_drop(struct hf__zk *zk);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * inspect.h - one question about locks in general, while it is under way.
 */
#ifndef HF_ZOOKEEPER_INSPECT_H
#define HF_ZOOKEEPER_INSPECT_H

#include "engines/engine.h"
#include "engines/zookeeper/calls.h"
#include "engines/zookeeper/queue.h"

enum hf__zk_inspect_what { HF__ZK_LIST, HF__ZK_CHECK_TOKEN, HF__ZK_BREAK };

/* query->engine_data */
struct hf__zk_inspect {
    enum hf__zk_inspect_what what;
    struct hf__buf names; /* LIST: of the locks that are still to be looked at,
                             each terminated */
    size_t names_at;
    char name[HF_NAME_MAX + 1]; /* of the lock that is looked at */
    char *dir;                  /* its node */
    struct hf__buf conds;       /* its conditions, as its names */
    size_t conds_at;
    char cond[HF_COND_MAX + 1]; /* the one that is looked at */
    uint32_t called;            /* of its records, which are no rows */
    char *children;             /* the answer to getChildren */
    struct hf__zk_queue line;   /* points into it */
    uint32_t left;              /* answers that are still to come */
    uint32_t asked;             /* nodes, of all locks: HF__ZK_ROWS at most */
    uint32_t waiters;           /* rows so far */
    bool held;                  /* somebody holds it */
    uint32_t match;             /* the one with the token; line.n: none */
    int rc;                     /* what went wrong */
    hf_error err;
};

/* The answer. */
void hf__zk_inspect_finish(struct hf__zk *zk, struct hf__query *query, int rc,
                           const hf_error *err);
/* The answer is that the connection was lost. */
void hf__zk_inspect_lost(struct hf__zk *zk, struct hf__query *query);
/* Is there something, or nothing, in @reply? If not, the question ends. */
bool hf__zk_inspect_answered(struct hf__zk *zk, const struct hf__zk_call *call,
                             const struct hf__zk_reply *reply);
/* One of the nodes that job->left counts has answered: @add makes a row of it,
 * unless it is gone. */
typedef void hf__zk_inspect_add_fn(struct hf__query *query, uint32_t place,
                                   struct hf__zk_wire_text data,
                                   const struct hf__zk_wire_stat *stat);
void hf__zk_inspect_node(struct hf__zk *zk, const struct hf__zk_call *call,
                         struct hf__zk_reply *reply,
                         hf__zk_inspect_add_fn *add);
/* Keep the children that @reply has, and read them into job->line. */
void hf__zk_inspect_read_line(struct hf__zk *zk, struct hf__zk_inspect *job,
                              struct hf__zk_reply *reply);
/* Look at the next lock. */
void hf__zk_inspect_next(struct hf__zk *zk, struct hf__query *query);
/* inspect_parked.c: add the rows of those who are parked at job->name, and go
 * on. */
void hf__zk_inspect_parked(struct hf__zk *zk, struct hf__query *query);

#endif

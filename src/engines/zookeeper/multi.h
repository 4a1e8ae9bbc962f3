/* SPDX-License-Identifier: MIT */
/*
 * multi.h - transactions: several changes, all of them or none.
 *
 * Begin with hf__zk_calls_begin(HF__ZK_MULTI), add the parts in order, and end
 * with hf__zk_multi_end().
 */
#ifndef HF_ZOOKEEPER_MULTI_H
#define HF_ZOOKEEPER_MULTI_H

#include "engines/zookeeper/calls.h"

/* What became of a transaction: all is done, or one part has failed. */
struct hf__zk_multi_result {
    int32_t error;   /* of the part that has failed */
    uint32_t failed; /* which, from 0; counts if there is an error */
    struct hf__zk_wire_text made; /* the path of the first node that was made */
};

void hf__zk_multi_create(struct hf__zk *zk, struct hf__zk_wire_text path,
                         struct hf__zk_wire_text data, int32_t kind);
void hf__zk_multi_delete(struct hf__zk *zk, struct hf__zk_wire_text path);
/* The node is there, and its data has this version. */
void hf__zk_multi_check(struct hf__zk *zk, struct hf__zk_wire_text path,
                        int32_t version);
void hf__zk_multi_set(struct hf__zk *zk, struct hf__zk_wire_text path,
                      struct hf__zk_wire_text data, int32_t version);
int hf__zk_multi_end(struct hf__zk *zk, size_t mark,
                     const struct hf__zk_call *call, hf_error *err);
/* Read the answer, which is there. */
struct hf__zk_multi_result hf__zk_multi_result(struct hf__zk_reply *reply);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * queue.h - the children of a lock's node: who stands where, and who is in
 * whose way. Pure.
 */
#ifndef HF_ZOOKEEPER_QUEUE_H
#define HF_ZOOKEEPER_QUEUE_H

#include "engines/zookeeper/wire.h"

/* What a contender wants, by the marker before its number. */
enum hf__zk_kind { HF__ZK_LOCK, HF__ZK_READ, HF__ZK_SLOT };

struct hf__zk_contender {
    struct hf__zk_wire_text name;
    int32_t sequence;
    uint8_t kind;
};

/* The contenders of a list of children, in their order. Every child with a
 * number is one; foreign names with an unknown marker count as exclusive. */
struct hf__zk_queue {
    struct hf__zk_contender *all;
    uint32_t n;
};

/* Take the line from the answer to getChildren. 0, HF_ENOMEM, or HF_EINTERNAL
 * if it is malformed. Release with hf__zk_queue_release(). */
int hf__zk_queue_read(struct hf__zk_queue *line, struct hf__zk_wire *in);
void hf__zk_queue_release(struct hf__zk_queue *line);

/* Read one name; false if it has no number. */
bool hf__zk_queue_read_contender(struct hf__zk_contender *contender,
                                 struct hf__zk_wire_text name);

/* Where the contender whose name begins with @prefix stands; line->n: nowhere. */
uint32_t hf__zk_queue_find(const struct hf__zk_queue *line, const char *prefix,
                           size_t len);
/* Who is in the way of the one at @place; line->n: nobody, it holds. @slots:
 * how many hold together, where it wants a slot. *ret_first: it is the first
 * that waits for a slot, and any of the holders may make room. */
uint32_t hf__zk_queue_blocker(const struct hf__zk_queue *line, uint32_t place,
                              int32_t slots, bool *ret_first);

#endif

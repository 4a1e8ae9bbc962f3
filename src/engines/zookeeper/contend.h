/* SPDX-License-Identifier: MIT */
/*
 * contend.h - the children of a lock's node: who stands where, and who is in
 * whose way. Pure.
 */
#ifndef HF_ZOOKEEPER_CONTEND_H
#define HF_ZOOKEEPER_CONTEND_H

#include "engines/zookeeper/jute.h"

/* What a contender wants, by the marker before its number. */
enum hf__zk_kind { HF__ZK_LOCK, HF__ZK_READ, HF__ZK_SLOT };

struct hf__zk_contender {
    struct hf__jute_text name;
    int32_t sequence;
    uint8_t kind;
};

/* The contenders of a list of children, in their order. Whoever has a number
 * is one; foreign names with an unknown marker count as exclusive. */
struct hf__zk_line {
    struct hf__zk_contender *all;
    uint32_t n;
};

/* Take the line from the answer to getChildren. 0, HF_ENOMEM, or HF_EINTERNAL
 * if it is malformed. Release with hf__zk_line_release(). */
int hf__zk_line_read(struct hf__zk_line *line, struct hf__jute *in);
void hf__zk_line_release(struct hf__zk_line *line);

/* Read one name; false if it has no number. */
bool hf__zk_contender_read(struct hf__zk_contender *contender,
                           struct hf__jute_text name);

/* Where the contender whose name begins with @prefix stands; line->n: nowhere. */
uint32_t hf__zk_line_find(const struct hf__zk_line *line, const char *prefix,
                          size_t len);
/* Who is in the way of the one at @place; line->n: nobody, it holds. @slots:
 * how many hold together, where it wants a slot. *ret_first: it is the first
 * that waits for a slot, and any of the holders may make room. */
uint32_t hf__zk_line_blocker(const struct hf__zk_line *line, uint32_t place,
                             int32_t slots, bool *ret_first);

#endif

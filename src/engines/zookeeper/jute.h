/* SPDX-License-Identifier: MIT */
/*
 * jute.h - ZooKeeper's wire format: numbers in network order, texts and lists
 * behind their lengths. Pure: bytes in, values out.
 */
#ifndef HF_ZOOKEEPER_JUTE_H
#define HF_ZOOKEEPER_JUTE_H

#include "base/buf.h"

/* What is left to read. After a value that is not there, or whose length is a
 * lie, @bad is set, and everything read is zero or empty. */
struct hf__jute {
    const char *at;
    const char *end;
    bool bad;
};

struct hf__jute_text {
    const char *text; /* not terminated */
    size_t len;
};

/* The part of a node's Stat that we use. */
struct hf__jute_stat {
    int64_t czxid;    /* the transaction that made it */
    int64_t mzxid;    /* the last one that changed it */
    int64_t ctime_ms; /* the leader's wall clock */
    int32_t version;
    int64_t owner; /* the session that an ephemeral node belongs to */
    int32_t children;
};

bool hf__jute_bool(struct hf__jute *in);
int32_t hf__jute_int(struct hf__jute *in);
int64_t hf__jute_long(struct hf__jute *in);
struct hf__jute_text hf__jute_text(struct hf__jute *in);
void hf__jute_stat(struct hf__jute *in, struct hf__jute_stat *stat);
/* How many elements a list says it has; no more than could be there, if each
 * has @least bytes. */
uint32_t hf__jute_count(struct hf__jute *in, size_t least);

void hf__jute_put_bool(struct hf__buf *out, bool value);
void hf__jute_put_int(struct hf__buf *out, int32_t value);
void hf__jute_put_long(struct hf__buf *out, int64_t value);
void hf__jute_put_text(struct hf__buf *out, const void *text, size_t len);
/* Overwrite the four bytes at @at. */
void hf__jute_patch_int(struct hf__buf *out, size_t at, int32_t value);

/* A frame is a length and so many bytes. The most we accept: a list of some
 * ten thousand children. */
enum { HF__JUTE_FRAME = 4 << 20 };
/* The length of the frame at @from, once its four bytes are there; -1: not
 * yet; -2: not one of ours. */
int64_t hf__jute_frame(const char *from, size_t len);

#endif

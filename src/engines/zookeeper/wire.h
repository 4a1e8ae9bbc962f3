/* SPDX-License-Identifier: MIT */
/*
 * wire.h - ZooKeeper's wire format: numbers in network order, texts and lists
 * behind their lengths. Pure: bytes in, values out.
 */
#ifndef HF_ZOOKEEPER_WIRE_H
#define HF_ZOOKEEPER_WIRE_H

#include "base/buf.h"

/* Requests. */
enum {
    HF__ZK_CREATE_PLAIN = 1, /* inside a transaction */
    HF__ZK_DELETE = 2,
    HF__ZK_EXISTS = 3,
    HF__ZK_GET_DATA = 4,
    HF__ZK_SET_DATA = 5,
    HF__ZK_GET_CHILDREN = 8,
    HF__ZK_SYNC = 9,
    HF__ZK_PING = 11,
    HF__ZK_GET_CHILDREN2 = 12, /* the answer has the Stat */
    HF__ZK_CHECK = 13,         /* inside a transaction */
    HF__ZK_MULTI = 14,
    HF__ZK_CREATE = 15, /* create2: the answer has the Stat */
    HF__ZK_REMOVE_WATCHES = 18,
    HF__ZK_CREATE_CONTAINER = 19,
    HF__ZK_AUTH = 100,
    HF__ZK_ADD_WATCH = 106,
    HF__ZK_CLOSE = -11
};

/* Numbers of messages that are no answers to calls. */
enum { HF__ZK_XID_EVENT = -1, HF__ZK_XID_PING = -2, HF__ZK_XID_AUTH = -4 };

/* Kinds of nodes. */
enum {
    HF__ZK_PERSISTENT = 0,
    HF__ZK_EPHEMERAL = 1,
    HF__ZK_EPHEMERAL_SEQUENTIAL = 3,
    HF__ZK_CONTAINER = 4
};

/* Errors of the server that we know by number. */
enum {
    HF__ZK_OK = 0,
    HF__ZK_OTHER_PART = -2, /* of a transaction: another part has failed */
    HF__ZK_UNIMPLEMENTED = -6,
    HF__ZK_NO_NODE = -101,
    HF__ZK_NO_AUTH = -102,
    HF__ZK_BAD_VERSION = -103,
    HF__ZK_NODE_EXISTS = -110,
    HF__ZK_SESSION_EXPIRED = -112,
    HF__ZK_INVALID_ACL = -114,
    HF__ZK_AUTH_FAILED = -115,
    HF__ZK_SESSION_MOVED = -118,
    HF__ZK_QUOTA = -125
};

/* What is left to read. After a value that is not there, or whose length is a
 * lie, @bad is set, and everything read is zero or empty. */
struct hf__zk_wire {
    const char *at;
    const char *end;
    bool bad;
};

struct hf__zk_wire_text {
    const char *text; /* not terminated */
    size_t len;
};

/* A text of ours. */
static inline struct hf__zk_wire_text hf__zk_wire_text_of(const char *text)
{
    return (struct hf__zk_wire_text){text, strlen(text)};
}
/* What @buf has; NULL: something of it did not find memory. */
static inline struct hf__zk_wire_text hf__zk_wire_text_in(
    const struct hf__buf *buf)
{
    if (hf__buf_failed(buf))
        return (struct hf__zk_wire_text){NULL, 0};
    return (struct hf__zk_wire_text){hf__buf_text(buf), buf->len};
}

/* The part of a node's Stat that we use. */
struct hf__zk_wire_stat {
    int64_t czxid;    /* the transaction that made it */
    int64_t mzxid;    /* the last one that changed it */
    int64_t ctime_ms; /* the leader's wall clock */
    int32_t version;
    int32_t children_version; /* of its list of children */
    int64_t owner; /* the session that an ephemeral node belongs to */
    int32_t children;
};

/* What became of one part of a transaction. */
struct hf__zk_wire_part {
    int32_t type; /* HF__ZK_DELETE, …; -1: it was not carried out */
    int32_t error;
    struct hf__zk_wire_text path; /* of a node that was made */
};

bool hf__zk_wire_bool(struct hf__zk_wire *in);
int32_t hf__zk_wire_int(struct hf__zk_wire *in);
int64_t hf__zk_wire_long(struct hf__zk_wire *in);
struct hf__zk_wire_text hf__zk_wire_text(struct hf__zk_wire *in);
void hf__zk_wire_stat(struct hf__zk_wire *in, struct hf__zk_wire_stat *stat);
/* The next part of the answer to a transaction; false: there is no more, or
 * what follows is none. */
bool hf__zk_wire_part(struct hf__zk_wire *in, struct hf__zk_wire_part *part);
/* How many elements a list says it has; no more than could be there, if each
 * has @least bytes. */
uint32_t hf__zk_wire_count(struct hf__zk_wire *in, size_t least);

void hf__zk_wire_put_bool(struct hf__buf *out, bool value);
void hf__zk_wire_put_int(struct hf__buf *out, int32_t value);
void hf__zk_wire_put_long(struct hf__buf *out, int64_t value);
void hf__zk_wire_put_text(struct hf__buf *out, const void *text, size_t len);
/* The same; NULL fails @out. */
void hf__zk_wire_put(struct hf__buf *out, struct hf__zk_wire_text text);
/* Begin a part of a transaction: what it needs follows, as in a request of its
 * own. After the last part comes one of the type -1. */
void hf__zk_wire_put_part(struct hf__buf *out, int32_t type);
/* Overwrite the four bytes at @at. */
void hf__zk_wire_patch_int(struct hf__buf *out, size_t at, int32_t value);

/* A frame is a length and so many bytes. The most we accept: a list of some
 * ten thousand children. */
enum { HF__ZK_WIRE_FRAME = 4 << 20 };
/* The length of the frame at @from, once its four bytes are there; -1: not
 * yet; -2: not one of ours. */
int64_t hf__zk_wire_frame(const char *from, size_t len);

#endif

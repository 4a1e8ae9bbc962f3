/* SPDX-License-Identifier: MIT */
/*
 * notice.h - what a client posts on a board about its long waits. Pure.
 *
 * A notice is text, a line each:
 *
 *   1 PID HOST
 *   w PROCESS OWNER SERIAL SINCE STORE MODE BREAK NAME     one wait …
 *   h STORE HASH TOKEN MODE                     … and what its owner holds
 *
 * Numbers are in hexadecimal without leading zeros. Others wrote what we read,
 * so all of it is checked: one bad byte, and nobody reads any of it.
 */
#ifndef HF_CORE_NOTICE_H
#define HF_CORE_NOTICE_H

#include "base/buf.h"

enum {
    HF__NOTICE_MAX = 16384, /* bytes */
    HF__NOTICE_WAITS = 32,  /* of one client */
    HF__NOTICE_HOLDS = 16,  /* of one owner; more are left out */
    HF__NOTICE_HOST = 64
};

/* A lock that an owner holds. */
struct hf__notice_hold {
    uint64_t store; /* which engine: a number that it keeps itself */
    uint64_t hash;  /* of the name: hf__notice_hash() */
    uint64_t token;
    int32_t mode;
};

/* An owner that waits, and holds something. */
struct hf__notice_wait {
    uint64_t process; /* chance: which process … */
    uint64_t owner;   /* … and which owner in it */
    uint64_t serial;  /* no two waits of an owner have the same */
    uint64_t since;   /* the larger, the younger; of use to compare only */
    uint64_t store;
    int32_t mode;
    bool breaks; /* deadlock=break: it can be the victim */
    uint32_t holds_n;
    struct hf__notice_hold holds[HF__NOTICE_HOLDS];
    int64_t pid;
    char host[HF__NOTICE_HOST + 1];
    char name[HF_NAME_MAX + 1];
};

/* The hash of a name that all processes agree on; with its prefix, if two
 * prefixes share a board. */
uint64_t hf__notice_hash(const char *name, size_t len);
/* A notice of @n waits, all of one host and process. */
void hf__notice_write(const struct hf__notice_wait *waits, size_t n,
                      struct hf__buf *to);
/* The waits of a notice, @max at most. Returns how many, or -1: it is not
 * well-formed, or has more. */
int hf__notice_read(const char *text, size_t len, struct hf__notice_wait *waits,
                    size_t max);

#endif

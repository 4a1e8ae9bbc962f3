/* SPDX-License-Identifier: MIT */
/*
 * memcached.h - the parts of the Memcached engine to each other.
 *
 *   memcached.c   the engine's table: open, connect, close, the timer
 *   connection.c  one connection: greeting, calls and their answers in order
 *   lock.c        tickets: add, look, replace, delete
 *   meta.c        the protocol          doctor.c
 */
#ifndef HF_MEMCACHED_MEMCACHED_H
#define HF_MEMCACHED_MEMCACHED_H

#include "engines/common/calls.h"
#include "engines/engine.h"
#include "engines/memcached/meta.h"
#include "net/stream.h"

struct hf__memcached;
struct hf__memcached_call;

/* @meta is NULL when the connection was lost before the answer came. Of a
 * question with several lines each one is told; the last is no STAT. */
typedef void hf__memcached_reply_fn(struct hf__memcached *memcached,
                                    const struct hf__memcached_call *call,
                                    const struct hf__meta *meta);

/* What a server may answer to a command: bits 1 << enum hf__meta_kind. An
 * answer of another shape ends the connection. */
enum hf__memcached_answers {
    HF__MEMCACHED_VERSION = 1 << HF__META_VERSION | 1 << HF__META_ERROR,
    HF__MEMCACHED_STATS =
        1 << HF__META_STAT | 1 << HF__META_END | 1 << HF__META_ERROR,
    HF__MEMCACHED_STORE = 1 << HF__META_HD | 1 << HF__META_NS |
                          1 << HF__META_EX | 1 << HF__META_NF |
                          1 << HF__META_ERROR,
    HF__MEMCACHED_LOOK =
        1 << HF__META_VA | 1 << HF__META_EN | 1 << HF__META_ERROR,
    HF__MEMCACHED_DELETE = 1 << HF__META_HD | 1 << HF__META_EX |
                           1 << HF__META_NF | 1 << HF__META_ERROR
};

/* Lines of one answer; a server has about a hundred. */
enum { HF__MEMCACHED_LINES_MAX = 1024 };

struct hf__memcached_call {
    hf__memcached_reply_fn *done;
    enum hf__memcached_answers answers;
    uint32_t lines;            /* of STATS, so far */
    struct hf__ticket *ticket; /* NULL: none, or forgotten meanwhile */
    struct hf__query *query;
    int64_t sent_ns;
};

/* Our bytes of every ticket. */
struct hf__memcached_ticket {
    uint64_t cas;   /* the item's number; counts only on the connection … */
    uint32_t epoch; /* … on which it was told */
    uint32_t calls; /* under way */
    int64_t stored_ns; /* when the store was sent that has just succeeded */
    bool full;         /* … or was refused for want of memory */
    bool repeated;     /* stored a second time, since the core asked */
    bool known;        /* the server may have something of it */
    bool asking;       /* an acquire has not been reported yet */
    bool leaving;      /* withdraw() or release() was called */
    bool releasing;    /* it was release() */
};

struct hf__memcached {
    struct hf__engine base;
    bool tooz; /* dialect=tooz */
    struct hf__stream stream;
    struct hf__tls_context *tls;
    struct hf__calls calls; /* struct hf__memcached_call */
    bool up;
    bool in_received; /* the stream is being read */
    bool may_close;   /* … and a failure waits for the end of it */
    hf_error fatal;
    uint32_t epoch; /* of connections, from 1 */
    int64_t connect_ns;
    struct hf__timer timer; /* an answer is overdue */
    char version[24];
    char origin[280]; /* of each value: host and process */
    char peer[280];   /* for people: "memcached db1:11211" */
};

/* ---- memcached.c ------------------------------------------------------- */

void hf__memcached_wake(struct hf__memcached *memcached, int64_t due_ns);

/* ---- connection.c ------------------------------------------------------ */

int hf__memcached_connect(struct hf__memcached *memcached, hf_error *err);
void hf__memcached_disconnect(struct hf__memcached *memcached, bool forked);
/* The connection cannot be trusted any more: report what was under way. */
void hf__memcached_fail(struct hf__memcached *memcached, const hf_error *err);
/* What was written to stream.out since @mark is a command, answered to @call.
 * HF_ENOMEM takes it back. */
int hf__memcached_sent(struct hf__memcached *memcached, size_t mark,
                       const struct hf__memcached_call *call, hf_error *err);
/* The oldest call under way; there is one. */
static inline struct hf__memcached_call *hf__memcached_oldest(
    const struct hf__memcached *memcached)
{
    return hf__calls_at(&memcached->calls, 0);
}
/* @ticket is told nothing any more. */
void hf__memcached_forget(struct hf__memcached *memcached,
                          const struct hf__ticket *ticket);
void hf__memcached_explain_lost(const struct hf__memcached *memcached,
                                hf_error *err);

/* ---- lock.c ------------------------------------------------------------ */

hf__engine_acquire_fn hf__memcached_acquire;
hf__engine_withdraw_fn hf__memcached_withdraw;
hf__engine_release_fn hf__memcached_release;
hf__engine_renew_fn hf__memcached_renew;

/* ---- doctor.c ---------------------------------------------------------- */

hf__engine_query_fn hf__memcached_doctor;

#endif

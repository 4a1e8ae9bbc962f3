/* SPDX-License-Identifier: MIT */
/*
 * tickets.h - where a ticket stands, its calls, and outcomes of any call.
 */
#ifndef HF_MEMCACHED_TICKETS_H
#define HF_MEMCACHED_TICKETS_H

#include "engines/engine.h"
#include "engines/memcached/wire.h"

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

/*
 * Where a ticket stands. tickets.c asserts these moves:
 *
 *   IDLE        -> ASKING
 *   ASKING      -> ASKING HELD UNKNOWN RELEASING WITHDRAWING IDLE
 *   HELD        -> ASKING RELEASING WITHDRAWING IDLE
 *   UNKNOWN     -> ASKING RELEASING WITHDRAWING IDLE
 *   RELEASING   -> UNKNOWN RELEASING WITHDRAWING IDLE
 *   WITHDRAWING -> UNKNOWN RELEASING WITHDRAWING IDLE
 */
enum hf__memcached_state {
    HF__MEMCACHED_IDLE,   /* the server has nothing of it */
    HF__MEMCACHED_ASKING, /* an acquire has not been reported yet */
    HF__MEMCACHED_HELD,
    HF__MEMCACHED_UNKNOWN,   /* an outcome was reported as unknown */
    HF__MEMCACHED_RELEASING, /* release() was called */
    HF__MEMCACHED_WITHDRAWING,
    HF__MEMCACHED_STATES
};

/* Our bytes of every ticket. */
struct hf__memcached_ticket {
    uint64_t cas;   /* the item's number; counts only on the connection … */
    uint32_t epoch; /* … on which it was told */
    uint32_t calls; /* under way */
    int64_t stored_ns; /* when the store was sent that has just succeeded */
    uint8_t state;     /* enum hf__memcached_state */
    bool full;         /* the server refused the store for want of memory */
    bool repeated;     /* stored a second time, since the core asked */
};

/* release() or withdraw() was called. */
static inline bool hf__memcached_tickets_leaves(
    const struct hf__memcached_ticket *m)
{
    return m->state == HF__MEMCACHED_RELEASING ||
           m->state == HF__MEMCACHED_WITHDRAWING;
}
/* Checked against the table of moves. */
void hf__memcached_tickets_move(struct hf__memcached_ticket *m,
                                enum hf__memcached_state state);
/* The command behind @mark is one of @ticket. */
int hf__memcached_tickets_send(struct hf__memcached *memcached, size_t mark,
                               hf__memcached_reply_fn *done,
                               enum hf__memcached_answers answers,
                               struct hf__ticket *ticket, hf_error *err);
/* The number of our item; 0 if we have to look. */
uint64_t hf__memcached_tickets_cas(const struct hf__memcached *memcached,
                                   struct hf__ticket *ticket);
/* Before the report that ends it: the ticket may be gone after that. */
void hf__memcached_tickets_forget(struct hf__memcached *memcached,
                                  struct hf__ticket *ticket);
void hf__memcached_tickets_unknown(struct hf__memcached *memcached,
                                   struct hf__ticket *ticket);
/* Nothing came, or nothing that means something: report an acquire or a release
 * as unknown. For a renewal the core counts the time. */
void hf__memcached_tickets_no_answer(struct hf__memcached *memcached,
                                     struct hf__ticket *ticket);

#endif

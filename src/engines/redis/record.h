/* SPDX-License-Identifier: MIT */
/*
 * record.h - where the fields are in what the server keeps of a lock.
 *
 * Every field has a fixed place, so that Lua cuts and does not search. This is
 * the only place that says where: lua/embed.cmake reads it, and makes
 * sub(x,51,63) of x.ttl, and 51,63 of TTL. docs/internals/redis-engine.md
 * describes the keys.
 */
#ifndef HF_REDIS_RECORD_H
#define HF_REDIS_RECORD_H

/* HF__name and HF__name_WIDTH, counted from 0. Width 0: up to the end. */
#define HF__FIELD(name, first, width)                                          \
    HF__##name = (first), HF__##name##_WIDTH = (width)

/* What the server keeps of a ticket. */
enum {
    HF__FIELD(RECORD_TICKET, 0, 44),  /* client and number */
    HF__FIELD(RECORD_CLIENT, 0, 32),  /* hex digits */
    HF__FIELD(RECORD_NUMBER, 32, 12), /* hex digits */
    HF__FIELD(RECORD_MODE, 44, 1),    /* x, s, n */
    HF__FIELD(RECORD_SLOTS, 45, 5),   /* exclusive: 1 bears a wake-up */
    HF__FIELD(RECORD_TTL, 50, 13),    /* ms */
    HF__FIELD(RECORD_DELAY, 63, 7),   /* ms */
    HF__FIELD(RECORD_RESERVE, 70, 3), /* tokens */
    HF__FIELD(RECORD_ASKED, 73, 13),  /* the client's wall clock, ms */
    HF__FIELD(RECORD_BOUND, 86, 1),   /* '=' this token, '>' a later one */
    HF__FIELD(RECORD_TOKEN, 87, 16),
    HF__FIELD(RECORD_NONCE, 103, 16), /* hex digits that a wake-up repeats */
    HF__FIELD(RECORD_TEXTS, 119, 0),  /* host LF pid LF owner LF note, and of
                                         who waits for a condition LF that */
    HF__FIELD(RECORD_BEFORE_SLOTS, 0, 45),
    HF__FIELD(RECORD_AFTER_SLOTS, 50, 0),
    HF__FIELD(RECORD_BEFORE_BOUND, 0, 86),
    HF__FIELD(RECORD_AFTER_TOKEN, 103, 0),
    HF__FIELD(RECORD_HEAD, 0, 73),         /* what renewals send of it … */
    HF__FIELD(RECORD_RENEW_TOKEN, 73, 16), /* … the token behind it … */
    HF__FIELD(RECORD_RENEW_PARKED, 89, 1)  /* … and p if it may be parked */
};

/* The gate in the slow form; in the fast form it is the holder's record. */
enum {
    HF__FIELD(GATE_FORM, 0, 1), /* '~': slow */
    HF__FIELD(GATE_SLOW_MODE, 1, 1),
    HF__FIELD(GATE_SLOW_TILL, 2, 13), /* ms */
    HF__FIELD(GATE_SLOW_LAST, 15, 16),
    HF__FIELD(GATE_SLOW_OWN, 31, 16),
    HF__FIELD(GATE_SLOW_RECORD, 47, 0),
    HF__FIELD(GATE_SLOW_TICKET, 47, 44)
};

/* An entry of a shared or slot holder, or of a waiter. */
enum {
    HF__FIELD(HOLDER_ENTRY_ROLE, 0, 1),  /* h, w */
    HF__FIELD(HOLDER_ENTRY_TILL, 1, 13), /* of a waiter: ms */
    HF__FIELD(HOLDER_ENTRY_TOKEN, 1, 16),
    HF__FIELD(HOLDER_ENTRY_RECORD, 17, 0)
};

#endif

/* SPDX-License-Identifier: MIT */
/*
 * scripts.h - the texts that run inside the server.
 *
 * docs/internals/redis-engine.md describes the keys they work on. The place of
 * every field of a record is fixed: Lua cuts, it does not search.
 */
#ifndef HF_REDIS_SCRIPTS_H
#define HF_REDIS_SCRIPTS_H

#include "base/base.h"

enum hf__redis_script {
    /* Run all the time, by their digest. */
    HF__REDIS_ACQUIRE,
    HF__REDIS_LEAVE,
    HF__REDIS_BEAT,
    HF__REDIS_DOWNGRADE,
    HF__REDIS_PLAIN_LEAVE,
    HF__REDIS_PLAIN_BEAT,
    HF__REDISSON_LOCK_TRY,
    HF__REDISSON_LOCK_LEAVE,
    HF__REDISSON_FAIR_TRY,
    HF__REDISSON_FAIR_LEAVE,
    HF__REDISSON_RW_TRY,
    HF__REDISSON_RW_LEAVE,
    HF__REDISSON_PERMIT_TRY,
    HF__REDISSON_PERMIT_LEAVE,
    HF__REDISSON_SEMAPHORE_TRY,
    HF__REDISSON_SEMAPHORE_LEAVE,
    HF__REDISSON_BEAT,
    HF__REDISSON_PERMIT_BEAT,
    HF__REDISSON_SEMAPHORE_BEAT,
    HF__REDISSON_DOWNGRADE,
    /* Questions. */
    HF__REDIS_GONE,
    HF__REDIS_LOOK,
    HF__REDIS_CHECK,
    HF__REDIS_BREAK,
    HF__REDIS_COMMIT,
    HF__REDIS_PLAIN_LOOK,
    HF__REDIS_PLAIN_BREAK,
    HF__REDISSON_CHECK,
    HF__REDISSON_LOOK,
    HF__REDISSON_FORGET,
    HF__REDIS_SCRIPTS
};

/* Parts of a record, by place (from 0) and width. */
enum {
    HF__RECORD_TICKET = 44,  /* 0: client 32 hex digits, number 12 */
    HF__RECORD_MODE = 44,    /* 1: x, s, n */
    HF__RECORD_SLOTS = 45,   /* 5 */
    HF__RECORD_TTL = 50,     /* 13: ms */
    HF__RECORD_DELAY = 63,   /* 7: ms */
    HF__RECORD_RESERVE = 70, /* 3 */
    HF__RECORD_ASKED = 73,   /* 13: the client's wall clock, ms */
    HF__RECORD_BOUND = 86,   /* 1: '=' the token is, '>' it is more than … */
    HF__RECORD_TOKEN = 87,   /* 16 … this */
    HF__RECORD_NONCE = 103,  /* 16 hex digits: what a push must repeat */
    HF__RECORD_TEXTS = 119,  /* host LF pid LF owner LF note */
    HF__RECORD_HEAD = 73     /* what beats send of it */
};

/* The slow form of the gate: '~' mode until last own record. */
enum {
    HF__SLOW_MODE = 1,
    HF__SLOW_UNTIL = 2, /* 13 */
    HF__SLOW_LAST = 15, /* 16 */
    HF__SLOW_OWN = 31,  /* 16 */
    HF__SLOW_RECORD = 47
};

/* The whole texts, and their SHA-1 in hex. */
struct hf__redis_scripts {
    char *text[HF__REDIS_SCRIPTS];
    size_t len[HF__REDIS_SCRIPTS];
    char digest[HF__REDIS_SCRIPTS][41];
};
/* 0 or HF_ENOMEM. @cluster: as they have to be in a cluster. */
int hf__redis_scripts_init(struct hf__redis_scripts *scripts, bool cluster);
void hf__redis_scripts_release(struct hf__redis_scripts *scripts);

#endif

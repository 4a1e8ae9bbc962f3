/* SPDX-License-Identifier: MIT */
/*
 * pool.h - connections for locks that need one of their own.
 *
 * A lock that lives in a session or in a transaction keeps its connection until
 * it is released; so does a wait inside the server. The pool counts them, keeps
 * some for the next one, and lets tickets stand in line when all are in use
 * (pool.max, pool.max_idle, pool.wait, pool.exhausted, pool.check). It does no
 * I/O: the engine opens, tests and closes, and says what became of it.
 *
 *     take(want) ──▶ got(link) … give(link)     back, clean
 *                              … gone(link)     broken, or closed on purpose
 *
 * With the monitor held. What got() does may call the pool again.
 */
#ifndef HF_SQL_POOL_H
#define HF_SQL_POOL_H

#include "base/error.h"
#include "base/list.h"
#include "config/config.h"

struct hf__sql_pool;
struct hf__sql_want;

enum { HF__POOL_BLOCK, HF__POOL_FAIL, HF__POOL_GROW };

/* The pool's part of a connection; the engine's struct begins with it. */
struct hf__sql_link {
    struct hf__list all;
    struct hf__list idle; /* in it: the connection is unused */
    bool opening;         /* or being tested; of no want yet */
    bool testing;
};

/* The need of a connection; lives in its owner, zeroed. */
struct hf__sql_want {
    struct hf__list link; /* in line; else alone or zeroed */
    int64_t until_ns;
    /* @link now belongs to @want; or NULL, and @err says why there is none. */
    void (*got)(struct hf__sql_want *want, struct hf__sql_link *link,
                const hf_error *err);
};

struct hf__sql_pool_ops {
    /* Begin one more connection; ends in _ready() or _gone(), not from inside
     * the call. NULL and @err: not begun. */
    struct hf__sql_link *(*open)(void *owner, hf_error *err);
    /* Ask an idle one whether it lives; ends as open() does. Non-zero: it does
     * not, and has been closed without a word to the pool. */
    int (*check)(void *owner, struct hf__sql_link *link);
    /* Close an idle one and free it, without a word to the pool. */
    void (*close)(void *owner, struct hf__sql_link *link);
    /* Call hf__sql_pool_expire() at this instant. */
    void (*wake)(void *owner, int64_t due_ns);
};

struct hf__sql_pool {
    const struct hf__sql_pool_ops *ops;
    void *owner;
    const struct hf__settings *settings;
    struct hf__list all;
    struct hf__list idle; /* last used first */
    struct hf__list line; /* of wants, first come first */
    uint32_t n;           /* in all */
    uint32_t n_idle;
    uint32_t n_opening;
    uint32_t n_line;
};

void hf__sql_pool_init(struct hf__sql_pool *pool,
                       const struct hf__sql_pool_ops *ops, void *owner,
                       const struct hf__settings *settings);
/* A connection for @want: got() is called from inside, or later, once.
 * Non-zero: there is none to be had (pool.exhausted=fail, or it could not be
 * begun), and got() is not called. */
int hf__sql_pool_take(struct hf__sql_pool *pool, struct hf__sql_want *want,
                      hf_error *err);
/* Drop a want; one that is not in line is ignored. */
void hf__sql_pool_forget(struct hf__sql_pool *pool, struct hf__sql_want *want);
/* @link is open, or has passed its test. */
void hf__sql_pool_ready(struct hf__sql_pool *pool, struct hf__sql_link *link);
/* @link comes back as good as new; it may be closed now. */
void hf__sql_pool_give(struct hf__sql_pool *pool, struct hf__sql_link *link);
/* @link is closed, whether in use or not; the engine frees it afterwards. One that was
 * being opened takes the first want with it, which hears @err; one that was
 * being tested is replaced. */
void hf__sql_pool_gone(struct hf__sql_pool *pool, struct hf__sql_link *link,
                       const hf_error *err);
/* Tell those whose pool.wait is over. */
void hf__sql_pool_expire(struct hf__sql_pool *pool, int64_t now_ns);

#endif

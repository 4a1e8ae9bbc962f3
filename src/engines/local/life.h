/* SPDX-License-Identifier: MIT */
/* life.h - the thread whose death is ours. */
#ifndef HF_LOCAL_LIFE_H
#define HF_LOCAL_LIFE_H

#include <linux/futex.h>

#include "base/loop.h"
#include "engines/local/waiting.h"

struct hf__life {
    struct hf__store *store;
    struct hf__watch *watch;
    struct hf__loop *loop; /* kicked when something came */
    struct hf__thread *thread;
    _Atomic uint32_t started;
    _Atomic uint32_t bell; /* +1: stop, or a new watch */
    _Atomic bool stop;
    _Atomic bool armed;       /* the watch is the thread's to keep */
    _Atomic bool listening;   /* … and so is the count of changes, … */
    _Atomic uint32_t changes; /* which was this */
    /* The kernel's view: nodes[i] leads to life word i by one offset. */
    struct robust_list_head head;
    union {
        struct robust_list list;
        uint64_t unused; /* as far apart as the words */
    } nodes[HF__TABLE_LIVES];
};

/* Begin to live in store->slot. HF_ENOMEM. */
int hf__life_start(struct hf__life *life, struct hf__store *store,
                   struct hf__watch *watch, struct hf__loop *loop,
                   hf_error *err);
/* Die in order; no-op if it does not live. */
void hf__life_stop(struct hf__life *life);
/* Kick the loop when the watch has something: on, off, or a new watch. */
void hf__life_arm(struct hf__life *life, bool on);
/* Kick the loop once when the table's count of changes is not @changes. */
void hf__life_listen(struct hf__life *life, uint32_t changes);
static inline bool hf__life_listens(const struct hf__life *life)
{
    return atomic_load(&life->listening);
}

#endif

/* SPDX-License-Identifier: MIT */
/*
 * signals.h - the signals of one condition that are under way, where the store
 * keeps records of those who are parked (ZooKeeper, etcd).
 */
#ifndef HF_ENGINES_SIGNALS_H
#define HF_ENGINES_SIGNALS_H

#include "base/list.h"
#include "engines/common/condition.h"
#include "engines/engine.h"

struct hf__signal {
    struct hf__list link;
    struct hf__query *query;
    size_t woken;   /* if it succeeds */
    uint32_t tries; /* bounded, should the store play tricks */
    bool sent;
};

/* Append one that asks for @query: 0 or HF_ENOMEM. */
int hf__signals_add(struct hf__list *signals, struct hf__query *query);
/* The oldest; NULL: there is none. */
struct hf__signal *hf__signals_first(const struct hf__list *signals);
/* Take the oldest out, and give its query. */
struct hf__query *hf__signals_take(struct hf__list *signals);
/* Nobody will answer them. */
void hf__signals_drop_all(struct hf__list *signals);
/* Add the stamp of @signal, for the records below @at, and drop those that
 * nobody is left for: @oldest as for hf__condition_clean(). *@ret_changed:
 * something has become different. */
int hf__signals_stamp(const struct hf__signal *signal,
                      struct hf__condition *wakes, uint64_t oldest, uint64_t at,
                      bool *ret_changed, hf_error *err);

#endif

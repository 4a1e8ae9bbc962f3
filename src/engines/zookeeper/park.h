/* SPDX-License-Identifier: MIT */
/*
 * park.h - park and unpark.
 */
#ifndef HF_ZOOKEEPER_PARK_H
#define HF_ZOOKEEPER_PARK_H

#include "engines/engine.h"

struct hf__zk;

hf__engine_park_fn hf__zk_park;
hf__engine_unpark_fn hf__zk_unpark;
/* Take the next step of parking. */
int hf__zk_park_begin(struct hf__zk *zk, struct hf__ticket *ticket,
                      hf_error *err);
/* Certain: it is not parked, and the old ticket holds as before. */
void hf__zk_park_failed(struct hf__zk *zk, struct hf__ticket *ticket,
                        const hf_error *err);
/* There may be a record of it: find out, and go on. */
int hf__zk_park_seek(struct hf__zk *zk, struct hf__ticket *ticket,
                     hf_error *err);
/* It was not called as long as the stamps have @version: unpark it. */
void hf__zk_park_end(struct hf__zk *zk, struct hf__ticket *ticket,
                     int32_t version);
/* The ticket leaves in order, and uses up the wake-up that it bears. */
int hf__zk_park_use_up(struct hf__zk *zk, struct hf__ticket *ticket,
                       hf_error *err);
/* Forget the ticket that it gives up; nothing is reported about that. */
void hf__zk_park_forget_old(struct hf__zk *zk, struct hf__ticket *ticket);
/* Does it bear a wake-up, as far as we know? */
bool hf__zk_park_bears(const struct hf__zk *zk, struct hf__ticket *ticket);

#endif

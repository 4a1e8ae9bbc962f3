/* SPDX-License-Identifier: MIT */
/*
 * release.h - release and withdraw.
 */
#ifndef HF_ZOOKEEPER_RELEASE_H
#define HF_ZOOKEEPER_RELEASE_H

#include "engines/engine.h"

struct hf__zk;

hf__engine_release_fn hf__zk_release;
hf__engine_withdraw_fn hf__zk_release_withdraw;
/* Take the next step of releasing, whatever is known of its nodes. */
int hf__zk_release_begin(struct hf__zk *zk, struct hf__ticket *ticket,
                         hf_error *err);
/* Delete its node: it leaves, or was only tried (busy), or is refused. */
int hf__zk_release_node(struct hf__zk *zk, struct hf__ticket *ticket,
                        hf_error *err);
/* The last node of @ticket has gone, and with it what it wanted. */
void hf__zk_release_done(struct hf__zk *zk, struct hf__ticket *ticket);
/* Certain: it cannot be had, and nothing is left of it. */
void hf__zk_release_failed(struct hf__zk *zk, struct hf__ticket *ticket,
                           const hf_error *why);

#endif

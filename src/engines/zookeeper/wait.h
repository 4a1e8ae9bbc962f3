/* SPDX-License-Identifier: MIT */
/*
 * wait.h - how a waiter hears that it may look again.
 */
#ifndef HF_ZOOKEEPER_WAIT_H
#define HF_ZOOKEEPER_WAIT_H

#include "engines/engine.h"
#include "engines/zookeeper/queue.h"

struct hf__zk;

/* It is not our turn. @first: any holder may make room. @watched: the
 * list is watched already. */
void hf__zk_wait_stand(struct hf__zk *zk, struct hf__ticket *ticket,
                       const struct hf__zk_contender *before, bool first,
                       bool watched);
/* List the children for one in line, unless that is under way. */
void hf__zk_wait_look_again(struct hf__zk *zk, struct hf__ticket *ticket,
                            bool watch);
/* One in line that cannot go on: the core asks for it again. */
void hf__zk_wait_lost_place(struct hf__zk *zk, struct hf__ticket *ticket);
/* A watch has fired for @path. */
void hf__zk_wait_event(struct hf__zk *zk, struct hf__zk_wire_text path);

#endif

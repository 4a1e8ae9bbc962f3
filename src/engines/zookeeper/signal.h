/* SPDX-License-Identifier: MIT */
/*
 * signal.h - waking those who are parked.
 */
#ifndef HF_ZOOKEEPER_SIGNAL_H
#define HF_ZOOKEEPER_SIGNAL_H

#include "engines/zookeeper/condition.h"

hf__engine_query_fn hf__zk_signal;
/* Who is parked is known: send the first signal that waits for that. */
void hf__zk_signal_send(struct hf__zk *zk, struct hf__zk_condition *condition,
                        struct hf__zk_view *view);
/* It cannot be known: answer the signals that wait for it. */
void hf__zk_signal_failed(struct hf__zk *zk,
                          struct hf__zk_condition *condition);

#endif

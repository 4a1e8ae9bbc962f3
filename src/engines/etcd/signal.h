/* SPDX-License-Identifier: MIT */
/*
 * signal.h - waking those who are parked.
 */
#ifndef HF_ETCD_SIGNAL_H
#define HF_ETCD_SIGNAL_H

#include "engines/etcd/condition.h"

hf__engine_query_fn hf__etcd_signal;
/* Who is parked is known: send the first signal that waits for that. */
void hf__etcd_signal_send(struct hf__etcd *etcd,
                          struct hf__etcd_condition *condition,
                          struct hf__etcd_view *view);
/* It cannot be known: answer the signals that wait for it. */
void hf__etcd_signal_failed(struct hf__etcd *etcd,
                            struct hf__etcd_condition *condition,
                            const hf_error *err);

#endif

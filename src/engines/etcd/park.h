/* SPDX-License-Identifier: MIT */
/*
 * park.h - park and unpark.
 */
#ifndef HF_ETCD_PARK_H
#define HF_ETCD_PARK_H

#include "engines/engine.h"

struct hf__etcd;

int hf__etcd_park(struct hf__engine *engine, struct hf__ticket *ticket,
                  struct hf__ticket *old, hf_error *err);
int hf__etcd_unpark(struct hf__engine *engine, struct hf__ticket *ticket,
                    hf_error *err);
/* The park() or unpark() has no outcome. */
void hf__etcd_park_unknown(struct hf__etcd *etcd, struct hf__ticket *ticket,
                           const hf_error *err);
/* It was not called as long as the stamps are as they were @stamped: unpark
 * it. */
void hf__etcd_park_end(struct hf__etcd *etcd, struct hf__ticket *ticket,
                       uint64_t stamped);
/* The ticket leaves in order, and uses up the wake-up that it bears. */
int hf__etcd_park_use_up(struct hf__etcd *etcd, struct hf__ticket *ticket,
                         hf_error *err);
/* Forget the ticket that it gives up; nothing is reported about that. */
void hf__etcd_park_forget_old(struct hf__etcd *etcd, struct hf__ticket *ticket);
/* Does it bear a wake-up, as far as we know? */
bool hf__etcd_park_bears(const struct hf__etcd *etcd,
                         struct hf__ticket *ticket);

#endif

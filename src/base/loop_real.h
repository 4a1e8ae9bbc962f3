/* SPDX-License-Identifier: MIT */
/* loop_real.h - the kernel's side of base/loop.h, for the real world's table.
 * Everybody else calls hf__loop_poll() and the like. */
#ifndef HF_BASE_LOOP_REAL_H
#define HF_BASE_LOOP_REAL_H

#include "base/loop.h"

int hf__loop_real_poll(struct hf__loop *loop, struct hf__loop_batch *batch,
                       int64_t until_ns);
void hf__loop_real_kick(struct hf__loop *loop);
void hf__loop_real_sleep(struct hf__alarm *alarm, struct hf__loop *loop,
                         int64_t until_ns);
void hf__loop_real_ring(struct hf__alarm *alarm);

#endif

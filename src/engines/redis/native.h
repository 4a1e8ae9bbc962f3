/* SPDX-License-Identifier: MIT */
/* native.h - the parts of dialect=native to each other. */
#ifndef HF_REDIS_NATIVE_H
#define HF_REDIS_NATIVE_H

#include "engines/redis/redis.h"

/* How a grant was learnt. */
enum {
    HF__NATIVE_PUSHED = 1, /* another wrote it */
    HF__NATIVE_WOKEN = 2   /* it bears a wake-up */
};
void hf__native_granted(struct hf__redis *redis, struct hf__ticket *ticket,
                        uint64_t token, int64_t sent_ns, unsigned how);

/* ---- native_acquire.c -------------------------------------------------- */

int hf__native_acquire(struct hf__redis *redis, struct hf__ticket *ticket,
                       hf_error *err);

/* In line; the first looks again in @watch_ms. */
void hf__native_acquire_queued(struct hf__redis *redis,
                               struct hf__ticket *ticket, int64_t watch_ms,
                               int64_t sent_ns);

/* ---- native_condition.c ------------------------------------------------ */

int hf__native_condition_park(struct hf__redis *redis,
                              struct hf__ticket *ticket, struct hf__ticket *old,
                              hf_error *err);
int hf__native_condition_unpark(struct hf__redis *redis,
                                struct hf__ticket *ticket, hf_error *err);
/* The server has parked it, and enough replicas know. */
void hf__native_condition_parked(struct hf__redis *redis,
                                 struct hf__ticket *ticket);
int hf__native_condition_signal(struct hf__engine *engine,
                                struct hf__query *query, hf_error *err);

/* ---- native_renew.c ---------------------------------------------------- */

int hf__native_renew(struct hf__redis *redis, struct hf__ticket **tickets,
                     size_t n, hf_error *err);
/* The head of the record, and the token. */
/* It may have missed a signal at a server that has other data: it gives up its
 * place, and is lost. */
void hf__native_renew_give_up(struct hf__redis *redis,
                              struct hf__ticket *ticket);
void hf__native_renew_put(struct hf__redis *redis, struct hf__ticket *ticket);
void hf__native_renew_answered(struct hf__redis *redis,
                               struct hf__ticket *ticket,
                               const struct hf__resp_value *said,
                               int64_t sent_ns);

/* ---- native_wait.c ----------------------------------------------------- */

/* Make sure that a grant is heard: on the client's own channel, or in a
 * cluster on one for this name, which is in the slot of its lock. */
int hf__native_wait_hear(struct hf__redis *redis, struct hf__redis_ticket *mine,
                         hf_error *err);
void hf__native_wait_heard(struct hf__redis *redis,
                           const struct hf__resp_value *channel,
                           const struct hf__resp_value *said);

#endif

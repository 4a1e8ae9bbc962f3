/* SPDX-License-Identifier: MIT */
/* native.h - the parts of dialect=native to each other. */
#ifndef HF_REDIS_NATIVE_H
#define HF_REDIS_NATIVE_H

#include "engines/redis/redis.h"

/* @pushed: what was granted was written by another. */
void hf__native_granted(struct hf__redis *redis, struct hf__ticket *ticket,
                        uint64_t token, int64_t sent_ns, bool pushed);

/* ---- native_acquire.c -------------------------------------------------- */

int hf__native_acquire(struct hf__redis *redis, struct hf__ticket *ticket,
                       hf_error *err);

/* ---- native_renew.c ---------------------------------------------------- */

int hf__native_renew(struct hf__redis *redis, struct hf__ticket **tickets,
                     size_t n, hf_error *err);
/* The head of the record, and the token. */
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

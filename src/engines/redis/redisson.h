/* SPDX-License-Identifier: MIT */
/* redisson.h - the parts of dialect=redisson to each other. */
#ifndef HF_REDIS_REDISSON_H
#define HF_REDIS_REDISSON_H

#include "engines/redis/redis.h"

/* What one of Redisson's objects is: the value of mode. */
struct hf__redisson_kind {
    const char *mode;
    uint64_t caps;       /* beyond those of all */
    const char *channel; /* before the name in braces */
    bool own_channel;    /* … and behind it the owner */
    bool permits;        /* an owner is 14 bytes, not a text */
    bool no_exclusive;
    bool derived; /* it has keys beside the name's */
    int try_script;
    int release_script;
    int renew_script;
};
enum { HF__REDISSON_OWNER = 64 };
/* Who a ticket is to Redisson, into @to: its length. */
size_t hf__redisson_owner(const struct hf__redis *redis, uint64_t id,
                          char to[HF__REDISSON_OWNER]);
/* Arguments of scripts. */
void hf__redisson_put_owner(struct hf__redis *redis,
                            const struct hf__ticket *ticket);
void hf__redisson_put_lease(struct hf__redis *redis,
                            const struct hf__ticket *ticket);
void hf__redisson_put_mode(struct hf__redis *redis,
                           const struct hf__ticket *ticket);

/* ---- redisson_acquire.c ------------------------------------------------ */

int hf__redisson_acquire(struct hf__redis *redis, struct hf__ticket *ticket,
                         hf_error *err);
/* Try to take it, from in line as well. */
int hf__redisson_acquire_try(struct hf__redis *redis, struct hf__ticket *ticket,
                             hf_error *err);
/* A lock was released: all waiters of this client look again. */
void hf__redisson_acquire_heard(struct hf__redis *redis,
                                const struct hf__resp_value *channel,
                                const struct hf__resp_value *text);

/* ---- redisson_renew.c -------------------------------------------------- */

int hf__redisson_renew(struct hf__redis *redis, struct hf__ticket **tickets,
                       size_t n, hf_error *err);
/* Owner, lease, mode. */
void hf__redisson_renew_put(struct hf__redis *redis, struct hf__ticket *ticket);
void hf__redisson_renew_answered(struct hf__redis *redis,
                                 struct hf__ticket *ticket,
                                 const struct hf__resp_value *said,
                                 int64_t sent_ns);

/* ---- redisson_inspect.c ------------------------------------------------ */

/* Which keys a list looks at: a pattern for them, in redis->scratch, and their
 * type. */
const char *hf__redisson_inspect_pattern(struct hf__redis *redis,
                                         const char *prefix);
/* The name of the lock that such a key belongs to; false: it is none. */
bool hf__redisson_inspect_name(const struct hf__redis *redis,
                               const struct hf__resp_value *key, char *to,
                               size_t size);
/* The @count values of the answer to LOOK: a key, and rows. */
int hf__redisson_inspect_add_rows(struct hf__redis *redis,
                                  struct hf__query *query,
                                  struct hf__resp *reply, uint32_t count);
/* The key is in redis->scratch. */
int hf__redisson_inspect_break(struct hf__redis *redis, struct hf__query *query,
                               hf__redis_reply_fn *done, hf_error *err);

#endif

/* SPDX-License-Identifier: MIT */
/* redisson.h - the locks of Redisson: redisson.c, redisson_inspect.c. */
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

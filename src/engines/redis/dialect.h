/* SPDX-License-Identifier: MIT */
/* dialect.h - how the layouts of a lock differ. */
#ifndef HF_REDIS_DIALECT_H
#define HF_REDIS_DIALECT_H

#include "engines/engine.h"
#include "engines/redis/resp.h"

struct hf__redis;
struct hf__redis_call;

/* The answer to a call. @reply is NULL when the connection was lost before it
 * came. The call's @data is the callee's to free. */
typedef void hf__redis_reply_fn(struct hf__redis *redis,
                                const struct hf__redis_call *call,
                                struct hf__resp *reply);

/* What hf__redis_renew() sends for each ticket besides its key, and what is done
 * with the answer. */
struct hf__redis_renewal {
    int script;
    uint32_t arguments;
    void (*put)(struct hf__redis *redis, struct hf__ticket *ticket);
    void (*answered)(struct hf__redis *redis, struct hf__ticket *ticket,
                     const struct hf__resp_value *said, int64_t sent_ns);
    /* There is no answer; NULL: ignore that. */
    void (*silent)(struct hf__redis *redis, struct hf__ticket *ticket);
};

struct hf__redis_dialect {
    const char *name;
    uint64_t caps;
    /* Read the setting mode; NULL: it has none. May narrow base.caps. */
    int (*open)(struct hf__redis *redis, hf_error *err);
    int (*acquire)(struct hf__redis *redis, struct hf__ticket *ticket,
                   hf_error *err);
    /* Make it certain that @ticket neither waits nor holds. Answers 1, or
     * something else if it was not ours. */
    int (*send_release)(struct hf__redis *redis, struct hf__ticket *ticket,
                        hf__redis_reply_fn *done, void *data, hf_error *err);
    int release_script;
    int (*renew)(struct hf__redis *redis, struct hf__ticket **tickets, size_t n,
                 hf_error *err);
    struct hf__redis_renewal renewal;
    int downgrade_script;
    int (*downgrade)(struct hf__redis *redis, struct hf__ticket *ticket,
                     hf_error *err); /* NULL: cannot */
    /* Conditions; NULL: it has none. */
    int (*park)(struct hf__redis *redis, struct hf__ticket *ticket,
                struct hf__ticket *old, hf_error *err);
    int (*unpark)(struct hf__redis *redis, struct hf__ticket *ticket,
                  hf_error *err);
    /* The key of the lock, into redis->scratch. */
    void (*key)(struct hf__redis *redis, const char *name, size_t len);
    /* A message came on a channel that was subscribed to; NULL: none is. */
    void (*heard)(struct hf__redis *redis, const struct hf__resp_value *channel,
                  const struct hf__resp_value *text);
};

/* What dialect=native can, and an engine at most. */
#define HF__REDIS_CAPS                                                         \
    (HF_CAP_FENCED | HF_CAP_FIFO | HF_CAP_SHARED | HF_CAP_SLOTS |              \
     HF_CAP_PUSH | HF_CAP_LEASED | HF_CAP_DISTRIBUTED | HF_CAP_DOWNGRADE |     \
     HF_CAP_VERSIONS | HF_CAP_LIST | HF_CAP_BREAK | HF_CAP_CHECK_TOKEN |       \
     HF_CAP_LOCK_DELAY | HF_CAP_TOLD_BEFORE_REGRANT | HF_CAP_CONDITIONS)

extern const struct hf__redis_dialect hf__redis_native;
extern const struct hf__redis_dialect hf__redis_plain;
extern const struct hf__redis_dialect hf__redis_redisson;

#endif

/* SPDX-License-Identifier: MIT */
/* connection.h - one connection, and the calls under way on it. */
#ifndef HF_REDIS_CONNECTION_H
#define HF_REDIS_CONNECTION_H

#include "engines/redis/redis.h"

int hf__redis_connection_open(struct hf__redis *redis, hf_error *err);
/* The sentinels have found the master: go on with connecting. */
void hf__redis_connection_found(struct hf__redis *redis, const char *host,
                                int port);
bool hf__redis_connection_has_password(const struct hf__redis *redis);
/* HELLO, with the password where @auth. */
void hf__redis_connection_put_hello(const struct hf__redis *redis,
                                    struct hf__buf *out, bool auth);
/* The password has been sent; it need not stay in our memory. */
void hf__redis_connection_forget_password(struct hf__buf *out);
typedef void hf__redis_message_fn(void *ctx, struct hf__resp *message);
/* Hand out each whole message that has come, until @stream ends. False: what
 * came is not the protocol. */
bool hf__redis_connection_read(struct hf__stream *stream,
                               struct hf__resp_scan *scan,
                               hf__redis_message_fn *push,
                               hf__redis_message_fn *answer, void *ctx);
/* Forget the connection; nothing is reported. */
void hf__redis_connection_close(struct hf__redis *redis, bool forked);
/* The connection cannot be trusted any more: report what was under way. */
void hf__redis_connection_fail(struct hf__redis *redis, const hf_error *err);
/* Begin a command: @arguments of it follow, by hf__resp_arg*() into
 * redis->stream.out, then hf__redis_connection_end(). */
size_t hf__redis_connection_begin(struct hf__redis *redis, uint32_t arguments);
/* @mark is what _begin() returned. HF_ENOMEM takes the command back. */
int hf__redis_connection_end(struct hf__redis *redis, size_t mark,
                             const struct hf__redis_call *call, hf_error *err);
/* A command of a few words, none of which contains a space. */
int hf__redis_connection_say(struct hf__redis *redis, const char *words,
                             const struct hf__redis_call *call, hf_error *err);
/* The one that _end() was called for last; there has to be one. */
static inline struct hf__redis_call *hf__redis_connection_last_call(
    const struct hf__redis *redis)
{
    return hf__calls_at(&redis->calls, redis->calls.n - 1);
}
/* Begin EVALSHA of @script with @keys keys and @arguments arguments. */
size_t hf__redis_connection_script_begin(struct hf__redis *redis, int script,
                                         uint32_t keys, uint32_t arguments);
/* The same by EVAL, for what is asked rarely. */
size_t hf__redis_connection_eval_begin(struct hf__redis *redis, int script,
                                       uint32_t keys, uint32_t arguments);
/* Give the server the text of @script. */
int hf__redis_connection_script_load(struct hf__redis *redis, int script);
/* Does @value say that the server has forgotten @script? Then the server gets
 * its text, and the caller asks again. */
bool hf__redis_connection_script_lost(struct hf__redis *redis,
                                      const struct hf__resp_value *value,
                                      int script);
/* Begin EVALSHA of @script for @ticket, whose key comes first, and alone. */
size_t hf__redis_connection_ticket_begin(struct hf__redis *redis,
                                         struct hf__ticket *ticket, int script,
                                         uint32_t arguments);
/* An answer that says nothing: what depends on it will tell. */
hf__redis_reply_fn hf__redis_connection_ignore;
/* ASKING: the next command may be about a slot that is on its way to here. */
void hf__redis_connection_put_asking(struct hf__redis *redis,
                                     const struct hf__redis_ticket *mine);
/* Make sure that grants are heard: SUBSCRIBE once per connection. */
int hf__redis_connection_subscribe(struct hf__redis *redis, hf_error *err);
/* The value of "key:value" in the text of INFO; "" if it is not there. */
void hf__redis_connection_read_info(const struct hf__resp_value *info,
                                    const char *key, char *to, size_t size);
/* Send SUBSCRIBE or UNSUBSCRIBE of @channel. */
int hf__redis_connection_send_subscribe(struct hf__redis *redis, bool on,
                                        const char *channel, size_t len,
                                        hf_error *err);

/* Where a failover can take the locks away, somebody listens as long as there
 * are any, so that LOST is told when it happens. Not at once, though: a lock
 * that is taken and released in a moment should not wake a thread. */
#define HF__REDIS_WATCH_NS (100 * HF_MS)
/* Answers to come, so that somebody listens. */
static inline void hf__redis_connection_count(struct hf__redis *redis)
{
    uint32_t n = redis->calls.n;

    redis->watching = redis->watching && redis->tickets.n > 0;
    n += redis->watching + redis->live_feeds;
    if (redis->under_way_sum)
        *redis->under_way_sum += n - redis->base.under_way;
    redis->base.under_way = n;
}

#endif

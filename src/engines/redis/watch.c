/* SPDX-License-Identifier: MIT */
/*
 * watch.c - hints that something changed: the server's tracking of keys.
 *
 * A feed is a connection of its own, on which the server tells each key that
 * begins with the feed's prefix when it is written, deleted or expires (CLIENT
 * TRACKING ON BCAST PREFIX). The server does that for every way of writing, so
 * locks cost nothing more, and nothing at all while nobody watches. Events of
 * the keyspace would need another configuration of the server, and a message
 * from the scripts would cost every pair.
 *
 * Failure: a connection that ends is not live any more, and anything may have
 * changed; the core looks in turns, and asks for it again. A user who may not
 * track keys is not asked twice.
 */
#include "config/name.h"
#include "engines/redis/connection.h"
#include "engines/redis/inspect.h"
#include "engines/redis/verbs.h"

/* feed->engine_data. */
struct tracker {
    struct hf__list link; /* redis->trackers */
    struct hf__redis *redis;
    struct hf__feed *feed;
    struct hf__stream stream;
    struct hf__resp_scan scan;
    uint32_t answers; /* that have come: to HELLO, to CLIENT TRACKING */
};

static void set_live(struct tracker *tracker, bool live)
{
    struct hf__redis *redis = tracker->redis;

    if (tracker->feed->live == live)
        return;
    tracker->feed->live = live;
    redis->live_feeds += live ? 1 : -1;
    hf__redis_connection_count(redis);
}

/* ---- what the server says -------------------------------------------------- */

/* "hf:{jobs}:q" is about jobs. */
static void tell_key(struct hf__redis *redis, struct hf__resp_value key)
{
    char name[HF_NAME_MAX + 1];
    const char *end = key.type == HF__RESP_TEXT && key.len > 0
                          ? memchr(key.text, '}', key.len)
                          : NULL;

    if (!end)
        return;
    key.len = (size_t)(end - key.text) + 1;
    if (hf__redis_inspect_name(redis, &key, name, sizeof(name)))
        hf__up_changed(&redis->base, name);
}

/* "invalidate", and the keys; none after FLUSHALL. */
static void on_push(void *ctx, struct hf__resp *message)
{
    const struct tracker *tracker = ctx;
    struct hf__resp_value head = hf__resp_next(message);
    struct hf__resp_value kind = hf__resp_next(message);
    struct hf__resp_value keys = hf__resp_next(message);

    if (head.count != 2 || !hf__resp_is(&kind, "invalidate"))
        return;
    if (keys.type != HF__RESP_LIST)
        hf__up_changed(&tracker->redis->base, NULL);
    for (uint32_t i = 0; keys.type == HF__RESP_LIST && i < keys.count; i++) {
        struct hf__resp_value key = hf__resp_next(message);

        tell_key(tracker->redis, key);
        hf__resp_skip(message, &key);
    }
}

static void end(struct tracker *tracker, const char *why)
{
    hf_error err;

    (void)hf__fail(&err, HF_EUNAVAILABLE, "%s: %s", tracker->redis->peer, why);
    hf__stream_fail(&tracker->stream, &err);
}

static void on_answer(void *ctx, struct hf__resp *message)
{
    struct tracker *tracker = ctx;
    struct hf__resp_value value = hf__resp_next(message);

    tracker->answers++;
    hf__redis_connection_forget_password(&tracker->stream.out);
    if (value.type == HF__RESP_ERROR) {
        tracker->feed->refused = true;
        end(tracker, "keys cannot be tracked");
    } else if (tracker->answers == 2) {
        set_live(tracker, true);
        hf__up_changed(&tracker->redis->base, NULL);
    }
}

static void stream_received(struct hf__stream *stream)
{
    struct tracker *tracker = HF_CONTAINER_OF(stream, struct tracker, stream);

    if (!hf__redis_connection_read(stream, &tracker->scan, on_push, on_answer,
                                   tracker))
        end(tracker, "a malformed message");
}

/* Its memory stays until the core asks again, or stops. */
static void stream_closed(struct hf__stream *stream, const hf_error *err)
{
    struct tracker *tracker = HF_CONTAINER_OF(stream, struct tracker, stream);

    (void)err;
    set_live(tracker, false);
    hf__up_changed(&tracker->redis->base, NULL);
}

/* ---- asking ---------------------------------------------------------------- */

/* What the keys of the feed's names begin with, into redis->scratch. */
static void find_prefix(struct hf__redis *redis, const struct hf__feed *feed)
{
    const char *text = feed->name ? feed->name : feed->prefix;

    redis->dialect->key(redis, text, strlen(text));
    if (!feed->name && !hf__buf_failed(&redis->scratch))
        redis->scratch.len--; /* the brace behind the name */
}

static void stream_opened(struct hf__stream *stream)
{
    struct tracker *tracker = HF_CONTAINER_OF(stream, struct tracker, stream);
    struct hf__redis *redis = tracker->redis;
    struct hf__buf *out = &stream->out;

    find_prefix(redis, tracker->feed);
    hf__redis_connection_put_hello(redis, out,
                                   hf__redis_connection_has_password(redis));
    hf__resp_head(out, 6);
    hf__resp_arg_text(out, "CLIENT");
    hf__resp_arg_text(out, "TRACKING");
    hf__resp_arg_text(out, "ON");
    hf__resp_arg_text(out, "BCAST");
    hf__resp_arg_text(out, "PREFIX");
    hf__resp_arg(out, redis->scratch.text, redis->scratch.len);
    if (hf__buf_failed(out) || hf__buf_failed(&redis->scratch))
        end(tracker, "out of memory");
    else
        hf__stream_flush(stream);
}

void hf__redis_watch_stop(struct hf__engine *engine, struct hf__feed *feed)
{
    struct tracker *tracker = HF_STEAL(feed->engine_data);

    (void)engine;
    if (!tracker)
        return;
    hf__stream_stop(&tracker->stream, /* forked= */ false);
    set_live(tracker, false);
    hf__list_remove(&tracker->link);
    hf__free(tracker);
}

void hf__redis_watch_close(struct hf__redis *redis, bool forked)
{
    if (!redis->trackers.next)
        return; /* open() has not begun */
    HF_LIST_EACH(&redis->trackers, link) {
        hf__stream_stop(&HF_CONTAINER_OF(link, struct tracker, link)->stream,
                        forked);
    }
}

void hf__redis_watch_start(struct hf__engine *engine, struct hf__feed *feed)
{
    struct hf__redis *redis = (struct hf__redis *)engine;
    struct tracker *tracker;

    hf__redis_watch_stop(engine, feed);
    feed->refused = redis->dialect != &hf__redis_native;
    tracker = feed->refused ? NULL : hf__calloc(1, sizeof(*tracker));
    if (!tracker)
        return;
    tracker->redis = redis;
    tracker->feed = feed;
    tracker->stream.loop = redis->stream.loop;
    tracker->stream.peer = redis->stream.peer;
    tracker->stream.io.fd = -1;
    tracker->stream.opened = stream_opened;
    tracker->stream.received = stream_received;
    tracker->stream.closed = stream_closed;
    hf__list_append(&redis->trackers, &tracker->link);
    feed->engine_data = tracker;
    if (hf__stream_start(&tracker->stream, /* err= */ NULL) != 0)
        hf__redis_watch_stop(engine, feed);
}

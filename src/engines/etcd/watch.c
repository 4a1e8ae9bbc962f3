/* SPDX-License-Identifier: MIT */
/*
 * watch.c - hints that something changed: one stream for each feed.
 *
 * The server is asked to watch the keys of a name, or of all names with a
 * prefix, from now on. When it says that the watch is made, anything may have
 * changed since the core last looked; after that each event names its key. The
 * last message of a watch that the server ends (compacted, or not permitted)
 * means the same as a stream that breaks: anything may have changed, and until
 * the core asks again it looks in turns.
 *
 * While a feed is live one answer counts as still to come, so that somebody
 * reads the connection.
 */
#include "config/name.h"
#include "engines/etcd/etcd.h"

static void set_live(struct hf__etcd *etcd, struct hf__feed *feed, bool live)
{
    if (feed->live == live)
        return;
    feed->live = live;
    etcd->base.under_way += live ? 1 : -1;
}

/* The name whose queue has @key; false: none. */
static bool read_name(const struct hf__etcd *etcd, struct hf__pb key,
                      char name[HF_NAME_MAX + 1])
{
    const char *at = key.bytes + etcd->prefix_len;
    const char *slash;
    size_t n;

    if (key.len <= etcd->prefix_len || *at == '~' ||
        memcmp(key.bytes, etcd->prefix, etcd->prefix_len) != 0)
        return false;
    slash = memchr(at, '/', key.len - etcd->prefix_len);
    if (!slash)
        return false;
    n = hf__name_decode(at, (size_t)(slash - at), name, HF_NAME_MAX + 1);
    name[n] = '\0';
    return n > 0;
}

static void tell_events(struct hf__etcd *etcd, struct hf__pb message)
{
    char name[HF_NAME_MAX + 1];
    struct hf__pb event;
    size_t at = 0;

    while (hf__pb_there(event = hf__pb_next(message, HF__WATCH_EVENTS, &at))) {
        struct hf__pb kv = hf__pb_inside(event, HF__EVENT_KV);

        if (hf__pb_there(kv) &&
            read_name(etcd, hf__pb_inside(kv, HF__KV_KEY), name))
            hf__up_changed(&etcd->base, name);
    }
}

/* The stream is over, or is to be. */
static void lose(struct hf__etcd *etcd, struct hf__feed *feed)
{
    feed->engine_data = NULL;
    set_live(etcd, feed, false);
    if (hf__etcd_connection_is_up(etcd))
        hf__up_changed(&etcd->base, NULL);
}

static void on_message(struct hf__grpc_call *rpc, struct hf__pb message)
{
    struct hf__etcd_call *call =
        HF_CONTAINER_OF(rpc, struct hf__etcd_call, rpc);
    struct hf__etcd *etcd = call->etcd;
    struct hf__feed *feed = call->feed;

    if (hf__pb_number(message, HF__WATCH_CANCELED) != 0) {
        hf__etcd_connection_end(call);
        lose(etcd, feed);
    } else if (hf__pb_number(message, HF__WATCH_CREATED) != 0) {
        set_live(etcd, feed, true);
        hf__up_changed(&etcd->base, NULL);
    } else {
        tell_events(etcd, message);
    }
}

static void on_ended(struct hf__etcd *etcd, struct hf__etcd_call *call,
                     const struct hf__etcd_reply *reply)
{
    (void)reply;
    lose(etcd, call->feed);
}

void hf__etcd_watch_stop(struct hf__engine *engine, struct hf__feed *feed)
{
    hf__etcd_connection_end(HF_STEAL(feed->engine_data));
    set_live((struct hf__etcd *)engine, feed, false);
}

void hf__etcd_watch(struct hf__engine *engine, struct hf__feed *feed)
{
    struct hf__etcd *etcd = (struct hf__etcd *)engine;
    struct hf__etcd_call *call;
    size_t create;

    hf__etcd_watch_stop(engine, feed);
    if (!hf__etcd_connection_is_up(etcd))
        return;
    call = hf__etcd_connection_call(etcd, HF__CALL_WATCH, on_ended);
    call->feed = feed;
    call->stream = true;
    call->rpc.message = on_message;
    create = hf__pb_begin(&call->rpc.body, HF__WATCH_CREATE);
    if (feed->name)
        hf__etcd_queue_key(etcd, feed->name, strlen(feed->name));
    else
        hf__etcd_queue_key_names(etcd, feed->prefix);
    hf__etcd_queue_add_key(etcd, &call->rpc.body, /* range= */ true);
    hf__pb_end(&call->rpc.body, create);
    if (hf__etcd_connection_send(call, /* err= */ NULL) == 0)
        feed->engine_data = call; /* otherwise the core looks in turns */
}

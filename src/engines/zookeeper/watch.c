/* SPDX-License-Identifier: MIT */
/*
 * watch.c - hints that something changed: persistent recursive watches.
 *
 * A feed is a watch (addWatch, ZooKeeper 3.6) of the lock's node, or, for a
 * prefix, of the node that all locks are below. The server then sends an event
 * for every node below it that comes, changes or goes, until the connection
 * ends. An event of any watch, also of a waiter's, is a hint for every feed.
 *
 * A watch for a prefix is removed with the last such feed. That of one lock
 * stays until the connection ends, because removing it would remove the watches
 * of waiters on the same node.
 *
 * Failure: an older server does not know the request, says so, and ends the
 * connection, though not the session. It is not asked a second time, and the
 * core looks in turns.
 */
#include "engines/zookeeper/zookeeper.h"

enum { PERSISTENT_RECURSIVE = 1, ANY_WATCH = 3 };

static void set_live(struct hf__zk *zk, struct hf__feed *feed, bool live)
{
    if (feed->live == live)
        return;
    feed->live = live;
    zk->base.under_way += live ? 1 : -1;
}

/* ---- events ---------------------------------------------------------------- */

void hf__zk_watch_event(struct hf__zk *zk, struct hf__zk_wire_text path)
{
    char name[HF_NAME_MAX + 1];
    struct hf__zk_wire_text child;
    const char *slash;

    if (hf__list_empty(&zk->feeds) || path.len <= zk->root_len + 1 ||
        memcmp(path.text, zk->root, zk->root_len) != 0 ||
        path.text[zk->root_len] != '/')
        return;
    child.text = path.text + zk->root_len + 1;
    child.len = path.len - zk->root_len - 1;
    slash = memchr(child.text, '/', child.len);
    if (slash)
        child.len = (size_t)(slash - child.text);
    if (hf__zk_nodes_name(zk, child, name))
        hf__up_changed(&zk->base, name);
}

/* ---- feeds ----------------------------------------------------------------- */

static int32_t number_of(const struct hf__feed *feed)
{
    return (int32_t)(intptr_t)feed->engine_data;
}

static struct hf__feed *find_feed(const struct hf__zk *zk, int32_t number)
{
    HF_LIST_EACH(&zk->feeds, link) {
        struct hf__feed *feed = HF_CONTAINER_OF(link, struct hf__feed, link);

        if (number_of(feed) == number)
            return feed;
    }
    return NULL;
}

static void on_added(struct hf__zk *zk, const struct hf__zk_call *call,
                     struct hf__zk_reply *reply)
{
    struct hf__feed *feed = find_feed(zk, call->number);

    if (!reply)
        return;
    if (reply->error == HF__ZK_UNIMPLEMENTED)
        zk->cannot_watch = true;
    if (!feed)
        return;
    feed->refused = reply->error != HF__ZK_OK;
    if (feed->refused)
        return;
    set_live(zk, feed, true);
    hf__up_changed(&zk->base, NULL);
}

/* A request that is the node whose descendants @feed is about, and a number. */
static int send_node(struct hf__zk *zk, int32_t type,
                     const struct hf__feed *feed, int32_t number,
                     const struct hf__zk_call *call)
{
    size_t mark = hf__zk_calls_begin(zk, type);

    hf__zk_wire_put(&zk->stream.out,
                    feed->name
                        ? hf__zk_nodes_path(zk, /* beside= */ "", feed->name,
                                            strlen(feed->name))
                        : hf__zk_wire_text_of(zk->top));
    hf__zk_wire_put_int(&zk->stream.out, number);
    return hf__zk_calls_end(zk, mark, call, /* err= */ NULL);
}

void hf__zk_watch(struct hf__engine *engine, struct hf__feed *feed)
{
    struct hf__zk *zk = (struct hf__zk *)engine;
    struct hf__zk_call call = {.done = on_added};

    set_live(zk, feed, false);
    hf__list_remove(&feed->link);
    feed->refused = zk->cannot_watch;
    if (feed->refused)
        return;
    zk->feed_number = zk->feed_number == INT32_MAX ? 1 : zk->feed_number + 1;
    feed->engine_data = (void *)(intptr_t)zk->feed_number;
    call.number = zk->feed_number;
    if (send_node(zk, HF__ZK_ADD_WATCH, feed, PERSISTENT_RECURSIVE, &call) == 0)
        hf__list_append(&zk->feeds, &feed->link);
}

static bool has_prefix_feed(const struct hf__zk *zk)
{
    HF_LIST_EACH(&zk->feeds, link) {
        if (!HF_CONTAINER_OF(link, struct hf__feed, link)->name)
            return true;
    }
    return false;
}

void hf__zk_watch_stop(struct hf__engine *engine, struct hf__feed *feed)
{
    struct hf__zk *zk = (struct hf__zk *)engine;
    struct hf__zk_call call = {.done = hf__zk_calls_ignore};

    hf__list_remove(&feed->link);
    if (feed->live && !feed->name && !has_prefix_feed(zk))
        (void)send_node(zk, HF__ZK_REMOVE_WATCHES, feed, ANY_WATCH, &call);
    set_live(zk, feed, false);
}

void hf__zk_watch_lose(struct hf__zk *zk)
{
    HF_LIST_EACH(&zk->feeds, link) {
        struct hf__feed *feed = HF_CONTAINER_OF(link, struct hf__feed, link);

        hf__list_remove(link);
        set_live(zk, feed, false);
    }
}

/* SPDX-License-Identifier: MIT */
/*
 * calls.c - the calls under way on the connection, and those that wait.
 *
 * Answers come in the order of the calls. What is asked before the monitor is
 * left is one flight, however many writes it has: the leader takes them
 * together. While a write is under way nothing else is sent. Later calls wait
 * here, in order, with their bytes, and are the next flight.
 *
 * A SERVER THAT SLEEPS. A member of an ensemble of ZooKeeper 3.8 sometimes
 * sleeps with a request in its queue until another request wakes it: its
 * CommitProcessor checks the queue before it takes the lock that it sleeps
 * with, and does not check again. So when an answer takes long we send pings,
 * with growing pauses.
 */
#include "engines/zookeeper/zookeeper.h"

#define NUDGE_NS (30 * HF_MS)

bool hf__zk_calls_writes(const struct hf__zk_call *call)
{
    switch (call->type) {
    case HF__ZK_DELETE:
    case HF__ZK_SET_DATA:
    case HF__ZK_SYNC:
    case HF__ZK_MULTI:
    case HF__ZK_CREATE:
    case HF__ZK_CREATE_CONTAINER:
        return true;
    default:
        return false;
    }
}

static int push_call(struct hf__zk *zk, struct hf__zk_call *call)
{
    call->known_ns =
        hf__zk_lease_known(&zk->lease, hf__zk_session_ns(zk), call->sent_ns);
    if (!hf__calls_add(&zk->calls, call))
        return HF_ENOMEM;
    zk->base.under_way++;
    zk->writes += hf__zk_calls_writes(call);
    zk->boarding += hf__zk_calls_writes(call);
    zk->sent_ns = call->sent_ns;
    if (zk->calls.n == 1)
        zk->nudge_ns = call->sent_ns + NUDGE_NS;
    hf__link_wake(&zk->link, zk->nudge_ns);
    return 0;
}

const struct hf__zk_call *hf__zk_calls_oldest(const struct hf__zk *zk)
{
    return hf__calls_at(&zk->calls, 0);
}

bool hf__zk_calls_take(struct hf__zk *zk, struct hf__zk_call *call)
{
    if (!hf__calls_take(&zk->calls, call))
        return false;
    zk->base.under_way--;
    zk->writes -= hf__zk_calls_writes(call);
    zk->nudge_ns = hf__now() + NUDGE_NS;
    return true;
}

void hf__zk_calls_take_back(struct hf__zk *zk, size_t mark)
{
    zk->stream.out.failed = false;
    zk->stream.out.len = mark;
}

static void put_ping(struct hf__zk *zk, int64_t now_ns)
{
    struct hf__buf *out = &zk->stream.out;
    size_t mark = out->len;

    hf__zk_wire_put_int(out, 8);
    hf__zk_wire_put_int(out, HF__ZK_XID_PING);
    hf__zk_wire_put_int(out, HF__ZK_PING);
    if (hf__buf_failed(out))
        hf__zk_calls_take_back(zk, mark);
    zk->sent_ns = now_ns;
}

int64_t hf__zk_calls_nudge(struct hf__zk *zk, int64_t now_ns)
{
    int64_t pause_ns = now_ns - hf__zk_calls_oldest(zk)->sent_ns;

    if (now_ns < zk->nudge_ns)
        return zk->nudge_ns;
    put_ping(zk, now_ns);
    if (pause_ns > hf__zk_session_silence_ns(zk))
        pause_ns = hf__zk_session_silence_ns(zk);
    zk->nudge_ns = now_ns + (pause_ns > NUDGE_NS ? pause_ns : NUDGE_NS);
    return zk->nudge_ns;
}

/* ---- one flight at a time ------------------------------------------------ */

/* Is every write under way still in the buffer? */
static bool is_boarding(const struct hf__zk *zk)
{
    return zk->writes == zk->boarding;
}

static int keep(struct hf__zk *zk, const struct hf__zk_call *call, size_t mark)
{
    struct hf__buf *out = &zk->stream.out;
    size_t len = out->len - mark;
    struct hf__zk_pending *pending = hf__malloc(sizeof(*pending) + len);

    if (!pending)
        return HF_ENOMEM;
    pending->next = NULL;
    pending->call = *call;
    pending->len = len;
    memcpy(pending->bytes, out->text + mark, len);
    out->len = mark;
    *zk->pending_last = pending;
    zk->pending_last = &pending->next;
    zk->base.under_way++;
    return 0;
}

static struct hf__zk_pending *take_pending(struct hf__zk *zk)
{
    struct hf__zk_pending *pending = zk->pending;

    if (!pending)
        return NULL;
    zk->pending = pending->next;
    if (!zk->pending)
        zk->pending_last = &zk->pending;
    zk->base.under_way--;
    return pending;
}

void hf__zk_calls_send_pending(struct hf__zk *zk)
{
    hf_error err;

    while (zk->pending && is_boarding(zk)) {
        struct hf__zk_pending *pending = take_pending(zk);
        int rc;

        pending->call.sent_ns = hf__now();
        hf__buf_append(&zk->stream.out, pending->bytes, pending->len);
        rc = hf__buf_failed(&zk->stream.out) ? HF_ENOMEM
                                             : push_call(zk, &pending->call);
        hf__free(pending);
        if (rc == 0)
            continue;
        /* What is half sent cannot be taken back. */
        (void)hf__fail(&err, HF_EUNAVAILABLE, "%s: out of memory", zk->peer);
        hf__zk_connection_fail(zk, &err);
        return;
    }
}

void hf__zk_calls_flush(struct hf__engine *engine)
{
    struct hf__zk *zk = (struct hf__zk *)engine;

    zk->boarding = 0;
    hf__stream_flush(&zk->stream);
}

/* ---- requests ------------------------------------------------------------ */

size_t hf__zk_calls_begin(struct hf__zk *zk, int32_t type)
{
    size_t mark = zk->stream.out.len;

    zk->xid = zk->xid == INT32_MAX ? 1 : zk->xid + 1;
    zk->type = type;
    hf__zk_wire_put_int(&zk->stream.out, 0);
    hf__zk_wire_put_int(&zk->stream.out, zk->xid);
    hf__zk_wire_put_int(&zk->stream.out, type);
    return mark;
}

void hf__zk_calls_close_frame(struct hf__zk *zk, size_t mark)
{
    struct hf__buf *out = &zk->stream.out;

    hf__zk_wire_patch_int(out, mark, (int32_t)(out->len - mark - 4));
}

int hf__zk_calls_end(struct hf__zk *zk, size_t mark,
                     const struct hf__zk_call *call, hf_error *err)
{
    struct hf__buf *out = &zk->stream.out;
    struct hf__zk_call made = *call;
    int rc = HF_ENOMEM;

    hf__zk_calls_close_frame(zk, mark);
    made.type = zk->type;
    made.xid = zk->xid;
    made.sent_ns = hf__now();
    if (hf__zk_connection_is_up(zk) && !hf__buf_failed(out))
        rc = zk->pending || !is_boarding(zk) ? keep(zk, &made, mark)
                                             : push_call(zk, &made);
    if (rc == 0 && call->step)
        hf__zk_ticket(zk, hf__zk_tickets_find(zk, call->ticket))->under_way =
            true;
    if (rc == 0)
        return 0;
    hf__zk_calls_take_back(zk, mark);
    if (!hf__zk_connection_is_up(zk))
        return hf__zk_errors_not_up(zk, err);
    return hf__fail(err, HF_ENOMEM, "out of memory");
}

int hf__zk_calls_ask(struct hf__zk *zk, int32_t type,
                     struct hf__zk_wire_text path, bool watch,
                     const struct hf__zk_call *call, hf_error *err)
{
    size_t mark = hf__zk_calls_begin(zk, type);

    hf__zk_wire_put(&zk->stream.out, path);
    hf__zk_wire_put_bool(&zk->stream.out, watch);
    return hf__zk_calls_end(zk, mark, call, err);
}

void hf__zk_calls_ignore(struct hf__zk *zk, const struct hf__zk_call *call,
                         struct hf__zk_reply *reply)
{
    (void)zk;
    (void)call;
    (void)reply; /* that it was answered is all */
}

int hf__zk_calls_sync(struct hf__zk *zk, hf_error *err)
{
    struct hf__zk_call call = {.done = hf__zk_calls_ignore};
    size_t mark = hf__zk_calls_begin(zk, HF__ZK_SYNC);

    hf__zk_wire_put_text(&zk->stream.out, zk->top, strlen(zk->top));
    return hf__zk_calls_end(zk, mark, &call, err);
}

/* The leader answers its own clients' sync without waiting for what it has
 * committed and not applied yet, while a follower may have answered for it. The
 * session's reads behind a write wait until that is applied, also behind one that
 * fails: no node has this name. Its parent is missing, too: a server that checks
 * rights eagerly has none to refuse by itself. */
int hf__zk_calls_barrier(struct hf__zk *zk, hf_error *err)
{
    struct hf__zk_call call = {.done = hf__zk_calls_ignore};

    return hf__zk_calls_delete(
        zk,
        hf__zk_nodes_below(zk, hf__zk_nodes_root(zk),
                           hf__zk_wire_text_of(".barrier/none")),
        &call, err);
}

int hf__zk_calls_delete(struct hf__zk *zk, struct hf__zk_wire_text path,
                        const struct hf__zk_call *call, hf_error *err)
{
    size_t mark = hf__zk_calls_begin(zk, HF__ZK_DELETE);

    hf__zk_wire_put(&zk->stream.out, path);
    hf__zk_wire_put_int(&zk->stream.out, HF__ZK_ANY_VERSION);
    return hf__zk_calls_end(zk, mark, call, err);
}

int hf__zk_calls_create(struct hf__zk *zk, struct hf__zk_wire_text path,
                        struct hf__zk_wire_text data, int32_t kind,
                        const struct hf__zk_call *call, hf_error *err)
{
    size_t mark = hf__zk_calls_begin(
        zk, kind == HF__ZK_CONTAINER ? HF__ZK_CREATE_CONTAINER : HF__ZK_CREATE);

    hf__zk_wire_put(&zk->stream.out, path);
    hf__zk_wire_put(&zk->stream.out, data);
    hf__zk_acl_put(zk, &zk->stream.out);
    hf__zk_wire_put_int(&zk->stream.out, kind);
    return hf__zk_calls_end(zk, mark, call, err);
}

int hf__zk_calls_set(struct hf__zk *zk, struct hf__zk_wire_text path,
                     struct hf__zk_wire_text data, int32_t version,
                     const struct hf__zk_call *call, hf_error *err)
{
    size_t mark = hf__zk_calls_begin(zk, HF__ZK_SET_DATA);

    hf__zk_wire_put(&zk->stream.out, path);
    hf__zk_wire_put(&zk->stream.out, data);
    hf__zk_wire_put_int(&zk->stream.out, version);
    return hf__zk_calls_end(zk, mark, call, err);
}

/* ---- the end of the connection ------------------------------------------- */

void hf__zk_calls_lose(struct hf__zk *zk)
{
    struct hf__zk_pending *pending;
    struct hf__zk_call call;

    zk->boarding = 0;
    while (hf__zk_calls_take(zk, &call))
        call.done(zk, &call, /* reply= */ NULL);
    while ((pending = take_pending(zk)) != NULL) {
        call = pending->call;
        hf__free(pending);
        call.done(zk, &call, /* reply= */ NULL);
    }
}

/* Calls that nobody will answer. */
void hf__zk_calls_drop(struct hf__zk *zk)
{
    struct hf__zk_pending *pending;
    struct hf__zk_call call;

    while ((pending = take_pending(zk)) != NULL) {
        hf__zk_inspect_drop(pending->call.query);
        hf__free(pending);
    }
    while (hf__calls_take(&zk->calls, &call))
        hf__zk_inspect_drop(call.query);
    hf__calls_release(&zk->calls);
    zk->base.under_way = 0;
}

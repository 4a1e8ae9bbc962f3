/* SPDX-License-Identifier: MIT */
/*
 * connection.c - one connection to one server of the URL: frames in and out.
 *
 * Failure: a frame that is not the protocol, an overdue answer, or the end of
 * the stream drops the connection. Each call hears of it in order, and then the
 * core.
 */
#include <stdio.h>

#include "engines/zookeeper/zookeeper.h"

/* ---- the end of a connection --------------------------------------------- */

void hf__zk_connection_stop(struct hf__zk *zk, bool forked)
{
    hf__stream_stop(&zk->stream, forked);
    zk->connection = HF__ZK_DOWN;
}

static void stream_closed(struct hf__stream *stream, const hf_error *err)
{
    struct hf__zk *zk = HF_CONTAINER_OF(stream, struct hf__zk, stream);
    hf_error told = *err;

    /* A server that is behind what we have seen does not greet us. When none
     * of them does, again and again, what we have seen was not theirs; a sync
     * comes before everything that depends on it. */
    if (zk->connection == HF__ZK_DOWN &&
        ++zk->refusals > 2 * zk->base.host->url->n_hosts)
        zk->zxid = 0;
    hf__zk_connection_stop(zk, /* forked= */ false);
    zk->server = (zk->server + 1) % zk->base.host->url->n_hosts;
    hf__zk_condition_unwatch_all(zk);
    hf__zk_calls_lose(zk);
    hf__zk_watch_lose(zk);
    if (strncmp(told.text, zk->peer, strlen(zk->peer)) != 0)
        (void)hf__fail_in(&told, told.code, "%s", zk->peer);
    hf__up_down(&zk->base, &told);
}

void hf__zk_connection_fail(struct hf__zk *zk, const hf_error *err)
{
    hf__stream_fail(&zk->stream, err);
}

void hf__zk_connection_garbled(struct hf__zk *zk, const char *what)
{
    hf_error err;

    (void)hf__fail(&err, HF_EUNAVAILABLE,
                   "%s: what it says is not ZooKeeper's protocol (%s)",
                   zk->peer, what);
    hf__zk_connection_fail(zk, &err);
}

/* ---- reading ------------------------------------------------------------- */

static void on_event(struct hf__zk *zk, struct hf__zk_wire *in)
{
    struct hf__zk_wire_text path;

    (void)hf__zk_wire_int(in); /* what happened: the waiter looks again */
    (void)hf__zk_wire_int(in);
    path = hf__zk_wire_text(in);
    if (in->bad) {
        hf__zk_connection_garbled(zk, "a malformed event");
    } else {
        hf__zk_wait_event(zk, path);
        hf__zk_watch_event(zk, path);
    }
}

/* Is the body of a good answer what the request is answered with? Looked at
 * before anybody reads it. */
static bool is_shaped(int32_t type, struct hf__zk_wire in)
{
    struct hf__zk_wire_part part;
    struct hf__zk_wire_stat stat;
    uint32_t count;

    switch (type) {
    case HF__ZK_GET_CHILDREN:
    case HF__ZK_GET_CHILDREN2:
        count = hf__zk_wire_count(&in, /* least= */ 4);
        while (count-- > 0 && !in.bad)
            (void)hf__zk_wire_text(&in);
        if (type == HF__ZK_GET_CHILDREN2)
            hf__zk_wire_stat(&in, &stat);
        break;
    case HF__ZK_CREATE:
    case HF__ZK_CREATE_CONTAINER:
    case HF__ZK_GET_DATA:
        (void)hf__zk_wire_text(&in);
        hf__zk_wire_stat(&in, &stat);
        break;
    case HF__ZK_EXISTS:
    case HF__ZK_SET_DATA:
        hf__zk_wire_stat(&in, &stat);
        break;
    case HF__ZK_MULTI:
        while (hf__zk_wire_part(&in, &part))
            continue;
        break;
    default:
        break;
    }
    return !in.bad;
}

static void answer(struct hf__zk *zk, int32_t xid, struct hf__zk_reply *reply)
{
    struct hf__zk_call call;

    if (zk->calls.n == 0 || hf__zk_calls_oldest(zk)->xid != xid) {
        hf__zk_connection_garbled(zk, "an answer to no question");
        return;
    }
    (void)hf__zk_calls_take(zk, &call);
    if (reply->error == HF__ZK_SESSION_EXPIRED) {
        /* The call hears of a lost answer; the connection ends here. */
        call.done(zk, &call, /* reply= */ NULL);
        hf__zk_session_expired(zk);
        return;
    }
    if (reply->error == HF__ZK_OK && !is_shaped(call.type, reply->in)) {
        call.done(zk, &call, /* reply= */ NULL);
        hf__zk_connection_garbled(zk, "a malformed answer");
        return;
    }
    hf__zk_session_prove(zk, &call, reply->error);
    call.done(zk, &call, reply);
    if (!zk->stream.failed && zk->writes == 0)
        hf__zk_calls_send_pending(zk);
}

static void on_frame(struct hf__zk *zk, struct hf__zk_wire in)
{
    struct hf__zk_reply reply;
    int64_t zxid;
    int32_t xid;

    if (zk->connection == HF__ZK_DOWN) {
        hf__zk_session_on_greeting(zk, &in);
        return;
    }
    xid = hf__zk_wire_int(&in);
    zxid = hf__zk_wire_long(&in);
    reply.error = hf__zk_wire_int(&in);
    reply.in = in;
    if (in.bad) {
        hf__zk_connection_garbled(zk, "a short message");
        return;
    }
    if (zxid > zk->zxid)
        zk->zxid = zxid;
    if (xid == HF__ZK_XID_EVENT)
        on_event(zk, &reply.in);
    else if (xid == HF__ZK_XID_AUTH)
        hf__zk_session_on_auth(zk, reply.error);
    else if (xid != HF__ZK_XID_PING)
        answer(zk, xid, &reply);
}

/* One whole frame, if there is one. */
static bool take_frame(struct hf__zk *zk)
{
    struct hf__stream *stream = &zk->stream;
    const char *from = stream->in.text + stream->in_at;
    size_t len = stream->in.len - stream->in_at;
    int64_t frame = hf__zk_wire_frame(from, len);
    struct hf__zk_wire in = {from + 4, from + 4 + frame, false};

    if (frame == -2)
        hf__zk_connection_garbled(zk, "a message that is too long");
    if (frame < 0 || len - 4 < (size_t)frame)
        return false;
    stream->in_at += 4 + (size_t)frame;
    on_frame(zk, in);
    return !stream->failed && stream->in_at < stream->in.len;
}

static void stream_received(struct hf__stream *stream)
{
    struct hf__zk *zk = HF_CONTAINER_OF(stream, struct hf__zk, stream);

    while (take_frame(zk))
        continue;
}

/* ---- connecting ---------------------------------------------------------- */

static void stream_opened(struct hf__stream *stream)
{
    struct hf__zk *zk = HF_CONTAINER_OF(stream, struct hf__zk, stream);
    hf_error err;

    hf__zk_session_greet(zk);
    if (!hf__buf_failed(&stream->out))
        return;
    (void)hf__fail(&err, HF_ENOMEM, "out of memory");
    hf__zk_connection_fail(zk, &err);
}

void hf__zk_connection_peer(const struct hf__zk *zk, size_t server,
                            struct hf__stream_peer *peer)
{
    const struct hf__url_host *host = &zk->base.host->url->hosts[server];

    peer->host = host->host;
    peer->port = host->port != 0 ? host->port : zk->tls ? 2281 : 2181;
    peer->tls = zk->tls;
}

int hf__zk_connection_start(struct hf__engine *engine, hf_error *err)
{
    struct hf__zk *zk = (struct hf__zk *)engine;
    int rc;

    zk->stream.opened = stream_opened;
    zk->stream.received = stream_received;
    zk->stream.closed = stream_closed;
    zk->connect_ns = hf__now();
    hf__zk_connection_peer(zk, zk->server, &zk->stream.peer);
    (void)snprintf(zk->peer, sizeof(zk->peer), "zookeeper %.250s:%d",
                   zk->stream.peer.host, zk->stream.peer.port);
    rc = hf__stream_start(&zk->stream, err);
    if (rc != 0) {
        zk->server = (zk->server + 1) % zk->base.host->url->n_hosts;
        return hf__fail_in(err, rc, "%s", zk->peer);
    }
    hf__link_wake(&zk->link, zk->connect_ns);
    return 0;
}

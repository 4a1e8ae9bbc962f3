/* SPDX-License-Identifier: MIT */
/*
 * session.c - one connection to one server, the session behind it, and the
 * calls under way.
 *
 * A session outlives its connections: after a lost one the next connection, to
 * the next server of the URL, asks for the same session, and everything that
 * was ephemeral in it is still there. Only the ensemble ends a session, when it
 * has not heard of it for the session's timeout; the next connection is told.
 *
 * Answers come in the order of the calls. While a call that goes through the
 * leader is under way, nothing else is sent than the reads that left together
 * with it. What has to wait is kept here, in order.
 *
 * A SERVER THAT SLEEPS. A member of an ensemble of ZooKeeper 3.8 now and then
 * goes to sleep with a request in its queue, until any other one wakes it (its
 * CommitProcessor looks at the queue before it takes the lock that it sleeps
 * with, and not again). So an answer that takes long is asked for by a ping,
 * again and again with growing pauses.
 *
 * WHAT A SESSION IS GOOD FOR. A server that has lost its leader goes on
 * answering reads for a while, and the leader, which counts the session's time,
 * hears of it only with the server's next report, every half tick. So only
 * answers that came by the leader prove anything, and they prove what was heard
 * before that report (proof.c). lock_delay makes the session longer than its
 * leases: when a holder dies its node stays for that much more.
 *
 * Failure: a frame that is not the protocol, an answer that is overdue, an end
 * of the stream: the connection is dropped, each call is told so in order, and
 * then the core.
 */
#include <stdio.h>

#include "engines/zookeeper/zookeeper.h"

#define NUDGE_NS (30 * HF_MS)

enum { XID_EVENT = -1, XID_PING = -2, XID_AUTH = -4 };

/* ---- what the server says ---------------------------------------------- */

static const struct {
    int32_t error;
    int code;
    const char *text;
} errors[] = {
    {HF__ZK_UNIMPLEMENTED, HF_EUNSUPPORTED,
     "the server is too old: ZooKeeper 3.5.3 or later is needed"},
    {HF__ZK_NO_AUTH, HF_EAUTH, "not allowed by the node's access list"},
    {HF__ZK_INVALID_ACL, HF_ECONFIG, "the server does not accept the acl"},
    {HF__ZK_AUTH_FAILED, HF_EAUTH, "user and password are not accepted"},
    {HF__ZK_QUOTA, HF_ENOSPACE, "the quota is exceeded"},
    {HF__ZK_SESSION_EXPIRED, HF_EUNAVAILABLE, "the session has expired"},
    {HF__ZK_SESSION_MOVED, HF_EUNAVAILABLE, "the session is elsewhere"},
};

int hf__zk_explain(const struct hf__zk *zk, int32_t error, hf_error *err)
{
    for (size_t i = 0; i < HF_COUNT_OF(errors); i++) {
        if (errors[i].error == error)
            return hf__fail_engine(err, errors[i].code, error, "%s: %s",
                                   zk->peer, errors[i].text);
    }
    return hf__fail_engine(err, HF_EINTERNAL, error, "%s: error %d", zk->peer,
                           (int)error);
}

int hf__zk_explain_lost(const struct hf__zk *zk, hf_error *err)
{
    return hf__fail(err, HF_EUNAVAILABLE, "%s: the connection was lost",
                    zk->peer);
}

int hf__zk_not_up(const struct hf__zk *zk, hf_error *err)
{
    return hf__fail(err, HF_EUNAVAILABLE, "%s: not connected", zk->peer);
}

static int64_t session_ns(const struct hf__zk *zk)
{
    return hf__ms_to_ns(zk->session_ms);
}

int64_t hf__zk_lease_ms(const struct hf__zk *zk)
{
    return (int64_t)zk->session_ms * HF__ZK_LEASE / HF__ZK_PARTS -
           zk->base.host->settings->lock_delay_ms;
}

int64_t hf__zk_beat_ns(const struct hf__zk *zk)
{
    return session_ns(zk) * HF__ZK_BEAT / HF__ZK_PARTS;
}

/* A silent server must be left early enough to find another one. */
int64_t hf__zk_patience_ns(const struct hf__zk *zk)
{
    int64_t io_ns = hf__ms_to_ns(zk->base.host->settings->io_timeout_ms);
    int64_t early_ns = hf__ms_to_ns(hf__zk_lease_ms(zk)) * 3 / 8;

    return zk->base.host->url->n_hosts > 1 && early_ns < io_ns ? early_ns
                                                               : io_ns;
}

/* ---- calls ------------------------------------------------------------- */

static int push_call(struct hf__zk *zk, struct hf__zk_call *call)
{
    call->known_ns =
        hf__zk_proof_known(&zk->proof, session_ns(zk), call->sent_ns);
    if (!hf__calls_add(&zk->calls, call))
        return HF_ENOMEM;
    zk->base.under_way++;
    zk->writes += call->flags & HF__ZK_WRITES;
    zk->sent_ns = call->sent_ns;
    if (zk->calls.n == 1)
        zk->nudge_ns = call->sent_ns + NUDGE_NS;
    hf__zk_wake(zk, zk->nudge_ns);
    return 0;
}

static bool take_call(struct hf__zk *zk, struct hf__zk_call *call)
{
    if (!hf__calls_take(&zk->calls, call))
        return false;
    zk->base.under_way--;
    zk->writes -= call->flags & HF__ZK_WRITES;
    zk->nudge_ns = hf__now() + NUDGE_NS;
    return true;
}

static void put_ping(struct hf__zk *zk, int64_t now_ns)
{
    struct hf__buf *out = &zk->stream.out;
    size_t mark = out->len;

    hf__jute_put_int(out, 8);
    hf__jute_put_int(out, XID_PING);
    hf__jute_put_int(out, HF__ZK_PING);
    if (hf__buf_failed(out)) {
        out->failed = false;
        out->len = mark;
    }
    zk->sent_ns = now_ns;
}

int64_t hf__zk_nudge(struct hf__zk *zk, int64_t now_ns)
{
    int64_t pause_ns = now_ns - hf__zk_oldest(zk)->sent_ns;

    if (now_ns < zk->nudge_ns)
        return zk->nudge_ns;
    put_ping(zk, now_ns);
    if (pause_ns > hf__zk_beat_ns(zk))
        pause_ns = hf__zk_beat_ns(zk);
    zk->nudge_ns = now_ns + (pause_ns > NUDGE_NS ? pause_ns : NUDGE_NS);
    return zk->nudge_ns;
}

static bool must_wait(const struct hf__zk *zk, uint32_t flags)
{
    return zk->pending || (zk->writes > 0 && !(flags & HF__ZK_TRAILS));
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

/* The write under way was answered: what came after it, up to the next one and
 * the reads that belong to that. */
static void send_pending(struct hf__zk *zk)
{
    hf_error err;

    while (zk->pending &&
           (zk->writes == 0 || (zk->pending->call.flags & HF__ZK_TRAILS))) {
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
        hf__zk_fail(zk, &err);
        return;
    }
}

size_t hf__zk_begin(struct hf__zk *zk, int32_t type)
{
    size_t mark = zk->stream.out.len;

    zk->xid = zk->xid == INT32_MAX ? 1 : zk->xid + 1;
    zk->type = type;
    hf__jute_put_int(&zk->stream.out, 0);
    hf__jute_put_int(&zk->stream.out, zk->xid);
    hf__jute_put_int(&zk->stream.out, type);
    return mark;
}

static void close_frame(struct hf__zk *zk, size_t mark)
{
    struct hf__buf *out = &zk->stream.out;

    hf__jute_patch_int(out, mark, (int32_t)(out->len - mark - 4));
}

int hf__zk_end(struct hf__zk *zk, size_t mark, const struct hf__zk_call *call,
               hf_error *err)
{
    struct hf__buf *out = &zk->stream.out;
    struct hf__zk_call made = *call;
    int rc = HF_ENOMEM;

    close_frame(zk, mark);
    made.type = zk->type;
    made.xid = zk->xid;
    made.sent_ns = hf__now();
    if (zk->up && !hf__buf_failed(out))
        rc = must_wait(zk, call->flags) ? keep(zk, &made, mark)
                                        : push_call(zk, &made);
    if (rc == 0)
        return 0;
    out->failed = false;
    out->len = mark;
    if (!zk->up)
        return hf__zk_not_up(zk, err);
    return hf__fail(err, HF_ENOMEM, "out of memory");
}

int hf__zk_ask(struct hf__zk *zk, int32_t type, const char *path, size_t len,
               bool watch, const struct hf__zk_call *call, hf_error *err)
{
    size_t mark = hf__zk_begin(zk, type);

    hf__jute_put_text(&zk->stream.out, path, len);
    hf__jute_put_bool(&zk->stream.out, watch);
    return hf__zk_end(zk, mark, call, err);
}

static void ignore(struct hf__zk *zk, const struct hf__zk_call *call,
                   struct hf__zk_reply *reply)
{
    (void)zk;
    (void)call;
    (void)reply; /* that it was answered is all */
}

int hf__zk_sync(struct hf__zk *zk, hf_error *err)
{
    struct hf__zk_call call = {.done = ignore, .flags = HF__ZK_WRITES};
    size_t mark = hf__zk_begin(zk, HF__ZK_SYNC);

    hf__jute_put_text(&zk->stream.out, zk->root, zk->root_len);
    return hf__zk_end(zk, mark, &call, err);
}

int hf__zk_delete(struct hf__zk *zk, const char *path, size_t len,
                  const struct hf__zk_call *call, hf_error *err)
{
    size_t mark = hf__zk_begin(zk, HF__ZK_DELETE);

    hf__jute_put_text(&zk->stream.out, path, len);
    hf__jute_put_int(&zk->stream.out, /* any version */ -1);
    return hf__zk_end(zk, mark, call, err);
}

int hf__zk_create(struct hf__zk *zk, const char *path, size_t len,
                  const struct hf__buf *data, int32_t kind,
                  const struct hf__zk_call *call, hf_error *err)
{
    size_t mark = hf__zk_begin(
        zk, kind == HF__ZK_CONTAINER ? HF__ZK_CREATE_CONTAINER : HF__ZK_CREATE);

    hf__jute_put_text(&zk->stream.out, path, len);
    hf__jute_put_text(&zk->stream.out, data ? hf__buf_text(data) : "",
                      data ? data->len : 0);
    hf__zk_acl_put(zk, &zk->stream.out);
    hf__jute_put_int(&zk->stream.out, kind);
    if (data && hf__buf_failed(data))
        zk->stream.out.failed = true;
    return hf__zk_end(zk, mark, call, err);
}

/* ---- the end of a connection ------------------------------------------- */

void hf__zk_disconnect(struct hf__zk *zk, bool forked)
{
    hf__stream_stop(&zk->stream, forked);
    zk->up = false;
    zk->greeted = false;
}

static void tell_calls(struct hf__zk *zk)
{
    struct hf__zk_pending *pending;
    struct hf__zk_call call;

    while (take_call(zk, &call))
        call.done(zk, &call, /* reply= */ NULL);
    while ((pending = take_pending(zk)) != NULL) {
        call = pending->call;
        hf__free(pending);
        call.done(zk, &call, /* reply= */ NULL);
    }
}

static void down(struct hf__zk *zk, const hf_error *err)
{
    hf_error told = *err;

    /* A server that is behind what we have seen does not greet us. When none
     * of them does, again and again, what we have seen was not theirs; a sync
     * comes before everything that depends on it. */
    if (!zk->greeted && ++zk->refusals > 2 * zk->base.host->url->n_hosts)
        zk->zxid = 0;
    hf__zk_disconnect(zk, /* forked= */ false);
    zk->server = (zk->server + 1) % zk->base.host->url->n_hosts;
    tell_calls(zk);
    if (strncmp(told.text, zk->peer, strlen(zk->peer)) != 0)
        (void)hf__fail_in(&told, told.code, "%s", zk->peer);
    hf__up_down(&zk->base, &told);
}

void hf__zk_fail(struct hf__zk *zk, const hf_error *err)
{
    if (zk->in_received) {
        if (!zk->may_close)
            zk->fatal = *err;
        zk->may_close = true; /* the stream is in use above us */
        return;
    }
    down(zk, err);
}

static void stream_closed(struct hf__stream *stream, const hf_error *err)
{
    down(HF_CONTAINER_OF(stream, struct hf__zk, stream), err);
}

static void protocol_error(struct hf__zk *zk, const char *what)
{
    hf_error err;

    (void)hf__fail(&err, HF_EUNAVAILABLE,
                   "%s: what it says is not ZooKeeper's protocol (%s)",
                   zk->peer, what);
    hf__zk_fail(zk, &err);
}

/* ---- greeting ---------------------------------------------------------- */

static void connected(struct hf__zk *zk)
{
    zk->greeted = true;
    zk->up = true;
    hf__zk_wake(zk, hf__now() + hf__zk_beat_ns(zk));
    hf__up_connected(&zk->base);
}

/* The password has been sent; it need not stay in this buffer. */
static void send_auth(struct hf__zk *zk)
{
    struct hf__buf *out = &zk->stream.out;
    size_t mark = out->len;

    hf__jute_put_int(out, 0);
    hf__jute_put_int(out, XID_AUTH);
    hf__jute_put_int(out, HF__ZK_AUTH);
    hf__jute_put_int(out, 0); /* always */
    hf__jute_put_text(out, "digest", 6);
    hf__jute_put_text(out, zk->credentials, strlen(zk->credentials));
    close_frame(zk, mark);
    zk->sent_ns = hf__now();
}

static void on_auth(struct hf__zk *zk, int32_t error)
{
    hf_error err;

    if (error == HF__ZK_OK) {
        connected(zk);
        return;
    }
    (void)hf__zk_explain(zk, HF__ZK_AUTH_FAILED, &err);
    hf__zk_fail(zk, &err);
}

static void expired(struct hf__zk *zk)
{
    hf_error err;

    zk->up = false;
    zk->session = 0;
    memset(zk->password, 0, sizeof(zk->password));
    hf__zk_session_gone(zk);
    (void)hf__fail(&err, HF_EUNAVAILABLE, "%s: the session has expired",
                   zk->peer);
    hf__zk_fail(zk, &err);
}

/* The servers may grant less time than lock_delay alone needs. */
static bool is_too_short(struct hf__zk *zk)
{
    hf_error err;

    if (hf__zk_lease_ms(zk) > 0)
        return false;
    (void)hf__fail(&err, HF_ECONFIG,
                   "%s: a session of %d ms is granted, too short for "
                   "lock_delay: raise maxSessionTimeout of the servers, or "
                   "ask for less",
                   zk->peer, (int)zk->session_ms);
    hf__zk_fail(zk, &err);
    return true;
}

static void on_greeting(struct hf__zk *zk, struct hf__jute *in)
{
    struct hf__jute_text password;
    int32_t timeout_ms;
    int64_t session;

    (void)hf__jute_int(in); /* version of the protocol */
    timeout_ms = hf__jute_int(in);
    session = hf__jute_long(in);
    password = hf__jute_text(in);
    if (in->bad || password.len != sizeof(zk->password)) {
        protocol_error(zk, "a malformed greeting");
        return;
    }
    if (timeout_ms <= 0 || session == 0) {
        expired(zk);
        return;
    }
    zk->session_ms = timeout_ms;
    zk->session = session;
    memcpy(zk->password, password.text, sizeof(zk->password));
    zk->proven_ns = zk->sent_ns;
    hf__zk_proof_begin(&zk->proof, zk->sent_ns);
    zk->greeted = true;
    zk->refusals = 0;
    if (is_too_short(zk))
        return;
    if (zk->credentials)
        send_auth(zk);
    else
        connected(zk);
}

/* The session that is good for a lease of so long. */
static int64_t session_for(int64_t lease_ms)
{
    return (lease_ms * HF__ZK_PARTS + HF__ZK_LEASE - 1) / HF__ZK_LEASE;
}

int32_t hf__zk_wanted_ms(const struct hf__zk *zk)
{
    const struct hf__settings *settings = zk->base.host->settings;
    int64_t ms = settings->session_timeout_ms > 0
                     ? settings->session_timeout_ms
                     : session_for(settings->ttl_ms);

    ms += session_for(settings->lock_delay_ms);
    return ms > INT32_MAX ? INT32_MAX : (int32_t)ms;
}

static void stream_opened(struct hf__stream *stream)
{
    struct hf__zk *zk = HF_CONTAINER_OF(stream, struct hf__zk, stream);
    struct hf__buf *out = &stream->out;
    size_t mark = out->len;
    hf_error err;

    hf__jute_put_int(out, 0);
    hf__jute_put_int(out, 0); /* version of the protocol */
    hf__jute_put_long(out, zk->session != 0 ? zk->zxid : 0);
    hf__jute_put_int(out, hf__zk_wanted_ms(zk));
    hf__jute_put_long(out, zk->session);
    hf__jute_put_text(out, zk->password, sizeof(zk->password));
    hf__jute_put_bool(out, false); /* read only */
    close_frame(zk, mark);
    zk->sent_ns = hf__now();
    if (!hf__buf_failed(out))
        return;
    (void)hf__fail(&err, HF_ENOMEM, "out of memory");
    down(zk, &err);
}

/* ---- reading ----------------------------------------------------------- */

static void on_event(struct hf__zk *zk, struct hf__jute *in)
{
    struct hf__jute_text path;

    (void)hf__jute_int(in); /* what happened: whoever waits looks again */
    (void)hf__jute_int(in);
    path = hf__jute_text(in);
    if (in->bad)
        protocol_error(zk, "a malformed event");
    else
        hf__zk_watched(zk, path);
}

/* Is the body of a good answer what the request is answered with? Looked at
 * before anybody reads it. */
static bool is_shaped(int32_t type, struct hf__jute in)
{
    struct hf__jute_stat stat;
    uint32_t count;

    switch (type) {
    case HF__ZK_GET_CHILDREN:
        count = hf__jute_count(&in, /* least= */ 4);
        while (count-- > 0 && !in.bad)
            (void)hf__jute_text(&in);
        break;
    case HF__ZK_CREATE:
    case HF__ZK_CREATE_CONTAINER:
    case HF__ZK_GET_DATA:
        (void)hf__jute_text(&in);
        hf__jute_stat(&in, &stat);
        break;
    case HF__ZK_EXISTS:
    case HF__ZK_SET_DATA:
        hf__jute_stat(&in, &stat);
        break;
    case HF__ZK_MULTI:
        (void)hf__jute_int(&in); /* of the first part */
        break;
    default:
        break;
    }
    return !in.bad;
}

/* What an answer proves of the session. */
static void prove(struct hf__zk *zk, const struct hf__zk_call *call,
                  int32_t error)
{
    int64_t since_ns;

    if (error == HF__ZK_SESSION_MOVED)
        return; /* this server does not report for us any more */
    hf__zk_proof_heard(&zk->proof, session_ns(zk), call->sent_ns, hf__now());
    if (!(call->flags & HF__ZK_WRITES))
        return;
    since_ns = hf__zk_proof_since(&zk->proof, session_ns(zk), call->sent_ns,
                                  call->known_ns);
    if (since_ns > zk->proven_ns)
        zk->proven_ns = since_ns;
}

static void answer(struct hf__zk *zk, int32_t xid, struct hf__zk_reply *reply)
{
    struct hf__zk_call call;

    if (zk->calls.n == 0 || hf__zk_oldest(zk)->xid != xid) {
        protocol_error(zk, "an answer to no question");
        return;
    }
    (void)take_call(zk, &call);
    if (reply->error == HF__ZK_SESSION_EXPIRED) {
        /* Told to whoever asked as a lost answer; the connection ends here. */
        call.done(zk, &call, /* reply= */ NULL);
        expired(zk);
        return;
    }
    if (reply->error == HF__ZK_OK && !is_shaped(call.type, reply->in)) {
        call.done(zk, &call, /* reply= */ NULL);
        protocol_error(zk, "a malformed answer");
        return;
    }
    prove(zk, &call, reply->error);
    call.done(zk, &call, reply);
    if (!zk->may_close && zk->writes == 0)
        send_pending(zk);
}

static void on_frame(struct hf__zk *zk, struct hf__jute in)
{
    struct hf__zk_reply reply;
    int64_t zxid;
    int32_t xid;

    if (!zk->greeted) {
        on_greeting(zk, &in);
        return;
    }
    xid = hf__jute_int(&in);
    zxid = hf__jute_long(&in);
    reply.error = hf__jute_int(&in);
    reply.in = in;
    if (in.bad) {
        protocol_error(zk, "a short message");
        return;
    }
    if (zxid > zk->zxid)
        zk->zxid = zxid;
    if (xid == XID_EVENT)
        on_event(zk, &reply.in);
    else if (xid == XID_AUTH)
        on_auth(zk, reply.error);
    else if (xid != XID_PING)
        answer(zk, xid, &reply);
}

/* One whole frame, if there is one. */
static bool take_frame(struct hf__zk *zk)
{
    struct hf__stream *stream = &zk->stream;
    const char *from = stream->in.text + stream->in_at;
    size_t len = stream->in.len - stream->in_at;
    int64_t frame = hf__jute_frame(from, len);
    struct hf__jute in = {from + 4, from + 4 + frame, false};

    if (frame == -2)
        protocol_error(zk, "a message that is too long");
    if (frame < 0 || len - 4 < (size_t)frame)
        return false;
    stream->in_at += 4 + (size_t)frame;
    on_frame(zk, in);
    return !zk->may_close && stream->in_at < stream->in.len;
}

static void stream_received(struct hf__stream *stream)
{
    struct hf__zk *zk = HF_CONTAINER_OF(stream, struct hf__zk, stream);

    zk->in_received = true;
    while (take_frame(zk))
        continue;
    zk->in_received = false;
    if (zk->may_close) {
        zk->may_close = false;
        down(zk, &zk->fatal);
    }
}

/* ---- connecting --------------------------------------------------------- */

void hf__zk_peer(const struct hf__zk *zk, size_t server,
                 struct hf__stream_peer *peer)
{
    const struct hf__url_host *host = &zk->base.host->url->hosts[server];

    peer->host = host->host;
    peer->port = host->port != 0 ? host->port : zk->tls ? 2281 : 2181;
    peer->tls = zk->tls;
}

int hf__zk_connect(struct hf__zk *zk, hf_error *err)
{
    int rc;

    zk->stream.opened = stream_opened;
    zk->stream.received = stream_received;
    zk->stream.closed = stream_closed;
    zk->connect_ns = hf__now();
    hf__zk_peer(zk, zk->server, &zk->stream.peer);
    (void)snprintf(zk->peer, sizeof(zk->peer), "zookeeper %.250s:%d",
                   zk->stream.peer.host, zk->stream.peer.port);
    rc = hf__stream_start(&zk->stream, err);
    if (rc != 0) {
        zk->server = (zk->server + 1) % zk->base.host->url->n_hosts;
        return hf__fail_in(err, rc, "%s", zk->peer);
    }
    hf__zk_wake(zk, zk->connect_ns);
    return 0;
}

void hf__zk_close_session(struct hf__zk *zk)
{
    size_t mark;

    if (!zk->up)
        return;
    mark = hf__zk_begin(zk, HF__ZK_CLOSE);
    close_frame(zk, mark);
    hf__stream_flush(&zk->stream);
}

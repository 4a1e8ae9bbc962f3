/* SPDX-License-Identifier: MIT */
/*
 * sentinel.c - ask the sentinels who the master is, and hear of a new one.
 *
 * A failover is nothing but a connection that ends, and another server at the
 * end of the next one. So redis-sentinel:// is the engine for one server, with
 * a search before each connection: all sentinels are asked at once, and when
 * more than half have answered, or no more can, the address with the highest
 * epoch is taken. A sentinel that was cut off with the old master has the
 * lower epoch. The server itself has to say that it is a master (connection.c,
 * on_hello); one that is not, or not yet, is a failed connection like any
 * other, and the core tries again.
 *
 * The connections stay open and subscribed to "+switch-master". Whichever
 * sentinel says first that the master is another one ends the connection to
 * the old one, and the core asks the new one about everything: a hold that it
 * does not know is LOST then.
 *
 * Failure: a sentinel that cannot be reached, does not know the service or
 * speaks nonsense is counted as told; the search fails when none knew.
 */
#include "engines/redis/sentinel.h"
#include "engines/redis/connection.h"
#include "engines/redis/errors.h"

#include <stdio.h>

#include "engines/redis/redis.h"

enum { SENTINEL_PORT = 26379 };

static const char channel[] = "+switch-master";

/* ---- the search -------------------------------------------------------- */

void hf__sentinels_decide(struct hf__sentinels *all)
{
    hf_error err;

    all->searching = false;
    if (all->knew > 0) {
        hf__redis_connection_found(all->redis, all->host, all->port);
        return;
    }
    if (all->why.code == 0)
        (void)hf__fail(&all->why, HF_EUNAVAILABLE, "none has answered");
    err = all->why;
    (void)hf__fail_in(&err, err.code, "no sentinel of %u tells the master '%s'",
                      all->n, all->service);
    hf__redis_connection_fail(all->redis, &err);
}

/* @one has said what it can in this search. */
static void told(struct hf__sentinel *one)
{
    struct hf__sentinels *all = one->all;

    if (!all->searching || one->told)
        return;
    one->told = true;
    all->told++;
    if (all->knew > all->n / 2 || all->told == all->n)
        hf__sentinels_decide(all);
}

static void failed(struct hf__sentinel *one, const hf_error *err)
{
    struct hf__stream_peer *peer = &one->stream.peer;

    if (one->all->searching) {
        one->all->why = *err;
        (void)hf__fail_in(&one->all->why, err->code, "sentinel %s:%d",
                          peer->host, peer->port);
    }
    one->greeted = false;
    memset(&one->scan, 0, sizeof(one->scan));
    hf__stream_stop(&one->stream, /* forked= */ false);
    told(one);
}

static void stream_closed(struct hf__stream *stream, const hf_error *err)
{
    failed(HF_CONTAINER_OF(stream, struct hf__sentinel, stream), err);
}

static void ask(struct hf__sentinel *one)
{
    struct hf__buf *out = &one->stream.out;

    hf__resp_head(out, 3);
    hf__resp_arg_text(out, "SENTINEL");
    hf__resp_arg_text(out, "MASTER");
    hf__resp_arg_text(out, one->all->service);
}

static void stream_opened(struct hf__stream *stream)
{
    struct hf__sentinel *one =
        HF_CONTAINER_OF(stream, struct hf__sentinel, stream);
    struct hf__buf *out = &stream->out;
    hf_error err;

    hf__redis_connection_put_hello(one->all->redis, out, one->auth);
    ask(one);
    hf__resp_head(out, 2);
    hf__resp_arg_text(out, "SUBSCRIBE");
    hf__resp_arg_text(out, channel);
    if (hf__buf_failed(out)) {
        (void)hf__fail(&err, HF_ENOMEM, "out of memory");
        failed(one, &err);
    }
}

static int start(struct hf__sentinel *one, hf_error *err)
{
    one->stream.opened = stream_opened;
    return hf__stream_start(&one->stream, err);
}

int hf__sentinels_search(struct hf__sentinels *all, hf_error *err)
{
    all->told = 0;
    all->knew = 0;
    all->epoch = -1;
    all->why.code = 0;
    for (uint32_t i = 0; i < all->n; i++) {
        struct hf__sentinel *one = &all->one[i];

        one->told = false;
        if (one->stream.state == HF__STREAM_OPEN && one->greeted) {
            ask(one);
        } else if (one->stream.state == HF__STREAM_IDLE &&
                   start(one, &all->why) != 0) {
            one->told = true;
            all->told++;
        }
    }
    all->searching = all->told < all->n;
    return all->searching ? 0 : hf__fail_pass(err, &all->why);
}

/* ---- what they say ----------------------------------------------------- */

/* The address, if it is newer than what the others said. */
static void learn(struct hf__sentinels *all, struct hf__resp *reply,
                  uint32_t count)
{
    struct hf__resp_value host = {0};
    int64_t port = 0;
    int64_t epoch = 0;
    int64_t others = 0;
    int64_t quorum = 0;

    for (uint32_t i = 0; i + 1 < count; i += 2) {
        struct hf__resp_value key = hf__resp_next(reply);
        struct hf__resp_value value = hf__resp_next(reply);

        if (hf__resp_is(&key, "ip") && value.type == HF__RESP_TEXT)
            host = value;
        else if (hf__resp_is(&key, "port"))
            port = hf__resp_number(&value, 0);
        else if (hf__resp_is(&key, "config-epoch"))
            epoch = hf__resp_number(&value, 0);
        else if (hf__resp_is(&key, "num-other-sentinels"))
            others = hf__resp_number(&value, 0);
        else if (hf__resp_is(&key, "quorum"))
            quorum = hf__resp_number(&value, 0);
        hf__resp_skip(reply, &value);
    }
    if (host.len == 0 || host.len >= sizeof(all->host) || port < 1 ||
        port > 65535)
        return;
    all->knew++;
    if (epoch <= all->epoch)
        return;
    all->epoch = epoch;
    all->others = others;
    all->quorum = quorum;
    all->port = (int)port;
    memcpy(all->host, host.text, host.len);
    all->host[host.len] = '\0';
}

static void on_master(struct hf__sentinel *one, struct hf__resp *reply)
{
    struct hf__sentinels *all = one->all;
    struct hf__resp_value head = hf__resp_next(reply);

    if (one->told)
        return; /* SUBSCRIBE was refused: then we hear nothing from it */
    if (!all->searching) {
        one->told = true;
        all->knew += head.type == HF__RESP_LIST; /* too late to matter */
        return;
    }
    if (head.type == HF__RESP_LIST)
        learn(all, reply, head.count);
    else
        (void)hf__fail(&all->why, HF_ECONFIG, "sentinel %s:%d: %.*s",
                       one->stream.peer.host, one->stream.peer.port,
                       head.len < 120 ? (int)head.len : 120,
                       head.type == HF__RESP_ERROR ? head.text : "");
    told(one);
}

/* Only who asks for the password gets it. */
static void on_hello(struct hf__sentinel *one, struct hf__resp *reply)
{
    struct hf__resp_value head = hf__resp_next(reply);
    bool may = !one->auth && hf__redis_connection_has_password(one->all->redis);
    hf_error err;

    one->greeted = head.type == HF__RESP_LIST;
    if (one->greeted)
        return;
    if (may && head.type == HF__RESP_ERROR && head.len >= 6 &&
        memcmp(head.text, "NOAUTH", 6) == 0) {
        one->auth = true;
        hf__stream_stop(&one->stream, /* forked= */ false);
        if (start(one, &err) != 0)
            failed(one, &err);
        return;
    }
    (void)hf__redis_errors_explain(one->all->redis, &head, &err);
    failed(one, &err);
}

/* Is the last address of "host port host port" the one we are connected to?
 * Each sentinel tells of a failover, in its own time. */
static bool is_ours(const struct hf__stream_peer *peer,
                    const struct hf__resp_value *text)
{
    char ours[300];
    int n = snprintf(ours, sizeof(ours), " %s %d", peer->host, peer->port);

    return n > 0 && (size_t)n <= text->len &&
           memcmp(text->text + text->len - n, ours, (size_t)n) == 0;
}

/* "message", channel, "SERVICE host port host port": the old, the new. */
static void on_push(void *ctx, struct hf__resp *message)
{
    struct hf__sentinels *all = ((struct hf__sentinel *)ctx)->all;
    struct hf__resp_value head = hf__resp_next(message);
    struct hf__resp_value kind = hf__resp_next(message);
    struct hf__resp_value text = hf__resp_next(message);
    size_t len = strlen(all->service);
    hf_error err;

    if (!hf__resp_is(&kind, "message") || head.count != 3)
        return;
    text = hf__resp_next(message);
    if (text.type != HF__RESP_TEXT || text.len <= len ||
        memcmp(text.text, all->service, len) != 0 || text.text[len] != ' ' ||
        all->searching || all->redis->stream.state == HF__STREAM_IDLE ||
        is_ours(&all->redis->stream.peer, &text))
        return;
    (void)hf__fail(&err, HF_EUNAVAILABLE,
                   "the master has changed: %.*s (old, new)",
                   text.len - len - 1 < 160 ? (int)(text.len - len - 1) : 160,
                   text.text + len + 1);
    hf__redis_connection_fail(all->redis, &err);
}

static void on_answer(void *ctx, struct hf__resp *message)
{
    struct hf__sentinel *one = ctx;

    if (!one->greeted)
        on_hello(one, message);
    else
        on_master(one, message);
}

static void stream_received(struct hf__stream *stream)
{
    struct hf__sentinel *one =
        HF_CONTAINER_OF(stream, struct hf__sentinel, stream);
    hf_error err;

    if (hf__redis_connection_read(stream, &one->scan, on_push, on_answer, one))
        return;
    (void)hf__fail(&err, HF_EUNAVAILABLE,
                   "what it says is not the Redis protocol");
    failed(one, &err);
}

/* ---- coming and going -------------------------------------------------- */

static int read_service(struct hf__sentinels *all, const char *path,
                        hf_error *err)
{
    size_t len = path[0] == '/' ? strcspn(path + 1, "/") : 0;

    if (len == 0 || len >= sizeof(all->service))
        return hf__fail(err, HF_ECONFIG,
                        "write the name that the sentinels know the master by "
                        "after the hosts: redis-sentinel://s1,s2,s3/mymaster");
    memcpy(all->service, path + 1, len);
    return 0;
}

int hf__sentinels_new(struct hf__redis *redis, struct hf__sentinels **ret_all,
                      hf_error *err)
{
    const struct hf__url *url = redis->base.host->url;
    struct hf__sentinels *all = hf__calloc(1, sizeof(*all));
    int rc;

    if (!all)
        return hf__fail(err, HF_ENOMEM, "out of memory");
    all->redis = redis;
    all->n = url->n_hosts > 0 ? (uint32_t)url->n_hosts : 1;
    for (uint32_t i = 0; i < all->n; i++) {
        struct hf__sentinel *one = &all->one[i];
        bool given = i < url->n_hosts;

        one->all = all;
        one->stream.loop = redis->base.host->loop;
        one->stream.io.fd = -1;
        one->stream.received = stream_received;
        one->stream.closed = stream_closed;
        one->stream.peer.host = given ? url->hosts[i].host : "127.0.0.1";
        one->stream.peer.port = given && url->hosts[i].port != 0
                                    ? url->hosts[i].port
                                    : SENTINEL_PORT;
        one->stream.peer.tls = redis->tls;
        one->stream.peer.patience_ms =
            redis->base.host->settings->io_timeout_ms;
    }
    rc = read_service(all, url->path, err);
    if (rc != 0) {
        hf__free(all);
        return rc;
    }
    *ret_all = all;
    return 0;
}

void hf__sentinels_free(struct hf__sentinels *all, bool forked)
{
    for (uint32_t i = 0; all && i < all->n; i++)
        hf__stream_stop(&all->one[i].stream, forked);
    if (!forked)
        hf__free(all);
}

void hf__sentinels_flush(struct hf__sentinels *all)
{
    for (uint32_t i = 0; i < all->n; i++)
        hf__stream_flush(&all->one[i].stream);
}

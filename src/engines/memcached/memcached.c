/* SPDX-License-Identifier: MIT */
/*
 * memcached.c - the engine for one Memcached server: memcached://host:11211
 *
 * The table of the engine, the URL taken apart, and the timer of what is
 * overdue. One server only: clients with a list of servers choose by the key
 * and by who is alive, so two of them may lock one name on two servers.
 *
 * Failure: a call without an answer within io_timeout ends the connection,
 * because the answers behind it cannot be matched any more.
 */
#include "engines/memcached/memcached.h"
#include "engines/common/caps.h"

#include <inttypes.h>
#include <stdio.h>

#include "net/tls.h"

static struct hf__memcached *memcached_of(struct hf__engine *engine)
{
    return (struct hf__memcached *)engine;
}

/* ---- the timer ----------------------------------------------------------- */

static void timer_fire(struct hf__timer *timer)
{
    struct hf__memcached *memcached = memcached_of(hf__link_of(timer)->engine);
    const struct hf__settings *settings = memcached->base.host->settings;
    int64_t due_ns = HF_NEVER;

    if (memcached->stream.state == HF__STREAM_IDLE)
        return;
    if (!memcached->up)
        due_ns =
            hf__link_due(&memcached->stream, memcached->peer, "no connection",
                         memcached->connect_ns, settings->connect_timeout_ms);
    else if (memcached->calls.n > 0)
        due_ns =
            hf__link_due(&memcached->stream, memcached->peer, "no answer",
                         hf__memcached_connection_oldest(memcached)->sent_ns,
                         settings->io_timeout_ms);
    hf__link_wake(&memcached->link, due_ns);
}

/* ---- opening ------------------------------------------------------------- */

static int read_tls(struct hf__memcached *memcached, hf_error *err)
{
    int rc = hf__link_tls(&memcached->base, /* protocol= */ NULL,
                          &memcached->tls, err);

    memcached->stream.peer.tls = memcached->tls;
    return rc;
}

static int check(const struct hf__url *url, const struct hf__settings *settings,
                 hf_error *err)
{
    if (url->n_hosts > 1)
        return hf__fail(err, HF_ECONFIG,
                        "%s:// is one server: with a list, clients that see "
                        "another one alive would lock elsewhere",
                        url->scheme);
    if (url->user || url->password || settings->password[0] != '\0')
        return hf__fail(err, HF_EUNSUPPORTED,
                        "%s:// knows no users and passwords", url->scheme);
    if (url->path[0] != '\0' && strcmp(url->path, "/") != 0)
        return hf__fail(err, HF_ECONFIG, "%s:// has no path", url->scheme);
    if (settings->dialect[0] != '\0' &&
        strcmp(settings->dialect, "native") != 0 &&
        strcmp(settings->dialect, "tooz") != 0)
        return hf__fail(err, HF_ECONFIG,
                        "dialect=%s: memcached has native and tooz",
                        settings->dialect);
    return 0;
}

static int memcached_open(struct hf__engine *engine, hf_error *err)
{
    struct hf__memcached *memcached = memcached_of(engine);
    const struct hf__url *url = engine->host->url;
    struct hf__stream_peer *peer = &memcached->stream.peer;
    int rc = check(url, engine->host->settings, err);

    hf__link_init(&memcached->link, engine, timer_fire,
                  /* listen_after_ns= */ 0);
    memcached->stream.loop = engine->host->loop;
    memcached->stream.io.fd = -1;
    memcached->epoch = 1;
    hf__calls_init(&memcached->calls, sizeof(struct hf__memcached_call));
    if (rc != 0)
        return rc;
    memcached->tooz = strcmp(engine->host->settings->dialect, "tooz") == 0;
    peer->host = url->n_hosts == 1 ? url->hosts[0].host : "127.0.0.1";
    peer->port = url->n_hosts == 1 && url->hosts[0].port != 0
                     ? url->hosts[0].port
                     : 11211;
    (void)snprintf(memcached->origin, sizeof(memcached->origin),
                   ":%.250s\n%" PRId64 "\n", engine->host->host,
                   engine->host->pid);
    (void)snprintf(memcached->peer, sizeof(memcached->peer),
                   "memcached %.250s:%d", peer->host, peer->port);
    return strcmp(url->scheme, "memcacheds") == 0 ? read_tls(memcached, err)
                                                  : 0;
}

static int memcached_connect(struct hf__engine *engine, hf_error *err)
{
    return hf__memcached_connection_start(memcached_of(engine), err);
}

static void memcached_close(struct hf__engine *engine, bool forked)
{
    struct hf__memcached *memcached = memcached_of(engine);

    hf__memcached_connection_stop(memcached, forked);
    if (forked)
        return;
    hf__link_stop(&memcached->link);
    hf__calls_release(&memcached->calls);
    engine->under_way = 0;
    hf__tls_context_free(memcached->tls);
    memcached->tls = NULL;
}

static void memcached_flush(struct hf__engine *engine)
{
    hf__stream_flush(&memcached_of(engine)->stream);
}

const struct hf__engine_ops hf__engine_memcached = {
    .name = "memcached",
    .schemes = "memcached memcacheds",
    .dialects = "native tooz",
    .caps = HF__CAPS_LEASED,
    .flags = HF__RESERVES_TOKENS, /* none is as good as a range of them */
    .size = sizeof(struct hf__memcached),
    .ticket_size = sizeof(struct hf__memcached_ticket),
    .open = memcached_open,
    .connect = memcached_connect,
    .close = memcached_close,
    .acquire = hf__memcached_acquire,
    .withdraw = hf__memcached_release_withdraw,
    .release = hf__memcached_release,
    .renew = hf__memcached_renew,
    .doctor = hf__memcached_doctor,
    .flush = memcached_flush,
};

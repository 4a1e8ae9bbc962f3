/* SPDX-License-Identifier: MIT */
/*
 * redis.c - the engine for one Redis server: redis://, rediss://, redis+unix://,
 * and for the one that sentinels name: redis-sentinel://, rediss-sentinel://
 *
 * The table of the engine, and what all its parts share: the URL taken apart,
 * and one timer. The timer is due when the oldest call is overdue, when
 * connecting has taken too long, or when the first waiter in a line should
 * look; it is started for the earliest and finds out what it was for.
 *
 * Failure: a call that is not answered within io_timeout ends the connection:
 * whatever becomes of it, nothing after it can be known either.
 */
#include "engines/redis/redis.h"
#include "engines/redis/board.h"
#include "engines/redis/connection.h"
#include "engines/redis/inspect.h"
#include "engines/redis/native.h"
#include "engines/redis/tickets.h"
#include "engines/redis/verbs.h"

#include <stdio.h>
#include <stdlib.h>

#include "engines/redis/sentinel.h"
#include "net/tls.h"

static struct hf__redis *redis_of(struct hf__engine *engine)
{
    return (struct hf__redis *)engine;
}

/* ---- the timer --------------------------------------------------------- */

void hf__redis_watch(struct hf__redis *redis, struct hf__redis_ticket *mine,
                     int64_t ms)
{
    mine->watch_ns = 0;
    if (ms < 0 || ms > HF_DURATION_MAX)
        return;
    mine->watch_ns = hf__now() + (ms + 1) * HF_MS;
    hf__link_wake(&redis->link, mine->watch_ns);
}

/* Is an answer overdue? If not, when would it be; HF_NEVER for none. */
static int64_t check_calls(struct hf__redis *redis, int64_t now_ns)
{
    const struct hf__settings *settings = redis->base.host->settings;
    const struct hf__redis_call *oldest;
    int64_t due_ns;

    if (redis->sentinels && redis->sentinels->searching) {
        due_ns =
            redis->connect_ns + hf__ms_to_ns(settings->connect_timeout_ms) / 2;
        if (now_ns < due_ns)
            return due_ns;
        hf__sentinels_decide(redis->sentinels);
    }
    if (redis->stream.state == HF__STREAM_IDLE)
        return HF_NEVER;
    if (!hf__redis_is_up(redis))
        return hf__link_due(&redis->stream, redis->peer, "no connection",
                            redis->connect_ns, settings->connect_timeout_ms);
    if (redis->calls.n == 0)
        return HF_NEVER;
    oldest = hf__calls_at(&redis->calls, 0);
    return hf__link_due(&redis->stream, redis->peer, "no answer",
                        oldest->sent_ns, settings->io_timeout_ms);
}

struct watches {
    struct hf__redis *redis;
    int64_t now_ns;
    int64_t next_ns; /* when the earliest of the others is due */
    struct hf__ticket *due[HF__REDIS_RENEWALS];
    size_t n;
};

static void check_watch(struct hf__ticket *ticket, void *ctx)
{
    struct watches *watches = ctx;
    struct hf__redis_ticket *mine = hf__redis_ticket(watches->redis, ticket);

    if (mine->watch_ns != 0 && mine->watch_ns <= watches->now_ns &&
        watches->n < HF_COUNT_OF(watches->due)) {
        mine->watch_ns = 0;
        watches->due[watches->n++] = ticket;
    } else if (mine->watch_ns != 0 && mine->watch_ns < watches->next_ns) {
        watches->next_ns = mine->watch_ns;
    }
}

/* Renew for the waiters that are first in line behind a lease that has ended.
 * Returns when the next one is due. */
static int64_t check_watches(struct hf__redis *redis, int64_t now_ns)
{
    struct watches watches;

    watches.redis = redis;
    watches.now_ns = now_ns;
    watches.next_ns = HF_NEVER;
    watches.n = 0;
    hf__ticket_table_each(&redis->tickets, check_watch, &watches);
    if (watches.n > 0 && hf__redis_is_up(redis))
        (void)redis->dialect->renew(redis, watches.due, watches.n,
                                    /* err= */ NULL);
    return watches.next_ns;
}

/* Have there been tickets for a while? If not, when would it be. */
static int64_t check_tickets(struct hf__redis *redis, int64_t now_ns)
{
    int64_t due_ns = redis->tickets_since_ns + HF__REDIS_WATCH_NS;

    if (redis->tickets.n == 0 || redis->watching ||
        !(redis->sentinels || redis->in_cluster))
        return HF_NEVER;
    if (now_ns < due_ns)
        return due_ns;
    redis->watching = true;
    hf__redis_connection_count(redis);
    return HF_NEVER;
}

static void timer_fire(struct hf__timer *timer)
{
    struct hf__redis *redis = redis_of(hf__link_of(timer)->engine);
    int64_t now_ns = hf__now();
    int64_t due_ns = check_calls(redis, now_ns);
    int64_t watch_ns = check_watches(redis, now_ns);

    if (watch_ns < due_ns)
        due_ns = watch_ns;
    watch_ns = check_tickets(redis, now_ns);
    if (watch_ns < due_ns)
        due_ns = watch_ns;
    hf__link_wake(&redis->link, due_ns);
}

/* ---- opening ----------------------------------------------------------- */

static const struct hf__redis_dialect *const dialects[] = {
    &hf__redis_native, &hf__redis_plain, &hf__redis_redisson};

static int choose_dialect(struct hf__redis *redis, hf_error *err)
{
    const char *wanted = redis->base.host->settings->dialect;
    const char *mode = redis->base.host->settings->mode;

    redis->dialect = wanted[0] == '\0' ? dialects[0] : NULL;
    for (size_t i = 0; i < HF_COUNT_OF(dialects); i++) {
        if (strcmp(wanted, dialects[i]->name) == 0)
            redis->dialect = dialects[i];
    }
    if (!redis->dialect)
        return hf__fail(err, HF_ECONFIG,
                        "dialect=%s: redis has native, plain and redisson",
                        wanted);
    redis->base.caps = redis->dialect->caps;
    redis->release_script = redis->dialect->release_script;
    redis->renew_script = redis->dialect->renewal.script;
    if (redis->dialect->open)
        return redis->dialect->open(redis, err);
    if (mode[0] != '\0')
        return hf__fail(err, HF_ECONFIG, "mode=%s: dialect=%s has no modes",
                        mode, redis->dialect->name);
    return 0;
}

static int read_db(struct hf__redis *redis, const char *path, hf_error *err)
{
    char *end;

    if (path[0] == '\0' || strcmp(path, "/") == 0)
        return 0;
    redis->db = strtoll(path + 1, &end, 10);
    if (path[1] < '0' || path[1] > '9' || *end != '\0' || redis->db > 65535)
        return hf__fail(err, HF_ECONFIG,
                        "the path of a redis:// URL is the number of a "
                        "database, as in redis://host/0");
    return 0;
}

static int read_host(struct hf__redis *redis, hf_error *err)
{
    const struct hf__url *url = redis->base.host->url;
    struct hf__stream_peer *peer = &redis->stream.peer;

    if (url->n_hosts > 1)
        return hf__fail(err, HF_ECONFIG,
                        "%s:// is one server, and several hosts are given: "
                        "write redis-cluster://, redis-sentinel:// or "
                        "redlock://",
                        url->scheme);
    peer->host = url->n_hosts == 1 ? url->hosts[0].host : "127.0.0.1";
    peer->port = url->n_hosts == 1 && url->hosts[0].port != 0
                     ? url->hosts[0].port
                     : 6379;
    (void)snprintf(redis->peer, sizeof(redis->peer), "redis %s:%d", peer->host,
                   peer->port);
    return read_db(redis, url->path, err);
}

static bool is_scheme(const struct hf__redis *redis, const char *end)
{
    const char *scheme = redis->base.host->url->scheme;
    size_t len = strlen(scheme);
    size_t end_len = strlen(end);

    return len >= end_len && strcmp(scheme + len - end_len, end) == 0;
}

/* redis-sentinel://s1,s2,s3/SERVICE/db */
static int read_sentinels(struct hf__redis *redis, hf_error *err)
{
    int rc = hf__sentinels_new(redis, &redis->sentinels, err);

    if (rc != 0)
        return rc;
    (void)snprintf(redis->peer, sizeof(redis->peer), "redis-sentinel %s",
                   redis->sentinels->service);
    return read_db(redis,
                   redis->base.host->url->path + 1 +
                       strlen(redis->sentinels->service),
                   err);
}

static int read_url(struct hf__redis *redis, hf_error *err)
{
    const struct hf__url *url = redis->base.host->url;
    int rc;

    if (is_scheme(redis, "+unix")) {
        if (url->n_hosts > 0 || url->path[0] == '\0')
            return hf__fail(err, HF_ECONFIG,
                            "write the path of the socket after three "
                            "slashes: redis+unix:///run/redis.sock");
        redis->stream.peer.path = url->path;
        (void)snprintf(redis->peer, sizeof(redis->peer), "redis %.250s",
                       url->path);
        return 0;
    }
    if (strncmp(url->scheme, "rediss", 6) == 0) {
        rc = hf__link_tls(&redis->base, /* protocol= */ NULL, &redis->tls, err);
        if (rc != 0)
            return rc;
        redis->stream.peer.tls = redis->tls;
    }
    return is_scheme(redis, "-sentinel") ? read_sentinels(redis, err)
                                         : read_host(redis, err);
}

static int redis_open(struct hf__engine *engine, hf_error *err)
{
    struct hf__redis *redis = redis_of(engine);
    int rc;

    hf__calls_init(&redis->calls, sizeof(struct hf__redis_call));
    hf__list_init(&redis->trackers);
    hf__ticket_table_init(&redis->tickets);
    hf__link_init(&redis->link, engine, timer_fire, /* listen_after_ns= */ 0);
    redis->stream.loop = engine->host->loop;
    redis->stream.io.fd = -1;
    redis->stream.peer.patience_ms = engine->host->settings->io_timeout_ms;
    rc = choose_dialect(redis, err);
    if (rc == 0)
        rc = read_url(redis, err);
    if (rc != 0)
        return rc;
    redis->scripts = hf__redis_scripts[redis->in_cluster];
    if (hf__redis_tickets_init(redis) != 0)
        return hf__fail(err, HF_EINTERNAL,
                        "the kernel gives no random numbers");
    return 0;
}

static int redis_connect(struct hf__engine *engine, hf_error *err)
{
    return hf__redis_connection_open(redis_of(engine), err);
}

/* Calls that nobody will answer: their memory. */
static void drop_calls(struct hf__redis *redis)
{
    struct hf__redis_call call;

    while (hf__calls_take(&redis->calls, &call))
        hf__free(call.data);
    hf__redis_connection_count(redis);
    hf__calls_release(&redis->calls);
}

static void redis_close(struct hf__engine *engine, bool forked)
{
    struct hf__redis *redis = redis_of(engine);

    hf__redis_connection_close(redis, forked);
    hf__sentinels_free(redis->sentinels, forked);
    hf__redis_watch_close(redis, forked);
    if (forked)
        return;
    redis->sentinels = NULL;
    hf__link_stop(&redis->link);
    drop_calls(redis);
    hf__redis_tickets_forget_all(redis);
    hf__tls_context_free(redis->tls);
    redis->tls = NULL;
    hf__buf_release(&redis->scratch);
    hf__redis_tickets_names_release(redis);
}

/* ---- calls ------------------------------------------------------------- */

int hf__redis_not_up(struct hf__redis *redis, hf_error *err)
{
    return hf__fail(err, HF_EUNAVAILABLE, "%s: not connected", redis->peer);
}

static int redis_acquire(struct hf__engine *engine, struct hf__ticket *ticket,
                         hf_error *err)
{
    struct hf__redis *redis = redis_of(engine);

    if (!hf__redis_is_up(redis))
        return hf__redis_not_up(redis, err);
    hf__redis_sync_forget(redis, ticket);
    return redis->dialect->acquire(redis, ticket, err);
}

/* A ticket that is not known here was never asked for, or its end has been
 * reported: there is nothing to leave. */
static int leave(struct hf__engine *engine, struct hf__ticket *ticket,
                 enum hf__redis_state state, hf_error *err)
{
    struct hf__redis *redis = redis_of(engine);

    if (!hf__redis_ticket(redis, ticket)->record) {
        hf__up_left(engine, ticket,
                    state == HF__REDIS_RELEASING ? HF_ELOST : 0);
        return 0;
    }
    hf__redis_sync_forget(redis, ticket);
    hf__redis_ticket(redis, ticket)->old = NULL; /* the core ends that, too */
    return hf__redis_is_up(redis) ? hf__redis_release(redis, ticket, state, err)
                                  : hf__redis_not_up(redis, err);
}

static int redis_withdraw(struct hf__engine *engine, struct hf__ticket *ticket,
                          hf_error *err)
{
    return leave(engine, ticket, HF__REDIS_WITHDRAWING, err);
}

static int redis_release(struct hf__engine *engine, struct hf__ticket *ticket,
                         hf_error *err)
{
    return leave(engine, ticket, HF__REDIS_RELEASING, err);
}

/* NULL: it is not; @err says so. */
static struct hf__redis *connected(struct hf__engine *engine, hf_error *err)
{
    struct hf__redis *redis = redis_of(engine);

    if (hf__redis_is_up(redis))
        return redis;
    (void)hf__redis_not_up(redis, err);
    return NULL;
}

static int redis_renew(struct hf__engine *engine, struct hf__ticket **tickets,
                       size_t n, hf_error *err)
{
    struct hf__redis *redis = connected(engine, err);

    return redis ? redis->dialect->renew(redis, tickets, n, err)
                 : HF_EUNAVAILABLE;
}

static int redis_downgrade(struct hf__engine *engine, struct hf__ticket *ticket,
                           hf_error *err)
{
    struct hf__redis *redis = redis_of(engine);

    if (!redis->dialect->downgrade)
        return hf__fail(err, HF_EUNSUPPORTED,
                        "dialect=%s has no shared mode; native has, and "
                        "redisson with mode=rw",
                        redis->dialect->name);
    return hf__redis_is_up(redis)
               ? redis->dialect->downgrade(redis, ticket, err)
               : hf__redis_not_up(redis, err);
}

/* The core asks only where HF_CAP_CONDITIONS is claimed: by dialect=native. */
static int redis_park(struct hf__engine *engine, struct hf__ticket *ticket,
                      struct hf__ticket *old, hf_error *err)
{
    struct hf__redis *redis = connected(engine, err);

    return redis ? redis->dialect->park(redis, ticket, old, err)
                 : HF_EUNAVAILABLE;
}

static int redis_unpark(struct hf__engine *engine, struct hf__ticket *ticket,
                        hf_error *err)
{
    struct hf__redis *redis = connected(engine, err);

    return redis ? redis->dialect->unpark(redis, ticket, err) : HF_EUNAVAILABLE;
}

static void redis_flush(struct hf__engine *engine)
{
    struct hf__redis *redis = redis_of(engine);

    hf__stream_flush(&redis->stream);
    if (redis->sentinels)
        hf__sentinels_flush(redis->sentinels);
}

const struct hf__engine_ops hf__engine_redis = {
    .name = "redis",
    .schemes = "redis rediss redis+unix redis-sentinel rediss-sentinel",
    .dialects = "native plain redisson",
    .caps = HF__REDIS_CAPS,
    .flags = HF__BEATS_WAITERS | HF__RESERVES_TOKENS,
    .size = sizeof(struct hf__redis),
    .ticket_size = sizeof(struct hf__redis_ticket),
    .open = redis_open,
    .connect = redis_connect,
    .close = redis_close,
    .acquire = redis_acquire,
    .withdraw = redis_withdraw,
    .release = redis_release,
    .renew = redis_renew,
    .downgrade = redis_downgrade,
    .park = redis_park,
    .unpark = redis_unpark,
    .signal = hf__native_condition_signal,
    .list = hf__redis_inspect_list,
    .check_token = hf__redis_inspect_check_token,
    .break_lock = hf__redis_inspect_break,
    .version_read = hf__redis_versions_read,
    .version_commit = hf__redis_versions_commit,
    .doctor = hf__redis_doctor,
    .watch = hf__redis_watch_start,
    .unwatch = hf__redis_watch_stop,
    .board_post = hf__redis_board_post,
    .board_read = hf__redis_board_read,
    .flush = redis_flush,
};

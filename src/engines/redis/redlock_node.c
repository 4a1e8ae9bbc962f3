/* SPDX-License-Identifier: MIT */
/*
 * redlock_node.c - one server of a RedLock: a Redis engine of its own.
 *
 * Connected does not mean that it may vote. First it says who it is: a server
 * that is in the list under two names, or a replica of another, would have two
 * votes or none, and is refused. Then since when: one that was restarted
 * without its memory (anything but appendfsync always) does not vote until the
 * longest lease that it may have forgotten has ended. Before each vote we look
 * at its clock; one that jumped ahead has ended leases too early and is
 * excluded for as long.
 *
 * Failure: a node that is lost is connected again by itself, with growing
 * pauses. One that does not answer within node_timeout is late: it is not asked
 * for votes until it has answered something, so that it costs nobody time.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/retry.h"
#include "engines/redis/connection.h"
#include "engines/redis/inspect.h"
#include "engines/redis/redlock.h"

static struct hf__redlock_node *node_of(struct hf__redis *redis)
{
    return redis->base.up_owner;
}

static struct hf__engine *engine_of(struct hf__redlock_node *node)
{
    return &node->redis->base;
}

/* ---- opening ----------------------------------------------------------- */

/* The host's own timer finds the client by the address of the host. */
static void node_timer(const struct hf__engine_host *host,
                       struct hf__timer *timer, int64_t due_ns)
{
    const struct hf__redlock_node *node =
        HF_CONTAINER_OF((uintptr_t)host, struct hf__redlock_node, host);
    const struct hf__engine_host *ours = node->redlock->base.host;

    ours->timer(ours, timer, due_ns);
}

static void again_fire(struct hf__timer *timer)
{
    struct hf__redlock_node *node =
        HF_CONTAINER_OF(timer, struct hf__redlock_node, again);

    hf__redlock_node_connect(node);
    hf__redlock_weigh(node->redlock);
}

/* The URL of this node alone; its texts belong to ours. */
static void name_node(struct hf__redlock_node *node, const struct hf__url *url)
{
    static char plain[] = "redis";
    static char tls[] = "rediss";

    node->url = *url;
    node->url.scheme = strcmp(url->scheme, "redlocks") == 0 ? tls : plain;
    node->url.hosts[0] = url->hosts[node->index];
    node->url.n_hosts = 1;
    if (node->url.hosts[0].port == 0)
        node->url.hosts[0].port = 6379;
    (void)snprintf(node->name, sizeof(node->name), "%.50s:%d",
                   node->url.hosts[0].host, node->url.hosts[0].port);
}

int hf__redlock_node_open(struct hf__redlock *redlock, size_t index,
                          size_t ticket_offset, hf_error *err)
{
    struct hf__redlock_node *node = &redlock->nodes[index];
    struct hf__engine *engine = hf__calloc(1, hf__engine_redis.size);

    if (!engine)
        return hf__fail(err, HF_ENOMEM, "out of memory");
    node->redlock = redlock;
    node->index = index;
    node->redis = (struct hf__redis *)engine;
    node->again.fire = again_fire;
    node->host = *redlock->base.host;
    node->host.settings = &redlock->settings;
    node->host.url = &node->url;
    node->host.timer = node_timer;
    name_node(node, redlock->base.host->url);
    engine->ops = &hf__engine_redis;
    engine->host = &node->host;
    engine->caps = hf__engine_redis.caps;
    engine->up = &hf__redlock_ballot_reports;
    engine->up_owner = node;
    engine->ticket_offset = ticket_offset;
    redlock->n++; /* close() gives it back, also half-opened */
    return engine->ops->open(engine, err);
}

void hf__redlock_node_close(struct hf__redlock_node *node, bool forked)
{
    struct hf__engine *engine = engine_of(node);

    engine->ops->close(engine, forked);
    if (forked)
        return;
    hf__timer_stop(node->redlock->base.host->loop, &node->again);
    hf__free(engine);
    node->redis = NULL;
}

/* ---- coming and going -------------------------------------------------- */

static void note_failure(struct hf__redlock_node *node, const hf_error *err)
{
    const struct hf__engine_host *host = node->redlock->base.host;

    node->state = HF__PEER_DOWN;
    node->clock.since_ns = 0;
    node->err = *err;
    host->timer(host, &node->again,
                hf__now() +
                    hf__retry_pause_ns(host->settings, node->attempts++));
}

void hf__redlock_node_connect(struct hf__redlock_node *node)
{
    struct hf__engine *engine = engine_of(node);
    hf_error err;

    if (node->state != HF__PEER_DOWN)
        return;
    hf__timer_stop(engine->host->loop, &node->again);
    node->state = HF__PEER_CONNECTING;
    if (engine->ops->connect(engine, &err) != 0)
        note_failure(node, &err);
}

void hf__redlock_node_down(struct hf__redlock_node *node, const hf_error *err)
{
    if (node->state >= HF__PEER_UP)
        node->seen_ns = hf__now();
    note_failure(node, err);
    hf__redlock_ballot_sweep(node);
    hf__redlock_weigh(node->redlock);
}

/* ---- who it is --------------------------------------------------------- */

static void quarantine(struct hf__redlock_node *node, int64_t until_ns,
                       const char *why)
{
    if (until_ns <= node->quarantine_ns)
        return;
    node->quarantine_ns = until_ns;
    node->quarantine = why;
}

static void refuse(struct hf__redlock_node *node, const char *why,
                   const char *other)
{
    hf_error err;

    (void)hf__fail(&err, HF_ECONFIG, "%s: %s%s", node->name, why, other);
    hf__redis_connection_fail(node->redis, &err);
}

/* The node with the same @run_id as ours: the same server. */
static const struct hf__redlock_node *find_twin(
    const struct hf__redlock_node *node)
{
    for (uint32_t i = 0; i < node->redlock->n; i++) {
        const struct hf__redlock_node *other = &node->redlock->nodes[i];

        if (other != node && other->state >= HF__PEER_UP &&
            other->run_id[0] != '\0' &&
            strcmp(other->run_id, node->run_id) == 0)
            return other;
    }
    return NULL;
}

static void on_who(struct hf__redis *redis, const struct hf__redis_call *call,
                   struct hf__resp *reply)
{
    struct hf__redlock_node *node = node_of(redis);
    const struct hf__redlock_node *twin;
    struct hf__resp_value info;
    char run_id[41];
    char text[24];

    (void)call;
    if (!reply)
        return;
    info = hf__resp_next(reply);
    hf__redis_connection_read_info(&info, "run_id", run_id, sizeof(run_id));
    if (strcmp(run_id, node->run_id) == 0)
        node->seen_ns = 0; /* never away */
    memcpy(node->run_id, run_id, sizeof(run_id));
    hf__redis_connection_read_info(&info, "uptime_in_seconds", text,
                                   sizeof(text));
    node->uptime_s = strtoll(text, NULL, 10);
    hf__redis_connection_read_info(&info, "role", text, sizeof(text));
    twin = find_twin(node);
    if (twin)
        refuse(node, "the same server as ", twin->name);
    else if (strcmp(text, "slave") == 0)
        refuse(node, "a replica has no vote of its own", "");
}

/* Whether a restart forgets; the last answer of the introduction. */
static void on_durable(struct hf__redis *redis,
                       const struct hf__redis_call *call,
                       struct hf__resp *reply)
{
    struct hf__redlock_node *node = node_of(redis);
    int64_t now_ns = hf__now();
    char on[8];
    char sync[16];

    (void)call;
    if (!reply || redis->stream.failed)
        return;
    hf__redis_doctor_read_config(*reply, "appendonly", on, sizeof(on));
    hf__redis_doctor_read_config(*reply, "appendfsync", sync, sizeof(sync));
    node->durable = strcmp(on, "yes") == 0 && strcmp(sync, "always") == 0;
    if (!node->durable)
        quarantine(node,
                   now_ns +
                       hf__redlock_quorum_quarantine_ns(
                           node->uptime_s,
                           node->seen_ns ? now_ns - node->seen_ns : HF_NEVER,
                           node->redlock->longest_ms),
                   "restarted");
    node->state = HF__PEER_UP;
    node->attempts = 0;
    node->err.code = 0;
    hf__redlock_ballot_settle(node);
    hf__redlock_weigh(node->redlock);
}

static int ask(struct hf__redlock_node *node, const char *words,
               hf__redis_reply_fn *done)
{
    struct hf__redis_call call = {.done = done};

    return hf__redis_connection_say(node->redis, words, &call, /* err= */ NULL);
}

void hf__redlock_node_connected(struct hf__redlock_node *node)
{
    hf_error err;

    if (ask(node, "INFO server replication", on_who) == 0 &&
        ask(node, "CONFIG GET append*", on_durable) == 0)
        return;
    (void)hf__fail(&err, HF_ENOMEM, "out of memory");
    hf__redis_connection_fail(node->redis, &err);
}

/* ---- may it vote ------------------------------------------------------- */

bool hf__redlock_node_quarantined(const struct hf__redlock_node *node)
{
    return node->quarantine_ns > hf__now() && !HF__PLANTED("no_quarantine");
}

bool hf__redlock_node_votes(const struct hf__redlock_node *node)
{
    return node->state == HF__PEER_UP && !hf__redlock_node_quarantined(node);
}

static void on_clock(struct hf__redis *redis, const struct hf__redis_call *call,
                     struct hf__resp *reply)
{
    struct hf__redlock_node *node = node_of(redis);
    const struct hf__redlock *redlock = node->redlock;
    double drift = redlock->settings.drift;
    int64_t now_ns = hf__now();
    int64_t longest_ns = hf__ms_to_ns(redlock->longest_ms);
    int64_t most_ns =
        (int64_t)((double)hf__ms_to_ns(redlock->shortest_ms) * drift) +
        2 * HF_MS;
    struct hf__resp_value seconds;
    struct hf__resp_value us;
    int64_t server_ns;

    if (!reply)
        return;
    hf__redlock_node_heard(node);
    (void)hf__resp_next(reply);
    seconds = hf__resp_next(reply);
    us = hf__resp_next(reply);
    server_ns = hf__resp_number(&seconds, 0) * HF_SECOND +
                hf__resp_number(&us, 0) * 1000;
    if (hf__redlock_quorum_clock_jumped(&node->clock, server_ns, call->sent_ns,
                                        now_ns, most_ns, longest_ns))
        quarantine(node, hf__instant_add(now_ns, longest_ns), "clock jumped");
}

int hf__redlock_node_look(struct hf__redlock_node *node)
{
    return ask(node, "TIME", on_clock);
}

/* What its last error says behind its name, which the caller has said. */
static const char *nameless(const struct hf__redlock_node *node)
{
    const char *text = node->err.text;

    for (const char *at = strstr(text, node->name); at;
         at = strstr(text, node->name))
        text = at + strlen(node->name);
    return text + strspn(text, ": ");
}

void hf__redlock_node_excuse(const struct hf__redlock_node *node, char *to,
                             size_t size)
{
    int64_t left_ns = node->quarantine_ns - hf__now();

    if (node->err.code != 0 && node->err.code != HF_EUNAVAILABLE)
        (void)snprintf(to, size, "%.70s", nameless(node));
    else if (node->state < HF__PEER_UP)
        (void)snprintf(to, size, "away");
    else if (left_ns > 0)
        (void)snprintf(to, size, "%s, out for %" PRId64 " s", node->quarantine,
                       (left_ns + HF_SECOND - 1) / HF_SECOND);
    else
        (void)snprintf(to, size, "late");
}

/* What waiting would not mend, if it is so at too many nodes. */
static int final_code(const struct hf__redlock *redlock)
{
    uint32_t n = 0;
    int code = HF_EUNAVAILABLE;

    for (uint32_t i = 0; i < redlock->n; i++) {
        int why = redlock->nodes[i].err.code;

        if (why == 0 || why == HF_EUNAVAILABLE)
            continue;
        code = why;
        n++;
    }
    return n > redlock->n - redlock->quorum ? code : HF_EUNAVAILABLE;
}

void hf__redlock_node_no_majority(const struct hf__redlock *redlock,
                                  hf_error *err)
{
    char text[HF__REDLOCK_VOTES];
    char excuse[80];
    size_t used = 0;

    text[0] = '\0';
    for (uint32_t i = 0; i < redlock->n && used < sizeof(text); i++) {
        const struct hf__redlock_node *node = &redlock->nodes[i];

        if (hf__redlock_node_votes(node) && node->err.code == 0)
            continue;
        hf__redlock_node_excuse(node, excuse, sizeof(excuse));
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%s %s %s",
                                 used > 0 ? "," : "", node->name, excuse);
    }
    (void)hf__fail(err, final_code(redlock), "no majority of %u servers:%s",
                   redlock->n, text);
}

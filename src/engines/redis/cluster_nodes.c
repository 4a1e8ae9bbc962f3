/* SPDX-License-Identifier: MIT */
/*
 * cluster_nodes.c - which nodes there are, and who serves which slot.
 *
 * Every node that serves slots has a connection of its own, from the
 * beginning: an attempt that may not wait cannot wait for a connection. The
 * first node that answers tells the slots; "connected" is reported when those
 * who serve them are connected, or have had a quarter of connect_timeout.
 *
 * The slots are asked for again when a node says that one has MOVED, and as
 * long as a node that serves some is not reachable: its replica will be
 * promoted, and only the others can say so. Then "connected" is reported once
 * more, and the core asks about everything: what a node does not know is lost.
 *
 * Failure: one node that is down is the business of its locks alone. Only when
 * none is left is "down" reported, and the core decides when to connect again.
 */
#include "engines/redis/cluster.h"
#include "engines/redis/connection.h"
#include "engines/redis/errors.h"

/* ---- nodes ------------------------------------------------------------- */

struct hf__node *hf__cluster_server(const struct hf__cluster *cluster,
                                    uint16_t slot)
{
    return cluster->slots[slot] < 0 ? NULL
                                    : cluster->nodes[cluster->slots[slot]];
}

/* The host belongs to its node; the core's timers know only the core's. */
static void start_timer(const struct hf__engine_host *host,
                        struct hf__timer *timer, int64_t due_ns)
{
    const struct hf__node *node =
        HF_CONTAINER_OF((uintptr_t)host, struct hf__node, host);
    const struct hf__engine_host *whole = node->cluster->base.host;

    whole->timer(whole, timer, due_ns);
}

static void moved(struct hf__redis *redis, const struct hf__slot_redirect *to);

static int make_engine(struct hf__node *node, hf_error *err)
{
    struct hf__cluster *cluster = node->cluster;
    struct hf__redis *redis = hf__calloc(1, sizeof(*redis));

    if (!redis)
        return hf__fail(err, HF_ENOMEM, "out of memory");
    node->redis = redis;
    redis->base.ops = &hf__engine_redis;
    redis->base.host = &node->host;
    redis->base.up = &hf__cluster_reports;
    redis->base.up_owner = node;
    redis->base.ticket_offset =
        cluster->base.ticket_offset + sizeof(struct hf__cluster_ticket);
    redis->in_cluster = true;
    redis->moved = moved;
    redis->asked = hf__cluster_asked;
    redis->under_way_sum = &cluster->base.under_way;
    return redis->base.ops->open(&redis->base, err);
}

static void free_node(struct hf__node *node, bool forked)
{
    if (node->redis)
        node->redis->base.ops->close(&node->redis->base, forked);
    if (forked)
        return;
    hf__free(node->redis);
    hf__free(node->name);
    hf__free(node);
}

static struct hf__node *node_new(struct hf__cluster *cluster, const char *host,
                                 int port, hf_error *err)
{
    static char plain[] = "redis";
    static char secure[] = "rediss";
    static char no_path[] = "";
    const struct hf__url *url = cluster->base.host->url;
    struct hf__node *node = hf__calloc(1, sizeof(*node));

    if (node)
        node->name = hf__strdup(host);
    if (!node || !node->name) {
        hf__free(node);
        (void)hf__fail(err, HF_ENOMEM, "out of memory");
        return NULL;
    }
    node->cluster = cluster;
    node->port = port;
    node->url.scheme = strncmp(url->scheme, "rediss", 6) == 0 ? secure : plain;
    node->url.user = url->user;
    node->url.password = url->password;
    node->url.path = no_path;
    node->url.hosts[0].host = node->name;
    node->url.hosts[0].port = port;
    node->url.n_hosts = 1;
    node->host = *cluster->base.host;
    node->host.url = &node->url;
    node->host.timer = start_timer;
    if (make_engine(node, err) != 0) {
        free_node(node, /* forked= */ false);
        return NULL;
    }
    return node;
}

struct hf__node *hf__cluster_node(struct hf__cluster *cluster, const char *host,
                                  int port, const struct hf__node *teller,
                                  hf_error *err)
{
    struct hf__node *node;

    if (host[0] == '\0' && teller)
        host = teller->name;
    for (uint32_t i = 0; i < cluster->n; i++) {
        node = cluster->nodes[i];
        if (node->port == port && strcmp(node->name, host) == 0)
            return node;
    }
    if (cluster->n == HF__CLUSTER_NODES) {
        (void)hf__fail(err, HF_EUNSUPPORTED,
                       "the cluster has had more than %d nodes: open it "
                       "again",
                       HF__CLUSTER_NODES);
        return NULL;
    }
    node = node_new(cluster, host, port, err);
    if (node)
        cluster->nodes[cluster->n++] = node;
    return node;
}

void hf__cluster_free_nodes(struct hf__cluster *cluster, bool forked)
{
    for (uint32_t i = 0; i < cluster->n; i++)
        free_node(cluster->nodes[i], forked);
    if (!forked)
        cluster->n = 0;
}

static int16_t index_of(const struct hf__cluster *cluster,
                        const struct hf__node *node)
{
    int16_t i = 0;

    while (cluster->nodes[i] != node)
        i++;
    return i;
}

void hf__cluster_connect_node(struct hf__node *node)
{
    struct hf__engine *engine = &node->redis->base;

    if (node->state != HF__PEER_DOWN)
        return;
    if (engine->ops->connect(engine, &node->cluster->why) == 0)
        node->state = HF__PEER_CONNECTING;
}

/* ---- what is known ----------------------------------------------------- */

static struct hf__node *any_up(const struct hf__cluster *cluster)
{
    for (uint32_t i = 0; i < cluster->n; i++) {
        if (cluster->nodes[i]->state == HF__PEER_UP)
            return cluster->nodes[i];
    }
    return NULL;
}

/* Is a node still on its way? Once the slots are known, only who serves. */
static bool connecting(const struct hf__cluster *cluster)
{
    for (uint32_t i = 0; i < cluster->n; i++) {
        const struct hf__node *node = cluster->nodes[i];

        if (node->state == HF__PEER_CONNECTING &&
            (node->serves || cluster->map != HF__MAP_KNOWN))
            return true;
    }
    return false;
}

static bool complete(const struct hf__cluster *cluster)
{
    for (uint32_t i = 0; i < cluster->n; i++) {
        if (cluster->nodes[i]->serves &&
            cluster->nodes[i]->state != HF__PEER_UP)
            return false;
    }
    return true;
}

static void wake(struct hf__cluster *cluster, int64_t due_ns)
{
    const struct hf__engine_host *host = cluster->base.host;

    if (!hf__timer_running(&cluster->timer) || cluster->timer.due_ns > due_ns)
        host->timer(host, &cluster->timer, due_ns);
}

/* How long to leave the nodes alone before asking again. */
static int64_t pause_ns(const struct hf__cluster *cluster)
{
    const struct hf__settings *settings = cluster->base.host->settings;
    int64_t ms = settings->retry_base_ms;

    for (uint32_t i = 0;
         i < cluster->attempts && ms < settings->retry_max_interval_ms; i++)
        ms *= 2;
    if (ms > settings->retry_max_interval_ms)
        ms = settings->retry_max_interval_ms;
    return hf__ms_to_ns(ms);
}

/* The core has to be told something. */
static void note_news(struct hf__cluster *cluster)
{
    if (cluster->report == HF__TOLD_CONNECTED)
        cluster->report = HF__TOLD_OLD;
}

static void report_down(struct hf__cluster *cluster)
{
    hf_error err = cluster->why;

    if (err.code == 0)
        (void)hf__fail(&err, HF_EUNAVAILABLE, "no node is known");
    (void)hf__fail_in(&err, err.code, "no node of the cluster answers");
    cluster->report = HF__TOLD_DOWN;
    cluster->map = HF__MAP_WANTED;
    hf__timer_stop(cluster->base.host->loop, &cluster->timer);
    hf__up_down(&cluster->base, &err);
}

static void report_connected(struct hf__cluster *cluster)
{
    cluster->report = HF__TOLD_CONNECTED;
    if (complete(cluster)) {
        cluster->attempts = 0;
    } else {
        wake(cluster, hf__now() + pause_ns(cluster));
        cluster->attempts++;
    }
    hf__up_connected(&cluster->base);
}

static void ask_slots(struct hf__node *node);

/* Something has happened to a node or to the slots: what follows? */
static void settle(struct hf__cluster *cluster)
{
    const struct hf__settings *settings = cluster->base.host->settings;
    int64_t patient_ns =
        cluster->mapped_ns + hf__ms_to_ns(settings->connect_timeout_ms) / 4;
    struct hf__node *node = any_up(cluster);

    if (cluster->map == HF__MAP_ASKED)
        return;
    if (!node) {
        if (!connecting(cluster))
            report_down(cluster);
    } else if (cluster->map == HF__MAP_WANTED) {
        ask_slots(node);
    } else if (connecting(cluster) && hf__now() < patient_ns) {
        wake(cluster, patient_ns);
    } else if (cluster->report != HF__TOLD_CONNECTED) {
        report_connected(cluster);
    } else if (!complete(cluster)) {
        wake(cluster, hf__now() + pause_ns(cluster));
        cluster->attempts++;
    }
}

static void connect_servers(struct hf__cluster *cluster)
{
    for (uint32_t i = 0; i < cluster->n; i++) {
        if (cluster->nodes[i]->serves)
            hf__cluster_connect_node(cluster->nodes[i]);
    }
}

static void refresh(struct hf__cluster *cluster)
{
    cluster->map = HF__MAP_WANTED;
    connect_servers(cluster);
    settle(cluster);
}

static void timer_fire(struct hf__timer *timer)
{
    struct hf__cluster *cluster =
        HF_CONTAINER_OF(timer, struct hf__cluster, timer);

    if (cluster->map == HF__MAP_ASKED)
        return; /* the answer decides */
    if (cluster->report != HF__TOLD_DOWN || cluster->map == HF__MAP_WANTED)
        refresh(cluster);
    else
        settle(cluster);
}

/* ---- slots ------------------------------------------------------------- */

/* Write down who serves a range; false: a slot of it has been told before. */
static bool tell_range(struct hf__cluster *cluster, uint16_t first,
                       uint16_t last, const struct hf__node *node)
{
    int16_t index = index_of(cluster, node);

    for (uint32_t slot = first; slot <= last; slot++) {
        if (cluster->told[slot] >= 0)
            return false;
        cluster->told[slot] = index;
    }
    return true;
}

static int nonsense(const struct hf__node *teller, hf_error *err)
{
    return hf__fail(err, HF_EUNAVAILABLE,
                    "%s: what it says of the slots makes no sense",
                    teller->redis->peer);
}

/* Read the whole answer into cluster->told; 0, or what is wrong. Each slot has
 * one server, so an honest answer has no more ranges than there are slots, and
 * reading one costs no more. */
static int read_slots(struct hf__node *teller, struct hf__resp *reply,
                      uint32_t count, hf_error *err)
{
    struct hf__cluster *cluster = teller->cluster;

    for (size_t i = 0; i < HF__SLOTS; i++)
        cluster->told[i] = -1;
    while (count-- > 0) {
        struct hf__resp_value range = hf__resp_next(reply);
        struct hf__resp after = *reply;
        struct hf__slot_address at;
        struct hf__node *node;
        uint16_t first;
        uint16_t last;

        hf__resp_skip(&after, &range);
        if (!hf__slot_read_range(reply, &range, &first, &last, &at))
            return nonsense(teller, err);
        node = hf__cluster_node(cluster, at.host, at.port, teller, err);
        if (!node)
            return err->code;
        if (!tell_range(cluster, first, last, node))
            return nonsense(teller, err);
        *reply = after;
    }
    return 0;
}

/* Believe what was read, and connect to who serves. */
static void use_slots(struct hf__cluster *cluster)
{
    if (memcmp(cluster->slots, cluster->told, sizeof(cluster->slots)) != 0)
        note_news(cluster);
    memcpy(cluster->slots, cluster->told, sizeof(cluster->slots));
    for (uint32_t i = 0; i < cluster->n; i++)
        cluster->nodes[i]->serves = false;
    for (size_t i = 0; i < HF__SLOTS; i++) {
        if (cluster->slots[i] >= 0)
            cluster->nodes[cluster->slots[i]]->serves = true;
    }
    cluster->map = HF__MAP_KNOWN;
    cluster->mapped_ns = hf__now();
    connect_servers(cluster);
}

static void on_slots(struct hf__redis *redis, const struct hf__redis_call *call,
                     struct hf__resp *reply)
{
    struct hf__node *node = redis->base.up_owner;
    struct hf__cluster *cluster = node->cluster;
    struct hf__resp_value head;
    hf_error err;

    (void)call;
    cluster->map = HF__MAP_WANTED;
    if (!reply)
        return; /* "down" follows */
    head = hf__resp_next(reply);
    if (head.type != HF__RESP_LIST) {
        (void)hf__redis_errors_explain(redis, &head, &err);
        hf__redis_connection_fail(redis, &err);
    } else if (read_slots(node, reply, head.count, &err) != 0) {
        hf__redis_connection_fail(redis, &err);
    } else {
        use_slots(cluster);
        settle(cluster);
    }
}

static void ask_slots(struct hf__node *node)
{
    struct hf__redis *redis = node->redis;
    struct hf__redis_call call = {.done = on_slots};
    hf_error err;

    node->cluster->map = HF__MAP_ASKED;
    if (hf__redis_connection_say(redis, "CLUSTER SLOTS", &call, &err) != 0) {
        node->cluster->map = HF__MAP_WANTED;
        hf__redis_connection_fail(redis, &err);
    }
}

/* A node says who serves a slot now. Others may have moved as well. */
static void moved(struct hf__redis *redis, const struct hf__slot_redirect *to)
{
    struct hf__node *teller = redis->base.up_owner;
    struct hf__cluster *cluster = teller->cluster;
    struct hf__node *node = hf__cluster_node(cluster, to->to.host, to->to.port,
                                             teller, &cluster->why);

    if (!node)
        return;
    cluster->slots[to->slot] = index_of(cluster, node);
    note_news(cluster);
    node->serves = true;
    hf__cluster_connect_node(node);
    wake(cluster, hf__now());
}

/* ---- nodes come and go ------------------------------------------------- */

void hf__cluster_connected(struct hf__node *node)
{
    node->state = HF__PEER_UP;
    note_news(node->cluster);
    settle(node->cluster);
}

void hf__cluster_down(struct hf__node *node, const hf_error *err)
{
    node->state = HF__PEER_DOWN;
    node->cluster->why = *err;
    settle(node->cluster);
}

int hf__cluster_connect(struct hf__cluster *cluster, hf_error *err)
{
    cluster->timer.fire = timer_fire;
    cluster->map = HF__MAP_WANTED;
    cluster->attempts = 0;
    for (uint32_t i = 0; i < cluster->n; i++)
        hf__cluster_connect_node(cluster->nodes[i]);
    return connecting(cluster) ? 0 : hf__fail_pass(err, &cluster->why);
}

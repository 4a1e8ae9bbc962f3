/* SPDX-License-Identifier: MIT */
/*
 * cluster.c - the engine for a Redis Cluster: redis-cluster://, rediss-cluster://
 *
 * An engine made of engines: one for each node (redis.c), and this one above
 * them, which routes a call by the slot of its key and hears the reports. A
 * ticket is known at one node at a time; its record moves with it. All keys of
 * a lock are in one slot, so a lock is at one node at a time, too.
 *
 * A node that does not serve the slot any more says MOVED, and has done nothing:
 * the call is made again where it points to. So is one that is told to ASK
 * elsewhere because the slot is on its way, once it is certain that nothing of
 * the lock is left behind (cluster_ask.c).
 *
 * Questions about one name are routed in the same way; those about all are put
 * to every node that serves, and the answers are one.
 *
 * Failure: after a few MOVED in a row the call is reported unknown, or failed,
 * like any other that had no answer.
 */
#include "engines/redis/cluster.h"
#include "engines/redis/board.h"
#include "engines/redis/inspect.h"
#include "engines/redis/native.h"
#include "engines/redis/tickets.h"

_Static_assert(sizeof(struct hf__cluster_ticket) % 16 == 0,
               "the node's bytes of a ticket follow ours");

static struct hf__cluster *cluster_of(struct hf__engine *engine)
{
    return (struct hf__cluster *)engine;
}

static uint16_t slot_of(const struct hf__cluster *cluster,
                        const struct hf__redis_dialect *dialect,
                        const char *name, size_t len)
{
    struct hf__redis *redis = cluster->nodes[0]->redis;

    dialect->key(redis, name, len);
    return hf__buf_failed(&redis->scratch)
               ? 0
               : hf__slot_of(redis->scratch.text, redis->scratch.len);
}

static int nobody(hf_error *err, const char *name)
{
    return hf__fail(err, HF_EUNAVAILABLE,
                    "no node of the cluster serves the slot of '%s'", name);
}

/* ---- calls ------------------------------------------------------------- */

void hf__cluster_move(struct hf__node *node, struct hf__ticket *ticket)
{
    struct hf__cluster_ticket *mine = hf__cluster_ticket(node->cluster, ticket);
    struct hf__ticket *old = hf__redis_ticket(node->redis, ticket)->old;

    if (mine->at && mine->at != node)
        hf__redis_tickets_move(mine->at->redis, node->redis, ticket);
    mine->at = node;
    if (old)
        hf__cluster_move(node, old);
}

static void go_to(struct hf__node *node, struct hf__ticket *ticket)
{
    hf__cluster_move(node, ticket);
    hf__redis_ticket(node->redis, ticket)->importing = false;
}

/* Who serves the ticket's slot now; the ticket goes there. */
static struct hf__node *route(struct hf__cluster *cluster,
                              struct hf__ticket *ticket)
{
    struct hf__cluster_ticket *mine = hf__cluster_ticket(cluster, ticket);
    struct hf__node *to;

    if (mine->slot == 0)
        mine->slot = 1 + slot_of(cluster, cluster->nodes[0]->redis->dialect,
                                 ticket->name, ticket->name_len);
    to = hf__cluster_server(cluster, (uint16_t)(mine->slot - 1));
    if (to)
        go_to(to, ticket);
    return to;
}

int hf__cluster_call(struct hf__node *node, struct hf__ticket *ticket,
                     hf_error *err)
{
    struct hf__engine *engine = &node->redis->base;

    switch (hf__cluster_ticket(node->cluster, ticket)->call) {
    case HF__CLUSTER_ACQUIRE:
        return engine->ops->acquire(engine, ticket, err);
    case HF__CLUSTER_WITHDRAW:
        return engine->ops->withdraw(engine, ticket, err);
    case HF__CLUSTER_RELEASE:
        return engine->ops->release(engine, ticket, err);
    case HF__CLUSTER_PARK:
        return engine->ops->park(
            engine, ticket, hf__redis_ticket(node->redis, ticket)->old, err);
    case HF__CLUSTER_UNPARK:
        return engine->ops->unpark(engine, ticket, err);
    default:
        return engine->ops->downgrade(engine, ticket, err);
    }
}

static int call_server(struct hf__cluster *cluster, struct hf__ticket *ticket,
                       hf_error *err)
{
    struct hf__node *node = route(cluster, ticket);

    return node ? hf__cluster_call(node, ticket, err)
                : nobody(err, ticket->name);
}

static int begin(struct hf__engine *engine, struct hf__ticket *ticket,
                 enum hf__cluster_call call, hf_error *err)
{
    struct hf__cluster *cluster = cluster_of(engine);
    struct hf__cluster_ticket *mine = hf__cluster_ticket(cluster, ticket);

    mine->call = (uint8_t)call;
    mine->redirects = 0;
    return call_server(cluster, ticket, err);
}

static int cluster_acquire(struct hf__engine *engine, struct hf__ticket *ticket,
                           hf_error *err)
{
    return begin(engine, ticket, HF__CLUSTER_ACQUIRE, err);
}

/* What no node knows was never asked for, or its end has been reported. */
static int leave(struct hf__engine *engine, struct hf__ticket *ticket,
                 enum hf__cluster_call call, hf_error *err)
{
    if (!hf__cluster_ticket(cluster_of(engine), ticket)->at) {
        hf__up_left(engine, ticket, call == HF__CLUSTER_RELEASE ? HF_ELOST : 0);
        return 0;
    }
    return begin(engine, ticket, call, err);
}

static int cluster_withdraw(struct hf__engine *engine,
                            struct hf__ticket *ticket, hf_error *err)
{
    return leave(engine, ticket, HF__CLUSTER_WITHDRAW, err);
}

static int cluster_release(struct hf__engine *engine, struct hf__ticket *ticket,
                           hf_error *err)
{
    return leave(engine, ticket, HF__CLUSTER_RELEASE, err);
}

/* A script works in one slot: each lock has its own, all in one write. */
static int cluster_renew(struct hf__engine *engine, struct hf__ticket **tickets,
                         size_t n, hf_error *err)
{
    int worst = 0;

    for (size_t i = 0; i < n; i++) {
        struct hf__node *node = route(cluster_of(engine), tickets[i]);
        struct hf__engine *one = node ? &node->redis->base : NULL;
        int rc;

        hf__cluster_ticket(cluster_of(engine), tickets[i])->redirects = 0;
        rc = one ? one->ops->renew(one, &tickets[i], 1, err)
                 : nobody(err, tickets[i]->name);
        if (rc != 0)
            worst = rc;
    }
    return n == 1 ? worst : 0; /* silence: the core counts the time */
}

static int cluster_downgrade(struct hf__engine *engine,
                             struct hf__ticket *ticket, hf_error *err)
{
    return begin(engine, ticket, HF__CLUSTER_DOWNGRADE, err);
}

/* The node's engine remembers @old, for a call that is made again. */
static int cluster_park(struct hf__engine *engine, struct hf__ticket *ticket,
                        struct hf__ticket *old, hf_error *err)
{
    hf__redis_ticket(cluster_of(engine)->nodes[0]->redis, ticket)->old = old;
    return begin(engine, ticket, HF__CLUSTER_PARK, err);
}

static int cluster_unpark(struct hf__engine *engine, struct hf__ticket *ticket,
                          hf_error *err)
{
    return begin(engine, ticket, HF__CLUSTER_UNPARK, err);
}

/* ---- questions --------------------------------------------------------- */

/* What is under way for one question: query->engine_data. */
struct question {
    hf__engine_query_fn *ask;
    uint32_t left; /* answers to come */
    uint32_t redirects;
    int rc;
    hf_error err;
};

static struct question *new_question(struct hf__query *query,
                                     hf__engine_query_fn *ask, hf_error *err)
{
    struct question *question = hf__calloc(1, sizeof(*question));

    if (!question) {
        (void)hf__fail(err, HF_ENOMEM, "out of memory");
        return NULL;
    }
    question->ask = ask;
    query->engine_data = question;
    return question;
}

static void end_question(struct hf__query *query)
{
    hf__free(query->engine_data);
    query->engine_data = NULL;
}

static int ask_server(struct hf__cluster *cluster, struct hf__query *query,
                      const struct question *question, hf_error *err)
{
    bool version = question->ask == hf__redis_versions_read ||
                   question->ask == hf__redis_versions_commit;
    const struct hf__redis_dialect *dialect =
        version ? &hf__redis_native : cluster->nodes[0]->redis->dialect;
    uint16_t slot = slot_of(cluster, dialect, query->name, strlen(query->name));
    struct hf__node *node = hf__cluster_server(cluster, slot);

    return node ? question->ask(&node->redis->base, query, err)
                : nobody(err, query->name);
}

static int ask_one(struct hf__engine *engine, struct hf__query *query,
                   hf__engine_query_fn *ask, hf_error *err)
{
    struct question *question = new_question(query, ask, err);
    int rc;

    if (!question)
        return HF_ENOMEM;
    question->left = 1;
    rc = ask_server(cluster_of(engine), query, question, err);
    if (rc != 0)
        end_question(query);
    return rc;
}

/* An answer of some nodes alone would be a wrong one. */
static int ask_all(struct hf__engine *engine, struct hf__query *query,
                   hf__engine_query_fn *ask, hf_error *err)
{
    struct hf__cluster *cluster = cluster_of(engine);
    struct question *question = new_question(query, ask, err);
    int rc = HF_EUNAVAILABLE;

    if (!question)
        return HF_ENOMEM;
    (void)hf__fail(&question->err, rc, "no node of the cluster serves a slot");
    for (uint32_t i = 0; i < cluster->n; i++) {
        if (!cluster->nodes[i]->serves)
            continue;
        rc = ask(&cluster->nodes[i]->redis->base, query, &question->err);
        if (rc != 0)
            break;
        question->left++;
        question->err.code = 0;
    }
    question->rc = rc;
    if (question->left > 0)
        return 0; /* those that were asked answer, and then it is told */
    (void)hf__fail_pass(err, &question->err);
    end_question(query);
    return rc;
}

static void on_answer(void *owner, struct hf__query *query, int rc,
                      const hf_error *err)
{
    struct hf__node *node = owner;
    struct question *question = query->engine_data;
    struct question whole;

    if (node->redis->redirected && query->name &&
        question->redirects++ < HF__CLUSTER_REDIRECTS &&
        ask_server(node->cluster, query, question, /* err= */ NULL) == 0)
        return;
    if (rc != 0) {
        question->rc = rc;
        if (err)
            question->err = *err;
    }
    if (--question->left > 0)
        return;
    whole = *question;
    end_question(query);
    hf__up_answer(&node->cluster->base, query, whole.rc,
                  whole.err.code != 0 ? &whole.err : NULL);
}

static int cluster_list(struct hf__engine *engine, struct hf__query *query,
                        hf_error *err)
{
    return query->name ? ask_one(engine, query, hf__redis_inspect_list, err)
                       : ask_all(engine, query, hf__redis_inspect_list, err);
}

/* In the slot of the board's name. */
static int ask_board(struct hf__engine *engine, struct hf__query *query,
                     hf__engine_query_fn *ask, hf_error *err)
{
    if (!query->name)
        query->name = hf__strdup(hf__redis_board_name);
    return query->name ? ask_one(engine, query, ask, err)
                       : hf__fail(err, HF_ENOMEM, "out of memory");
}

#define CLUSTER_QUERY(slot, ask, query_fn)                                     \
    static int cluster_##slot(struct hf__engine *engine,                       \
                              struct hf__query *query, hf_error *err)          \
    {                                                                          \
        return ask(engine, query, query_fn, err);                              \
    }
CLUSTER_QUERY(check_token, ask_one, hf__redis_inspect_check_token)
CLUSTER_QUERY(break, ask_one, hf__redis_inspect_break)
CLUSTER_QUERY(signal, ask_one, hf__native_condition_signal)
CLUSTER_QUERY(version_read, ask_one, hf__redis_versions_read)
CLUSTER_QUERY(version_commit, ask_one, hf__redis_versions_commit)
CLUSTER_QUERY(board_post, ask_board, hf__redis_board_post)
CLUSTER_QUERY(board_read, ask_board, hf__redis_board_read)

static int cluster_doctor(struct hf__engine *engine, struct hf__query *query,
                          hf_error *err)
{
    struct hf__cluster *cluster = cluster_of(engine);
    uint16_t slot = slot_of(cluster, &hf__redis_native, hf__redis_doctor_name,
                            strlen(hf__redis_doctor_name));

    for (uint32_t i = 0; i < cluster->n; i++)
        cluster->nodes[i]->redis->no_trial =
            cluster->nodes[i] != hf__cluster_server(cluster, slot);
    return ask_all(engine, query, hf__redis_doctor, err);
}

/* ---- reports of the nodes ---------------------------------------------- */

static struct hf__engine *above(void *owner)
{
    return &((struct hf__node *)owner)->cluster->base;
}

/* No node knows it any more. */
static void forget(void *owner, struct hf__ticket *ticket)
{
    hf__cluster_ticket(((struct hf__node *)owner)->cluster, ticket)->at = NULL;
}

static void on_connected(void *owner)
{
    hf__cluster_connected(owner);
}

static void on_down(void *owner, const hf_error *err)
{
    hf__cluster_down(owner, err);
}

static void on_granted(void *owner, struct hf__ticket *ticket,
                       const struct hf__grant *grant)
{
    hf__up_granted(above(owner), ticket, grant);
}

static void on_queued(void *owner, struct hf__ticket *ticket)
{
    hf__up_queued(above(owner), ticket);
}

static void on_parked(void *owner, struct hf__ticket *ticket)
{
    hf__up_parked(above(owner), ticket);
}

static void on_busy(void *owner, struct hf__ticket *ticket, int64_t again_ns,
                    const char *holder)
{
    forget(owner, ticket);
    hf__up_busy(above(owner), ticket, again_ns, holder);
}

/* MOVED is no outcome: the call is made again where the slot is now. */
static bool again(struct hf__node *node, struct hf__ticket *ticket)
{
    struct hf__cluster_ticket *mine = hf__cluster_ticket(node->cluster, ticket);

    return node->redis->redirected &&
           mine->redirects++ < HF__CLUSTER_REDIRECTS &&
           call_server(node->cluster, ticket, /* err= */ NULL) == 0;
}

static void on_failed(void *owner, struct hf__ticket *ticket,
                      const hf_error *err)
{
    forget(owner, ticket);
    if (again(owner, ticket))
        return;
    forget(owner, ticket);
    hf__up_failed(above(owner), ticket, err);
}

static void on_unknown(void *owner, struct hf__ticket *ticket,
                       const hf_error *err)
{
    if (!again(owner, ticket))
        hf__up_unknown(above(owner), ticket, err);
}

static void on_renewed(void *owner, struct hf__ticket *ticket,
                       const struct hf__grant *grant)
{
    hf__up_renewed(above(owner), ticket, grant);
}

static void on_lost(void *owner, struct hf__ticket *ticket, int reason)
{
    forget(owner, ticket);
    hf__up_lost(above(owner), ticket, reason);
}

static void on_left(void *owner, struct hf__ticket *ticket, int rc)
{
    forget(owner, ticket);
    hf__up_left(above(owner), ticket, rc);
}

static void on_changed(void *owner, const char *name)
{
    (void)owner;
    (void)name; /* no node is asked to watch: the core lists in turns */
}

const struct hf__engine_up hf__cluster_reports = HF__ENGINE_UP(on_);

/* ---- coming and going -------------------------------------------------- */

static int cluster_open(struct hf__engine *engine, hf_error *err)
{
    struct hf__cluster *cluster = cluster_of(engine);
    const struct hf__url *url = engine->host->url;
    size_t n = url->n_hosts > 0 ? url->n_hosts : 1;
    hf_error why;

    if (strcmp(url->path, "") != 0 && strcmp(url->path, "/") != 0 &&
        strcmp(url->path, "/0") != 0)
        return hf__fail(err, HF_ECONFIG,
                        "a cluster has one database: write no path after the "
                        "hosts of %s://",
                        url->scheme);
    for (size_t i = 0; i < HF__SLOTS; i++)
        cluster->slots[i] = -1;
    for (size_t i = 0; i < n; i++) {
        const struct hf__url_host *host =
            i < url->n_hosts ? &url->hosts[i] : NULL;

        if (!hf__cluster_node(cluster, host ? host->host : "127.0.0.1",
                              host && host->port != 0 ? host->port : 6379,
                              /* teller= */ NULL, &why))
            return hf__fail_pass(err, &why);
    }
    engine->caps = cluster->nodes[0]->redis->base.caps;
    return 0;
}

static int cluster_connect(struct hf__engine *engine, hf_error *err)
{
    return hf__cluster_connect(cluster_of(engine), err);
}

static void cluster_close(struct hf__engine *engine, bool forked)
{
    struct hf__cluster *cluster = cluster_of(engine);

    hf__cluster_free_nodes(cluster, forked);
    if (!forked)
        hf__timer_stop(engine->host->loop, &cluster->timer);
}

static void cluster_flush(struct hf__engine *engine)
{
    struct hf__cluster *cluster = cluster_of(engine);

    for (uint32_t i = 0; i < cluster->n; i++)
        hf__stream_flush(&cluster->nodes[i]->redis->stream);
}

const struct hf__engine_ops hf__engine_redis_cluster = {
    .name = "redis-cluster",
    .schemes = "redis-cluster rediss-cluster",
    .dialects = "native plain redisson",
    .caps = HF__REDIS_CAPS,
    .flags = HF__BEATS_WAITERS | HF__RESERVES_TOKENS,
    .timers = 1 + HF__CLUSTER_NODES,
    .size = sizeof(struct hf__cluster),
    .ticket_size =
        sizeof(struct hf__cluster_ticket) + sizeof(struct hf__redis_ticket),
    .open = cluster_open,
    .connect = cluster_connect,
    .close = cluster_close,
    .acquire = cluster_acquire,
    .withdraw = cluster_withdraw,
    .release = cluster_release,
    .renew = cluster_renew,
    .downgrade = cluster_downgrade,
    .park = cluster_park,
    .unpark = cluster_unpark,
    .signal = cluster_signal,
    .list = cluster_list,
    .check_token = cluster_check_token,
    .break_lock = cluster_break,
    .version_read = cluster_version_read,
    .version_commit = cluster_version_commit,
    .doctor = cluster_doctor,
    .board_post = cluster_board_post,
    .board_read = cluster_board_read,
    .flush = cluster_flush,
};

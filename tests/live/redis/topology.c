/* SPDX-License-Identifier: MIT */
/* topology.c - several Redis servers for a test: a Sentinel set, a Cluster. */
#include "topology.h"

#include <stdarg.h>
#include <stdlib.h>

#include "event.h"

enum { WORDS_MAX = 64, READY_MS = 60000 };

static void *kept(size_t size)
{
    void *memory = calloc(1, size);

    if (!memory)
        FAIL("out of memory");
    test_defer(free, memory);
    return memory;
}

enum { FINDINGS = 8192 };

static int note_finding(const hf_finding *finding, void *ctx)
{
    char *all = ctx;
    size_t used = strlen(all);

    (void)snprintf(all + used, FINDINGS - used, "%s: %s\n", finding->check,
                   finding->detail);
    return 0;
}

const char *topology_doctor(hf_client *client)
{
    char *findings = kept(FINDINGS);
    hf_error err;

    ASSERT_OK(hf_doctor(client, note_finding, findings, &err), &err);
    return findings;
}

/* A server with @more words; they end with NULL. */
static struct server *start(const struct topology_tls *tls,
                            const char *const *more)
{
    static const char *const common[] = {
        "--appendonly", "no", "--repl-diskless-sync-delay", "0", NULL};
    static const char *const secure[] = {"--tls-auth-clients",
                                         "no",
                                         "--tls-replication",
                                         "yes",
                                         "--tls-cluster",
                                         "yes",
                                         NULL};
    const char *const *const lists[] = {common, more, secure};
    bool plain = tls->port == 0;
    const char *const *words = redis_words(lists, plain ? 2 : 3);

    return plain ? redis_start_with(words)
                 : redis_start_tls(tls->port, tls->dir, "server", words);
}

static struct topology_tls tls_at(const char *dir)
{
    struct topology_tls tls = {dir, dir ? server_free_port() : 0};

    return tls;
}

/* What holdfast(7) asks for. */
static void make_user(struct server *server)
{
    const char *said = redis_do(
        server,
        "ACL SETUSER locker on >s3cret ~hf:* &hf:* -@all +hello +auth +ping "
        "+info +select +script|load +evalsha +eval +client|kill "
        "+client|tracking +subscribe +publish +time +get +set +del +incrby "
        "+pttl +pexpire +rpush +lpush "
        "+lpop +lrem +lindex +lrange +hset +hget +hdel +hgetall +zadd +zrem "
        "+zcard "
        "+zscore +zrange +zrangebyscore +scan +ssubscribe +sunsubscribe "
        "+spublish +exists +asking +cluster|slots");

    if (said[0] != '+')
        FAIL("%s", said);
}

void topology_expire(struct server *server, const char *dir)
{
    const char *said = redis_do(server,
                                "CONFIG SET tls-cert-file %s/expired.crt "
                                "tls-key-file %s/expired.key",
                                dir, dir);

    if (said[0] != '+')
        FAIL("%s", said);
}

static void await(struct server *server, const char *command, const char *text)
{
    int64_t until = clock_ms() + READY_MS;

    while (!strstr(redis_do(server, "%s", command), text)) {
        if (clock_ms() > until)
            FAIL("%s does not say %s: %s", command, text,
                 redis_do(server, "%s", command));
        event_breathe();
    }
}

static void must(struct server *server, const char *command)
{
    const char *said = redis_do(server, "%s", command);

    if (said[0] == '-')
        FAIL("%s: %s", command, said);
}

bool topology_in_step(struct server *master)
{
    const char *info = redis_do(master, "INFO replication");
    const char *written = strstr(info, "master_repl_offset:");
    const char *has = strstr(info, ",offset=");

    if (!written || !has)
        return false;
    for (; has; has = strstr(has + 1, ",offset=")) {
        if (strtoll(has + strlen(",offset="), NULL, 10) <
            strtoll(written + strlen("master_repl_offset:"), NULL, 10))
            return false;
    }
    return true;
}

/* ---- sentinels --------------------------------------------------------- */

/* Its configuration is a file that it writes to itself. */
static struct server *start_sentinel(int master, const struct topology_tls *tls)
{
    const char **words = kept(WORDS_MAX * sizeof(*words));
    const char *secure =
        tls->port == 0
            ? ""
            : test_text("'tls-port %d' 'tls-cert-file %s/server.crt' "
                        "'tls-key-file %s/server.key' "
                        "'tls-ca-cert-file %s/good.crt' "
                        "'tls-auth-clients no' 'tls-replication yes' ",
                        tls->port, tls->dir, tls->dir, tls->dir);

    words[0] = "sh";
    words[1] = "-c";
    words[2] = test_text("[ -e {dir}/s.conf ] || printf '%%s\\n' 'port {port}' "
                         "'bind 127.0.0.1' 'dir {dir}' %s"
                         "'sentinel monitor m1 127.0.0.1 %d 2' "
                         "'sentinel down-after-milliseconds m1 30000' "
                         "'sentinel failover-timeout m1 4000' >{dir}/s.conf; "
                         "exec '%s' {dir}/s.conf --sentinel",
                         secure, master, redis_program());
    return server_start(words);
}

struct sentinel_set *sentinel_set_start_tls(const char *dir)
{
    static const char *const none[] = {NULL};
    struct sentinel_set *set = kept(sizeof(*set));
    const char *replica[] = {"--replicaof", NULL, NULL};
    struct topology_tls tls = tls_at(dir);
    int port;

    set->servers[0] = start(&tls, none);
    port = dir ? tls.port : server_port(set->servers[0]);
    replica[1] = test_text("127.0.0.1 %d", port);
    for (int i = 1; i < SET_SERVERS; i++) {
        tls = tls_at(dir);
        set->servers[i] = start(&tls, replica);
    }
    for (int i = 0; i < SET_SENTINELS; i++) {
        tls = tls_at(dir);
        set->sentinels[i] = start_sentinel(port, &tls);
        set->ports[i] = dir ? tls.port : server_port(set->sentinels[i]);
    }
    for (int i = 1; i < SET_SERVERS; i++)
        await(set->servers[i], "INFO replication", "master_link_status:up");
    for (int i = 0; i < SET_SENTINELS; i++) {
        await(set->sentinels[i], "SENTINEL CKQUORUM m1", "OK 3");
        await(set->sentinels[i], "INFO sentinel", "slaves=2");
    }
    for (int i = 0; dir && i < SET_SERVERS; i++)
        make_user(set->servers[i]);
    return set;
}

struct sentinel_set *sentinel_set_start(void)
{
    return sentinel_set_start_tls(/* dir= */ NULL);
}

static const char *sentinel_url(const struct sentinel_set *set,
                                const char *head, const char *query)
{
    return test_text("%s127.0.0.1:%d,127.0.0.1:%d,127.0.0.1:%d/m1?%s", head,
                     set->ports[0], set->ports[1], set->ports[2],
                     query ? query : "");
}

const char *sentinel_set_url(const struct sentinel_set *set, const char *query)
{
    return sentinel_url(set, "redis-sentinel://", query);
}

const char *sentinel_set_tls_url(const struct sentinel_set *set,
                                 const char *credentials, const char *query)
{
    return sentinel_url(set, test_text("rediss-sentinel://%s@", credentials),
                        query);
}

void sentinel_set_kill_master(const struct sentinel_set *set)
{
    for (int i = 0; i < SET_SENTINELS; i++)
        must(set->sentinels[i], "SENTINEL SET m1 down-after-milliseconds 1500");
    server_kill(set->servers[0]);
}

struct server *sentinel_set_master(const struct sentinel_set *set)
{
    for (int i = 0; i < SET_SERVERS; i++) {
        if (server_pid(set->servers[i]) != 0 &&
            strstr(redis_do(set->servers[i], "ROLE"), "master"))
            return set->servers[i];
    }
    return NULL;
}

struct server *sentinel_set_await(const struct sentinel_set *set,
                                  const struct server *old)
{
    int64_t until = clock_ms() + READY_MS;

    while (clock_ms() < until) {
        for (int i = 0; i < SET_SERVERS; i++) {
            struct server *server = set->servers[i];

            if (server != old && server_pid(server) != 0 &&
                strncmp(redis_do(server, "ROLE"), "*3\r\n$6\r\nmaster", 14) ==
                    0)
                return server;
        }
        event_breathe();
    }
    FAIL("no failover");
}

/* ---- cluster ----------------------------------------------------------- */

struct cluster *cluster_start_tls(const char *dir)
{
    struct cluster *cluster = kept(sizeof(*cluster));
    char *command = dir ? test_text("redis-cli --tls --cacert %s/good.crt "
                                    "--cluster create",
                                    dir)
                        : test_text("redis-cli --cluster create");

    for (int i = 0; i < CLUSTER_NODES; i++) {
        const char *more[] = {"--cluster-enabled",
                              "yes",
                              "--cluster-config-file",
                              "nodes.conf",
                              "--cluster-node-timeout",
                              "30000",
                              "--cluster-port",
                              test_text("%d", server_free_port()),
                              "--enable-debug-command",
                              "yes",
                              NULL};

        struct topology_tls tls = tls_at(dir);

        cluster->nodes[i] = start(&tls, more);
        cluster->ports[i] = dir ? tls.port : server_port(cluster->nodes[i]);
        command = test_text("%s 127.0.0.1:%d", command, cluster->ports[i]);
    }
    command = test_text("%s --cluster-replicas 1 --cluster-yes >%s/create",
                        command, server_dir(cluster->nodes[0]));
    if (system(command) != 0)
        FAIL("%s", command);
    for (int i = 0; i < CLUSTER_NODES; i++) {
        await(cluster->nodes[i], "CLUSTER INFO", "cluster_state:ok");
        if (i >= CLUSTER_NODES / 2)
            await(cluster->nodes[i], "INFO replication",
                  "master_link_status:up");
        else
            await(cluster->nodes[i], "INFO replication", "state=online");
        if (dir)
            make_user(cluster->nodes[i]);
    }
    return cluster;
}

struct cluster *cluster_start(void)
{
    return cluster_start_tls(/* dir= */ NULL);
}

const char *cluster_url(const struct cluster *cluster, const char *query)
{
    return test_text("redis-cluster://127.0.0.1:%d,127.0.0.1:%d?%s",
                     cluster->ports[0], cluster->ports[1], query ? query : "");
}

const char *cluster_tls_url(const struct cluster *cluster,
                            const char *credentials, const char *query)
{
    return test_text("rediss-cluster://%s@127.0.0.1:%d,127.0.0.1:%d?%s",
                     credentials, cluster->ports[0], cluster->ports[1],
                     query ? query : "");
}

struct server *cluster_owner(const struct cluster *cluster, const char *key)
{
    int64_t until = clock_ms() + READY_MS;

    while (clock_ms() < until) {
        for (int i = 0; i < CLUSTER_NODES; i++) {
            if (server_pid(cluster->nodes[i]) != 0 &&
                redis_do(cluster->nodes[i], "GET %s", key)[0] == '$')
                return cluster->nodes[i];
        }
        event_breathe();
    }
    FAIL("nobody serves %s", key);
}

struct server *cluster_other(const struct cluster *cluster,
                             const struct server *owner)
{
    for (int i = 0; i < CLUSTER_NODES; i++) {
        if (cluster->nodes[i] != owner && server_pid(cluster->nodes[i]) != 0 &&
            strstr(redis_do(cluster->nodes[i], "ROLE"), "master"))
            return cluster->nodes[i];
    }
    FAIL("there is no other master");
}

const char *cluster_id(struct server *node)
{
    const char *said = strchr(redis_do(node, "CLUSTER MYID"), '\n');

    return test_text("%.40s", said ? said + 1 : "");
}

int cluster_slot(const struct cluster *cluster, const char *key)
{
    return atoi(redis_do(cluster->nodes[0], "CLUSTER KEYSLOT %s", key) + 1);
}

void cluster_hurry(const struct cluster *cluster)
{
    for (int i = 0; i < CLUSTER_NODES; i++) {
        if (server_pid(cluster->nodes[i]) != 0)
            must(cluster->nodes[i], "CONFIG SET cluster-node-timeout 1500");
    }
}

void cluster_kill(const struct cluster *cluster, struct server *node)
{
    server_kill(node);
    cluster_hurry(cluster);
}

void cluster_move_begin(struct server *from, struct server *to, int slot)
{
    must(to,
         test_text("CLUSTER SETSLOT %d IMPORTING %s", slot, cluster_id(from)));
    must(from,
         test_text("CLUSTER SETSLOT %d MIGRATING %s", slot, cluster_id(to)));
}

void cluster_move_keys(struct server *from, struct server *to, int slot)
{
    const char *said = redis_do(from, "CLUSTER GETKEYSINSLOT %d 100", slot);
    char *keys = test_text("%s", said);
    struct hf__resp reply = {keys, keys + strlen(keys)};
    struct hf__resp_value head = hf__resp_next(&reply);
    char *list = test_text("%s", "");

    for (uint32_t i = 0; i < head.count; i++) {
        struct hf__resp_value key = hf__resp_next(&reply);

        list = test_text("%s %.*s", list, (int)key.len, key.text);
    }
    if (head.count > 0)
        must(from, test_text("MIGRATE 127.0.0.1 %d \"\" 0 5000 KEYS%s",
                             server_port(to), list));
}

static long info_number(struct server *node, const char *field)
{
    const char *at = strstr(redis_do(node, "CLUSTER INFO"), field);

    return at ? atol(at + strlen(field)) : -1;
}

/* Everybody has heard of the last change, made at @node: a second one by who
 * has not would be given the same number, and one of them taken back. Numbers
 * beyond it are those of elections, which a busy machine sees now and then. */
static bool is_known(const struct cluster *cluster, struct server *node)
{
    long epoch = info_number(node, "cluster_current_epoch:");

    if (epoch < info_number(node, "cluster_my_epoch:"))
        return false;
    for (int i = 0; i < CLUSTER_NODES; i++) {
        if (server_pid(cluster->nodes[i]) != 0 &&
            info_number(cluster->nodes[i], "cluster_current_epoch:") != epoch)
            return false;
    }
    return true;
}

void cluster_move_end(const struct cluster *cluster, struct server *to,
                      int slot)
{
    const char *command =
        test_text("CLUSTER SETSLOT %d NODE %s", slot, cluster_id(to));

    must(to, command);
    for (int i = 0; i < CLUSTER_NODES; i++) {
        if (cluster->nodes[i] != to && server_pid(cluster->nodes[i]) != 0 &&
            strstr(redis_do(cluster->nodes[i], "ROLE"), "master"))
            must(cluster->nodes[i], command);
    }
    EVENTUALLY(is_known(cluster, to));
}

int cluster_leftovers(const struct cluster *cluster)
{
    int left = 0;

    for (int i = 0; i < CLUSTER_NODES; i++) {
        if (server_pid(cluster->nodes[i]) != 0 &&
            strstr(redis_do(cluster->nodes[i], "ROLE"), "master"))
            left += redis_leftovers(cluster->nodes[i]);
    }
    return left;
}

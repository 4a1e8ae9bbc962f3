/* SPDX-License-Identifier: MIT */
/* topology.h - several Redis servers for a test: a Sentinel set, a Cluster. */
#ifndef HF_LIVE_REDIS_TOPOLOGY_H
#define HF_LIVE_REDIS_TOPOLOGY_H

#include "engines/redis/resp.h"
#include "redis.h"

enum { SET_SERVERS = 3, SET_SENTINELS = 3, CLUSTER_NODES = 6 };

/* How a server speaks TLS besides: with dir/server.crt. Port 0: not at all. */
struct topology_tls {
    const char *dir;
    int port;
};

/* A master (the first server), two replicas, three sentinels. They agree when
 * this returns, and the replicas are in step. */
struct sentinel_set {
    struct server *servers[SET_SERVERS];
    struct server *sentinels[SET_SENTINELS];
    int ports[SET_SENTINELS]; /* for clients */
};

struct sentinel_set *sentinel_set_start(void);
/* The same by TLS, among each other as well. @dir: of certificates.h, with
 * "server". The user locker, password s3cret, has no more rights than
 * holdfast(7) asks for. */
struct sentinel_set *sentinel_set_start_tls(const char *dir);
/* "redis-sentinel://…/m1?QUERY", kept until the test is over. */
const char *sentinel_set_url(const struct sentinel_set *set, const char *query);
/* "rediss-sentinel://CREDENTIALS@…". */
const char *sentinel_set_tls_url(const struct sentinel_set *set,
                                 const char *credentials, const char *query);
/* Kill the first server; a failover follows. Until then the sentinels are so
 * patient that a busy machine is not taken for a dead master. */
void sentinel_set_kill_master(const struct sentinel_set *set);
/* The server that is master now, and says so itself; NULL: none. */
struct server *sentinel_set_master(const struct sentinel_set *set);
/* Wait until there is a master other than @old. */
struct server *sentinel_set_await(const struct sentinel_set *set,
                                  const struct server *old);

/* Three masters (the first three nodes) with a replica each, all slots. */
struct cluster {
    struct server *nodes[CLUSTER_NODES];
    int ports[CLUSTER_NODES]; /* for clients */
};

struct cluster *cluster_start(void);
struct cluster *cluster_start_tls(const char *dir);
/* "redis-cluster://…?QUERY", kept until the test is over. */
const char *cluster_url(const struct cluster *cluster, const char *query);
const char *cluster_tls_url(const struct cluster *cluster,
                            const char *credentials, const char *query);
/* Who serves @key, as soon as somebody does: the nodes learn of a move, or a
 * death, one after the other. */
struct server *cluster_owner(const struct cluster *cluster, const char *key);
/* From now on the nodes notice soon that one is dead. Until then they are as
 * patient as the sentinels. None may be paused. */
void cluster_hurry(const struct cluster *cluster);
/* Kill @node; its replica follows. */
void cluster_kill(const struct cluster *cluster, struct server *node);
/* Any other master. */
struct server *cluster_other(const struct cluster *cluster,
                             const struct server *owner);
const char *cluster_id(struct server *node);
int cluster_slot(const struct cluster *cluster, const char *key);
/* Give @slot of @from, with its keys, to @to; in three steps that a test may
 * look between. */
void cluster_move_begin(struct server *from, struct server *to, int slot);
void cluster_move_keys(struct server *from, struct server *to, int slot);
void cluster_move_end(const struct cluster *cluster, struct server *to,
                      int slot);
/* How many keys there are on any master that should not be. */
int cluster_leftovers(const struct cluster *cluster);

/* From now on @server shows "expired" of @dir. */
void topology_expire(struct server *server, const char *dir);
/* Do all replicas of @master have what it has? A WAIT would tell only of what
 * its own connection wrote. */
bool topology_in_step(struct server *master);
/* What doctor finds, a line each. */
const char *topology_doctor(hf_client *client);

#endif

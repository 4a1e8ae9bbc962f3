/* SPDX-License-Identifier: MIT */
/*
 * cluster.h - the parts of the cluster engine to each other.
 *
 *   cluster.c        the table: calls are routed, reports come back
 *   cluster_ask.c    a slot that is on its way from one node to another
 *   cluster_nodes.c  which nodes there are, and who serves which slot
 *   slot.c           slots of keys, and what nodes say of them
 */
#ifndef HF_REDIS_CLUSTER_H
#define HF_REDIS_CLUSTER_H

#include "engines/redis/redis.h"
#include "engines/redis/slot.h"

enum { HF__CLUSTER_NODES = 128 };

struct hf__cluster;

/* One node: an engine for one server, whose reports we hear. */
struct hf__node {
    struct hf__cluster *cluster;
    struct hf__redis *redis;
    struct hf__engine_host host; /* what that engine is told … */
    struct hf__url url;          /* … with this one server; borrowed texts */
    char *name;
    int port;
    uint8_t state; /* enum hf__redis_peer_state */
    bool serves;   /* some slot */
};

/* What we know of the slots, and what the core knows of us. */
enum hf__cluster_map { HF__MAP_WANTED, HF__MAP_ASKED, HF__MAP_KNOWN };
enum hf__cluster_told {
    HF__TOLD_DOWN,
    HF__TOLD_CONNECTED,
    HF__TOLD_OLD /* connected, and something is new since */
};

struct hf__cluster {
    struct hf__engine base;
    struct hf__node *nodes[HF__CLUSTER_NODES];
    uint32_t n;
    int16_t slots[HF__SLOTS]; /* the index of who serves it; -1: nobody */
    int16_t told[HF__SLOTS];  /* the same, while an answer is read */
    struct hf__timer timer;   /* ask for the slots again */
    uint8_t map;              /* enum hf__cluster_map */
    uint8_t report;           /* the last one: enum hf__cluster_told */
    uint32_t attempts;        /* that left a node down */
    int64_t mapped_ns;        /* when the slots were told */
    hf_error why;             /* what the last node that failed said */
};

enum hf__cluster_call {
    HF__CLUSTER_ACQUIRE,
    HF__CLUSTER_WITHDRAW,
    HF__CLUSTER_RELEASE,
    HF__CLUSTER_PARK,
    HF__CLUSTER_UNPARK,
    HF__CLUSTER_DOWNGRADE
};

/* Our bytes of every ticket; those of the node's engine follow. */
struct hf__cluster_ticket {
    struct hf__node *at; /* who knows it; NULL: nobody */
    int32_t slot;        /* from 1; 0: not computed */
    uint8_t call;        /* the last call down: what to do again */
    uint8_t redirects;   /* since then */
};

static inline struct hf__cluster_ticket *hf__cluster_ticket(
    const struct hf__cluster *cluster, struct hf__ticket *ticket)
{
    return hf__engine_ticket(&cluster->base, ticket);
}

/* Too many in a row are as good as no answer. */
enum { HF__CLUSTER_REDIRECTS = 5 };
/* The ticket goes to @node, with the one that its park gives up. */
void hf__cluster_move(struct hf__node *node, struct hf__ticket *ticket);
/* The last call down for @ticket, again at @node; it goes there. */
int hf__cluster_call(struct hf__node *node, struct hf__ticket *ticket,
                     hf_error *err);
/* hf__redis.asked */
bool hf__cluster_asked(struct hf__redis *redis,
                       const struct hf__redis_call *call,
                       const struct hf__slot_redirect *to);

/* The node at @host:@port, with an engine of its own if it is new. NULL, and
 * *err, if there can be no more. An empty host is that of @teller. */
struct hf__node *hf__cluster_node(struct hf__cluster *cluster, const char *host,
                                  int port, const struct hf__node *teller,
                                  hf_error *err);
void hf__cluster_free_nodes(struct hf__cluster *cluster, bool forked);
/* Who serves @slot; NULL: nobody that we know. */
struct hf__node *hf__cluster_server(const struct hf__cluster *cluster,
                                    uint16_t slot);
/* Unless it is, or is on its way. */
void hf__cluster_connect_node(struct hf__node *node);
/* Connect to every node there is, and ask for the slots. */
int hf__cluster_connect(struct hf__cluster *cluster, hf_error *err);
/* A node reports. */
void hf__cluster_connected(struct hf__node *node);
void hf__cluster_down(struct hf__node *node, const hf_error *err);
/* The reports of nodes: cluster.c. */
extern const struct hf__engine_up hf__cluster_reports;

#endif

/* SPDX-License-Identifier: MIT */
/*
 * nodes.h - the names of nodes, and what their data says.
 */
#ifndef HF_ZOOKEEPER_NODES_H
#define HF_ZOOKEEPER_NODES_H

#include "engines/engine.h"
#include "engines/zookeeper/queue.h"

struct hf__zk;
struct hf__zk_ticket;

/* The layout of the nodes of a lock. */
struct hf__zk_dialect {
    const char *name;
    const char *before;    /* before the id in a child's name: "_c_" */
    bool dashes;           /* the id is written as a UUID, with a dash behind */
    const char *marker[3]; /* by enum hf__zk_kind; NULL: not to be had */
    bool semaphore;        /* of Curator: curator_semaphore.c */
    bool conditions;       /* we may add records of our own beside the locks */
    bool bare;             /* no id in the name: medallion_seek.c */
};

/* What we know about a ticket's node. */
enum hf__zk_node {
    HF__ZK_NODE_NONE,
    HF__ZK_NODE_UNSURE, /* a create was sent, and its answer was lost */
    HF__ZK_NODE_FOUND,  /* … it is there, by its number */
    HF__ZK_NODE_KNOWN,  /* it is there: path_len */
    HF__ZK_NODE_MISSING /* we expected one, and it was gone */
};

extern const struct hf__zk_dialect hf__zk_nodes_dialects[];

/* Once. 0, or HF_EINTERNAL without random numbers. */
int hf__zk_nodes_init(struct hf__zk *zk);
/* Paths are spelled in zk->scratch. One that did not find memory is NULL, and
 * fails the request that it is put into.
 *
 * Begin one with the root, for hf__zk_nodes_spelled(). */
struct hf__buf *hf__zk_nodes_begin(struct hf__zk *zk);
struct hf__zk_wire_text hf__zk_nodes_spelled(const struct hf__zk *zk);
struct hf__zk_wire_text hf__zk_nodes_root(const struct hf__zk *zk);
/* @name below @dir, which is not in zk->scratch. */
struct hf__zk_wire_text hf__zk_nodes_below(struct hf__zk *zk,
                                           struct hf__zk_wire_text dir,
                                           struct hf__zk_wire_text name);
/* The node of the lock @name, or what we keep of it in @beside: "/.versions". */
struct hf__zk_wire_text hf__zk_nodes_path(struct hf__zk *zk, const char *beside,
                                          const char *name, size_t len);
/* The name of the lock whose node is called @child, below the root; false: it is
 * none of ours. */
bool hf__zk_nodes_name(const struct hf__zk *zk, struct hf__zk_wire_text child,
                       char to[HF_NAME_MAX + 1]);
/* The path of @ticket's node up to the number, in @mine; HF_ENOMEM. */
int hf__zk_nodes_make_path(struct hf__zk *zk, const struct hf__ticket *ticket,
                           struct hf__zk_ticket *mine);
/* The ID in it becomes that of the session; HF_ENOMEM. */
int hf__zk_nodes_renew_id(struct hf__zk *zk, const struct hf__ticket *ticket,
                          struct hf__zk_ticket *mine);
/* Our node is called @name. False if it is not ours. */
bool hf__zk_nodes_adopt(struct hf__zk_ticket *mine, const char *name,
                        size_t len);
/* Its node, if it has one, is not known any more. */
void hf__zk_nodes_lose(struct hf__zk_ticket *mine, enum hf__zk_node node);
/* Its node, which is KNOWN, and the one that it is a child of. */
struct hf__zk_wire_text hf__zk_nodes_own(const struct hf__zk_ticket *mine);
struct hf__zk_wire_text hf__zk_nodes_dir(const struct hf__zk_ticket *mine);
/* What its name begins with, as no other's. */
struct hf__zk_wire_text hf__zk_nodes_id(const struct hf__zk_ticket *mine);
/* @path, of which @len bytes were to be made, and @missing is whether the node
 * above was not there: how much is to be made next? 0: nothing. */
size_t hf__zk_nodes_next(struct hf__zk_wire_text path, size_t len,
                         bool missing);
/* The marker and kind of what @mode asks for. */
enum hf__zk_kind hf__zk_nodes_kind(int32_t mode);
/* What a node says about its owner. @token: 0, or what replaces the czxid.
 * @held: a slot is marked. In @to. */
void hf__zk_nodes_write(const struct hf__zk *zk,
                        const struct hf__ticket *ticket, uint64_t token,
                        bool held, struct hf__buf *to);
enum { HF__ZK_TEXTS = 1024 };
/* The reverse, of our own records and of others'; @row's pointers go into
 * @copy. Returns whether a slot is marked. */
bool hf__zk_nodes_read(struct hf__zk_wire_text data, char copy[HF__ZK_TEXTS],
                       hf_lock_info *row);
/* Is @data what we have written for @ticket, in a dialect with bare names? */
bool hf__zk_nodes_is_of(struct hf__zk *zk, const struct hf__ticket *ticket,
                        struct hf__zk_wire_text data);
uint64_t hf__zk_nodes_hash(const struct hf__zk *zk,
                           struct hf__zk_wire_text path);

#endif

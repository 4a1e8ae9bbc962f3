/* SPDX-License-Identifier: MIT */
/* peers.h - what holds between any library's lock and ours on one node. */
#ifndef HF_INTEROP_ZOOKEEPER_PEERS_H
#define HF_INTEROP_ZOOKEEPER_PEERS_H

#include "holdfast.h"
#include "proc.h"

/* The peer that prepare.sh has built into $@variable, on the ensemble. */
struct proc *zk_peer(const char *variable, bool java);
hf_client *zk_ours(const char *dialect);

/* Exclusive locks of the peer's @kind and ours exclude and wake each other. */
void exclude_and_wake(struct proc *peer, hf_client *client, const char *kind,
                      const char *name);
/* The peer is killed while it holds, and we are served. */
void survive_its_death(struct proc *peer, hf_client *client, const char *kind,
                       const char *name);
/* A process of ours is killed while it holds, and the peer is served. */
void survive_our_death(struct proc *peer, const char *dialect, const char *kind,
                       const char *name);
/* Readers of both kinds share; writers of both exclude. */
void share_and_exclude(struct proc *peer, hf_client *client, const char *name);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * connection.h - one connection to one server of the URL.
 */
#ifndef HF_ZOOKEEPER_CONNECTION_H
#define HF_ZOOKEEPER_CONNECTION_H

#include "engines/engine.h"
#include "net/stream.h"

struct hf__zk;

enum hf__zk_connection {
    HF__ZK_DOWN,    /* none, or the server has not greeted us */
    HF__ZK_GREETED, /* the session is there; the credentials are being checked */
    HF__ZK_UP
};

hf__engine_connect_fn hf__zk_connection_start;
/* The address of a server of the URL. */
void hf__zk_connection_peer(const struct hf__zk *zk, size_t server,
                            struct hf__stream_peer *peer);
/* Forget the connection; nothing is reported. */
void hf__zk_connection_stop(struct hf__zk *zk, bool forked);
/* The connection cannot be trusted any more: report what was under way. */
void hf__zk_connection_fail(struct hf__zk *zk, const hf_error *err);
/* … because what came is not the protocol. */
void hf__zk_connection_garbled(struct hf__zk *zk, const char *what);

#endif

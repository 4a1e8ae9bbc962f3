/* SPDX-License-Identifier: MIT */
/*
 * lease.h - since when the leader has certainly known that a session lives.
 * Pure: instants in, instants out. docs/internals/zookeeper-engine.md has the
 * reckoning.
 */
#ifndef HF_ZOOKEEPER_LEASE_H
#define HF_ZOOKEEPER_LEASE_H

#include "base/base.h"

/* Of a session's timeout, in 24ths: how long after a server has heard us the
 * leader may not know it yet; the longest time in which we say nothing; what is
 * left for a lease. */
enum {
    HF__ZK_PARTS = 24,
    HF__ZK_REPORT = 7,
    HF__ZK_BEAT = 3,
    HF__ZK_LEASE = HF__ZK_PARTS - HF__ZK_REPORT - HF__ZK_BEAT
};

enum { HF__ZK_SAID = 16 };

struct hf__zk_lease {
    int64_t reported_ns; /* the leader has heard of the session since then */
    uint32_t said_n;     /* ever; the last ones are kept: */
    struct {
        int64_t sent_ns;
        int64_t heard_ns; /* when its answer came */
    } said[HF__ZK_SAID];
};

/* The greeting that was sent then is answered: the leader knows the session. */
void hf__zk_lease_begin(struct hf__zk_lease *lease, int64_t sent_ns);
/* The server has heard what was sent then: its answer has come. */
void hf__zk_lease_heard(struct hf__zk_lease *lease, int64_t session_ns,
                        int64_t sent_ns, int64_t now_ns);
/* When a call that is sent now is answered by the leader, the leader has heard
 * of the session since … */
int64_t hf__zk_lease_known(const struct hf__zk_lease *lease, int64_t session_ns,
                           int64_t now_ns);
/* … that has happened: a lease of HF__ZK_LEASE parts may begin at … */
int64_t hf__zk_lease_since(struct hf__zk_lease *lease, int64_t session_ns,
                           int64_t sent_ns, int64_t known_ns);

#endif

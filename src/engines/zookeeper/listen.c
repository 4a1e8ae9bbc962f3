/* SPDX-License-Identifier: MIT */
/*
 * listen.c - listening while a lock is held.
 *
 * The core reads from a connection only while an answer is to come. But a
 * connection that ends, or a watch that fires, is news for a holder. So after a
 * lock has been held for a moment, we count one answer as still to come.
 */
#include "engines/zookeeper/zookeeper.h"

/* How long a lock is held before somebody listens for its sake. */
#define LISTEN_AFTER_NS (300 * HF_MS)

void hf__zk_listen_hold(struct hf__zk *zk, bool held)
{
    zk->held += held ? 1 : -1;
    if (zk->held == 1 && held) {
        zk->listen_ns = hf__now() + LISTEN_AFTER_NS;
        hf__zk_wake(zk, zk->listen_ns);
    } else if (zk->held == 0 && zk->listening) {
        zk->listening = false;
        zk->base.under_way--;
    }
}

int64_t hf__zk_listen_due(struct hf__zk *zk, int64_t now_ns)
{
    if (zk->held == 0 || zk->listening)
        return HF_NEVER;
    if (now_ns < zk->listen_ns)
        return zk->listen_ns;
    zk->listening = true;
    zk->base.under_way++;
    return HF_NEVER;
}

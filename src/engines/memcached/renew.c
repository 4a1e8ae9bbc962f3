/* SPDX-License-Identifier: MIT */
/*
 * renew.c - renew.
 */
#include "engines/memcached/memcached.h"

int hf__memcached_renew(struct hf__engine *engine, struct hf__ticket **tickets,
                        size_t n, hf_error *err)
{
    struct hf__memcached *memcached = (struct hf__memcached *)engine;

    if (!memcached->up)
        return hf__memcached_connection_not_up(memcached, err);
    for (size_t i = 0; i < n; i++) {
        struct hf__memcached_ticket *m =
            hf__memcached_ticket(memcached, tickets[i]);
        uint64_t cas = hf__memcached_tickets_cas(memcached, tickets[i]);
        int rc;

        m->full = m->repeated = false; /* the answer will tell */
        if (cas == 0 || m->calls > 0)
            rc = hf__memcached_acquire_look(memcached, tickets[i], err);
        else
            rc = hf__memcached_acquire_store(memcached, tickets[i], cas, err);
        if (rc != 0)
            return rc;
    }
    return 0;
}

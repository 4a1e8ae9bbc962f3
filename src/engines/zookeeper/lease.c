/* SPDX-License-Identifier: MIT */
/* lease.c - since when the leader has certainly known that a session lives. */
#include "engines/zookeeper/lease.h"

static int64_t parts(int64_t session_ns, int n)
{
    return session_ns / HF__ZK_PARTS * n;
}

void hf__zk_lease_begin(struct hf__zk_lease *lease, int64_t sent_ns)
{
    lease->reported_ns = sent_ns;
    lease->said_n = 0; /* that was another server: it may report no more */
}

void hf__zk_lease_heard(struct hf__zk_lease *lease, int64_t session_ns,
                        int64_t sent_ns, int64_t now_ns)
{
    uint32_t n = lease->said_n;

    /* Sixteen at that distance reach back beyond HF__ZK_REPORT. */
    if (n > 0 && sent_ns < lease->said[(n - 1) % HF__ZK_SAID].sent_ns +
                               parts(session_ns, 1))
        return;
    lease->said[n % HF__ZK_SAID].sent_ns = sent_ns;
    lease->said[n % HF__ZK_SAID].heard_ns = now_ns;
    lease->said_n++;
}

int64_t hf__zk_lease_known(const struct hf__zk_lease *lease, int64_t session_ns,
                           int64_t now_ns)
{
    int64_t by_ns = now_ns - parts(session_ns, HF__ZK_REPORT);
    uint32_t kept = lease->said_n < HF__ZK_SAID ? lease->said_n : HF__ZK_SAID;

    for (uint32_t back = 1; back <= kept; back++) {
        uint32_t i = (lease->said_n - back) % HF__ZK_SAID;

        if (lease->said[i].heard_ns <= by_ns)
            return lease->said[i].sent_ns > lease->reported_ns
                       ? lease->said[i].sent_ns
                       : lease->reported_ns;
    }
    return lease->reported_ns;
}

int64_t hf__zk_lease_since(struct hf__zk_lease *lease, int64_t session_ns,
                           int64_t sent_ns, int64_t known_ns)
{
    int64_t since_ns;

    if (known_ns > lease->reported_ns)
        lease->reported_ns = known_ns;
    since_ns =
        lease->reported_ns + parts(session_ns, HF__ZK_PARTS - HF__ZK_LEASE);
    return since_ns < sent_ns ? since_ns : sent_ns;
}

/* SPDX-License-Identifier: MIT */
/* proof.c - since when the leader has certainly known that a session lives. */
#include "engines/zookeeper/proof.h"

static int64_t parts(int64_t session_ns, int n)
{
    return session_ns / HF__ZK_PARTS * n;
}

void hf__zk_proof_begin(struct hf__zk_proof *proof, int64_t sent_ns)
{
    proof->reported_ns = sent_ns;
    proof->said_n = 0; /* that was another server: it may report no more */
}

void hf__zk_proof_heard(struct hf__zk_proof *proof, int64_t session_ns,
                        int64_t sent_ns, int64_t now_ns)
{
    uint32_t n = proof->said_n;

    /* Sixteen at that distance reach back beyond HF__ZK_REPORT. */
    if (n > 0 && sent_ns < proof->said[(n - 1) % HF__ZK_SAID].sent_ns +
                               parts(session_ns, 1))
        return;
    proof->said[n % HF__ZK_SAID].sent_ns = sent_ns;
    proof->said[n % HF__ZK_SAID].heard_ns = now_ns;
    proof->said_n++;
}

int64_t hf__zk_proof_known(const struct hf__zk_proof *proof, int64_t session_ns,
                           int64_t now_ns)
{
    int64_t by_ns = now_ns - parts(session_ns, HF__ZK_REPORT);
    uint32_t kept = proof->said_n < HF__ZK_SAID ? proof->said_n : HF__ZK_SAID;

    for (uint32_t back = 1; back <= kept; back++) {
        uint32_t i = (proof->said_n - back) % HF__ZK_SAID;

        if (proof->said[i].heard_ns <= by_ns)
            return proof->said[i].sent_ns > proof->reported_ns
                       ? proof->said[i].sent_ns
                       : proof->reported_ns;
    }
    return proof->reported_ns;
}

int64_t hf__zk_proof_since(struct hf__zk_proof *proof, int64_t session_ns,
                           int64_t sent_ns, int64_t known_ns)
{
    int64_t since_ns;

    if (known_ns > proof->reported_ns)
        proof->reported_ns = known_ns;
    since_ns =
        proof->reported_ns + parts(session_ns, HF__ZK_PARTS - HF__ZK_LEASE);
    return since_ns < sent_ns ? since_ns : sent_ns;
}

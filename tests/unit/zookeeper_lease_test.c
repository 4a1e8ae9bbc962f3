/* SPDX-License-Identifier: MIT */
/* How long a session is certainly good for. */
#include "engines/zookeeper/lease.h"

#include "base/world.h"
#include "test.h"

/* A session of 24 seconds: a part of it is one. */
#define SESSION (24 * HF_SECOND)
#define S(n) ((int64_t)(n)*HF_SECOND)

/* Where the lease of a call begins that is sent at @sent_ns. */
static int64_t since(struct hf__zk_lease *proof, int64_t sent_ns)
{
    int64_t known_ns = hf__zk_lease_known(proof, SESSION, sent_ns);

    return hf__zk_lease_since(proof, SESSION, sent_ns, known_ns);
}

TEST(proof, a_new_session_is_good_from_its_greeting_on)
{
    struct hf__zk_lease proof;

    hf__zk_lease_begin(&proof, S(100));
    ASSERT_EQ(since(&proof, S(101)), S(101));
    ASSERT_EQ(since(&proof, S(110)), S(110));
    ASSERT_EQ(since(&proof, S(120)), S(110)); /* it ends at 124 */
}

TEST(proof, what_a_server_has_heard_is_believed_after_its_next_report)
{
    struct hf__zk_lease proof;

    hf__zk_lease_begin(&proof, S(100));
    hf__zk_lease_heard(&proof, SESSION, S(112), S(113));
    ASSERT_EQ(since(&proof, S(119)), S(110)); /* perhaps not reported yet */
    ASSERT_EQ(since(&proof, S(120)), S(120));
    ASSERT_EQ(since(&proof, S(130)), S(122));
}

TEST(proof, what_took_long_to_be_heard_counts_from_when_it_was_sent)
{
    struct hf__zk_lease proof;

    hf__zk_lease_begin(&proof, S(100));
    hf__zk_lease_heard(&proof, SESSION, S(103), S(115));
    ASSERT_EQ(since(&proof, S(122)), S(113));
}

TEST(proof, what_another_server_has_heard_is_forgotten)
{
    struct hf__zk_lease proof;

    hf__zk_lease_begin(&proof, S(100));
    hf__zk_lease_heard(&proof, SESSION, S(112), S(112));
    hf__zk_lease_begin(&proof, S(113));
    ASSERT_EQ(since(&proof, S(124)), S(123));
}

static uint64_t seed;

static int64_t below(int64_t limit)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)((seed >> 33) % (uint64_t)limit);
}

/* A server that hears a client, and tells its leader every half tick which clients it
 * has heard; a tick is half the session. Whenever the leader has answered, the two may
 * be cut off from each other: nothing is reported after that. */
static void claim_leases(void)
{
    int64_t next_ns = below(SESSION / 4); /* report */
    int64_t touched_ns = 0;               /* by the last one */
    struct hf__zk_lease proof;
    bool heard = false; /* since the last one */
    int64_t now_ns = 0;

    hf__zk_lease_begin(&proof, 0);
    for (int i = 0; i < 40; i++) {
        int64_t sent_ns = now_ns + 1 + below(SESSION / 6);
        int64_t known_ns = hf__zk_lease_known(&proof, SESSION, sent_ns);
        int64_t late_ns = below(below(8) == 0 ? SESSION / 2 : SESSION / 50);

        for (; next_ns <= sent_ns + late_ns; next_ns += SESSION / 4) {
            touched_ns = heard ? next_ns : touched_ns;
            heard = false;
        }
        if (sent_ns + late_ns >= touched_ns + SESSION)
            return; /* the session has ended: the answer says so */
        heard = true;
        if (below(3) == 0)
            ASSERT_LE(hf__zk_lease_since(&proof, SESSION, sent_ns, known_ns) +
                          S(HF__ZK_LEASE),
                      touched_ns + SESSION);
        now_ns = sent_ns + late_ns + below(SESSION / 50);
        hf__zk_lease_heard(&proof, SESSION, sent_ns, now_ns);
    }
}

TEST(proof, no_lease_outlasts_its_session_however_late_the_messages)
{
    for (uint64_t i = 1; i <= 20000; i++) {
        seed = i;
        claim_leases();
    }
}

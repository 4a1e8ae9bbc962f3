/* SPDX-License-Identifier: MIT */
/* curator_test.c - one lock, with a real Apache Curator. */
#include "peers.h"
#include "test.h"

TEST(curator, a_mutex_and_our_lock_exclude_and_wake_each_other)
{
    struct proc *peer = zk_peer("CURATOR_DIR", /* java= */ true);

    exclude_and_wake(peer, zk_ours("curator"), "mutex", "mutex");
}

TEST(curator, a_read_write_lock_shares_and_excludes_with_ours)
{
    struct proc *peer = zk_peer("CURATOR_DIR", /* java= */ true);
    hf_client *client = zk_ours("curator-rw");

    exclude_and_wake(peer, client, "write", "book");
    share_and_exclude(peer, client, "book");
}

TEST(curator, a_leader_latch_and_our_election_have_one_leader)
{
    struct proc *peer = zk_peer("CURATOR_DIR", /* java= */ true);

    exclude_and_wake(peer, zk_ours("curator-latch"), "latch", "leader");
}

TEST(curator, the_death_of_either_serves_the_other)
{
    struct proc *peer = zk_peer("CURATOR_DIR", /* java= */ true);

    survive_our_death(peer, "curator", "mutex", "ours-dies");
    survive_its_death(peer, zk_ours("curator"), "mutex", "it-dies");
}

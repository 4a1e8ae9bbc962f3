/* SPDX-License-Identifier: MIT */
/* curator_test.c - one lock, with a real Apache Curator. */
#include "interop/peer.h"
#include "live/zookeeper/zookeeper.h"
#include "peers.h"

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

TEST(curator, a_semaphore_and_our_slots_admit_so_many_together)
{
    struct proc *peer = zk_peer("CURATOR_DIR", /* java= */ true);
    hf_client *client = zk_ours("curator-semaphore");
    hf_request *request;
    hf_hold *hold = peer_take(client, "pool", HF_SLOT, 2);

    /* One of each: it is full for both. */
    (void)peer_ask(peer, "a ok", "a lock semaphore2 /locks/pool 5000");
    (void)peer_ask(peer, "b busy", "b lock semaphore2 /locks/pool 300");
    ASSERT_EQ(peer_try(client, "pool", HF_SLOT, 2), HF_EBUSY);

    /* Our release wakes it, its release wakes us. */
    peer_tell(peer, "b lock semaphore2 /locks/pool 15000");
    ASSERT_TRUE(proc_is_silent(peer, 200));
    peer_give(hold);
    (void)proc_expect(peer, "b ok");
    request = peer_await(client, "pool", HF_SLOT, 2);
    EVENTUALLY(zk_count(client, "pool", HF_WAITER) == 1);
    ASSERT_TRUE(peer_is_waiting(request));
    (void)peer_ask(peer, "a ok", "a unlock semaphore2 /locks/pool");
    hold = peer_awaited(request, 15000);
    ASSERT_GT(hf_token(hold), 0);
    ASSERT_EQ(hf_check_token(client, "pool", hf_token(hold), NULL), 0);

    /* Whoever is killed gives his place to the other. */
    peer_give(hold);
    hold = peer_take(client, "pool", HF_SLOT, 2);
    request = peer_await(client, "pool", HF_SLOT, 2);
    ASSERT_TRUE(peer_is_waiting(request));
    proc_kill(peer);
    peer_give(peer_awaited(request, 15000));
    peer_give(hold);
    ASSERT_EQ(zk_count(client, "pool", HF_HOLDER), 0);
}

TEST(curator, the_death_of_either_serves_the_other)
{
    struct proc *peer = zk_peer("CURATOR_DIR", /* java= */ true);

    survive_our_death(peer, "curator", "mutex", "ours-dies");
    survive_its_death(peer, zk_ours("curator"), "mutex", "it-dies");
}

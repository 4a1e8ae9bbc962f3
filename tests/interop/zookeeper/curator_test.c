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

TEST(curator, a_mutex_below_the_root_is_our_lock_of_two_slashes)
{
    struct proc *peer = zk_peer("CURATOR_DIR", /* java= */ true);
    char url[64];
    hf_client *client;
    hf_hold *hold;

    (void)snprintf(url, sizeof(url), "zk://127.0.0.1:%d//?ttl=3s",
                   ensemble_port(0));
    client = client_open(url);
    hold = peer_take(client, "jobs", HF_EXCLUSIVE, 0);
    (void)peer_ask(peer, "a busy", "a lock mutex /jobs 300");
    client_release(hold);
    (void)peer_ask(peer, "a ok", "a lock mutex /jobs 15000");
    ASSERT_EQ(peer_try(client, "jobs", HF_EXCLUSIVE, 0), HF_EBUSY);
    (void)peer_ask(peer, "a ok", "a unlock mutex /jobs");
    client_release(peer_take(client, "jobs", HF_EXCLUSIVE, 0));
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
    client_release(hold);
    (void)proc_expect(peer, "b ok");
    request = peer_await(client, "pool", HF_SLOT, 2);
    EVENTUALLY(client_count(client, "pool", HF_WAITER) == 1);
    ASSERT_TRUE(peer_is_waiting(request));
    (void)peer_ask(peer, "a ok", "a unlock semaphore2 /locks/pool");
    hold = peer_awaited(request, 15000);
    ASSERT_GT(hf_token(hold), 0);
    ASSERT_EQ(hf_check_token(client, "pool", hf_token(hold), NULL), 0);

    /* Whoever is killed gives his place to the other. */
    client_release(hold);
    hold = peer_take(client, "pool", HF_SLOT, 2);
    request = peer_await(client, "pool", HF_SLOT, 2);
    ASSERT_TRUE(peer_is_waiting(request));
    proc_kill(peer);
    client_release(peer_awaited(request, 15000));
    client_release(hold);
    ASSERT_EQ(client_count(client, "pool", HF_HOLDER), 0);
}

TEST(curator, the_death_of_either_serves_the_other)
{
    struct proc *peer = zk_peer("CURATOR_DIR", /* java= */ true);

    survive_our_death(peer, "curator", "mutex", "ours-dies");
    survive_its_death(peer, zk_ours("curator"), "mutex", "it-dies");
}

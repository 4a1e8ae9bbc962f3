/* SPDX-License-Identifier: MIT */
/* kazoo_test.c - one lock, with a real kazoo. */
#include "peers.h"
#include "test.h"

TEST(kazoo, a_lock_and_ours_exclude_and_wake_each_other)
{
    struct proc *peer = zk_peer("KAZOO_DIR", /* java= */ false);

    exclude_and_wake(peer, zk_ours("kazoo"), "lock", "lock");
}

TEST(kazoo, readers_and_writers_share_and_exclude_with_ours)
{
    struct proc *peer = zk_peer("KAZOO_DIR", /* java= */ false);

    share_and_exclude(peer, zk_ours("kazoo"), "book");
}

TEST(kazoo, the_death_of_either_serves_the_other)
{
    struct proc *peer = zk_peer("KAZOO_DIR", /* java= */ false);

    survive_our_death(peer, "kazoo", "lock", "ours-dies");
    survive_its_death(peer, zk_ours("kazoo"), "lock", "it-dies");
}

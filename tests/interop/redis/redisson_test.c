/* SPDX-License-Identifier: MIT */
/*
 * redisson_test.c - one lock of Redisson, with a real Redisson client.
 *
 * REDISSON_DIR is what prepare.sh made. Redisson's leases are 30 s unless a
 * test says otherwise, and its waiters look again when one ends: whoever gets a
 * lock within a few seconds was woken by the other side.
 */
#include "interop/peer.h"

#include <stdlib.h>

#include "live/redis/topology.h"

enum {
    WOKEN_MS = 4000, /* our own look without a message comes after 5 s */
    X = HF_EXCLUSIVE,
    S = HF_SHARED,
    N = HF_SLOT
};

struct stage {
    struct server *server;
    struct proc *java;
};

/* @server: a port, or "cluster:" and one. */
static struct proc *start_java(const char *server, const char *watchdog_ms)
{
    const char *const arguments[] = {server, watchdog_ms, NULL};

    return peer_start_java("REDISSON_DIR", /* option= */ NULL, arguments);
}

static struct stage open_stage(const char *watchdog_ms)
{
    struct stage stage = {.server = redis_start()};

    stage.java =
        start_java(test_text("%d", server_port(stage.server)), watchdog_ms);
    return stage;
}

/* A latch is Redisson's note to itself that it has unlocked, for some seconds;
 * versions before 4 leave it to its TTL. */
static bool nothing_left(struct server *server)
{
    return strcmp(redis_do(server,
                           "EVAL \"local n=0 "
                           "for _,k in ipairs(redis.call('KEYS','*')) do "
                           "if string.sub(k,1,21)~='redisson_unlock_latch' "
                           "then n=n+1 end end return n\" 0"),
                  ":0\r\n") == 0;
}

static hf_client *open_mode(const struct stage *stage, const char *query)
{
    char text[128];

    (void)snprintf(text, sizeof(text), "dialect=redisson&mode=%s", query);
    return redis_open(server_port(stage->server), text);
}

/* How many sharded channels anybody listens to. */
static int sharded_listeners(const struct cluster *cluster)
{
    int n = 0;

    for (int i = 0; i < CLUSTER_NODES; i++)
        n += atoi(redis_do(cluster->nodes[i], "PUBSUB SHARDCHANNELS") + 1);
    return n;
}

/* A client for a lock that Java has. */
static hf_client *open_behind_java(struct stage *ret_stage)
{
    *ret_stage = open_stage("30000");
    (void)peer_ask(ret_stage->java, "1 ok", "1 lock lock jobs -1 0");
    return open_mode(ret_stage, "lock");
}

TEST(redisson, lock_excludes_and_wakes_both_ways)
{
    struct stage stage;
    hf_client *client = open_behind_java(&stage);
    hf_request *request;
    hf_hold *hold;

    ASSERT_EQ(peer_try(client, "jobs", X, 0), HF_EBUSY);
    request = peer_await(client, "jobs", X, 0);
    ASSERT_TRUE(peer_is_waiting(request));
    (void)peer_ask(stage.java, "1 ok", "1 unlock lock jobs");
    hold = peer_awaited(request, WOKEN_MS);

    (void)peer_ask(stage.java, "2 busy", "2 lock lock jobs -1 0");
    peer_tell(stage.java, "1 lock lock jobs -1 20000");
    EVENTUALLY(strstr(redis_do(stage.server,
                               "PUBSUB NUMSUB redisson_lock__channel:{jobs}"),
                      ":1") != NULL);
    client_release(hold);
    (void)proc_expect(stage.java, "1 ok");
    ASSERT_EQ(peer_try(client, "jobs", X, 0), HF_EBUSY);
    (void)peer_ask(stage.java, "1 ok", "1 unlock lock jobs");
    ASSERT_TRUE(nothing_left(stage.server));
}

/* There the messages come on sharded channels, or not at all. */
TEST(redisson, locks_of_a_cluster_exclude_and_wake_both_ways)
{
    static const char *const kinds[] = {"lock", "fenced", "fair", "rw"};
    struct cluster *cluster = cluster_start();
    struct proc *java = start_java(
        test_text("cluster:%d", server_port(cluster->nodes[0])), "30000");

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        const char *kind = i == 3 ? "write" : kinds[i];
        const char *name = test_text("jobs-%zu", i);
        hf_client *client = client_open(cluster_url(
            cluster, test_text("dialect=redisson&mode=%s", kinds[i])));
        hf_request *request;
        hf_hold *hold;

        (void)peer_ask(java, "1 ok", "1 lock %s %s -1 0", kind, name);
        ASSERT_EQ(peer_try(client, name, X, 0), HF_EBUSY);
        request = peer_await(client, name, X, 0);
        ASSERT_TRUE(peer_is_waiting(request));
        (void)peer_ask(java, "1 ok", "1 unlock %s %s", kind, name);
        hold = peer_awaited(request, WOKEN_MS);

        (void)peer_ask(java, "2 busy", "2 lock %s %s -1 0", kind, name);
        peer_tell(java, "1 lock %s %s -1 20000", kind, name);
        EVENTUALLY(sharded_listeners(cluster) == 1);
        client_release(hold);
        (void)proc_expect(java, "1 ok");
        (void)peer_ask(java, "1 ok", "1 unlock %s %s", kind, name);
        EVENTUALLY(sharded_listeners(cluster) == 0);
    }
}

TEST(redisson, reentry_of_either_side_counts)
{
    struct stage stage;
    hf_client *client = open_behind_java(&stage);
    hf_hold *outer;
    hf_hold *inner;

    (void)peer_ask(stage.java, "1 ok", "1 lock lock jobs -1 0");
    (void)peer_ask(stage.java, "1 ok", "1 unlock lock jobs");
    ASSERT_EQ(peer_try(client, "jobs", X, 0), HF_EBUSY);
    (void)peer_ask(stage.java, "1 ok", "1 unlock lock jobs");

    outer = peer_take(client, "jobs", X, 0);
    inner = peer_take(client, "jobs", X, 0);
    client_release(inner);
    (void)peer_ask(stage.java, "1 busy", "1 lock lock jobs -1 0");
    (void)peer_ask(stage.java, "1 lost", "1 unlock lock jobs");
    ASSERT_EQ(hf_verify(outer, NULL), 0);
    client_release(outer);
    (void)peer_ask(stage.java, "1 ok", "1 lock lock jobs -1 0");
}

static void hold_until_killed(struct proc *self, void *arg)
{
    hf_client *client;
    hf_hold *hold;
    hf_error err;

    ASSERT_OK(hf_open(proc_hear(self), NULL, &client, &err), &err);
    ASSERT_OK(hf_acquire(client, arg, NULL, &hold, &err), &err);
    proc_tell(self, "holding");
    (void)proc_hear(self);
}

TEST(redisson, a_killed_holder_of_either_side_is_succeeded)
{
    static char name[] = "jobs";
    struct proc *ours = proc_start(hold_until_killed, name);
    struct stage stage = open_stage("1500");
    hf_client *client;

    proc_say(ours, redis_url(server_port(stage.server),
                             "dialect=redisson&ttl=1500ms"));
    (void)proc_expect(ours, "holding");
    (void)peer_ask(stage.java, "1 busy", "1 lock lock jobs -1 0");
    proc_kill(ours);
    (void)peer_ask(stage.java, "1 ok", "1 lock lock jobs -1 15000");

    client = open_mode(&stage, "lock");
    ASSERT_EQ(peer_try(client, "jobs", X, 0), HF_EBUSY);
    proc_kill(stage.java);
    client_release(peer_take(client, "jobs", X, 0));
}

/* The leases are 1.5 s, and 4 s pass. */
TEST(redisson, the_watchdogs_of_both_sides_are_seen_by_the_other)
{
    struct stage stage = open_stage("1500");
    hf_client *client = open_mode(&stage, "lock&ttl=1500ms");
    hf_hold *hold = peer_take(client, "ours", X, 0);

    (void)peer_ask(stage.java, "1 ok", "1 lock lock theirs -1 0");
    (void)peer_ask(stage.java, "2 busy", "2 lock lock ours -1 4000");
    ASSERT_EQ(peer_try(client, "theirs", X, 0), HF_EBUSY);
    ASSERT_EQ(hf_check(hold), HF_HELD);
    client_release(hold);
    (void)peer_ask(stage.java, "1 ok", "1 unlock lock theirs");
}

TEST(redisson, tokens_grow_across_both)
{
    struct stage stage = open_stage("30000");
    hf_client *client = open_mode(&stage, "fenced");
    uint64_t last = 0;

    for (int i = 0; i < 3; i++) {
        hf_hold *hold = peer_take(client, "jobs", X, 0);
        const char *line;

        ASSERT_GT(hf_token(hold), last);
        last = hf_token(hold);
        ASSERT_EQ(hf_check_token(client, "jobs", last, NULL), 0);
        client_release(hold);
        line = peer_ask(stage.java, "1 ok", "1 lock fenced jobs -1 0");
        ASSERT_GT(strtoull(line + 5, NULL, 10), last);
        last = strtoull(line + 5, NULL, 10);
        ASSERT_EQ(hf_check_token(client, "jobs", last, NULL), 0);
        (void)peer_ask(stage.java, "1 ok", "1 unlock fenced jobs");
    }
}

TEST(redisson, readers_share_and_writers_exclude_across_both)
{
    struct stage stage = open_stage("30000");
    hf_client *client = open_mode(&stage, "rw");
    hf_request *request;
    hf_hold *hold;
    hf_error err;

    (void)peer_ask(stage.java, "1 ok", "1 lock read book -1 0");
    hold = peer_take(client, "book", S, 0);
    ASSERT_EQ(peer_try(client, "book", X, 0), HF_EBUSY);
    (void)peer_ask(stage.java, "2 busy", "2 lock write book -1 0");
    /* Its reader goes: ours must still be there. */
    (void)peer_ask(stage.java, "1 ok", "1 unlock read book");
    (void)peer_ask(stage.java, "2 busy", "2 lock write book -1 0");
    ASSERT_EQ(hf_verify(hold, &err), 0);
    peer_tell(stage.java, "2 lock write book -1 20000");
    EVENTUALLY(
        strstr(redis_do(stage.server, "PUBSUB NUMSUB redisson_rwlock:{book}"),
               ":1") != NULL);
    client_release(hold);
    (void)proc_expect(stage.java, "2 ok");

    request = peer_await(client, "book", S, 0);
    ASSERT_TRUE(peer_is_waiting(request));
    (void)peer_ask(stage.java, "2 ok", "2 unlock write book");
    hold = peer_awaited(request, WOKEN_MS);
    (void)peer_ask(stage.java, "1 ok", "1 lock read book -1 0");
    client_release(hold);
    ASSERT_EQ(peer_try(client, "book", X, 0), HF_EBUSY);
    (void)peer_ask(stage.java, "1 ok", "1 unlock read book");
    ASSERT_TRUE(nothing_left(stage.server));
}

TEST(redisson, our_downgrade_lets_its_readers_in)
{
    struct stage stage = open_stage("30000");
    hf_client *client = open_mode(&stage, "rw");
    hf_hold *hold = peer_take(client, "book", X, 0);
    hf_error err;

    peer_tell(stage.java, "1 lock read book -1 20000");
    EVENTUALLY(
        strstr(redis_do(stage.server, "PUBSUB NUMSUB redisson_rwlock:{book}"),
               ":1") != NULL);
    ASSERT_OK(hf_downgrade(hold, &err), &err);
    (void)proc_expect(stage.java, "1 ok");
    (void)peer_ask(stage.java, "2 busy", "2 lock write book -1 0");
    client_release(hold);
    (void)peer_ask(stage.java, "1 ok", "1 unlock read book");
    (void)peer_ask(stage.java, "2 ok", "2 lock write book -1 0");
}

static bool in_line(struct server *server, int n)
{
    char answer[16];

    (void)snprintf(answer, sizeof(answer), ":%d\r\n", n);
    return strcmp(redis_do(server, "LLEN redisson_lock_queue:{jobs}"),
                  answer) == 0;
}

TEST(redisson, the_fair_lock_goes_round_in_order)
{
    struct stage stage = open_stage("30000");
    hf_client *one = open_mode(&stage, "fair");
    hf_client *two = open_mode(&stage, "fair");
    hf_hold *hold = peer_take(one, "jobs", X, 0);
    hf_request *request;

    peer_tell(stage.java, "1 lock fair jobs -1 20000");
    EVENTUALLY(in_line(stage.server, 1));
    request = peer_await(two, "jobs", X, 0);
    EVENTUALLY(in_line(stage.server, 2));
    peer_tell(stage.java, "2 lock fair jobs -1 20000");
    EVENTUALLY(in_line(stage.server, 3));
    ASSERT_EQ(peer_try(one, "jobs", X, 0), HF_EBUSY);

    client_release(hold);
    (void)proc_expect(stage.java, "1 ok");
    ASSERT_TRUE(peer_is_waiting(request));
    (void)peer_ask(stage.java, "1 ok", "1 unlock fair jobs");
    hold = peer_awaited(request, WOKEN_MS);
    client_release(hold);
    (void)proc_expect(stage.java, "2 ok");
    (void)peer_ask(stage.java, "2 ok", "2 unlock fair jobs");
    ASSERT_TRUE(nothing_left(stage.server));
}

static void share_permits(const char *kind)
{
    struct stage stage = open_stage("30000");
    hf_client *client = open_mode(&stage, kind);
    hf_request *request;
    hf_hold *hold;

    (void)peer_ask(stage.java, "1 ok", "1 permits %s pool 2", kind);
    (void)peer_ask(stage.java, "1 ok", "1 lock %s pool 60000 0", kind);
    hold = peer_take(client, "pool", N, 2);
    ASSERT_EQ(peer_try(client, "pool", N, 2), HF_EBUSY);
    (void)peer_ask(stage.java, "2 busy", "2 lock %s pool 60000 0", kind);

    request = peer_await(client, "pool", N, 2);
    ASSERT_TRUE(peer_is_waiting(request));
    (void)peer_ask(stage.java, "1 ok", "1 unlock %s pool", kind);
    client_release(peer_awaited(request, WOKEN_MS));

    (void)peer_ask(stage.java, "1 ok", "1 lock %s pool 60000 0", kind);
    peer_tell(stage.java, "2 lock %s pool 60000 20000", kind);
    EVENTUALLY(
        strstr(redis_do(stage.server, "PUBSUB NUMSUB redisson_sc:{pool}"),
               ":1") != NULL);
    client_release(hold);
    (void)proc_expect(stage.java, "2 ok");
    (void)peer_ask(stage.java, "2 ok", "2 unlock %s pool", kind);
    (void)peer_ask(stage.java, "1 ok", "1 unlock %s pool", kind);
    ASSERT_STREQ(redis_do(stage.server, "GET pool"), "$1\r\n2\r\n");
}

TEST(redisson, a_semaphore_is_shared_and_wakes_both_ways)
{
    share_permits("semaphore");
}

TEST(redisson, expirable_permits_are_shared_and_wake_both_ways)
{
    share_permits("permits");
}

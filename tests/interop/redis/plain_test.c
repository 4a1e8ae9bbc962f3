/* SPDX-License-Identifier: MIT */
/*
 * plain_test.c - one lock of SET NX PX, with a real client of others.
 *
 * PEER is the command of redsync, node-redlock or redis-py; each of them looks
 * every 50 ms. Nobody is woken here.
 */
#include "interop/peer.h"

#include <stdlib.h>

/* The peer's command, with @ports behind it. */
static struct proc *start_peer(const char *ports)
{
    static char line[1024];
    const char *argv[] = {"sh", "-c", line, NULL};
    const char *peer = getenv("PEER");

    if (!peer)
        FAIL("PEER is not set");
    (void)snprintf(line, sizeof(line), "exec %s %s", peer, ports);
    return peer_start(argv);
}

static struct proc *start_on(struct server *server)
{
    char port[16];

    (void)snprintf(port, sizeof(port), "%d", server_port(server));
    return start_peer(port);
}

struct stage {
    struct server *server;
    struct proc *peer;
    hf_client *client;
};

static struct stage open_stage(const char *query)
{
    struct stage stage = {.server = redis_start()};

    stage.peer = start_on(stage.server);
    stage.client = redis_open(server_port(stage.server), query);
    return stage;
}

TEST(plain, excludes_both_ways)
{
    struct stage on = open_stage("dialect=plain");
    hf_hold *hold;

    (void)peer_ask(on.peer, "1 ok", "1 lock jobs 30000 0");
    ASSERT_EQ(peer_try(on.client, "jobs", HF_EXCLUSIVE, 0), HF_EBUSY);
    (void)peer_ask(on.peer, "1 ok", "1 unlock jobs");
    hold = peer_take(on.client, "jobs", HF_EXCLUSIVE, 0);
    (void)peer_ask(on.peer, "1 busy", "1 lock jobs 30000 0");
    peer_tell(on.peer, "1 lock jobs 30000 15000");
    client_release(hold);
    (void)proc_expect(on.peer, "1 ok");
    ASSERT_EQ(peer_try(on.client, "jobs", HF_EXCLUSIVE, 0), HF_EBUSY);
    (void)peer_ask(on.peer, "1 ok", "1 unlock jobs");
    ASSERT_EQ(redis_leftovers(on.server), 0);
}

TEST(plain, a_prefix_of_ours_is_part_of_its_name)
{
    struct stage on = open_stage("dialect=plain&prefix=app:");
    hf_hold *hold = peer_take(on.client, "jobs", HF_EXCLUSIVE, 0);

    (void)peer_ask(on.peer, "1 busy", "1 lock app:jobs 30000 0");
    (void)peer_ask(on.peer, "1 ok", "1 lock jobs 30000 0");
    client_release(hold);
}

/* Our lease is 1 s, renewed; its lease is 1 s, extended once by 30 s. */
TEST(plain, renewals_of_either_side_are_seen_by_the_other)
{
    struct stage on = open_stage("dialect=plain&ttl=1s");
    hf_hold *hold = peer_take(on.client, "ours", HF_EXCLUSIVE, 0);

    (void)peer_ask(on.peer, "1 ok", "1 lock theirs 3000 0");
    (void)peer_ask(on.peer, "1 ok", "1 extend theirs 30000");
    (void)peer_ask(on.peer, "2 busy", "2 lock ours 30000 3500");
    ASSERT_EQ(peer_try(on.client, "theirs", HF_EXCLUSIVE, 0), HF_EBUSY);
    client_release(hold);
}

TEST(plain, the_release_of_an_expired_lock_spares_the_other_side)
{
    struct stage on = open_stage("dialect=plain");
    hf_hold *hold;

    (void)peer_ask(on.peer, "1 ok", "1 lock jobs 300 0");
    hold = peer_take(on.client, "jobs", HF_EXCLUSIVE, 0);
    (void)peer_ask(on.peer, "1 lost", "1 unlock jobs");
    ASSERT_EQ(hf_verify(hold, NULL), 0);
    (void)redis_do(on.server, "DEL jobs");
    (void)peer_ask(on.peer, "1 ok", "1 lock jobs 30000 0");
    ASSERT_EQ(hf_release(hold, NULL), HF_ELOST);
    ASSERT_EQ(peer_try(on.client, "jobs", HF_EXCLUSIVE, 0), HF_EBUSY);
}

TEST(plain, a_killed_peer_is_succeeded)
{
    struct stage on = open_stage("dialect=plain");

    (void)peer_ask(on.peer, "1 ok", "1 lock jobs 1000 0");
    proc_kill(on.peer);
    client_release(peer_take(on.client, "jobs", HF_EXCLUSIVE, 0));
}

/* ---- RedLock ----------------------------------------------------------- */

enum { NODES = 5 };

struct nodes {
    struct server *servers[NODES];
    struct proc *peer;
    hf_client *client;
};

static struct nodes start_nodes(void)
{
    struct nodes nodes;
    char url[256] = "redlock://";
    char ports[64] = "";

    for (int i = 0; i < NODES; i++) {
        int port;

        nodes.servers[i] = redis_start();
        port = server_port(nodes.servers[i]);
        (void)snprintf(ports + strlen(ports), sizeof(ports) - strlen(ports),
                       "%d ", port);
        (void)snprintf(url + strlen(url), sizeof(url) - strlen(url),
                       "%s127.0.0.1:%d", i > 0 ? "," : "", port);
    }
    nodes.peer = start_peer(ports);
    /* A server that has just started does not vote while a lease of an
     * earlier run could be alive: so the lease is short. */
    (void)snprintf(url + strlen(url), sizeof(url) - strlen(url),
                   "?ttl=1s&node_timeout=500ms");
    nodes.client = client_open(url);
    return nodes;
}

static bool knows_redlock(void)
{
    if (getenv("PEER_REDLOCK"))
        return true;
    test_not_tested("%s: this on.peer knows one on.server only", test_name());
    return false;
}

/* In the end the peer has it. */
static void exclude_both_ways(struct nodes *nodes)
{
    hf_hold *hold = peer_take(nodes->client, "jobs", HF_EXCLUSIVE, 0);

    (void)peer_ask(nodes->peer, "1 busy", "1 lock jobs 30000 0");
    client_release(hold);
    (void)peer_ask(nodes->peer, "1 ok", "1 lock jobs 30000 10000");
    ASSERT_EQ(peer_try(nodes->client, "jobs", HF_EXCLUSIVE, 0), HF_EBUSY);
}

TEST(redlock, excludes_both_ways_on_five_masters)
{
    struct nodes nodes;

    if (!knows_redlock())
        return;
    nodes = start_nodes();
    exclude_both_ways(&nodes);
    (void)peer_ask(nodes.peer, "1 ok", "1 unlock jobs");
    client_release(peer_take(nodes.client, "jobs", HF_EXCLUSIVE, 0));
    for (int i = 0; i < NODES; i++)
        EVENTUALLY(redis_leftovers(nodes.servers[i]) == 0);
}

TEST(redlock, excludes_both_ways_with_two_of_five_stopped)
{
    struct nodes nodes;

    if (!knows_redlock())
        return;
    nodes = start_nodes();
    client_release(peer_take(nodes.client, "warm", HF_EXCLUSIVE, 0));
    server_kill(nodes.servers[1]);
    server_kill(nodes.servers[3]);
    exclude_both_ways(&nodes);
}

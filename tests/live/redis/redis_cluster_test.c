/* SPDX-License-Identifier: MIT */
/*
 * redis_cluster_test.c - slots that move and nodes that die, under locks.
 *
 * Each test has a cluster of its own, of three masters with a replica each.
 */
#include "event.h"
#include "topology.h"

#define QUICK "retry.base=5ms&retry.max_interval=100ms"

static const char key[] = "hf:{jobs}";

static void move_slot(const struct cluster *cluster, struct server *from,
                      struct server *to)
{
    int slot = cluster_slot(cluster, key);

    cluster_move_begin(from, to, slot);
    cluster_move_keys(from, to, slot);
    cluster_move_end(cluster, to, slot);
}

TEST(slot, that_moved_is_followed_by_an_acquire)
{
    struct cluster *cluster = cluster_start();
    hf_client *client = client_open(cluster_url(cluster, QUICK));
    struct server *from = cluster_owner(cluster, key);
    struct server *to = cluster_other(cluster, from);
    hf_error err;

    for (int i = 0; i < 4; i++) {
        struct server *swap = from;
        hf_hold *hold;

        move_slot(cluster, from, to);
        /* An attempt that may not wait is not refused for it. */
        ASSERT_OK(client_try(client, "jobs", &err), &err);
        hold = client_acquire(client, "jobs");
        ASSERT_OK(hf_verify(hold, &err), &err);
        client_release(hold);
        from = to;
        to = swap;
    }
    ASSERT_EQ(cluster_leftovers(cluster), 0);
}

TEST(slot, that_moves_while_its_lock_is_held_takes_it_along)
{
    struct cluster *cluster = cluster_start();
    struct rivals two = client_rivals(NULL, cluster_url(cluster, QUICK));
    struct server *from = cluster_owner(cluster, key);
    hf_hold *hold = client_acquire(two.client, "jobs");
    uint64_t token = hf_token(hold);
    hf_error err;

    move_slot(cluster, from, cluster_other(cluster, from));
    ASSERT_EQ(client_try(two.rival, "jobs", &err), HF_EBUSY);
    EVENTUALLY(hf_verify(hold, NULL) == 0);
    ASSERT_EQ(client_try(two.rival, "jobs", &err), HF_EBUSY);
    client_release(hold);
    hold = client_acquire(two.rival, "jobs");
    ASSERT_GT(hf_token(hold), token);
    client_release(hold);
    ASSERT_EQ(cluster_leftovers(cluster), 0);
}

/* As one without a key could: it sees the channel, not the nonce. */
static void forge_grants(struct server *owner)
{
    char channel[128];
    const char *found =
        strstr(redis_do(owner, "PUBSUB SHARDCHANNELS"), "hf:{jobs}:i:");

    ASSERT_NOT_NULL(found);
    (void)snprintf(channel, sizeof(channel), "%.44s", found);
    for (unsigned ticket = 0; ticket < 8; ticket++)
        ASSERT_STREQ(
            redis_do(owner, "SPUBLISH %s g%012x%032d", channel, ticket, 7),
            ":1\r\n");
}

TEST(slot, that_moves_under_a_line_of_waiters_serves_them)
{
    struct cluster *cluster = cluster_start();
    struct rivals two =
        client_rivals(NULL, cluster_url(cluster, QUICK "&ttl=60s"));
    struct server *from = cluster_owner(cluster, key);
    hf_hold *hold = client_acquire(two.client, "jobs");
    uint64_t token = hf_token(hold);
    hf_request *request = redis_stand_in_line(two.rival, from, "jobs");
    hf_hold *next;
    hf_error err;

    forge_grants(from);
    move_slot(cluster, from, cluster_other(cluster, from));
    /* The two.rival listens at the old node, and would beat after 20 s. */
    client_release(hold);
    next = client_finish(request);
    ASSERT_GT(hf_token(next), token);
    ASSERT_EQ(hf_check(next), HF_HELD);
    ASSERT_OK(hf_verify(next, &err), &err);
    client_release(next);
    ASSERT_EQ(cluster_leftovers(cluster), 0);
}

/* A wait on "c" of "jobs" that has begun. */
static hf_request *begin_wait(hf_client *client, hf_hold **hold)
{
    hf_request *request;
    hf_error err;

    *hold = client_acquire(client, "jobs");
    ASSERT_OK(
        hf_cond_wait_start(*hold, "c", HF_FOREVER, NULL, NULL, &request, &err),
        &err);
    EVENTUALLY(client_count(client, "jobs", HF_PARKED) == 1);
    return request;
}

static void end_wait(hf_request *request, hf_hold *hold)
{
    hf_error err;

    ASSERT_OK(hf_request_wait(request, EVENT_PATIENCE_MS, NULL, &err), &err);
    hf_request_free(request);
    ASSERT_EQ(hf_check(hold), HF_HELD);
    ASSERT_OK(hf_release(hold, &err), &err);
}

/* A signal at the new node may find nobody who hears. */
TEST(slot, that_moves_under_who_waits_for_a_condition_ends_the_wait)
{
    struct cluster *cluster = cluster_start();
    hf_client *client = client_open(cluster_url(cluster, QUICK "&ttl=60s"));
    struct server *from = cluster_owner(cluster, key);
    hf_hold *hold;
    hf_request *request = begin_wait(client, &hold);

    move_slot(cluster, from, cluster_other(cluster, from));
    end_wait(request, hold);
    EVENTUALLY(cluster_leftovers(cluster) == 0);
}

/* Half of the lock is here, half is there: the wait begins when all is. */
TEST(slot, that_is_on_its_way_parks_when_it_has_arrived)
{
    struct cluster *cluster = cluster_start();
    hf_client *client = client_open(cluster_url(cluster, QUICK "&ttl=60s"));
    hf_client *other = client_open(cluster_url(cluster, QUICK "&ttl=60s"));
    struct server *from = cluster_owner(cluster, key);
    struct server *to = cluster_other(cluster, from);
    hf_hold *hold = client_acquire(client, "jobs");
    int slot = cluster_slot(cluster, key);
    hf_request *request;
    hf_hold *next;
    hf_error err;
    int rc;

    cluster_move_begin(from, to, slot);
    rc = hf_cond_wait_start(hold, "c", HF_FOREVER, NULL, NULL, &request, &err);
    ASSERT_OK(rc, &err);
    cluster_move_keys(from, to, slot);
    cluster_move_end(cluster, to, slot);
    rc = hf_request_wait(request, 0, NULL, &err);
    if (rc == HF_EUNAVAILABLE) { /* refused: the hold is as before */
        ASSERT_EQ(hf_check(hold), HF_HELD);
    } else {
        next = client_acquire(other, "jobs");
        ASSERT_GE(hf_cond_signal(next, "c", &err), 0);
        ASSERT_OK(hf_release(next, &err), &err);
        ASSERT_OK(hf_request_wait(request, EVENT_PATIENCE_MS, NULL, &err),
                  &err);
    }
    hf_request_free(request);
    ASSERT_OK(hf_release(hold, &err), &err);
    EVENTUALLY(cluster_leftovers(cluster) == 0);
}

TEST(slot, that_is_on_its_way_is_never_torn)
{
    struct cluster *cluster = cluster_start();
    struct rivals two =
        client_rivals(NULL, cluster_url(cluster, QUICK "&ttl=60s"));
    struct server *from = cluster_owner(cluster, key);
    struct server *to = cluster_other(cluster, from);
    int slot = cluster_slot(cluster, key);
    hf_hold *hold = client_acquire(two.client, "jobs");
    hf_request *request = redis_stand_in_line(two.rival, from, "jobs");
    hf_hold *other;
    hf_hold *next;
    hf_error err;

    cluster_move_begin(from, to, slot);
    /* The line is there, the gate is here. */
    ASSERT_EQ(redis_do(from, "MIGRATE 127.0.0.1 %d %s:q 0 5000",
                       server_port(to), key)[0],
              '+');
    ASSERT_NE(hf_acquire(two.client, "jobs", OPTS(300, .owner = "another"),
                         &other, &err),
              0);
    ASSERT_NE(hf_verify(hold, &err), HF_ELOST);
    ASSERT_EQ(hf_check(hold), HF_HELD);
    cluster_move_keys(from, to, slot);
    cluster_move_end(cluster, to, slot);
    EVENTUALLY(hf_verify(hold, NULL) == 0);
    client_release(hold);
    next = client_finish(request);
    client_release(next);
    EVENTUALLY(cluster_leftovers(cluster) == 0);
}

/* Take, verify and release it while another cannot have it. */
static uint64_t use(hf_client *client, hf_client *rival)
{
    hf_hold *hold = client_acquire(client, "jobs");
    uint64_t token = hf_token(hold);
    hf_error err;

    ASSERT_RC(client_try(rival, "jobs", &err), HF_EBUSY, &err);
    ASSERT_OK(hf_verify(hold, &err), &err);
    client_release(hold);
    ASSERT_OK(client_try(rival, "jobs", &err), &err);
    return token;
}

/* The slot of @at is on its way, and stays so: not at its goal, the lock can
 * be had, kept and given back, wherever all of it is. */
static void use_on_its_way(struct cluster *cluster, const char *query,
                           const char *at)
{
    struct rivals two = client_rivals(NULL, cluster_url(cluster, query));
    struct server *from = cluster_owner(cluster, at);
    struct server *to = cluster_other(cluster, from);
    int slot = cluster_slot(cluster, at);
    uint64_t token = 0;
    hf_hold *hold;
    hf_error err;

    /* Nothing is known of the name. */
    cluster_move_begin(from, to, slot);
    token = use(two.client, two.rival);
    cluster_move_keys(from, to, slot);
    cluster_move_end(cluster, to, slot);
    EVENTUALLY(client_try(two.client, "jobs", NULL) == 0);

    /* It is held, and all of it stays behind for a while. */
    hold = client_acquire(two.client, "jobs");
    cluster_move_begin(to, from, slot);
    ASSERT_OK(hf_verify(hold, &err), &err);
    ASSERT_RC(client_try(two.rival, "jobs", &err), HF_EBUSY, &err);
    client_release(hold);
    ASSERT_GE(use(two.client, two.rival), token);

    /* It is held, and all of it is there already. */
    hold = client_acquire(two.client, "jobs");
    ASSERT_GE(hf_token(hold), token);
    cluster_move_keys(to, from, slot);
    ASSERT_OK(hf_verify(hold, &err), &err);
    ASSERT_RC(client_try(two.rival, "jobs", &err), HF_EBUSY, &err);
    client_release(hold);
    cluster_move_end(cluster, from, slot);
    EVENTUALLY(client_try(two.rival, "jobs", NULL) == 0);
    EVENTUALLY(cluster_leftovers(cluster) == 0);
}

TEST(slot, that_is_on_its_way_serves_what_is_wholly_at_one_end)
{
    struct cluster *cluster = cluster_start();

    use_on_its_way(cluster, QUICK, key);
    use_on_its_way(cluster, QUICK "&dialect=plain", "jobs");
    use_on_its_way(cluster, QUICK "&dialect=redisson", "jobs");
}

TEST(slot, that_is_on_its_way_serves_a_line_that_is_there_already)
{
    struct cluster *cluster = cluster_start();
    hf_client *client = client_open(cluster_url(cluster, QUICK));
    hf_client *waiter = client_open(cluster_url(cluster, QUICK "&ttl=3s"));
    struct server *from = cluster_owner(cluster, key);
    struct server *to = cluster_other(cluster, from);
    int slot = cluster_slot(cluster, key);
    hf_hold *hold = client_acquire(client, "jobs");
    hf_request *request = redis_stand_in_line(waiter, from, "jobs");
    uint64_t token = hf_token(hold);
    hf_hold *next;
    hf_error err;

    cluster_move_begin(from, to, slot);
    cluster_move_keys(from, to, slot);
    ASSERT_OK(hf_verify(hold, &err), &err);
    client_release(hold);
    next = client_finish(request);
    ASSERT_GT(hf_token(next), token);
    client_release(next);
    cluster_move_end(cluster, to, slot);
    EVENTUALLY(cluster_leftovers(cluster) == 0);
}

/* The replicas do not suffice; meanwhile the slot goes on its way, and the grant
 * has to be given back at the other node. */
static void give_back_on_its_way(struct cluster *cluster, const char *query,
                                 const char *at)
{
    struct rivals two = client_rivals(NULL, cluster_url(cluster, query));
    struct server *from = cluster_owner(cluster, at);
    struct server *to = cluster_other(cluster, from);
    int slot = cluster_slot(cluster, at);
    hf_request *request = client_start(two.client, "jobs");
    hf_hold *hold;
    hf_error err;

    EVENTUALLY(redis_do(from, "EXISTS %s", at)[1] == '1');
    cluster_move_begin(from, to, slot);
    cluster_move_keys(from, to, slot);
    ASSERT_EQ(hf_request_wait(request, 3000, &hold, &err), HF_ETIMEOUT);
    cluster_move_end(cluster, to, slot);
    ASSERT_NE(client_try(two.rival, "jobs", &err), 0);
    hf_request_free(request);
    EVENTUALLY(cluster_leftovers(cluster) == 0);
}

TEST(slot, that_is_on_its_way_gets_a_grant_back)
{
    static const char sync[] = QUICK "&sync_replicas=2&io_timeout=1s";
    struct cluster *cluster = cluster_start();

    give_back_on_its_way(cluster, sync, key);
}

TEST(node, that_dies_gives_its_locks_to_its_replica)
{
    struct cluster *cluster = cluster_start();
    struct rivals two = client_rivals(NULL, cluster_url(cluster, QUICK));
    struct server *owner = cluster_owner(cluster, key);
    hf_hold *hold = client_acquire(two.client, "jobs");
    uint64_t token = hf_token(hold);
    hf_request *request = redis_stand_in_line(two.rival, owner, "jobs");
    hf_hold *next;

    EVENTUALLY(topology_in_step(owner));
    cluster_kill(cluster, owner);
    (void)cluster_owner(cluster, key);
    EVENTUALLY(hf_verify(hold, NULL) == 0);
    ASSERT_EQ(hf_check(hold), HF_HELD);
    client_release(hold);
    next = client_finish(request);
    ASSERT_GT(hf_token(next), token);
    client_release(next);
    EVENTUALLY(cluster_leftovers(cluster) == 0);
}

TEST(node, that_dies_with_the_only_copy_is_told_as_lost)
{
    struct event events = EVENT_INIT;
    struct cluster *cluster = cluster_start();
    hf_client *client = client_open(cluster_url(cluster, QUICK "&ttl=200s"));
    struct server *owner = cluster_owner(cluster, key);
    hf_hold *hold;
    hf_hold *next;
    hf_error err;

    for (int i = CLUSTER_NODES / 2; i < CLUSTER_NODES; i++)
        server_pause(cluster->nodes[i]);
    ASSERT_EQ(redis_do(owner, "CLIENT KILL TYPE replica")[0], ':');
    hold = client_acquire_told(client, "jobs", &events);
    server_kill(owner);
    for (int i = CLUSTER_NODES / 2; i < CLUSTER_NODES; i++)
        server_resume(cluster->nodes[i]);
    cluster_hurry(cluster);
    (void)cluster_owner(cluster, key);
    event_await(&events, 1, EVENT_PATIENCE_MS);
    ASSERT_EQ(events.values[0], HF_LOST);
    next = client_acquire(client, "jobs");
    ASSERT_GT(hf_token(next), hf_token(hold));
    ASSERT_EQ(hf_release(hold, &err), HF_ELOST);
    client_release(next);
}

TEST(node, that_is_down_does_not_concern_the_locks_of_others)
{
    struct cluster *cluster = cluster_start();
    hf_client *client = client_open(cluster_url(cluster, QUICK));
    struct server *owner = cluster_owner(cluster, key);
    const char *other = NULL;
    hf_hold *hold;
    hf_error err;

    for (int i = 0; !other; i++) {
        const char *name = test_text("other-%d", i);

        if (cluster_owner(cluster, test_text("hf:{%s}", name)) != owner)
            other = name;
    }
    hold = client_acquire(client, other);
    cluster_kill(cluster, owner);
    ASSERT_OK(hf_verify(hold, &err), &err);
    client_release(hold);
    ASSERT_OK(client_try(client, other, &err), &err);
}

TEST(cluster, names_of_a_multi_lock_may_be_on_different_nodes)
{
    enum { NAMES = 8 };
    struct cluster *cluster = cluster_start();
    struct rivals two = client_rivals(NULL, cluster_url(cluster, QUICK));
    const char *names[NAMES];
    struct server *first;
    bool spread = false;
    hf_hold *hold;
    hf_error err;

    for (int i = 0; i < NAMES; i++)
        names[i] = test_text("part-%d", i);
    first = cluster_owner(cluster, "hf:{part-0}");
    for (int i = 1; i < NAMES; i++)
        spread = spread || cluster_owner(cluster, test_text("hf:{%s}",
                                                            names[i])) != first;
    ASSERT_TRUE(spread);
    ASSERT_OK(hf_acquire_many(two.client, names, NAMES, NULL, &hold, &err),
              &err);
    for (int i = 0; i < NAMES; i++)
        ASSERT_EQ(client_try(two.rival, names[i], &err), HF_EBUSY);
    client_release(hold);
    for (int i = 0; i < NAMES; i++)
        ASSERT_OK(client_try(two.rival, names[i], &err), &err);
    ASSERT_EQ(cluster_leftovers(cluster), 0);
}

TEST(cluster, urls_that_are_wrong_say_what_is_right)
{
    struct cluster *cluster = cluster_start();
    struct server *single = redis_start();
    hf_client *client;
    hf_error err;

    ASSERT_RC(hf_open(redis_url(server_port(cluster->nodes[0]), NULL), NULL,
                      &client, &err),
              HF_EUNSUPPORTED, &err);
    ASSERT_HAS(err.text, "redis-cluster://");
    ASSERT_RC(
        hf_open(test_text("redis-cluster://127.0.0.1:%d", server_port(single)),
                NULL, &client, &err),
        HF_EUNSUPPORTED, &err);
    ASSERT_HAS(err.text, "redis://");
    /* One that is dead, and a replica: enough to find the others. */
    client = client_open(test_text("redis-cluster://127.0.0.1:1,"
                                   "127.0.0.1:%d",
                                   server_port(cluster->nodes[5])));
    ASSERT_OK(client_try(client, "jobs", &err), &err);
}

TEST(doctor, looks_at_every_part)
{
    struct cluster *cluster = cluster_start();
    hf_client *client = client_open(cluster_url(cluster, QUICK));
    const char *findings = topology_doctor(client);

    for (int i = 0; i < CLUSTER_NODES / 2; i++)
        ASSERT_HAS(findings,
                   test_text("cluster: redis 127.0.0.1:%d: state ok, 16384 "
                             "of 16384 slots served",
                             server_port(cluster->nodes[i])));
    ASSERT_HAS(findings, "replication: 1 replicas, at most ");
    ASSERT_HAS(findings, "release: allowed");
    ASSERT_NULL(strstr(findings, "refused"));
    ASSERT_EQ(cluster_leftovers(cluster), 0);
}

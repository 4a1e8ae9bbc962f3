/* SPDX-License-Identifier: MIT */
/*
 * redis_sentinel_test.c - failovers, with locks held and awaited.
 *
 * Redis replicates without waiting, so a failover may or may not bring a lock
 * along. What must be true in either case: the holder is told before, or
 * still has it; the token grows; the waiters are served.
 */
#include <stdlib.h>

#include "event.h"
#include "topology.h"

#define QUICK "retry.base=5ms&retry.max_interval=100ms"

static bool is_lost(hf_hold *hold)
{
    return hf_check(hold) == HF_LOST;
}

TEST(failover, a_lock_that_was_copied_is_kept)
{
    struct sentinel_set *set = sentinel_set_start();
    struct rivals at = client_rivals(NULL, sentinel_set_url(set, QUICK));
    hf_hold *hold = client_acquire(at.client, "jobs");
    struct server *master;
    hf_error err;

    EVENTUALLY(topology_in_step(set->servers[0]));
    sentinel_set_kill_master(set);
    master = sentinel_set_await(set, set->servers[0]);
    EVENTUALLY(hf_verify(hold, NULL) == 0);
    ASSERT_EQ(hf_check(hold), HF_HELD);
    EVENTUALLY(client_try(at.rival, "jobs", &err) == HF_EBUSY);
    client_release(hold);
    hold = client_acquire(at.rival, "jobs");
    client_release(hold);
    EVENTUALLY(redis_leftovers(master) == 0);
}

TEST(failover, a_lock_that_was_not_copied_is_told_lost_at_once)
{
    struct event events = EVENT_INIT;
    struct sentinel_set *set = sentinel_set_start();
    hf_client *client = client_open(sentinel_set_url(set, QUICK "&ttl=200s"));
    hf_client *rival = client_open(sentinel_set_url(set, QUICK));
    hf_hold *before = client_acquire(client, "jobs");
    uint64_t token = hf_token(before);
    hf_hold *hold;
    hf_hold *next;
    hf_error err;

    client_release(before);
    /* Nothing of what is written now gets to a replica. */
    server_pause(set->servers[1]);
    server_pause(set->servers[2]);
    ASSERT_EQ(redis_do(set->servers[0], "CLIENT KILL TYPE replica")[0], ':');
    hold = client_acquire_told(client, "jobs", &events);
    ASSERT_GT(hf_token(hold), token);
    sentinel_set_kill_master(set);
    server_resume(set->servers[1]);
    server_resume(set->servers[2]);
    (void)sentinel_set_await(set, set->servers[0]);
    /* A renewal would be due after 66 s, the end of the lease after 200 s. */
    event_await(&events, 1, EVENT_PATIENCE_MS);
    ASSERT_EQ(events.values[0], HF_LOST);
    next = client_acquire(rival, "jobs");
    ASSERT_TRUE(is_lost(hold));
    ASSERT_GT(hf_token(next), hf_token(hold));
    ASSERT_EQ(hf_release(hold, &err), HF_ELOST);
    client_release(next);
}

/* One client holds the lock, another waits for it. */
struct line {
    struct sentinel_set *set;
    hf_hold *hold;
    hf_request *request;
};

static struct line stand_in_line(const char *query)
{
    struct line at = {.set = sentinel_set_start()};
    struct rivals two = client_rivals(NULL, sentinel_set_url(at.set, query));

    at.hold = client_acquire(two.client, "jobs");
    at.request = redis_stand_in_line(two.rival, at.set->servers[0], "jobs");
    return at;
}

TEST(failover, waiters_are_served_and_the_token_grows)
{
    struct line at = stand_in_line(QUICK "&ttl=3s");
    hf_hold *next;
    uint64_t token = hf_token(at.hold);

    EVENTUALLY(topology_in_step(at.set->servers[0]));
    sentinel_set_kill_master(at.set);
    (void)sentinel_set_await(at.set, at.set->servers[0]);
    EVENTUALLY(is_lost(at.hold) || hf_verify(at.hold, NULL) == 0);
    (void)hf_release(at.hold, NULL);
    next = client_finish(at.request);
    ASSERT_GT(hf_token(next), token);
    client_release(next);
}

/* The new master may have lost a signal: nobody goes on waiting there. */
TEST(failover, ends_the_wait_for_a_condition)
{
    struct sentinel_set *set = sentinel_set_start();
    hf_client *client = client_open(sentinel_set_url(set, QUICK "&ttl=200s"));
    struct client_wait wait = client_park(client, "jobs", "c", client);

    EVENTUALLY(topology_in_step(set->servers[0]));
    sentinel_set_kill_master(set);
    client_woken(&wait);
    EVENTUALLY(redis_leftovers(sentinel_set_master(set)) == 0);
}

TEST(failover, on_request_keeps_the_lock)
{
    struct sentinel_set *set = sentinel_set_start();
    struct rivals at = client_rivals(NULL, sentinel_set_url(set, QUICK));
    hf_hold *hold = client_acquire(at.client, "jobs");
    hf_error err;

    EVENTUALLY(topology_in_step(set->servers[0]));
    EVENTUALLY(redis_do(set->sentinels[0], "SENTINEL FAILOVER m1")[0] == '+');
    (void)sentinel_set_await(set, set->servers[0]);
    EVENTUALLY(hf_verify(hold, NULL) == 0);
    EVENTUALLY(client_try(at.rival, "jobs", &err) == HF_EBUSY);
    client_release(hold);
    EVENTUALLY(client_try(at.rival, "jobs", &err) == 0);
}

TEST(failover, a_master_that_becomes_a_replica_is_left)
{
    struct sentinel_set *set = sentinel_set_start();
    hf_client *client = client_open(sentinel_set_url(set, QUICK));
    hf_hold *hold;
    hf_error err;
    int rc;

    for (int i = 0; i < SET_SENTINELS; i++)
        server_kill(set->sentinels[i]);
    hold = client_acquire(client, "jobs");
    EVENTUALLY(topology_in_step(set->servers[0]));
    ASSERT_EQ(redis_do(set->servers[0], "REPLICAOF 127.0.0.1 %d",
                       server_port(set->servers[1]))[0],
              '+');
    /* It says READONLY; nobody names another. */
    rc = hf_verify(hold, &err);
    ASSERT_TRUE(rc == HF_EUNAVAILABLE || rc == HF_EUNKNOWN);
    ASSERT_NE(client_try(client, "other", &err), 0);
    ASSERT_EQ(redis_do(set->servers[0], "REPLICAOF NO ONE")[0], '+');
    for (int i = 0; i < SET_SENTINELS; i++)
        server_restart(set->sentinels[i]);
    EVENTUALLY(hf_verify(hold, NULL) == 0 || is_lost(hold));
    (void)hf_release(hold, NULL);
}

TEST(sentinel, one_that_is_down_is_not_missed)
{
    struct sentinel_set *set = sentinel_set_start();
    hf_client *client;
    hf_hold *hold;

    server_kill(set->sentinels[0]);
    server_pause(set->sentinels[1]);
    client = client_open(sentinel_set_url(set, QUICK "&connect_timeout=2s"));
    hold = client_acquire(client, "jobs");
    client_release(hold);
}

TEST(sentinel, none_at_all_is_a_clear_error)
{
    struct sentinel_set *set = sentinel_set_start();
    hf_client *client;
    hf_error err;

    for (int i = 0; i < SET_SENTINELS; i++)
        server_kill(set->sentinels[i]);
    ASSERT_RC(hf_open(sentinel_set_url(set, "connect_timeout=500ms"), NULL,
                      &client, &err),
              HF_EUNAVAILABLE, &err);
    ASSERT_HAS(err.text, "no sentinel of 3");
    ASSERT_HAS(err.text, "'m1'");
}

TEST(sentinel, an_unknown_service_is_a_clear_error)
{
    struct sentinel_set *set = sentinel_set_start();
    hf_client *client;
    hf_error err;

    ASSERT_RC(hf_open(test_text("redis-sentinel://127.0.0.1:%d/other",
                                server_port(set->sentinels[0])),
                      NULL, &client, &err),
              HF_ECONFIG, &err);
    ASSERT_HAS(err.text, "'other'");
    ASSERT_RC(hf_open("redis-sentinel://127.0.0.1", NULL, &client, &err),
              HF_ECONFIG, &err);
    ASSERT_HAS(err.text, "mymaster");
    ASSERT_RC(hf_open(test_text("redis://127.0.0.1:%d",
                                server_port(set->sentinels[0])),
                      NULL, &client, &err),
              HF_EUNSUPPORTED, &err);
    ASSERT_HAS(err.text, "redis-sentinel://");
}

/* ---- sync_replicas ------------------------------------------------------- */

TEST(sync_replicas, waits_for_them_and_hands_over)
{
    struct line at = stand_in_line(QUICK "&sync_replicas=2");
    hf_hold *next;
    hf_error err;

    /* Both have it when we are told. */
    for (int i = 1; i < SET_SERVERS; i++)
        ASSERT_EQ(redis_do(at.set->servers[i], "EXISTS hf:{jobs}")[1], '1');
    ASSERT_OK(hf_verify(at.hold, &err), &err);
    client_release(at.hold);
    next = client_finish(at.request);
    for (int i = 1; i < SET_SERVERS; i++)
        ASSERT_EQ(redis_do(at.set->servers[i], "LLEN hf:{jobs}:q")[1], '0');
    client_release(next);
    EVENTUALLY(redis_leftovers(at.set->servers[0]) == 0);
}

TEST(sync_replicas, have_who_waits_for_a_condition_and_its_wake_up)
{
    struct sentinel_set *set = sentinel_set_start();
    hf_client *client =
        client_open(sentinel_set_url(set, QUICK "&sync_replicas=2"));
    hf_client *other =
        client_open(sentinel_set_url(set, QUICK "&sync_replicas=2"));
    struct client_wait wait = client_park(client, "jobs", "c", client);
    hf_hold *next = client_acquire(other, "jobs");
    hf_error err;

    ASSERT_EQ(hf_cond_signal(next, "c", &err), 1);
    ASSERT_OK(hf_release(next, &err), &err);
    client_woken(&wait);
    EVENTUALLY(redis_leftovers(set->servers[0]) == 0);
}

static void too_few(struct sentinel_set *set, const char *query)
{
    struct event events = EVENT_INIT;
    hf_client *client = redis_open(server_port(set->servers[0]), query);
    hf_hold *hold = client_acquire_told(client, "held", &events);
    hf_hold *other;
    hf_error err;

    server_pause(set->servers[2]);
    ASSERT_RC(hf_acquire(client, "jobs", WITHIN(0), &other, &err),
              HF_EUNAVAILABLE, &err);
    ASSERT_HAS(err.text, "1 replicas have it");
    ASSERT_EQ(redis_do(set->servers[0], "EXISTS jobs hf:{jobs}")[1], '0');
    /* What cannot be renewed as promised is lost in time. */
    EVENTUALLY(is_lost(hold));
    server_resume(set->servers[2]);
    (void)hf_release(hold, NULL);
    EVENTUALLY(client_try(client, "jobs", &err) == 0);
    EVENTUALLY(redis_leftovers(set->servers[0]) == 0);
}

TEST(sync_replicas, too_few_give_the_grant_back_and_say_so)
{
    struct sentinel_set *set = sentinel_set_start();

    for (int i = 0; i < SET_SENTINELS; i++)
        server_kill(set->sentinels[i]);
    too_few(set, QUICK "&sync_replicas=2&io_timeout=1s&ttl=3s");
    too_few(set, QUICK "&sync_replicas=2&io_timeout=1s&ttl=3s&dialect=plain");
    too_few(set,
            QUICK "&sync_replicas=2&io_timeout=1s&ttl=3s&dialect=redisson");
}

/* ---- … and a waiter ------------------------------------------------------ */

#define SYNC QUICK "&sync_replicas=2&ttl=3s"

struct crew {
    struct sentinel_set *set;
    struct server *master;
    hf_client *holder; /* asks for no replicas */
    hf_client *waiter;
    hf_hold *hold;
    hf_request *request; /* the waiter's, in line */
};

/* One replica stands still from here on. */
static void crew_start(struct crew *crew, const char *query)
{
    crew->set = sentinel_set_start();
    crew->master = crew->set->servers[0];
    for (int i = 0; i < SET_SENTINELS; i++)
        server_kill(crew->set->sentinels[i]);
    crew->holder = redis_open(server_port(crew->master), QUICK);
    crew->waiter = redis_open(server_port(crew->master), query);
    crew->hold = client_acquire(crew->holder, "jobs");
    crew->request = redis_stand_in_line(crew->waiter, crew->master, "jobs");
    server_pause(crew->set->servers[2]);
}

static bool has_waited(struct crew *crew, int times)
{
    const char *at = strstr(redis_do(crew->master, "INFO commandstats"),
                            "cmdstat_wait:calls=");

    return at && atoi(at + strlen("cmdstat_wait:calls=")) >= times;
}

/* The waiter has been granted the lock, and waits for its replicas. */
static void crew_hand_over(struct crew *crew)
{
    client_release(crew->hold);
    EVENTUALLY(strstr(redis_do(crew->master, "CLIENT LIST"), "cmd=wait") !=
               NULL);
}

static void crew_finish(struct crew *crew)
{
    hf_hold *hold;
    hf_error err;

    server_resume(crew->set->servers[2]);
    hold = client_finish(crew->request);
    ASSERT_OK(hf_verify(hold, &err), &err);
    client_release(hold);
    EVENTUALLY(redis_leftovers(crew->master) == 0);
}

TEST(sync_replicas, a_waiter_whose_grant_is_given_back_asks_again)
{
    struct crew crew;

    crew_start(&crew, SYNC "&io_timeout=1s");
    client_release(crew.hold);
    EVENTUALLY(has_waited(&crew, 3));
    crew_finish(&crew);
}

TEST(sync_replicas, a_waiter_that_loses_its_connection_gets_its_grant)
{
    struct crew crew;

    crew_start(&crew, SYNC "&io_timeout=60s");
    crew_hand_over(&crew);
    (void)redis_do(crew.master, "CLIENT KILL TYPE pubsub");
    crew_finish(&crew);
}

static int break_it(const hf_lock_info *info, void *ctx)
{
    const struct crew *crew = ctx;
    hf_error err;

    ASSERT_OK(hf_break(crew->holder, "jobs", info->token, NULL, &err), &err);
    return 0;
}

TEST(sync_replicas, a_grant_that_is_broken_before_they_have_it_is_none)
{
    struct crew crew;
    hf_error err;

    crew_start(&crew, SYNC "&io_timeout=60s");
    crew_hand_over(&crew);
    ASSERT_OK(hf_list(crew.holder, "jobs", break_it, &crew, &err), &err);
    crew_finish(&crew);
}

/* Somebody who may read the line forges a wake-up, and takes the waiter out of
 * the line: the renewal that goes before WAIT finds that nothing is granted. */
static void forge_grant(struct crew *crew, const char *first, int digit)
{
    char record[512];
    char channel[64];

    (void)snprintf(
        record, sizeof(record), "%s",
        strchr(redis_do(crew->master, "LINDEX hf:{jobs}:q 0"), '\n') + 1);
    (void)snprintf(channel, sizeof(channel), "hf:i:%.32s", record);
    ASSERT_STREQ(redis_do(crew->master,
                          "EVAL \"%s return redis.call('PUBLISH','%s','g%.12s"
                          "%.16s%d000000000000000')\" 0",
                          first, channel, record + 32, record + 103, digit),
                 ":1\r\n");
}

TEST(sync_replicas, a_forged_grant_is_found_out_before_it_is_told)
{
    static const char *const tricks[] = {
        "redis.call('DEL','hf:{jobs}:q','hf:{jobs}:r')", ""};
    struct crew crew;
    hf_hold *next;
    hf_error err;

    crew_start(&crew, SYNC "&io_timeout=60s");
    server_resume(crew.set->servers[2]);
    for (size_t i = 0; i < sizeof(tricks) / sizeof(tricks[0]); i++) {
        forge_grant(&crew, tricks[i], 7 + (int)i);
        EVENTUALLY(strstr(redis_do(crew.master, "LLEN hf:{jobs}:q"), ":1") !=
                   NULL);
        /* This answer comes behind that of the WAIT. */
        ASSERT_EQ(client_try(crew.waiter, "other", &err), 0);
        ASSERT_EQ(hf_request_wait(crew.request, 0, &next, &err), HF_ETIMEOUT);
    }
    ASSERT_OK(hf_verify(crew.hold, &err), &err);
    client_release(crew.hold);
    crew_finish(&crew);
}

TEST(doctor, looks_at_every_part)
{
    struct sentinel_set *set = sentinel_set_start();
    hf_client *client = client_open(sentinel_set_url(set, QUICK));
    const char *findings = topology_doctor(client);

    ASSERT_HAS(findings, "of 3 answered; 3 know of each other, quorum 2");
    ASSERT_HAS(findings, "replication: 2 replicas, at most ");
    ASSERT_HAS(findings, "min-replicas-to-write 0");
    ASSERT_HAS(findings, "release: allowed");
}

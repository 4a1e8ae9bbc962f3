/* SPDX-License-Identifier: MIT */
/*
 * redlock_fault_test.c - what failing servers do to a majority.
 *
 * Where something must cost nobody time, the timeouts are so long that waiting
 * for one of them fails the test.
 */
#include <pthread.h>

#include "../redis/clock.h"
#include "event.h"
#include "redlock.h"

#define QUICK "retry.base=1ms&retry.max_interval=20ms"
/* Where nobody is late: a busy machine is not taken for a stopped server. */
#define PATIENT QUICK "&node_timeout=20s&io_timeout=30s"

/* ---- servers that are away ----------------------------------------------- */

TEST(servers, two_of_five_stopped_cost_nobody_time)
{
    struct server *servers[NODES];
    int64_t before;
    hf_client *client = redlock_begin(servers, PATIENT);

    redlock_pairs(client, "jobs", 2);
    server_pause(servers[1]);
    server_pause(servers[4]);
    before = clock_ms();
    redlock_pairs(client, "jobs", 20);
    ASSERT_LT(clock_ms() - before, 15000);
    server_resume(servers[1]);
    server_resume(servers[4]);
    EVENTUALLY(redlock_votes(servers, "jobs") == 0);
    redlock_pairs(client, "jobs", 2);
}

TEST(servers, two_of_five_killed_cost_nobody_time)
{
    struct server *servers[NODES];
    hf_error err;
    int64_t before;
    hf_client *client =
        redlock_begin(servers, QUICK "&node_timeout=20s&ttl=3s");
    hf_hold *hold = client_acquire(client, "held");

    EVENTUALLY(redlock_votes(servers, "held") == NODES);
    server_kill(servers[0]);
    server_kill(servers[2]);
    before = clock_ms();
    redlock_pairs(client, "jobs", 20);
    ASSERT_OK(hf_verify(hold, &err), &err);
    ASSERT_LT(clock_ms() - before, 15000);
    server_restart(servers[0]);
    server_restart(servers[2]);
    /* They are taken in again, and give their votes to what is held. */
    EVENTUALLY(hf_verify(hold, &err) == 0 &&
               redlock_votes(servers, "held") == NODES);
    client_release(hold);
    EVENTUALLY(redlock_votes(servers, "held") == 0);
}

TEST(servers, three_of_five_dead_is_said_and_leaves_nothing)
{
    struct server *servers[NODES];
    struct server *living[NODES];
    hf_error err;
    hf_client *client = redlock_begin(servers, QUICK);

    redlock_pairs(client, "jobs", 1);
    for (int i = 0; i < 3; i++)
        server_kill(servers[i]);
    EVENTUALLY(client_try(client, "jobs", &err) == HF_EUNAVAILABLE);
    ASSERT_HAS(err.text, "no majority of 5");
    ASSERT_HAS(err.text, "away");
    for (int i = 0; i < NODES; i++)
        living[i] = servers[i < 3 ? 3 : i];
    EVENTUALLY(redlock_votes(living, "jobs") == 0);
    server_restart(servers[0]);
    redlock_pairs(client, "jobs", 3);
}

TEST(servers, three_of_five_stopped_is_said_in_time_and_leaves_nothing)
{
    struct server *servers[NODES];
    hf_hold *hold;
    hf_error err;
    hf_client *client = redlock_begin(servers, QUICK);

    redlock_pairs(client, "jobs", 1);
    for (int i = 0; i < 3; i++)
        server_pause(servers[i]);
    ASSERT_EQ(hf_acquire(client, "jobs", WITHIN(300), &hold, &err),
              HF_EUNAVAILABLE);
    for (int i = 0; i < 3; i++)
        server_resume(servers[i]);
    /* The acquires reach them now, and their withdrawals behind. */
    EVENTUALLY(redlock_votes(servers, "jobs") == 0);
    redlock_pairs(client, "jobs", 3);
    EVENTUALLY(redlock_votes(servers, "jobs") == 0);
}

TEST(servers, a_hold_without_a_majority_is_lost_in_time)
{
    struct event events = EVENT_INIT;
    struct server *servers[NODES];
    hf_client *client = redlock_begin(servers, PATIENT "&ttl=1s");
    hf_hold *hold = client_acquire_told(client, "jobs", &events);

    for (int i = 0; i < 3; i++)
        server_kill(servers[i]);
    EVENTUALLY(hf_check(hold) == HF_LOST);
    ASSERT_EQ(hf_release(hold, NULL), HF_ELOST);
}

/* ---- servers that forget ------------------------------------------------- */

TEST(memory, flushed_at_a_majority_is_told_as_lost)
{
    struct server *servers[NODES];
    hf_error err;
    hf_client *client = redlock_begin(servers, PATIENT);
    hf_hold *hold = client_acquire(client, "jobs");

    EVENTUALLY(redlock_votes(servers, "jobs") == NODES);
    for (int i = 0; i < 2; i++)
        (void)redis_do(servers[i], "FLUSHALL");
    ASSERT_OK(hf_verify(hold, &err), &err); /* two are no majority */
    EVENTUALLY(redlock_votes(servers, "jobs") == NODES);
    for (int i = 0; i < 3; i++)
        (void)redis_do(servers[i], "FLUSHALL");
    ASSERT_EQ(hf_verify(hold, &err), HF_ELOST);
    ASSERT_EQ(hf_check(hold), HF_LOST);
    ASSERT_EQ(hf_release(hold, NULL), HF_ELOST);
    EVENTUALLY(redlock_votes(servers, "jobs") == 0);
}

/* Two clients that each reach three of five servers, only the third of them
 * both. */
struct island {
    struct server *servers[NODES];
    hf_client *one; /* reaches 0, 1, 2 */
    hf_client *two; /* reaches 2, 3, 4 */
};

static void make_island(struct island *island, const char *query)
{
    int ports[NODES];

    for (int i = 0; i < NODES; i++)
        ports[i] = server_port(island->servers[i]);
    ports[3] = server_free_port();
    ports[4] = server_free_port();
    island->one = redlock_open_ports(ports, query);
    ports[3] = server_port(island->servers[3]);
    ports[4] = server_port(island->servers[4]);
    ports[0] = server_free_port();
    ports[1] = server_free_port();
    island->two = redlock_open_ports(ports, query);
}

TEST(memory, a_server_restarted_without_it_does_not_vote_for_a_second_holder)
{
    struct island island;
    hf_hold *hold;
    hf_hold *next;
    hf_error err;
    int rc;

    for (int i = 0; i < NODES; i++)
        island.servers[i] = i == 2 ? redis_start() : redis_start_durable();
    make_island(&island, PATIENT "&ttl=3s");
    /* It has just been started: for a lease it does not vote either. */
    rc = client_try(island.one, "jobs", &err);
    if (rc != 0) {
        ASSERT_EQ(rc, HF_EUNAVAILABLE);
        ASSERT_HAS(err.text, "restarted");
    }
    hold = client_acquire(island.one, "jobs");
    server_kill(island.servers[2]);
    server_restart(island.servers[2]);
    /* A majority is free, but one of it does not know what it promised. */
    EVENTUALLY((rc = client_try(island.two, "jobs", &err)) == HF_EUNAVAILABLE &&
               strstr(err.text, "restarted"));
    next = client_acquire(island.two, "jobs");
    ASSERT_EQ(hf_check(hold), HF_LOST);
    ASSERT_EQ(hf_release(hold, NULL), HF_ELOST);
    client_release(next);
}

TEST(memory, a_wait_for_servers_that_do_not_vote_yet_says_so)
{
    struct server *servers[NODES];
    hf_client *client;
    hf_hold *hold;
    hf_error err;

    for (int i = 0; i < NODES; i++)
        servers[i] = redis_start(); /* without memory, and just started */
    client = redlock_open(servers, PATIENT "&ttl=60s");
    ASSERT_RC(hf_acquire(client, "jobs", WITHIN(1000), &hold, &err),
              HF_EUNAVAILABLE, &err);
    ASSERT_HAS(err.text, "no majority");
    ASSERT_HAS(err.text, "restarted, out for");
}

TEST(memory, a_server_restarted_with_it_keeps_its_vote)
{
    struct island island;
    hf_hold *hold;
    hf_error err;
    int rc;

    redlock_start(island.servers);
    make_island(&island, PATIENT);
    hold = client_acquire(island.one, "jobs");
    server_kill(island.servers[2]);
    server_restart(island.servers[2]);
    EVENTUALLY((rc = client_try(island.two, "jobs", &err)) != HF_EUNAVAILABLE);
    ASSERT_EQ(rc, HF_EBUSY);
    EVENTUALLY(hf_verify(hold, &err) == 0);
    client_release(hold);
}

/* ---- clocks --------------------------------------------------------------- */

TEST(clock, that_jumps_ahead_does_not_make_a_second_holder)
{
    struct island island;
    hf_hold *hold;
    hf_error err;

    for (int i = 0; i < NODES; i++)
        island.servers[i] =
            i == 2 ? clock_start_server("yes") : redis_start_durable();
    make_island(&island, PATIENT "&ttl=20s");
    redlock_pairs(island.two, "jobs", 1); /* its clock is known */
    hold = client_acquire(island.one, "jobs");
    clock_set_ahead(island.servers[2], 60);
    EVENTUALLY(redis_do(island.servers[2], "EXISTS jobs")[1] == '0');
    ASSERT_EQ(client_try(island.two, "jobs", &err), HF_EUNAVAILABLE);
    ASSERT_HAS(err.text, "clock jumped");
    (void)hf_release(hold, NULL);
}

/* ---- votes ---------------------------------------------------------------- */

TEST(votes, of_a_failed_attempt_are_given_back_before_the_next)
{
    struct server *servers[NODES];
    hf_request *request;
    hf_hold *hold;
    hf_error err;
    hf_client *client = redlock_begin(servers, QUICK);

    for (int i = 0; i < 3; i++)
        (void)redis_do(servers[i], "SET jobs another");
    ASSERT_EQ(client_try(client, "jobs", &err), HF_EBUSY);
    ASSERT_HAS(err.text, " no");
    EVENTUALLY(redlock_votes(servers, "jobs") == 3);
    ASSERT_HAS(redis_do(servers[0], "GET jobs"), "another");

    /* Our own leftovers are not in our way: a waiter gets it when it is
     * free. */
    request = client_start(client, "jobs");
    for (int i = 0; i < 3; i++)
        (void)redis_do(servers[i], "DEL jobs");
    ASSERT_OK(hf_request_wait(request, 10000, &hold, &err), &err);
    hf_request_free(request);
    client_release(hold);
    EVENTUALLY(redlock_votes(servers, "jobs") == 0);
}

/* The first server is reached by @proxy. */
static hf_client *open_behind(struct server *const servers[NODES],
                              const struct proxy *proxy, const char *query)
{
    int ports[NODES];

    for (int i = 0; i < NODES; i++)
        ports[i] = i == 0 ? proxy_port(proxy) : server_port(servers[i]);
    return redlock_open_ports(ports, query);
}

/* A server votes, its answer is lost, and when it is asked again it has no
 * memory: what it has of us is taken back. */
TEST(votes, of_a_server_that_then_refuses_are_taken_back)
{
    struct server *servers[NODES];
    struct proxy *proxy;
    hf_client *client;
    hf_hold *hold;
    hf_error err;

    redlock_start(servers);
    proxy = proxy_start(server_port(servers[0]));
    client = open_behind(servers, proxy, PATIENT "&ttl=1h");
    redlock_pairs(client, "before", 1);
    EVENTUALLY(redlock_votes(servers, "before") == 0);
    proxy_hold(proxy, PROXY_TO_CLIENT, true);
    hold = client_acquire(client, "jobs");
    EVENTUALLY(redlock_votes(servers, "jobs") == NODES);
    (void)redis_do(servers[0], "CONFIG SET maxmemory 1");
    proxy_reset(proxy);
    proxy_pass(proxy);
    EVENTUALLY(hf_verify(hold, &err) == 0 &&
               redis_do(servers[0], "EXISTS jobs")[1] == '0');
    client_release(hold);
    EVENTUALLY(redlock_votes(servers, "jobs") == 0);
}

/* The third vote is that of a server that has not confirmed the release, and
 * never saw the script of a release before. */
TEST(votes, are_not_kept_by_a_release_that_is_under_way)
{
    struct server *servers[NODES];
    struct proxy *proxy;
    hf_request *request;
    hf_client *client;

    redlock_start(servers);
    proxy = proxy_start(server_port(servers[0]));
    client = open_behind(servers, proxy, PATIENT);
    proxy_hold(proxy, PROXY_TO_CLIENT, true);
    redlock_pairs(client, "jobs", 1);
    server_kill(servers[1]);
    server_kill(servers[4]);
    request = client_start_with(client, "jobs", WITHIN(0));
    EVENTUALLY(strstr(redis_do(servers[0], "INFO commandstats"),
                      "cmdstat_set:calls=2,"));
    proxy_pass(proxy);
    client_release(client_finish(request));
}

TEST(votes, that_come_late_leave_nothing)
{
    struct server *servers[NODES];
    struct proxy *slow[NODES];
    hf_client *client;
    int ports[NODES];

    redlock_start(servers);
    for (int i = 0; i < NODES; i++) {
        slow[i] = i < 2 ? proxy_start(server_port(servers[i])) : NULL;
        ports[i] = i < 2 ? proxy_port(slow[i]) : server_port(servers[i]);
    }
    client = redlock_open_ports(ports, QUICK);
    redlock_pairs(client, "jobs", 1);
    proxy_delay(slow[0], 200);
    proxy_hold(slow[1], PROXY_TO_CLIENT, true);
    redlock_pairs(client, "jobs", 10);
    proxy_reset(slow[1]); /* what it answered is lost */
    proxy_pass(slow[1]);
    EVENTUALLY(redlock_votes(servers, "jobs") == 0);
}

struct rival {
    hf_client *client;
    volatile long *counter;
};

static void *count(void *arg)
{
    struct rival *rival = arg;

    for (int i = 0; i < 500; i++) {
        hf_hold *hold = client_acquire(rival->client, "jobs");
        long before = *rival->counter;

        *rival->counter = before + 1;
        client_release(hold);
    }
    return NULL;
}

TEST(votes, split_between_two_clients_do_not_stop_them)
{
    struct server *servers[NODES];
    volatile long counter = 0;
    struct rival rivals[2];
    pthread_t threads[2];

    redlock_start(servers);
    for (int i = 0; i < 2; i++) {
        rivals[i].client = redlock_open(servers, PATIENT "&retry.jitter=1");
        rivals[i].counter = &counter;
    }
    for (int i = 0; i < 2; i++)
        ASSERT_EQ(pthread_create(&threads[i], NULL, count, &rivals[i]), 0);
    for (int i = 0; i < 2; i++)
        ASSERT_EQ(pthread_join(threads[i], NULL), 0);
    ASSERT_EQ(counter, 1000);
    EVENTUALLY(redlock_votes(servers, "jobs") == 0);
}

/* ---- the list of servers -------------------------------------------------- */

TEST(list, with_a_server_twice_is_refused)
{
    struct server *server = redis_start_durable();
    int port = server_port(server);
    hf_client *client;
    hf_error err;
    char url[256];

    ASSERT_EQ(hf_open("redlock://a:1,b:1,A:1", NULL, &client, &err),
              HF_ECONFIG);
    ASSERT_HAS(err.text, "twice");
    (void)snprintf(url, sizeof(url),
                   "redlock://127.0.0.1:%d,127.1:%d,127.0.1:%d", port, port,
                   port);
    ASSERT_EQ(hf_open(url, NULL, &client, &err), HF_ECONFIG);
    ASSERT_HAS(err.text, "the same server as");
}

TEST(list, of_one_or_two_servers_is_refused)
{
    hf_client *client;
    hf_error err;

    ASSERT_EQ(hf_open("redlock://a", NULL, &client, &err), HF_ECONFIG);
    ASSERT_HAS(err.text, "redis://");
    ASSERT_EQ(hf_open("redlock://a,b", NULL, &client, &err), HF_ECONFIG);
    ASSERT_EQ(hf_open("redlock://a,b,c?dialect=native", NULL, &client, &err),
              HF_ECONFIG);
}

TEST(list, with_replicas_has_no_majority)
{
    struct server *servers[3];
    hf_client *client;
    hf_error err;
    char url[256];

    for (int i = 0; i < 3; i++)
        servers[i] = redis_start_durable();
    for (int i = 1; i < 3; i++)
        (void)redis_do(servers[i], "REPLICAOF 127.0.0.1 %d",
                       server_port(servers[0]));
    (void)snprintf(url, sizeof(url),
                   "redlock://127.0.0.1:%d,127.0.0.1:%d,127.0.0.1:%d",
                   server_port(servers[0]), server_port(servers[1]),
                   server_port(servers[2]));
    ASSERT_EQ(hf_open(url, NULL, &client, &err), HF_ECONFIG);
    ASSERT_HAS(err.text, "replica");
}

TEST(list, that_wants_a_password_is_told_at_once)
{
    struct server *servers[NODES];
    hf_client *client;
    hf_error err;
    int ports[NODES];

    redlock_start(servers);
    for (int i = 0; i < NODES; i++) {
        ports[i] = server_port(servers[i]);
        (void)redis_do(servers[i], "CONFIG SET requirepass secret");
    }
    ASSERT_EQ(
        hf_open(redlock_url(ports, "password=wrong"), NULL, &client, &err),
        HF_EAUTH);
    redlock_pairs(redlock_open_ports(ports, "password=secret"), "jobs", 1);
}

struct seen {
    bool independence;
    bool votes;
};

static int see(const hf_finding *finding, void *ctx)
{
    struct seen *seen = ctx;

    if (strcmp(finding->check, "independence") == 0)
        seen->independence = finding->status == HF_FINDING_WARN;
    if (strcmp(finding->check, "vote") == 0 &&
        finding->status == HF_FINDING_FAIL)
        seen->votes = true;
    return 0;
}

TEST(doctor, sees_one_machine_and_a_dead_server)
{
    struct server *servers[NODES];
    struct seen seen = {0};
    hf_error err;
    hf_client *client = redlock_begin(servers, PATIENT);

    server_kill(servers[3]);
    EVENTUALLY(hf_doctor(client, see, &seen, &err) >= 0 && seen.votes);
    ASSERT_TRUE(seen.independence);
}

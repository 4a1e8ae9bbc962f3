/* SPDX-License-Identifier: MIT */
/*
 * postgres_table_test.c - mode=table: a quiet name is one row, taken by one
 * statement and freed by another; a crowded one is handed on without a lock.
 * What happens when it does not stay so.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "postgres.h"

#define TABLE "retry.base=1ms&retry.max_interval=20ms&mode=table"

enum { CLIENTS = 4, ROUNDS = 60 };

static hf_hold *acquire(hf_client *client, int mode)
{
    return client_acquire_with(client, "jobs", OPTS(HF_FOREVER, .mode = mode));
}

/* Rows of the name, and how many of them stand where a lock is taken. */
static void assert_rows(struct server *server, const char *rows)
{
    ASSERT_STREQ(postgres_do(server,
                             "SELECT count(*), count(*) FILTER (WHERE place = "
                             "0), count(*) FILTER (WHERE alone) "
                             "FROM holdfast_place WHERE name = 'jobs'"),
                 rows);
}

TEST(quiet, a_name_is_one_row_until_somebody_else_wants_it)
{
    struct rivals at = postgres_rivals(TABLE);
    hf_hold *hold = acquire(at.client, HF_EXCLUSIVE);
    hf_request *request;
    hf_error err;

    assert_rows(at.server, "1|1|1\n");
    request = client_start(at.rival, "jobs");
    EVENTUALLY(atoi(postgres_do(at.server,
                                "SELECT count(*) FROM holdfast_place")) == 2);
    assert_rows(at.server, "2|1|0\n");
    client_release(hold);
    ASSERT_OK(hf_request_wait(request, 30000, &hold, &err), &err);
    hf_request_free(request);
    assert_rows(at.server, "1|1|0\n");
    client_release(hold);
    assert_rows(at.server, "0|0|0\n");
}

/* Who made the first row leaves; the place that others look at is the next
 * holder's then. */
TEST(quiet, a_reader_who_joined_keeps_writers_out_when_the_first_has_left)
{
    struct rivals at = postgres_rivals(TABLE);
    hf_client *writer = postgres_open(server_port(at.server), TABLE);
    hf_hold *hold = acquire(at.client, HF_EXCLUSIVE);
    hf_hold *joined;
    hf_error err;

    ASSERT_OK(hf_downgrade(hold, &err), &err);
    joined = acquire(at.rival, HF_SHARED);
    client_release(hold);
    assert_rows(at.server, "1|1|0\n");
    ASSERT_RC(client_try(writer, "jobs", &err), HF_EBUSY, &err);
    client_release(joined);
    ASSERT_RC(client_try(writer, "jobs", &err), 0, &err);
    assert_rows(at.server, "0|0|0\n");
}

struct crowd {
    hf_client *client;
    unsigned seed;
};

static atomic_int writers;
static atomic_int readers;
static atomic_uint_fast64_t highest;

/* Tokens grow from writer to writer. */
static void check_alone(hf_hold *hold, int mode)
{
    uint64_t token = hf_token(hold);

    if (mode == HF_SHARED) {
        atomic_fetch_add(&readers, 1);
        ASSERT_EQ(atomic_load(&writers), 0);
        atomic_fetch_sub(&readers, 1);
        return;
    }
    ASSERT_EQ(atomic_fetch_add(&writers, 1), 0);
    ASSERT_EQ(atomic_load(&readers), 0);
    ASSERT_GT(token, atomic_exchange(&highest, token));
    atomic_fetch_sub(&writers, 1);
}

/* Stands in line for an instant; the server may take longer to answer. */
static hf_hold *try_for_an_instant(hf_client *client)
{
    hf_hold *hold = NULL;
    hf_error err;
    int rc = hf_acquire(client, "jobs", WITHIN(2), &hold, &err);

    if (rc != HF_EUNAVAILABLE)
        ASSERT_RC(rc, rc == 0 ? 0 : HF_ETIMEOUT, &err);
    return hold;
}

static void *give_up(void *arg)
{
    struct crowd *crowd = arg;

    for (int i = 0; i < ROUNDS; i++) {
        hf_hold *hold = rand_r(&crowd->seed) % 2 == 0
                            ? try_for_an_instant(crowd->client)
                            : acquire(crowd->client, HF_EXCLUSIVE);

        if (!hold)
            continue;
        check_alone(hold, HF_EXCLUSIVE);
        client_release(hold);
    }
    return NULL;
}

static void *contend(void *arg)
{
    struct crowd *crowd = arg;

    for (int i = 0; i < ROUNDS; i++) {
        int mode = rand_r(&crowd->seed) % 4 == 0 ? HF_SHARED : HF_EXCLUSIVE;
        hf_hold *hold = acquire(crowd->client, mode);

        check_alone(hold, mode);
        client_release(hold);
        if (rand_r(&crowd->seed) % 4 == 0) /* quiet for a moment */
            (void)sched_yield();
    }
    return NULL;
}

static void gather(void *(*contender)(void *))
{
    struct server *server = postgres_start();
    struct crowd crowd[CLIENTS];
    pthread_t threads[CLIENTS];

    atomic_store(&highest, 0);
    for (unsigned i = 0; i < CLIENTS; i++) {
        crowd[i].client = postgres_open(server_port(server), TABLE);
        crowd[i].seed = i;
        ASSERT_EQ(pthread_create(&threads[i], NULL, contender, &crowd[i]), 0);
    }
    for (unsigned i = 0; i < CLIENTS; i++)
        ASSERT_EQ(pthread_join(threads[i], NULL), 0);
    ASSERT_EQ(postgres_leftovers(server), 0);
}

TEST(quiet, and_contended_take_turns_and_nobody_gets_in_between)
{
    gather(contend);
}

/* Whom it was to be handed on to has left: it is the next one's. */
TEST(crowded, a_name_is_handed_on_although_many_give_up)
{
    gather(give_up);
}

TEST(crowded, a_line_is_served_in_its_order_without_the_long_way)
{
    struct server *server = postgres_start();
    hf_client *clients[3];
    hf_request *requests[3];
    hf_hold *hold;
    hf_error err;

    for (int i = 0; i < 3; i++)
        clients[i] = postgres_open(server_port(server), TABLE);
    hold = acquire(clients[0], HF_EXCLUSIVE);
    for (int round = 0; round < 3; round++) {
        for (int i = 1; i < 3; i++) {
            hf_client *next = clients[(round + i) % 3];

            requests[i] = client_start(next, "jobs");
            EVENTUALLY(atoi(postgres_do(
                           server, "SELECT count(*) FROM holdfast_place")) ==
                       i + 1);
        }
        for (int i = 1; i < 3; i++) {
            client_release(hold);
            ASSERT_OK(hf_request_wait(requests[i], 30000, &hold, &err), &err);
            hf_request_free(requests[i]);
        }
    }
    client_release(hold);
    assert_rows(server, "0|0|0\n");
}

static hf_request *start_reading(hf_client *client)
{
    return client_start_with(client, "jobs",
                             OPTS(HF_CONFIGURED, .mode = HF_SHARED));
}

/* The writer has made room and granted the first reader, and then died. */
TEST(crowded, readers_whom_nobody_told_find_that_they_may)
{
    struct server *server = postgres_start();
    hf_client *writer = postgres_open(server_port(server), TABLE);
    hf_request *requests[2];
    hf_hold *gone = acquire(writer, HF_EXCLUSIVE);
    hf_hold *holds[2];

    for (int i = 0; i < 2; i++) {
        requests[i] =
            start_reading(postgres_open(server_port(server), TABLE "&ttl=1s"));
        EVENTUALLY(
            atoi(postgres_do(server, "SELECT count(*) FROM holdfast_place")) ==
            i + 2);
    }
    (void)postgres_do(
        server,
        "BEGIN; DELETE FROM holdfast_place WHERE place = 0; "
        "UPDATE holdfast_place SET place = 0, token = "
        "nextval('holdfast_token') WHERE place = (SELECT min(place) FROM "
        "holdfast_place); COMMIT");
    for (int i = 0; i < 2; i++)
        holds[i] = client_finish(requests[i]);
    for (int i = 0; i < 2; i++)
        client_release(holds[i]);
    (void)hf_release(gone, NULL);
}

/* Names are elements of an array there. */
TEST(renewals, go_by_name_whatever_is_in_it)
{
    static const char *const names[] = {"a\"b", "c\\", "{d,e}", "NULL",
                                        "f,\"g"};
    enum { N = sizeof(names) / sizeof(names[0]) };
    struct server *server = postgres_start();
    hf_client *client = postgres_open(server_port(server), TABLE "&ttl=6s");
    hf_hold *holds[N];
    hf_error err;

    for (int i = 0; i < N; i++)
        ASSERT_OK(hf_acquire(client, names[i], NULL, &holds[i], &err), &err);
    EVENTUALLY(
        atoi(postgres_do(server, "SELECT count(*) FROM holdfast_place WHERE "
                                 "until > since + interval '6500 ms'")) == N);
    for (int i = 0; i < N; i++)
        client_release(holds[i]);
    ASSERT_EQ(postgres_leftovers(server), 0);
}

/* ---- leases -------------------------------------------------------------- */

/* No beat comes in the course of a test. */
enum { LEASE_MS = 600000 };
#define LONG_LEASE TABLE "&ttl=600s&drift=0&io_timeout=60s"

/* The only row has been held for a second. */
static void wait_a_second(struct server *server)
{
    EVENTUALLY(
        atoi(postgres_do(server, "SELECT count(*) FROM holdfast_place WHERE "
                                 "token IS NOT NULL AND since < "
                                 "clock_timestamp() - interval '1 s'")) == 1);
}

/* @asked_ms: when the last request that prolongs it had been answered. */
static void assert_claim(const hf_hold *hold, int64_t asked_ms)
{
    int64_t since_ms = clock_ms() - asked_ms;

    ASSERT_LE(hf_remaining_ms(hold) + since_ms, LEASE_MS);
}

/* The row lasts from the grant at the server, and nobody knows when that was. */
TEST(lease, of_a_pushed_grant_counts_from_the_last_answered_request)
{
    struct server *server = postgres_start();
    struct proxy *proxy = proxy_start(server_port(server));
    hf_client *client = postgres_open(server_port(server), LONG_LEASE);
    hf_client *rival = postgres_open(proxy_port(proxy), LONG_LEASE);
    hf_hold *hold = acquire(client, HF_EXCLUSIVE);
    int64_t asked_ms;
    hf_error err;
    hf_request *request = client_start(rival, "jobs");

    EVENTUALLY(
        atoi(postgres_do(server, "SELECT count(*) FROM holdfast_place")) == 2);
    asked_ms = clock_ms();
    proxy_hold(proxy, PROXY_TO_CLIENT, true);
    client_release(hold);
    wait_a_second(server);
    proxy_pass(proxy);
    ASSERT_OK(hf_request_wait(request, 30000, &hold, &err), &err);
    assert_claim(hold, asked_ms);
    hf_request_free(request);
    client_release(hold);
}

TEST(lease, is_not_prolonged_by_a_downgrade)
{
    struct server *server = postgres_start();
    hf_client *client = postgres_open(server_port(server), LONG_LEASE);
    hf_hold *hold = acquire(client, HF_EXCLUSIVE);
    int64_t asked_ms = clock_ms();
    hf_error err;

    wait_a_second(server);
    ASSERT_OK(hf_downgrade(hold, &err), &err);
    assert_claim(hold, asked_ms);
    client_release(hold);
}

TEST(table, of_an_older_version_is_told_and_left_alone)
{
    struct server *server = postgres_start();
    hf_client *client = NULL;
    hf_error err;

    (void)postgres_do(server, "CREATE TABLE holdfast_place (name text, "
                              "client text, ticket bigint)");
    ASSERT_RC(
        hf_open(postgres_url(server_port(server), TABLE), NULL, &client, &err),
        HF_ECONFIG, &err);
    ASSERT_HAS(err.text, "holdfast_place is of an older version");
    client = postgres_open(server_port(server), "mode=advisory");
    ASSERT_RC(client_try(client, "jobs", &err), 0, &err);
    (void)postgres_do(server, "DROP TABLE holdfast_place");
    client = postgres_open(server_port(server), TABLE);
    ASSERT_RC(client_try(client, "jobs", &err), 0, &err);
}

/* SPDX-License-Identifier: MIT */
/*
 * session_test.c - locks that live in a session or a transaction, on either
 * database: the pool that these come from, and waits that are ended there.
 */
#include "live/sql/database.h"

#include <stdlib.h>

#include "base/base.h"

#define QUICK "retry.base=1ms&retry.max_interval=20ms"
#define TRANSACTION QUICK "&mode=for_update"

static hf_client *open_with(const char *query)
{
    return client_open(database_url(query));
}

/* ---- the pool ------------------------------------------------------------ */

TEST(pool, that_is_exhausted_fails_at_once_if_it_should)
{
    hf_client *client;
    hf_hold *hold;
    hf_error err;

    database_fresh();
    client = open_with(TRANSACTION "&pool.max=1&pool.exhausted=fail");
    hold = client_acquire(client, "one");
    ASSERT_RC(client_try(client, "two", &err), HF_EUNAVAILABLE, &err);
    ASSERT_HAS(err.text, "all 1 connections are in use");
    client_release(hold);
    ASSERT_RC(client_try(client, "two", &err), 0, &err);
}

TEST(pool, that_is_exhausted_grows_if_it_may)
{
    hf_client *client;
    hf_hold *holds[3];

    database_fresh();
    client = open_with(TRANSACTION "&pool.max=1&pool.exhausted=grow");
    holds[0] = client_acquire(client, "one");
    holds[1] = client_acquire(client, "two");
    holds[2] = client_acquire(client, "three");
    for (int i = 0; i < 3; i++)
        client_release(holds[i]);
}

TEST(pool, that_is_exhausted_is_waited_for_and_no_longer_than_pool_wait)
{
    hf_client *patient;
    hf_client *hasty;
    hf_hold *holds[2];
    hf_request *request;
    hf_error err;

    database_fresh();
    patient = open_with(TRANSACTION "&pool.max=1&pool.wait=60s");
    hasty = open_with(TRANSACTION "&pool.max=1&pool.wait=50ms");
    holds[0] = client_acquire(patient, "one");
    request = client_start(patient, "two");
    holds[1] = client_acquire(hasty, "three");
    ASSERT_RC(client_try(hasty, "four", &err), HF_EUNAVAILABLE, &err);
    ASSERT_HAS(err.text, "pool.wait");
    ASSERT_EQ(hf_request_pending(request), 1);
    client_release(holds[0]);
    client_release(client_finish(request));
    client_release(holds[1]);
    ASSERT_RC(client_try(hasty, "four", &err), 0, &err);
}

/* One session is the client's own, for everything else. */
TEST(pool, keeps_max_idle_and_no_more)
{
    static const char *const names[] = {"one", "two", "three"};
    hf_client *client;
    hf_hold *holds[3];

    database_fresh();
    client = open_with(TRANSACTION "&pool.max_idle=1");
    for (int i = 0; i < 3; i++)
        holds[i] = client_acquire(client, names[i]);
    EVENTUALLY(atoi(database_do("%s", database_sessions)) == 4);
    for (int i = 0; i < 3; i++)
        client_release(holds[i]);
    EVENTUALLY(atoi(database_do("%s", database_sessions)) == 2);
}

/* The server has ended it while nobody looked. */
TEST(pool, tests_an_idle_one_before_it_is_used_if_it_should)
{
    hf_client *client;
    hf_error err;

    database_fresh();
    client = open_with(TRANSACTION "&pool.check=on");
    client_release(client_acquire(client, "one"));
    ASSERT_RC(client_try(client, "one", &err), 0, &err);
    database_end_newest();
    ASSERT_RC(client_try(client, "one", &err), 0, &err);
}

/* ---- waits --------------------------------------------------------------- */

static void end_a_wait(const char *query)
{
    hf_client *client;
    hf_client *rival;
    hf_hold *hold;
    hf_request *request;

    database_fresh();
    client = open_with(query);
    rival = open_with(query);
    hold = client_acquire(client, "jobs");
    request = client_start(rival, "jobs");
    for (int i = 0; i < 2; i++)
        EVENTUALLY(database_end_wait());
    ASSERT_EQ(hf_request_pending(request), 1);
    ASSERT_EQ(hf_verify(hold, NULL), 0);
    client_release(hold);
    client_release(client_finish(request));
}

TEST(wait, whose_session_was_ended_goes_on)
{
    end_a_wait(database_session);
}

TEST(wait, whose_transaction_was_ended_goes_on)
{
    end_a_wait(TRANSACTION);
}

/* ---- a server that only reads --------------------------------------------- */

/* What has to be written cannot be, and nothing else is wrong. */
TEST(server, that_is_read_only_is_told_in_every_mode_that_writes)
{
    static const char *const queries[] = {QUICK "&mode=table", TRANSACTION,
                                          QUICK "&dialect=shedlock",
                                          QUICK "&dialect=spring"};
    hf_client *clients[HF_COUNT_OF(queries)];
    hf_error err;

    database_fresh();
    for (size_t i = 0; i < HF_COUNT_OF(queries); i++) {
        clients[i] = open_with(queries[i]);
        ASSERT_RC(client_try(clients[i], "jobs", &err), 0, &err);
    }
    database_read_only_for_now();
    for (size_t i = 0; i < HF_COUNT_OF(queries); i++) {
        ASSERT_RC(client_try(clients[i], "new", &err), HF_EUNAVAILABLE, &err);
        ASSERT_HAS(err.text, "read-only");
    }
    database_read_only(false);
    for (size_t i = 0; i < HF_COUNT_OF(queries); i++)
        ASSERT_RC(client_try(clients[i], "new", &err), 0, &err);
}

/* SPDX-License-Identifier: MIT */
/*
 * postgres_fault_test.c - what servers, administrators and networks do to
 * locks, in every mode.
 *
 * Each test looks at the end whether anything was left behind on the server.
 */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#include "event.h"
#include "postgres.h"

#define QUICK "retry.base=1ms&retry.max_interval=20ms"
#define TABLE QUICK "&mode=table"
#define TRANSACTION QUICK "&mode=for_update"

/* ---- the server ---------------------------------------------------------- */

static void lose_by_restart(const char *query)
{
    struct event events = EVENT_INIT;
    struct server *server = postgres_start();
    hf_client *client = postgres_open(server_port(server), query);
    hf_hold *hold = client_acquire_told(client, "jobs", &events);
    uint64_t token = hf_token(hold);

    postgres_crash(server);
    event_await(&events, 1, EVENT_PATIENCE_MS);
    ASSERT_EQ(events.values[0], HF_LOST);
    ASSERT_EQ(hf_release(hold, NULL), HF_ELOST);
    hold = client_acquire(client, "jobs");
    if (hf_capabilities(client) & HF_CAP_FENCED)
        ASSERT_GT(hf_token(hold), token);
    client_release(hold);
    EVENTUALLY(postgres_leftovers(server) == 0);
}

TEST_CALL(server, its_restart_loses_a_session_lock_and_tells,
          lose_by_restart(QUICK))
TEST_CALL(server, its_restart_loses_a_transaction_and_tells,
          lose_by_restart(TRANSACTION))

TEST(server, its_restart_changes_nothing_for_rows)
{
    struct rivals at = postgres_rivals(TABLE);
    hf_hold *hold = client_acquire(at.client, "jobs");
    hf_error err;

    postgres_crash(at.server);
    EVENTUALLY(hf_verify(hold, NULL) == 0);
    EVENTUALLY(client_try(at.rival, "jobs", &err) == HF_EBUSY);
    client_release(hold);
    EVENTUALLY(postgres_leftovers(at.server) == 0);
}

static void await_in_line(struct server *server)
{
    EVENTUALLY(
        atoi(postgres_do(server, "SELECT (SELECT count(*) FROM pg_locks WHERE "
                                 "NOT granted) + (SELECT count(*) FROM "
                                 "holdfast_place WHERE token IS NULL)")) == 1);
}

static void survive_restart(const char *query)
{
    struct rivals at = postgres_rivals(query);
    hf_hold *hold = client_acquire(at.client, "jobs");
    hf_request *request = client_start(at.rival, "jobs");
    hf_hold *next;

    await_in_line(at.server);
    postgres_crash(at.server);
    (void)hf_release(hold, NULL);
    next = client_finish(request);
    client_release(next);
    EVENTUALLY(postgres_leftovers(at.server) == 0);
}

TEST_CALL(server, a_waiter_survives_its_restart, survive_restart(QUICK))
TEST_CALL(server, a_waiting_row_survives_its_restart, survive_restart(TABLE))
TEST_CALL(server, a_waiting_transaction_survives_its_restart,
          survive_restart(TRANSACTION))

/* The ticket of the wait that ends is free for the next one: the engine must
 * know nothing of it any more. */
static void give_up_while_down(const char *query)
{
    struct rivals at = postgres_rivals(query);
    hf_hold *hold = client_acquire(at.client, "jobs");
    hf_request *other;
    hf_hold *next;
    hf_error err;
    int rc;
    hf_request *request = client_start_with(at.rival, "jobs", WITHIN(1000));

    await_in_line(at.server);
    postgres_quit(at.server);
    rc = hf_request_wait(request, EVENT_PATIENCE_MS, &next, &err);
    ASSERT_TRUE(rc == HF_ETIMEOUT || rc == HF_EUNAVAILABLE ||
                rc == HF_EUNKNOWN);
    ASSERT_EQ(hf_request_pending(request), 0);
    hf_request_free(request);
    request = client_start(at.rival, "jobs");
    other = client_start(at.rival, "others");
    server_restart(at.server);
    ASSERT_EQ(hf_release(hold, NULL), HF_ELOST);
    client_release(client_finish(request));
    client_release(client_finish(other));
    EVENTUALLY(postgres_leftovers(at.server) == 0);
}

TEST_CALL(server, a_wait_that_ends_while_it_is_down_is_forgotten,
          give_up_while_down(QUICK))
TEST_CALL(server, a_waiting_transaction_that_ends_while_it_is_down_is_forgotten,
          give_up_while_down(TRANSACTION))

/* ---- its administrator --------------------------------------------------- */

static void be_ended(const char *query)
{
    struct event events = EVENT_INIT;
    struct rivals at = postgres_rivals(query);
    hf_hold *hold = client_acquire_told(at.client, "jobs", &events);
    hf_error err;

    (void)postgres_do(at.server,
                      "SELECT pg_terminate_backend(pid) FROM pg_locks "
                      "WHERE locktype IN ('advisory', "
                      "'transactionid') AND granted");
    event_await(&events, 1, EVENT_PATIENCE_MS);
    ASSERT_EQ(events.values[0], HF_LOST);
    EVENTUALLY(client_try(at.rival, "jobs", &err) == 0);
    ASSERT_EQ(hf_release(hold, NULL), HF_ELOST);
    client_release(client_acquire(at.client, "jobs"));
    EVENTUALLY(postgres_leftovers(at.server) == 0);
}

TEST_CALL(administrator, ends_a_session_and_the_holder_hears_it_at_once,
          be_ended(QUICK))
TEST_CALL(administrator, ends_a_transaction_and_the_holder_hears_it_at_once,
          be_ended(TRANSACTION))

TEST(administrator, cancels_a_wait_and_it_goes_on)
{
    struct rivals at = postgres_rivals(QUICK);
    hf_hold *hold = client_acquire(at.client, "jobs");
    hf_request *request = client_start(at.rival, "jobs");

    for (int i = 0; i < 3; i++)
        EVENTUALLY(
            strcmp(postgres_do(at.server, "SELECT pg_cancel_backend(pid) FROM "
                                          "pg_locks WHERE NOT granted"),
                   "t\n") == 0);
    ASSERT_EQ(hf_request_pending(request), 1);
    client_release(hold);
    client_release(client_finish(request));
    EVENTUALLY(postgres_leftovers(at.server) == 0);
}

static const char *backends(struct server *server)
{
    return postgres_do(server, "SELECT count(*) FROM pg_stat_activity WHERE "
                               "backend_type = 'client backend'");
}

/* First the waiter's main session, beside which its place stays. */
TEST(administrator, ends_a_waiter_session_by_session_and_it_goes_on)
{
    struct server *server = postgres_start();
    hf_client *client = postgres_open(server_port(server), TRANSACTION);
    hf_client *waiter;
    hf_hold *hold = client_acquire(client, "jobs");
    hf_request *request;
    char before[16];

    (void)postgres_do(server, "CREATE TABLE old AS SELECT pid FROM "
                              "pg_stat_activity");
    waiter = postgres_open(server_port(server), TRANSACTION);
    request = client_start(waiter, "jobs");
    await_in_line(server);
    (void)snprintf(before, sizeof(before), "%s", backends(server));
    (void)postgres_do(server,
                      "SELECT pg_terminate_backend(pid, 10000) FROM "
                      "pg_stat_activity WHERE backend_type = 'client backend' "
                      "AND pid <> pg_backend_pid() AND pid NOT IN (SELECT pid "
                      "FROM old UNION ALL SELECT pid FROM pg_locks WHERE NOT "
                      "granted)");
    EVENTUALLY(strcmp(backends(server), before) == 0);
    (void)postgres_do(server, "SELECT pg_terminate_backend(pid, 10000) FROM "
                              "pg_locks WHERE NOT granted");
    await_in_line(server);
    client_release(hold);
    client_release(client_finish(request));
    EVENTUALLY(postgres_leftovers(server) == 0);
}

TEST(administrator, gives_a_wrong_password)
{
    struct server *server = postgres_start();
    hf_client *client = NULL;
    char url[256];
    hf_error err;

    (void)postgres_do(server, "DROP ROLE IF EXISTS secret; CREATE ROLE secret "
                              "LOGIN PASSWORD 'right'");
    (void)snprintf(url, sizeof(url),
                   "postgresql://secret:wrong@127.0.0.1:%d/postgres",
                   server_port(server));
    ASSERT_RC(hf_open(url, NULL, &client, &err), HF_EAUTH, &err);
    ASSERT_NULL(strstr(err.text, "wrong"));
    (void)snprintf(url, sizeof(url),
                   "postgresql://postgres@127.0.0.1:%d/nosuch",
                   server_port(server));
    ASSERT_RC(hf_open(url, NULL, &client, &err), HF_ECONFIG, &err);
}

TEST(administrator, lets_nobody_create_tables)
{
    struct server *server = postgres_start();
    hf_client *client = NULL;
    char url[256];
    hf_error err;

    (void)postgres_do(server,
                      "DROP ROLE IF EXISTS poor; CREATE ROLE poor LOGIN");
    (void)snprintf(url, sizeof(url),
                   "postgresql://poor@127.0.0.1:%d/postgres?mode=table",
                   server_port(server));
    ASSERT_RC(hf_open(url, NULL, &client, &err), HF_EAUTH, &err);
    ASSERT_HAS(err.text, "tables");
    *strchr(url, '?') = '\0';
    ASSERT_OK(hf_open(url, NULL, &client, &err), &err);
    ASSERT_EQ(hf_capabilities(client) & HF_CAP_FENCED, 0);
    client_release(client_acquire(client, "jobs"));
    hf_close(client);
}

TEST(administrator, drops_a_table_and_nothing_is_held)
{
    struct server *server = postgres_start();
    hf_client *client = postgres_open(server_port(server), TABLE);
    hf_error err;

    client_release(client_acquire(client, "jobs"));
    (void)postgres_do(server, "ALTER TABLE holdfast_place RENAME TO away");
    ASSERT_RC(client_try(client, "jobs", &err), HF_ECONFIG, &err);
    (void)postgres_do(server, "ALTER TABLE away RENAME TO holdfast_place");
    ASSERT_RC(client_try(client, "jobs", &err), 0, &err);
    (void)postgres_do(server, "ALTER DATABASE postgres SET "
                              "default_transaction_read_only = on");
    client = postgres_open(server_port(server), TABLE "&connect=lazy");
    ASSERT_RC(client_try(client, "jobs", &err), HF_EUNAVAILABLE, &err);
    ASSERT_HAS(err.text, "read-only");
    ASSERT_EQ(postgres_leftovers(server), 0);
}

TEST(administrator, is_told_by_the_doctor_what_is_missing)
{
    struct server *server = postgres_start();
    hf_client *client = postgres_open(server_port(server), QUICK);
    char url[256];

    ASSERT_EQ(client_finding(client, "server"), HF_FINDING_OK);
    ASSERT_EQ(client_finding(client, "pooler"), HF_FINDING_OK);
    ASSERT_EQ(client_finding(client, "replication"), HF_FINDING_OK);
    ASSERT_EQ(client_finding(client, "clock"), HF_FINDING_OK);
    ASSERT_EQ(client_finding(client, "lease"), HF_FINDING_OK);
    ASSERT_EQ(client_finding(client, "connections"), HF_FINDING_OK);
    ASSERT_EQ(client_finding(client, "tables"), HF_FINDING_OK);
    client = postgres_open(server_port(server), QUICK "&pool.max=9999");
    ASSERT_EQ(client_finding(client, "connections"), HF_FINDING_WARN);
    /* A server for tests is in a hurry. */
    ASSERT_EQ(client_finding(client, "durability"), HF_FINDING_WARN);
    (void)postgres_do(server, "DROP SEQUENCE holdfast_token");
    (void)postgres_do(server,
                      "DROP ROLE IF EXISTS poor; CREATE ROLE poor LOGIN");
    (void)snprintf(url, sizeof(url), "postgresql://poor@127.0.0.1:%d/postgres",
                   server_port(server));
    ASSERT_EQ(client_finding(client_open(url), "tables"), HF_FINDING_WARN);
}

static long rollbacks(struct server *server)
{
    return atol(postgres_do(server, "SELECT xact_rollback FROM "
                                    "pg_stat_database WHERE datname = "
                                    "'postgres'"));
}

/* The core asks again in its own time; the engine does not insist. */
TEST(administrator, forbids_to_unlock_and_is_not_pestered)
{
    struct server *server = postgres_start();
    long before = rollbacks(server);
    char url[256];
    hf_client *client;
    hf_error err;
    hf_hold *hold;

    (void)postgres_open(server_port(server), QUICK); /* makes the tables */
    (void)postgres_do(server, "DROP ROLE IF EXISTS keyless; "
                              "CREATE ROLE keyless LOGIN SUPERUSER");
    (void)snprintf(url, sizeof(url),
                   "postgresql://keyless@127.0.0.1:%d/postgres?retry.base=50ms"
                   "&io_timeout=2s",
                   server_port(server));
    ASSERT_OK(hf_open(url, NULL, &client, &err), &err);
    hold = client_acquire(client, "jobs");
    (void)postgres_do(server, "ALTER ROLE keyless NOSUPERUSER; REVOKE EXECUTE "
                              "ON FUNCTION pg_advisory_unlock(bigint) FROM "
                              "PUBLIC");
    ASSERT_RC(hf_release(hold, &err), HF_EUNKNOWN, &err);
    (void)postgres_do(server, "GRANT EXECUTE ON FUNCTION "
                              "pg_advisory_unlock(bigint) TO PUBLIC");
    EVENTUALLY(postgres_leftovers(server) == 0);
    hf_close(client);
    ASSERT_LT(rollbacks(server) - before, 200);
}

/* ---- names --------------------------------------------------------------- */

/* The key that @name has, as the server's functions take it. */
static int64_t key_of(struct server *server, hf_client *client,
                      const char *name)
{
    hf_hold *hold = client_acquire(client, name);
    int64_t key = strtoll(
        postgres_do(server, "SELECT (classid::bigint << 32) | objid::bigint "
                            "FROM pg_locks WHERE locktype = 'advisory' "
                            "AND objsubid = 1"),
        NULL, 10);

    ASSERT_NE(key, 0);
    client_release(hold);
    return key;
}

static int waiting_for_locks(struct server *server)
{
    return atoi(
        postgres_do(server, "SELECT count(*) FROM pg_locks WHERE NOT granted"));
}

/* Who has the key without being us could as well be another name with it. */
TEST(names, two_of_one_key_are_an_error_and_not_one_lock)
{
    struct server *server = postgres_start();
    hf_client *client = postgres_open(server_port(server), QUICK);
    int64_t key = key_of(server, client, "jobs");
    hf_hold *hold;
    hf_error err;
    FILE *twin = postgres_begin(
        server, "SELECT pg_advisory_lock(%lld), pg_sleep(600)", (long long)key);

    EVENTUALLY(client_try(client, "jobs", &err) == HF_ECONFIG);
    ASSERT_HAS(err.text, "another name");
    ASSERT_RC(hf_acquire(client, "jobs", WITHIN(HF_FOREVER), &hold, &err),
              HF_ECONFIG, &err);
    postgres_end(server, twin);
    ASSERT_RC(client_try(client, "jobs", &err), 0, &err);
    EVENTUALLY(postgres_leftovers(server) == 0);
}

/* The other name stands in line before us, and gets the lock when we have found
 * everything in order. */
TEST(names, a_wait_that_comes_to_be_behind_another_name_is_an_error)
{
    struct rivals at = postgres_rivals(QUICK);
    int64_t key = key_of(at.server, at.client, "jobs");
    hf_hold *hold = client_acquire(at.client, "jobs");
    hf_error err;
    FILE *twin = postgres_begin(at.server,
                                "SELECT pg_advisory_lock(%lld), pg_sleep(600)",
                                (long long)key);
    hf_request *request = client_start(at.rival, "jobs");

    EVENTUALLY(waiting_for_locks(at.server) == 2);
    client_release(hold);
    ASSERT_RC(hf_request_wait(request, 30000, &hold, &err), HF_ECONFIG, &err);
    ASSERT_HAS(err.text, "another name");
    hf_request_free(request);
    postgres_end(at.server, twin);
    EVENTUALLY(postgres_leftovers(at.server) == 0);
}

/* A at.client that goes on with its life, and has used a name, keeps nothing. */
TEST(names, that_are_not_used_any_more_are_nowhere)
{
    struct rivals at = postgres_rivals(QUICK);

    for (int i = 0; i < 3; i++) {
        hf_hold *hold = client_acquire(at.client, "jobs");
        hf_request *request = client_start(at.rival, "jobs");

        client_release(client_acquire(at.client, "others"));
        client_release(hold);
        client_release(client_finish(request));
    }
    EVENTUALLY(postgres_leftovers(at.server) == 0);
    ASSERT_STREQ(
        postgres_do(at.server,
                    "SELECT sum((xpath('/row/c/text()', query_to_xml("
                    "format('SELECT count(*) AS c FROM %%I', relname), false, "
                    "true, '')))[1]::text::int) FROM pg_class "
                    "WHERE relname LIKE 'holdfast%%' AND relkind = 'r'"),
        "0\n");
    client_release(client_acquire(at.client, "jobs"));
}

static void try_hostile_names(struct server *server, const char *query)
{
    static const char *const names[] = {
        "'; DROP TABLE canary; --",
        "\"; DROP TABLE canary; --",
        "$1",
        "$$; DROP TABLE canary; $$",
        "\\'; DROP TABLE canary; --",
        "%s%n",
        "{1,2}', 'x",
        "E'\\x27; DROP TABLE canary'",
    };
    hf_client *client = postgres_open(server_port(server), query);
    hf_opts opts = HF_OPTS_INIT;
    hf_error err;

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        uint64_t version = 0;
        hf_hold *hold;

        opts.owner = names[i];
        opts.note = names[i];
        ASSERT_OK(hf_acquire(client, names[i], &opts, &hold, &err), &err);
        ASSERT_OK(hf_version_commit(client, names[i], 0, &version, &err), &err);
        client_release(hold);
        (void)postgres_do(server, "DELETE FROM holdfast_version");
    }
    ASSERT_STREQ(postgres_do(server, "SELECT bird FROM canary"), "sings\n");
}

TEST(names, that_are_hostile_are_names)
{
    struct server *server = postgres_start();

    (void)postgres_do(server, "CREATE TABLE canary AS SELECT 'sings' AS bird");
    try_hostile_names(server, QUICK);
    try_hostile_names(server, TABLE);
    try_hostile_names(server, TABLE "&prefix=%27;");
    try_hostile_names(server, TRANSACTION);
    EVENTUALLY(postgres_leftovers(server) == 0);
}

/* ---- the network --------------------------------------------------------- */

static void lose_an_answer(const char *query)
{
    struct rivals at = postgres_proxied(query, query);
    hf_hold *hold;
    hf_error err;
    int rc;

    client_release(client_acquire(at.client, "jobs"));
    proxy_hold(at.proxy, PROXY_TO_CLIENT, true);
    rc = hf_acquire(at.client, "jobs", WITHIN(300), &hold, &err);
    ASSERT_TRUE(rc == HF_EUNKNOWN || rc == HF_EUNAVAILABLE ||
                rc == HF_ETIMEOUT);
    proxy_reset(at.proxy);
    proxy_pass(at.proxy);
    EVENTUALLY(client_try(at.rival, "jobs", &err) == 0);
    client_release(client_acquire(at.client, "jobs"));
    EVENTUALLY(postgres_leftovers(at.server) == 0);
}

TEST_CALL(network, a_session_lock_whose_answer_was_lost_is_taken_back,
          lose_an_answer(QUICK "&io_timeout=200ms"))
TEST_CALL(network, a_row_whose_answer_was_lost_is_taken_back,
          lose_an_answer(TABLE "&io_timeout=200ms"))
TEST_CALL(network, a_transaction_whose_answer_was_lost_is_taken_back,
          lose_an_answer(TRANSACTION "&io_timeout=200ms"))

static void be_cut_off(const char *query)
{
    struct event events = EVENT_INIT;
    struct rivals at = postgres_proxied(query, query);
    hf_hold *hold = client_acquire_told(at.client, "jobs", &events);
    hf_hold *next;

    proxy_hold(at.proxy, PROXY_TO_SERVER, true);
    proxy_hold(at.proxy, PROXY_TO_CLIENT, true);
    next = client_acquire(at.rival, "jobs");
    ASSERT_EQ(hf_check(hold), HF_LOST); /* before anybody else has it */
    proxy_reset(at.proxy);
    proxy_pass(at.proxy);
    ASSERT_EQ(hf_release(hold, NULL), HF_ELOST);
    ASSERT_OK(hf_verify(next, NULL), NULL);
    client_release(next);
    EVENTUALLY(postgres_leftovers(at.server) == 0);
}

static pid_t stopped;

static void resume(void *arg)
{
    (void)arg;
    (void)kill(stopped, SIGCONT);
}

static void stop_oldest_backend(struct server *server)
{
    stopped = atoi(postgres_do(
        server, "SELECT pid FROM pg_stat_activity WHERE backend_type = "
                "'client backend' AND pid <> pg_backend_pid() "
                "ORDER BY backend_start LIMIT 1"));
    ASSERT_GT(stopped, 0);
    test_defer(resume, NULL);
    ASSERT_EQ(kill(stopped, SIGSTOP), 0);
}

/* A backend that does not end when it is told to may still have a request. */
static void outlive_its_connection(const char *query)
{
    struct server *server = postgres_start();
    struct proxy *proxy = proxy_start(server_port(server));
    hf_client *client = postgres_open(proxy_port(proxy), query);
    hf_hold *hold;
    hf_error err;

    client_release(client_acquire(client, "jobs"));
    stop_oldest_backend(server);
    proxy_reset(proxy);
    ASSERT_NE(hf_acquire(client, "jobs", WITHIN(3000), &hold, &err), 0);
    resume(NULL);
    client_release(client_acquire(client, "jobs"));
    EVENTUALLY(postgres_leftovers(server) == 0);
}

static void allow_ending(void *server)
{
    (void)postgres_do(server, "GRANT EXECUTE ON FUNCTION pg_terminate_backend "
                              "TO PUBLIC");
}

TEST(network, a_lost_backend_that_may_not_be_ended_goes_by_itself)
{
    struct server *server = postgres_start();
    struct proxy *proxy = proxy_start(server_port(server));
    hf_client *client;
    char url[256];

    (void)postgres_do(server,
                      "DROP ROLE IF EXISTS poor; CREATE ROLE poor LOGIN; "
                      "GRANT ALL ON SCHEMA public TO poor; REVOKE EXECUTE ON "
                      "FUNCTION pg_terminate_backend FROM PUBLIC");
    test_defer(allow_ending, server);
    ASSERT_STREQ(postgres_do(server, "SELECT has_function_privilege('poor', "
                                     "'pg_terminate_backend(int, bigint)', "
                                     "'EXECUTE')"),
                 "f\n");
    (void)snprintf(url, sizeof(url),
                   "postgresql://poor@127.0.0.1:%d/postgres?" TABLE,
                   proxy_port(proxy));
    client = client_open(url);
    client_release(client_acquire(client, "jobs"));
    proxy_reset(proxy);
    client_release(client_acquire(client, "jobs"));
    EVENTUALLY(postgres_leftovers(server) == 0);
}

TEST_CALL(network, a_row_is_not_asked_for_before_the_lost_backend_has_gone,
          outlive_its_connection(TABLE))
TEST_CALL(network, a_break_while_the_lost_backend_is_ended_forgets_nothing,
          outlive_its_connection(TABLE "&io_timeout=200ms"))

/* The server does not hear that a connection has ended. Of the next connection
 * it hears nothing at all from where it is to end the lost session. */
TEST(network, a_lost_session_is_ended_although_the_first_order_is_lost)
{
    struct event events = EVENT_INIT;
    struct rivals at =
        postgres_proxied(QUICK "&ttl=300s&io_timeout=300ms", QUICK);
    hf_hold *hold = client_acquire_told(at.client, "jobs", &events);
    uint64_t version;
    hf_error err;

    proxy_lose_ends(at.proxy, true);
    proxy_hold_at(at.proxy, PROXY_TO_SERVER, "hf_version_read");
    proxy_refuse(at.proxy, true);
    ASSERT_RC(hf_version_read(at.client, "v", &version, &err), HF_EUNAVAILABLE,
              &err);
    event_await(&events, 1, EVENT_PATIENCE_MS);
    ASSERT_EQ(events.values[0], HF_LOST);
    ASSERT_EQ(hf_release(hold, NULL), HF_ELOST);
    proxy_hold_at(at.proxy, PROXY_TO_SERVER, "hf_backend_end");
    proxy_refuse(at.proxy, false);
    EVENTUALLY(proxy_holds(at.proxy) == 2);
    EVENTUALLY(client_try(at.rival, "jobs", &err) == 0);
    EVENTUALLY(postgres_leftovers(at.server) == 0);
}

/* How many sessions wait until another has ended. */
static int ending(struct server *server)
{
    return atoi(postgres_do(server, "SELECT count(*) FROM pg_stat_activity "
                                    "WHERE state = 'active' AND query LIKE "
                                    "'%%pg_terminate_backend(pid, 2000)%%' AND "
                                    "pid <> pg_backend_pid()"));
}

TEST(network, nothing_is_changed_while_the_lost_backend_is_ended)
{
    struct rivals at = postgres_proxied(TABLE, TABLE);
    uint64_t version = 0;
    hf_request *request;
    hf_hold *hold;
    hf_error err;

    client_release(client_acquire(at.client, "jobs"));
    hold = client_acquire(at.rival, "jobs");
    stop_oldest_backend(at.server);
    proxy_reset(at.proxy);
    request = client_start(at.client, "others");
    EVENTUALLY(ending(at.server) == 1);
    ASSERT_RC(hf_version_commit(at.client, "v", 0, &version, &err),
              HF_EUNAVAILABLE, &err);
    ASSERT_RC(hf_break(at.client, "jobs", hf_token(hold), NULL, &err),
              HF_EUNAVAILABLE, &err);
    proxy_reset(at.proxy);
    resume(NULL);
    client_release(client_finish(request));
    ASSERT_OK(hf_version_read(at.client, "v", &version, &err), &err);
    ASSERT_EQ(version, 0);
    client_release(hold);
    EVENTUALLY(postgres_leftovers(at.server) == 0);
}

TEST_CALL(network, who_is_cut_off_loses_the_session_lock_in_time,
          be_cut_off(QUICK "&ttl=2s&io_timeout=5s"))
TEST_CALL(network, who_is_cut_off_loses_the_row_in_time,
          be_cut_off(TABLE "&ttl=2s&io_timeout=5s"))
TEST_CALL(network, who_is_cut_off_loses_the_transaction_in_time,
          be_cut_off(TRANSACTION "&ttl=2s&io_timeout=5s"))

/* ---- waits that are given up ----------------------------------------------- */

static void *release_it(void *hold)
{
    return (void *)(intptr_t)hf_release(hold, NULL);
}

/* The server would give the lock to the wait, for as long as it does not notice
 * that it was cancelled. */
TEST(waits, that_are_given_up_do_not_get_what_is_released_after_that)
{
    struct server *server = postgres_start();
    hf_client *client =
        postgres_open(server_port(server), QUICK "&io_timeout=30s");
    hf_client *rival = postgres_open(server_port(server), QUICK);
    hf_hold *hold = client_acquire(client, "jobs");
    hf_request *request = client_start(client, "jobs");
    pthread_t thread;
    void *rc = NULL;
    hf_error err;
    pid_t waits;

    EVENTUALLY((waits = atoi(postgres_do(
                    server, "SELECT pid FROM pg_locks WHERE NOT granted"))) !=
               0);
    ASSERT_EQ(kill(waits, SIGSTOP), 0);
    hf_request_free(request);
    ASSERT_EQ(pthread_create(&thread, NULL, release_it, hold), 0);
    for (int i = 0; i < 5; i++)
        ASSERT_EQ(atoi(postgres_do(server,
                                   "SELECT count(*) FROM pg_locks "
                                   "WHERE granted AND pid = %d AND "
                                   "objsubid = 1",
                                   waits)),
                  0);
    ASSERT_EQ(kill(waits, SIGCONT), 0);
    ASSERT_EQ(pthread_join(thread, &rc), 0);
    ASSERT_EQ((intptr_t)rc, 0);
    ASSERT_RC(client_try(rival, "jobs", &err), 0, &err);
    EVENTUALLY(postgres_leftovers(server) == 0);
}

/* ---- poolers ------------------------------------------------------------- */

TEST(pooler, is_refused)
{
    static const char pgbouncer[] =
        "cd {dir}; umask 022; echo '\"postgres\" \"\"' >users; printf "
        "'[databases]\\n* = host=127.0.0.1 "
        "port=%s\\n[pgbouncer]\\nlisten_addr=127.0.0.1\\nlisten_port=%s\\n"
        "auth_type=trust\\nauth_file=users\\npool_mode=transaction\\nunix_"
        "socket_dir=\\n"
        "ignore_startup_parameters=extra_float_digits\\n' \"$HF_PG_PORT\" "
        "{port} >p.ini; as=; [ \"$(id -u)\" != 0 ] || as='setpriv "
        "--reuid=postgres --regid=postgres --init-groups --pdeathsig "
        "SIGKILL'; exec $as pgbouncer p.ini";
    static const char *const words[] = {"sh", "-c", pgbouncer, NULL};
    struct server *server = postgres_start();
    struct server *pooler;
    hf_client *client;
    char port[16];
    hf_error err;

    (void)snprintf(port, sizeof(port), "%d", server_port(server));
    (void)setenv("HF_PG_PORT", port, 1);
    pooler = server_start(words);
    ASSERT_RC(
        hf_open(postgres_url(server_port(pooler), NULL), NULL, &client, &err),
        HF_EUNSUPPORTED, &err);
    ASSERT_HAS(err.text, "pooler");
}

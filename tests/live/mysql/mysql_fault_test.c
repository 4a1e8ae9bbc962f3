/* SPDX-License-Identifier: MIT */
/*
 * mysql_fault_test.c - what networks and administrators do to locks in a
 * database. Who kills the server has one of its own.
 */
#include <dirent.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/world.h"
#include "disk.h"
#include "event.h"
#include "mysql.h"

#define QUICK "retry.base=1ms&retry.max_interval=20ms"

/* On a busy machine a hold may be in jeopardy, and held again, before. */
static void await_lost(hf_hold *hold, struct event *events)
{
    int n = 1;

    event_await(events, n, 10000);
    while (events->values[n - 1] != HF_LOST)
        event_await(events, ++n, 10000);
    ASSERT_EQ(hf_check(hold), HF_LOST);
    ASSERT_EQ(hf_release(hold, NULL), HF_ELOST);
}

/* ---- the caller ---------------------------------------------------------- */

/* How often the thread that renews has gone to sleep. */
static long background_sleeps(void)
{
    DIR *tasks = opendir("/proc/self/task");
    long sleeps = -1;

    ASSERT_TRUE(tasks != NULL);
    for (struct dirent *task; (task = readdir(tasks)) != NULL;) {
        char path[64];
        char text[4096];
        const char *found;
        FILE *file;
        size_t n;

        (void)snprintf(path, sizeof(path), "/proc/self/task/%.16s/status",
                       task->d_name);
        file = fopen(path, "re");
        if (!file)
            continue;
        n = fread(text, 1, sizeof(text) - 1, file);
        text[n] = '\0';
        (void)fclose(file);
        found = strstr(text, "\nvoluntary_ctxt_switches:");
        if (found && strncmp(text, "Name:\tholdfast\n", 15) == 0)
            sleeps = strtol(strchr(found, '\t'), NULL, 10);
    }
    (void)closedir(tasks);
    return sleeps;
}

TEST(caller, who_calls_all_day_is_not_listened_to)
{
    int port = mysql_fresh();
    hf_client *client = mysql_open(port, QUICK "&mode=get_lock");
    hf_hold *kept = client_acquire(client, "kept"); /* its session is watched */
    int64_t before_ns;
    long sleeps;
    hf_error err;

    EVENTUALLY(background_sleeps() > 0);
    sleeps = background_sleeps();
    before_ns = hf__now();
    for (int i = 0; i < 2000; i++)
        ASSERT_EQ(client_try(client, "jobs", &err), 0);
    /* A few for each 50 ms; rung for each call it was more than one a pair. */
    ASSERT_LT(background_sleeps() - sleeps,
              200 + 4 * (hf__now() - before_ns) / (50 * HF_MS));
    client_release(kept);
}

/* ---- the server ---------------------------------------------------------- */

TEST(server, killed_and_restarted_keeps_the_locks_of_its_table)
{
    struct server *server = mysql_start(NULL);
    int port = server_port(server);
    hf_client *client = mysql_open(port, QUICK);
    hf_client *rival = mysql_open(port, QUICK);
    hf_hold *hold = client_acquire(client, "jobs");
    hf_hold *next;
    hf_error err;
    hf_request *request = client_start(rival, "jobs");

    EVENTUALLY(atoi(mysql_do(port, "SELECT COUNT(*) FROM holdfast_ticket")) ==
               1);
    server_kill(server);
    server_restart(server);
    EVENTUALLY(hf_verify(hold, NULL) == 0);
    ASSERT_EQ(hf_request_wait(request, 0, &next, &err), HF_ETIMEOUT);
    client_release(hold);
    client_release(client_finish(request));
    ASSERT_EQ(atoi(mysql_do(port, "SELECT COUNT(*) FROM holdfast_ticket")), 0);
}

/* How many wait inside the server. */
static int waiting(int port)
{
    return mysql_row_waits(port) +
           atoi(mysql_do(port, "SELECT COUNT(*) FROM "
                               "information_schema.processlist "
                               "WHERE state='User lock'"));
}

static void lose_with_the_server(const char *query)
{
    struct event events = EVENT_INIT;
    struct server *server = mysql_start(NULL);
    int port = server_port(server);
    hf_client *client = mysql_open(port, query);
    hf_client *rival = mysql_open(port, query);
    hf_hold *hold = client_acquire_told(client, "jobs", &events);
    hf_request *request = client_start(rival, "jobs");

    EVENTUALLY(waiting(port) == 1);
    server_kill(server);
    server_restart(server);
    await_lost(hold, &events);
    client_release(client_finish(request));
}

TEST_CALL(server, killed_and_restarted_loses_the_locks_of_sessions,
          lose_with_the_server(QUICK "&mode=get_lock"))
TEST_CALL(server, killed_and_restarted_loses_the_locks_of_transactions,
          lose_with_the_server(QUICK "&mode=for_update"))

TEST(server, that_stands_still_is_unavailable_and_recovers)
{
    struct server *server = mysql_start(NULL);

    client_outlasts_pause(
        mysql_open(server_port(server), QUICK "&io_timeout=200ms"), server);
}

/* ---- its administrator --------------------------------------------------- */

TEST(administrator, who_kills_sessions_takes_no_lock_of_the_table)
{
    int port = mysql_fresh();
    hf_client *client = mysql_open(port, QUICK);
    hf_client *rival = mysql_open(port, QUICK);
    hf_hold *hold = client_acquire(client, "jobs");
    uint64_t token = hf_token(hold);
    hf_error err;

    mysql_kill_all(port);
    EVENTUALLY(hf_verify(hold, NULL) == 0);
    EVENTUALLY(client_try(rival, "jobs", &err) == HF_EBUSY);
    ASSERT_EQ(hf_token(hold), token);
    client_release(hold);
}

static void lose_with_the_session(const char *query)
{
    struct event events = EVENT_INIT;
    int port = mysql_fresh();
    hf_client *client = mysql_open(port, query);
    hf_hold *hold = client_acquire_told(client, "jobs", &events);
    hf_client *rival;

    mysql_kill_all(port);
    await_lost(hold, &events);
    rival = mysql_open(port, query);
    hold = client_acquire(rival, "jobs");
    client_release(hold);
}

TEST_CALL(administrator, who_kills_a_session_is_noticed_as_lost,
          lose_with_the_session(QUICK "&mode=get_lock"))
TEST_CALL(administrator, who_kills_a_transaction_is_noticed_as_lost,
          lose_with_the_session(QUICK "&mode=for_update"))

TEST(administrator, who_drops_the_tables_takes_the_locks)
{
    struct event events = EVENT_INIT;
    int port = mysql_fresh();
    hf_client *client = mysql_open(port, QUICK "&ttl=1s");
    hf_hold *hold = client_acquire_told(client, "jobs", &events);
    uint64_t token = hf_token(hold);

    (void)mysql_do(port, "DROP TABLE holdfast_lock,holdfast_ticket");
    await_lost(hold, &events);
    hold = client_acquire(client, "jobs");
    ASSERT_GT(hf_token(hold), token);
    client_release(hold);
}

TEST(table, of_an_older_version_is_told_and_left_alone)
{
    int port = mysql_fresh();
    hf_client *client = mysql_open(port, QUICK);
    hf_error err;

    (void)mysql_do(port, "CREATE TABLE holdfast_lock(name VARBINARY(400) NOT "
                         "NULL PRIMARY KEY,token BIGINT UNSIGNED NOT NULL,"
                         "ticket VARBINARY(24) NOT NULL)");
    ASSERT_RC(client_try(client, "jobs", &err), HF_ECONFIG, &err);
    ASSERT_HAS(err.text, "holdfast_lock is of an older version of holdfast");
    ASSERT_EQ(atoi(mysql_do(port, "SELECT COUNT(*) FROM holdfast_lock")), 0);
    ASSERT_RC(
        client_try(mysql_open(port, QUICK "&mode=get_lock"), "jobs", &err), 0,
        &err);
    (void)mysql_do(port, "DROP TABLE holdfast_lock");
    ASSERT_RC(client_try(client, "jobs", &err), 0, &err);
}

/* Whoever has had a lock waits in the server with the first statement. */
TEST(administrator, who_drops_the_rows_of_transactions_is_forgiven)
{
    int port = mysql_fresh();
    hf_client *client = mysql_open(port, QUICK "&mode=for_update");
    hf_hold *hold = client_acquire(client, "jobs");
    hf_error err;

    client_release(hold);
    (void)mysql_do(port, "DROP TABLE holdfast_row");
    hold = client_acquire(client, "jobs");
    ASSERT_RC(
        client_try(mysql_open(port, QUICK "&mode=for_update"), "jobs", &err),
        HF_EBUSY, &err);
    client_release(hold);
    (void)mysql_do(port, "DELETE FROM holdfast_row");
    client_release(client_acquire(client, "jobs"));
}

/* A row that could not be locked at once ends the transaction there. */
TEST(administrator, who_rolls_back_on_timeout_gives_no_lock_that_holds_nothing)
{
    int port = server_port(MYSQL_START("--innodb-rollback-on-timeout=1",
                                       "--innodb-flush-log-at-trx-commit=0"));
    hf_client *client = mysql_open(port, QUICK "&mode=for_update");
    hf_client *rival = mysql_open(port, QUICK "&mode=for_update");
    hf_hold *hold = client_acquire(client, "jobs");
    hf_opts opts = HF_OPTS_INIT;
    hf_request *request;
    hf_error err;

    ASSERT_OK(
        hf_acquire_start(rival, "jobs", &opts, NULL, NULL, &request, &err),
        &err);
    EVENTUALLY(mysql_row_waits(port) == 1);
    client_release(hold);
    ASSERT_OK(hf_request_wait(request, HF_FOREVER, &hold, &err), &err);
    hf_request_free(request);
    ASSERT_RC(client_try(client, "jobs", &err), HF_EBUSY, &err);
    client_release(hold);
}

TEST(administrator, who_makes_the_server_read_only_is_told)
{
    int port = mysql_fresh();
    hf_client *client = mysql_open(port, QUICK);
    hf_hold *hold = client_acquire(client, "jobs");
    hf_error err;

    client_release(hold);
    (void)mysql_do(port, "SET GLOBAL read_only=1");
    ASSERT_RC(client_try(client, "jobs", &err), HF_EUNAVAILABLE, &err);
    ASSERT_HAS(err.text, "read-only");
    (void)mysql_do(port, "SET GLOBAL read_only=0");
    ASSERT_EQ(client_try(client, "jobs", &err), 0);
}

/* Take names that were never taken until one is refused. */
static int take_new_names(hf_client *client, hf_error *err)
{
    static int n;
    int rc = 0;

    for (int until = n + 4000; rc == 0 && n < until; n++) {
        hf_hold *hold;
        char name[64];

        (void)snprintf(name, sizeof(name), "new %d", n);
        rc = hf_acquire(client, name, WITHIN(0), &hold, err);
        if (rc == 0) /* what cannot be freed now is taken back later */
            (void)hf_release(hold, NULL);
    }
    return rc;
}

/* False if the server dies of it, as MariaDB 11.4 and 11.8 do. */
static bool fill_up(int port)
{
    const char *answer =
        mysql_do(port, "CREATE TABLE filler(b LONGBLOB) ENGINE=InnoDB");

    while (!strstr(answer, "is full") && !strstr(answer, "ERROR 20"))
        answer = mysql_do(port, "INSERT INTO filler VALUES(REPEAT('x',65536))");
    return strstr(answer, "is full") != NULL;
}

/* A file of a fixed size for all tables stands for a full disk. */
TEST(administrator, who_lets_the_disk_fill_up_is_told)
{
    struct server *server = MYSQL_START("--innodb-data-file-path=ibdata1:12M",
                                        "--innodb-file-per-table=0",
                                        "--innodb-flush-log-at-trx-commit=0");
    int port = server_port(server);
    hf_client *client = mysql_open(port, QUICK "&io_timeout=1s");
    hf_hold *hold = client_acquire(client, "jobs");
    hf_error err;

    if (!fill_up(port)) {
        test_not_tested("the server ends itself when its file is full");
        return;
    }
    ASSERT_RC(take_new_names(client, &err), HF_ENOSPACE, &err);
    ASSERT_HAS(err.text, "full");
    ASSERT_NE(client_try(mysql_open(port, QUICK), "jobs", NULL), 0);
    /* It is so full that not even this is sure to be written. */
    (void)hf_release(hold, NULL);
}

/* True, and *@answers is false, if the server has died: MySQL 8 may do so a
 * moment after a full disk. */
static bool nothing_left(int port, bool *answers)
{
    const char *left =
        mysql_do(port, "SELECT (SELECT COUNT(*) FROM holdfast_lock WHERE "
                       "until>0)+(SELECT COUNT(*) FROM holdfast_ticket)");

    *answers = strstr(left, "ERROR 2002") == NULL;
    return !*answers || strcmp(left, "0\n") == 0;
}

/* The tables are on a disk of two megabytes, and so is a file of somebody else's
 * that grows until there is no room. */
TEST(administrator, who_makes_room_on_a_full_disk_is_served_again)
{
    struct server *server;
    hf_client *client;
    hf_hold *hold;
    char tables[256];
    char filler[300];
    char fill[400];
    bool answers;
    hf_error err;
    int port;

    disk_prepare();
    server = MYSQL_START("--innodb-flush-log-at-trx-commit=0");
    port = server_port(server);
    (void)snprintf(tables, sizeof(tables), "%s/data/locks", server_dir(server));
    if (!disk_mount(tables, 2048)) {
        test_not_tested("a disk of two megabytes cannot be mounted here");
        return;
    }
    /* A patient client makes the tables. */
    client_release(client_acquire(mysql_open(port, QUICK), "jobs"));
    client = mysql_open(port, QUICK "&io_timeout=1s");
    hold = client_acquire(client, "jobs");
    (void)snprintf(filler, sizeof(filler), "%s/filler", tables);
    (void)snprintf(fill, sizeof(fill), "cat /dev/zero >%s 2>/dev/null", filler);
    (void)!system(fill); /* NOLINT: our own words */
    ASSERT_RC(take_new_names(client, &err), HF_ENOSPACE, &err);
    ASSERT_HAS(err.text, "full");
    ASSERT_EQ(unlink(filler), 0);
    ASSERT_RC(client_try(client, "a new one", &err), 0, &err);
    ASSERT_RC(client_try(mysql_open(port, QUICK), "jobs", &err), HF_EBUSY,
              &err);
    client_release(hold);
    EVENTUALLY(nothing_left(port, &answers));
    if (!answers)
        test_not_tested("the server has ended itself after the full disk");
}

struct turns {
    hf_client *client;
    int *counter; /* not atomic: the lock protects it */
};

static void *take_turns(void *arg)
{
    struct turns *turns = arg;

    for (int i = 0; i < 25; i++) {
        hf_hold *hold = client_acquire(turns->client, "counter");

        ++*turns->counter;
        client_release(hold);
    }
    return NULL;
}

/* Where only statements are logged, READ COMMITTED is refused by the server. */
TEST(administrator, who_logs_statements_gets_repeatable_read)
{
    struct server *server =
        MYSQL_START("--log-bin=binary", "--binlog-format=STATEMENT",
                    "--innodb-flush-log-at-trx-commit=0");
    int port = server_port(server);
    int counter = 0;
    struct turns turns[2];
    pthread_t threads[2];

    for (int i = 0; i < 2; i++) {
        turns[i] = (struct turns){mysql_open(port, QUICK), &counter};
        ASSERT_EQ(pthread_create(&threads[i], NULL, take_turns, &turns[i]), 0);
    }
    for (int i = 0; i < 2; i++)
        ASSERT_EQ(pthread_join(threads[i], NULL), 0);
    ASSERT_EQ(counter, 50);
    ASSERT_STREQ(mysql_do(port, "SELECT COUNT(*) FROM holdfast_ticket"), "0\n");
}

TEST(administrator, who_forbids_to_make_tables_is_asked_for_them)
{
    int port = mysql_fresh();
    hf_client *client;
    hf_error err;

    (void)mysql_do(port, "REVOKE CREATE ON locks.* FROM locker@127.0.0.1");
    client = mysql_open(port, QUICK);
    ASSERT_RC(client_try(client, "jobs", &err), HF_EAUTH, &err);
    ASSERT_HAS(err.text, "holdfast(7)");
}

TEST(administrator, a_wrong_password_is_said_at_once)
{
    int port = mysql_fresh();
    hf_client *client;
    char url[128];
    hf_error err;

    (void)snprintf(url, sizeof(url), "mysql://locker:wrong@127.0.0.1:%d/locks",
                   port);
    ASSERT_RC(hf_open(url, NULL, &client, &err), HF_EAUTH, &err);
    ASSERT_FALSE(strstr(err.text, "wrong") != NULL);
    (void)snprintf(url, sizeof(url),
                   "mysql://locker:s3cret@127.0.0.1:%d/nothing", port);
    ASSERT_EQ(hf_open(url, NULL, &client, &err), HF_EAUTH);
}

/* ---- the network --------------------------------------------------------- */

/* A client behind a proxy, and another one that is not. */
struct sides {
    int port;
    struct proxy *proxy;
    hf_client *client;
    hf_client *rival;
};

static struct sides open_sides(const char *query)
{
    struct sides sides = {.port = mysql_fresh()};

    sides.proxy = proxy_start(sides.port);
    sides.client = mysql_open(proxy_port(sides.proxy), query);
    sides.rival = mysql_open(sides.port, query);
    return sides;
}

/* Our side is silent: the server ends the session by wait_timeout. */
static void lose_by_silence(const char *query)
{
    struct event events = EVENT_INIT;
    struct sides sides = open_sides(query);
    hf_hold *hold = client_acquire_told(sides.client, "jobs", &events);
    hf_hold *next;

    proxy_hold(sides.proxy, PROXY_TO_SERVER, true);
    next = client_acquire(sides.rival, "jobs");
    ASSERT_EQ(hf_check(hold), HF_LOST); /* before another could have it */
    proxy_pass(sides.proxy);
    await_lost(hold, &events);
    client_release(next);
}

TEST_CALL(network, silence_loses_a_row, lose_by_silence(QUICK "&ttl=1s"))
TEST_CALL(network, silence_loses_a_session_by_wait_timeout,
          lose_by_silence(QUICK "&ttl=1s&mode=get_lock"))
TEST_CALL(network, silence_loses_a_transaction_by_wait_timeout,
          lose_by_silence(QUICK "&ttl=1s&mode=for_update"))

/* The statement is carried out, its answer never comes. */
static void lose_the_answer(const char *query)
{
    struct sides sides = open_sides(query);
    hf_hold *hold;
    hf_error err;
    int rc;

    ASSERT_EQ(client_try(sides.client, "jobs", &err), 0);
    proxy_hold(sides.proxy, PROXY_TO_CLIENT, true);
    rc = hf_acquire(sides.client, "jobs", WITHIN(300), &hold, &err);
    ASSERT_TRUE(rc == HF_EUNKNOWN || rc == HF_ETIMEOUT ||
                rc == HF_EUNAVAILABLE);
    proxy_pass(sides.proxy);
    proxy_reset(sides.proxy);
    EVENTUALLY(client_try(sides.rival, "jobs", &err) == 0);
    EVENTUALLY(client_try(sides.client, "jobs", &err) == 0);
}

TEST_CALL(network, a_lost_answer_leaves_no_row_behind,
          lose_the_answer(QUICK "&io_timeout=1s"))
TEST_CALL(network, a_lost_answer_leaves_no_session_behind,
          lose_the_answer(QUICK "&io_timeout=1s&mode=get_lock"))
TEST_CALL(network, a_lost_answer_leaves_no_transaction_behind,
          lose_the_answer(QUICK "&io_timeout=1s&mode=for_update"))

/* … and asked again, it is refused: that says nothing of the first time. */
static void lose_the_answer_and_be_refused(const char *query, const char *held)
{
    struct sides sides = open_sides(query);
    hf_request *request;
    hf_hold *hold;
    hf_error err;

    ASSERT_EQ(client_try(sides.client, "jobs", &err), 0);
    proxy_hold(sides.proxy, PROXY_TO_CLIENT, true);
    request = client_start_with(sides.client, "jobs", WITHIN(1500));
    EVENTUALLY(atoi(mysql_do(sides.port, "SELECT COUNT(*) FROM %s", held)) ==
               1);
    (void)mysql_do(sides.port, "SET GLOBAL read_only=1");
    proxy_reset(sides.proxy);
    proxy_pass(sides.proxy);
    ASSERT_TRUE(hf_request_wait(request, HF_FOREVER, &hold, &err) != 0);
    hf_request_free(request);
    (void)mysql_do(sides.port, "SET GLOBAL read_only=0");
    EVENTUALLY(client_try(sides.rival, "jobs", &err) == 0);
}

TEST_CALL(network, a_lost_answer_and_a_refusal_leave_no_row_behind,
          lose_the_answer_and_be_refused(QUICK "&ttl=1h",
                                         "holdfast_lock WHERE until>0"))
TEST_CALL(network, a_lost_answer_and_a_refusal_leave_no_row_of_shedlock_behind,
          lose_the_answer_and_be_refused(
              QUICK "&ttl=1h&dialect=shedlock",
              "shedlock WHERE lock_until>UTC_TIMESTAMP(3)"))

/* The session has ended, and no other can be had: the server gives the lock to
 * the next one, so it is lost, whatever the ttl. */
static void lose_what_cannot_come_back(const char *query)
{
    struct event events = EVENT_INIT;
    struct sides sides = open_sides(query);
    hf_hold *hold = client_acquire_told(sides.client, "jobs", &events);
    hf_request *request = client_start(sides.rival, "jobs");
    hf_hold *next;
    hf_error err;

    EVENTUALLY(waiting(sides.port) == 1);
    proxy_refuse(sides.proxy, true);
    proxy_reset(sides.proxy);
    next = client_finish(request);
    await_lost(hold, &events);
    client_release(next);
    proxy_pass(sides.proxy);
    proxy_refuse(sides.proxy, false);
    EVENTUALLY(client_try(sides.client, "jobs", &err) == 0);
}

TEST_CALL(network, a_session_that_ends_for_good_is_lost_at_once,
          lose_what_cannot_come_back(QUICK "&mode=get_lock&ttl=1h"))
TEST_CALL(network, a_transaction_that_ends_for_good_is_lost_at_once,
          lose_what_cannot_come_back(QUICK "&mode=for_update&ttl=1h"))

/* A waiter loses its connections, and can have no new ones for a while. */
static void wait_through_an_outage(const char *query)
{
    struct sides sides = open_sides(query);
    hf_hold *hold = client_acquire(sides.rival, "jobs");
    hf_request *request = client_start(sides.client, "jobs");

    for (int i = 0; i < 3; i++) {
        EVENTUALLY(waiting(sides.port) == 1);
        proxy_refuse(sides.proxy, true);
        proxy_reset(sides.proxy);
        (void)mysql_do(sides.port, "DO SLEEP(1.2)");
        proxy_refuse(sides.proxy, false);
    }
    EVENTUALLY(waiting(sides.port) == 1);
    client_release(hold);
    client_release(client_finish(request));
}

TEST_CALL(network, an_outage_of_a_second_ends_no_wait_in_a_session,
          wait_through_an_outage(QUICK "&mode=get_lock"))
TEST_CALL(network, an_outage_of_a_second_ends_no_wait_in_a_transaction,
          wait_through_an_outage(QUICK "&mode=for_update"))

/* The commit is carried out, its answer never comes. */
TEST(network, a_lost_answer_to_a_commit_is_unknown)
{
    int port = mysql_fresh();
    struct proxy *proxy = proxy_start(port);
    hf_client *client =
        mysql_open(proxy_port(proxy), QUICK "&io_timeout=500ms");
    uint64_t version;
    uint64_t next;
    hf_error err;

    ASSERT_OK(hf_version_read(client, "plan", &version, &err), &err);
    proxy_hold(proxy, PROXY_TO_CLIENT, true);
    ASSERT_RC(hf_version_commit(client, "plan", version, &next, &err),
              HF_EUNKNOWN, &err);
    proxy_pass(proxy);
    proxy_reset(proxy);
    ASSERT_OK(hf_version_read(mysql_open(port, QUICK), "plan", &next, &err),
              &err);
    ASSERT_GT(next, version);
}

/* ---- the dead ------------------------------------------------------------ */

/* Its row, and the gate that sends everybody the slow way. */
TEST(death, of_a_waiter_leaves_no_row_and_no_gate)
{
    int port = mysql_fresh();
    hf_client *client = mysql_open(port, QUICK);
    hf_hold *hold = client_acquire(client, "jobs");

    (void)mysql_do(port, "INSERT INTO holdfast_ticket VALUES('jobs','a ticket',"
                         "1,0,0,0,0,UNIX_TIMESTAMP()*1000000+1000000,1,'');"
                         "UPDATE holdfast_lock SET gate=~0 WHERE name='jobs'");
    client_release(hold);
    EVENTUALLY(strcmp(mysql_do(port, "SELECT (SELECT COUNT(*) FROM "
                                     "holdfast_ticket),gate FROM "
                                     "holdfast_lock WHERE name='jobs'"),
                      "0\t0\n") == 0);
}

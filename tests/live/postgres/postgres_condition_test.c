/* SPDX-License-Identifier: MIT */
/*
 * postgres_condition_test.c - conditions in mode=table: no wake-up is lost with
 * who signals, with who is woken, with an answer, or with the server; and locks
 * that use none pay nothing.
 */
#include <stdlib.h>

#include "event.h"
#include "postgres.h"
#include "proc.h"

#define TABLE "retry.base=1ms&retry.max_interval=20ms&mode=table"
#define SHORT TABLE "&ttl=1s"

/* ---- waits ----------------------------------------------------------------- */

static int rows(struct server *server, const char *which)
{
    return atoi(
        postgres_do(server, "SELECT count(*) FROM holdfast_cond %s", which));
}

static struct client_wait start_wait(hf_client *client, int64_t wait_ms)
{
    struct client_wait wait = {
        .hold = client_acquire_with(client, "jobs",
                                    OPTS(HF_FOREVER, .flags = HF_NEW_OWNER))};
    hf_error err;

    ASSERT_OK(hf_cond_wait_start(wait.hold, "c", wait_ms, NULL, NULL,
                                 &wait.request, &err),
              &err);
    return wait;
}

/* The same, and it is the @n-th row. */
static struct client_wait park(struct server *server, hf_client *client, int n)
{
    struct client_wait wait = start_wait(client, HF_FOREVER);

    EVENTUALLY(rows(server, "") == n);
    return wait;
}

static void cancel(struct client_wait *wait)
{
    hf_cancel(wait->request);
    (void)hf_request_wait(wait->request, EVENT_PATIENCE_MS, NULL, NULL);
    hf_request_free(wait->request);
    (void)hf_release(wait->hold, NULL);
}

static int signal_one(hf_client *client)
{
    return client_signal(client, "jobs", "c");
}

static void nothing_left(struct server *server)
{
    EVENTUALLY(postgres_leftovers(server) == 0);
    ASSERT_EQ(rows(server, ""), 0);
}

/* It holds the lock when it returns, and then nothing is left. */
static void woken_and_gone(struct client_wait *wait, struct server *server)
{
    client_woken(wait);
    nothing_left(server);
}

/* ---- deaths ---------------------------------------------------------------- */

static void signaller(struct proc *self, void *arg)
{
    hf_client *client = postgres_open(*(int *)arg, SHORT);
    hf_hold *hold;

    (void)proc_hear(self);
    hold = client_acquire(client, "jobs");
    proc_tell(self, "holding");
    (void)proc_hear(self);
    (void)hf_cond_signal(hold, "c", NULL);
    proc_tell(self, "signalled");
}

static int waiting_for_locks(struct server *server)
{
    return atoi(postgres_do(server, "SELECT count(*) FROM pg_stat_activity "
                                    "WHERE wait_event_type = 'Lock'"));
}

/* What it had begun is undone as a whole. */
TEST(conditions, a_signaller_killed_in_its_transaction_wakes_nobody)
{
    struct server *server = postgres_start();
    int port = server_port(server);
    struct proc *proc = proc_start(signaller, &port);
    hf_client *client = postgres_open(port, TABLE);
    struct client_wait wait = park(server, client, 1);
    FILE *locker;

    proc_say(proc, "acquire");
    (void)proc_expect(proc, "holding");
    locker =
        postgres_begin(server, "BEGIN; SELECT FROM holdfast_cond FOR UPDATE; "
                               "SELECT pg_sleep(600)");
    proc_say(proc, "signal");
    EVENTUALLY(waiting_for_locks(server) == 1);
    proc_kill(proc);
    EVENTUALLY(waiting_for_locks(server) == 0);
    postgres_end(server, locker);
    ASSERT_EQ(rows(server, "WHERE called"), 0);
    ASSERT_EQ(hf_request_pending(wait.request), 1);
    ASSERT_EQ(signal_one(client), 1); /* when its lease is over */
    woken_and_gone(&wait, server);
}

static void waiter(struct proc *self, void *arg)
{
    hf_client *client = postgres_open(*(int *)arg, SHORT);
    hf_hold *hold = client_acquire(client, "jobs");

    (void)hf_cond_wait(hold, "c", HF_FOREVER, NULL);
    proc_tell(self, "woken");
    (void)proc_hear(self);
}

/* Nobody is in line behind it: who is parked has to notice. */
TEST(conditions, the_wake_up_of_a_killed_bearer_is_the_next_ones)
{
    struct server *server = postgres_start();
    int port = server_port(server);
    struct proc *proc = proc_start(waiter, &port);
    hf_client *client = postgres_open(port, SHORT);
    struct client_wait wait;

    EVENTUALLY(rows(server, "") == 1);
    wait = park(server, client, 2);
    ASSERT_EQ(signal_one(client), 1);
    (void)proc_expect(proc, "woken");
    ASSERT_EQ(rows(server, "WHERE called"), 1);
    proc_kill(proc);
    woken_and_gone(&wait, server);
}

/* Nobody is parked, either: who deletes its place deletes the wake-up. */
TEST(conditions, the_wake_up_of_a_killed_bearer_is_nobodys_if_nobody_waits)
{
    struct server *server = postgres_start();
    int port = server_port(server);
    struct proc *proc = proc_start(waiter, &port);
    hf_client *client = postgres_open(port, TABLE);

    EVENTUALLY(rows(server, "") == 1);
    ASSERT_EQ(signal_one(client), 1);
    (void)proc_expect(proc, "woken");
    proc_kill(proc);
    client_release(client_acquire(client, "jobs"));
    nothing_left(server);
}

/* It was taken for dead, and a signal has passed it over. If its renewal is
 * quicker than the signal, that wakes it. */
TEST(conditions, a_waiter_that_was_passed_over_returns_holding)
{
    struct rivals at = postgres_rivals(TABLE "&ttl=3s");
    struct client_wait wait = park(at.server, at.client, 1);
    hf_hold *hold = client_acquire(at.rival, "jobs");

    (void)postgres_do(at.server, "UPDATE holdfast_cond SET until = "
                                 "clock_timestamp() - interval '1 s'");
    ASSERT_GE(hf_cond_signal(hold, "c", NULL), 0);
    client_release(hold);
    woken_and_gone(&wait, at.server);
}

/* It knows that it stands in line, and its place goes as often as it asks. */
TEST(conditions, a_bearer_that_lost_its_place_leaves_no_wake_up)
{
    struct rivals at = postgres_rivals(SHORT);
    struct client_wait wait = park(at.server, at.client, 1);
    hf_hold *hold = client_acquire(at.rival, "jobs");

    ASSERT_EQ(hf_cond_signal(hold, "c", NULL), 1);
    EVENTUALLY((postgres_do(at.server,
                            "DELETE FROM holdfast_place WHERE token IS NULL"),
                rows(at.server, "") == 0));
    client_release(hold);
    woken_and_gone(&wait, at.server);
}

/* A client that knows nothing of conditions deletes what is overdue, or a user
 * does: the place is gone, and nobody has seen to the wake-up. */
TEST(conditions, a_wake_up_without_a_place_in_line_is_the_next_ones)
{
    struct rivals at = postgres_rivals(SHORT);
    struct client_wait first = park(at.server, at.client, 1);
    struct client_wait second = park(at.server, at.rival, 2);
    hf_hold *hold = client_acquire(at.client, "jobs");

    ASSERT_EQ(hf_cond_signal(hold, "c", NULL), 1);
    ASSERT_EQ(hf_cond_signal(hold, "none", NULL), 0);
    hf_cancel(first.request);
    (void)postgres_do(at.server,
                      "DELETE FROM holdfast_place WHERE token IS NULL");
    client_release(hold);
    client_woken(&second);
    cancel(&first);
    nothing_left(at.server);
}

/* At once, not with a renewal. The holder took a quiet name, and would free it
 * without a look at others. */
TEST(conditions, a_cancelled_bearer_passes_its_wake_up_on_behind_a_lone_holder)
{
    struct rivals at = postgres_rivals(TABLE "&ttl=600s");
    struct client_wait first = park(at.server, at.client, 1);
    struct client_wait second = park(at.server, at.rival, 2);
    hf_hold *hold = client_acquire(at.client, "jobs");

    (void)postgres_do(at.server,
                      "UPDATE holdfast_cond SET called = true WHERE number = "
                      "(SELECT min(number) FROM holdfast_cond)");
    cancel(&first);
    client_release(hold);
    woken_and_gone(&second, at.server);
}

/* ---- answers --------------------------------------------------------------- */

static void lose_answers(struct proxy *proxy)
{
    proxy_reset(proxy);
    proxy_pass(proxy);
}

/* The server has parked it, and the answer does not come. */
static struct client_wait park_unanswered(const struct rivals *at)
{
    struct client_wait wait = {.hold = client_acquire(at->client, "jobs")};

    proxy_hold(at->proxy, PROXY_TO_CLIENT, true);
    wait.request = client_wait_start(wait.hold, "c");
    EVENTUALLY(rows(at->server, "WHERE NOT called") == 1);
    return wait;
}

TEST(conditions, a_park_whose_answer_is_lost_is_parked)
{
    struct rivals at = postgres_proxied(TABLE, TABLE);
    struct client_wait wait = park_unanswered(&at);

    lose_answers(at.proxy);
    ASSERT_EQ(signal_one(at.rival), 1);
    woken_and_gone(&wait, at.server);
}

TEST(conditions, a_park_that_was_called_before_it_is_asked_again_is_woken)
{
    struct rivals at = postgres_proxied(TABLE, TABLE);
    struct client_wait wait = park_unanswered(&at);

    ASSERT_EQ(signal_one(at.rival), 1);
    lose_answers(at.proxy);
    woken_and_gone(&wait, at.server);
}

TEST(conditions, a_signal_whose_answer_is_lost_has_woken)
{
    struct rivals at = postgres_proxied(TABLE, TABLE);
    struct client_wait wait = park(at.server, at.rival, 1);
    hf_hold *hold = client_acquire(at.client, "jobs");
    hf_request *request;
    hf_error err;

    proxy_hold(at.proxy, PROXY_TO_CLIENT, true);
    ASSERT_OK(hf_cond_signal_start(hold, "c", 0, NULL, NULL, &request, &err),
              &err);
    EVENTUALLY(rows(at.server, "WHERE called") == 1);
    lose_answers(at.proxy);
    ASSERT_RC(hf_request_wait(request, EVENT_PATIENCE_MS, NULL, &err), 0, &err);
    hf_request_free(request);
    client_release(hold);
    woken_and_gone(&wait, at.server);
}

/* It is not known whether the release used the wake-up up. */
TEST(conditions, a_release_whose_answer_is_lost_leaves_nothing)
{
    struct rivals at = postgres_proxied(TABLE, TABLE);
    struct client_wait wait = park(at.server, at.client, 1);
    hf_request *request;
    hf_error err;
    int rc;

    ASSERT_EQ(signal_one(at.rival), 1);
    ASSERT_OK(hf_request_wait(wait.request, EVENT_PATIENCE_MS, NULL, &err),
              &err);
    ASSERT_EQ(rows(at.server, "WHERE called"), 1);
    proxy_hold(at.proxy, PROXY_TO_CLIENT, true);
    ASSERT_OK(hf_release_start(wait.hold, NULL, NULL, &request, &err), &err);
    EVENTUALLY(rows(at.server, "") == 0);
    lose_answers(at.proxy);
    rc = hf_request_wait(request, EVENT_PATIENCE_MS, NULL, &err);
    ASSERT_TRUE(rc == 0 || rc == HF_EUNKNOWN);
    hf_request_free(request);
    hf_request_free(wait.request);
    nothing_left(at.server);
}

/* ---- the server ------------------------------------------------------------ */

TEST(conditions, a_wait_survives_a_crash_of_the_server)
{
    struct rivals at = postgres_rivals(TABLE);
    struct client_wait wait = park(at.server, at.client, 1);

    postgres_crash(at.server);
    EVENTUALLY(signal_one(at.rival) == 1);
    woken_and_gone(&wait, at.server);
}

TEST(conditions, a_wake_up_survives_a_crash_of_the_server)
{
    struct rivals at = postgres_rivals(TABLE);
    struct client_wait wait = park(at.server, at.client, 1);
    hf_hold *hold = client_acquire(at.rival, "jobs");

    ASSERT_EQ(hf_cond_signal(hold, "c", NULL), 1);
    postgres_crash(at.server);
    (void)hf_release(hold, NULL);
    woken_and_gone(&wait, at.server);
}

/* The same data as before, but another line of them may be longer. */
static void promote(struct server *server)
{
    char command[1024];

    (void)snprintf(command, sizeof(command),
                   "cd %s/data && cp -p PG_VERSION standby.signal",
                   server_dir(server));
    ASSERT_EQ(system(command), 0); /* NOLINT: our own words */
    postgres_crash(server);
    /* It refuses until it has read what it had written before. */
    EVENTUALLY(strcmp(postgres_do(server, "SELECT pg_promote()"), "t\n") == 0);
}

TEST(conditions,
     whoever_waited_at_a_standby_before_its_promotion_returns_holding)
{
    struct server *server = postgres_start();
    hf_client *client = postgres_open(server_port(server), TABLE "&ttl=60s");
    struct client_wait wait = park(server, client, 1);

    promote(server);
    woken_and_gone(&wait, server);
}

TEST(conditions, whoever_is_forgotten_returns_holding)
{
    struct rivals at = postgres_rivals(SHORT);
    struct client_wait wait = park(at.server, at.client, 1);

    (void)postgres_do(at.server, "DELETE FROM holdfast_cond");
    woken_and_gone(&wait, at.server);
}

/* ---- renewals -------------------------------------------------------------- */

/* One row cannot be renewed: the other locks of the client can, and the row when
 * it may be again. */
TEST(conditions, a_row_that_another_session_locks_is_renewed_later)
{
    struct rivals at = postgres_rivals(SHORT);
    struct client_wait wait = park(at.server, at.client, 1);
    hf_hold *hold = client_acquire(at.client, "others");
    int64_t since_ms = clock_ms();
    FILE *locker =
        postgres_begin(at.server, "BEGIN; SELECT FROM holdfast_cond FOR "
                                  "UPDATE; SELECT pg_sleep(600)");

    EVENTUALLY(clock_ms() - since_ms > 3000);
    ASSERT_EQ(hf_check(hold), HF_HELD);
    ASSERT_EQ(waiting_for_locks(at.server), 0);
    postgres_end(at.server, locker);
    EVENTUALLY(rows(at.server, "WHERE until > clock_timestamp()") == 1);
    ASSERT_EQ(signal_one(at.rival), 1);
    client_woken(&wait);
    client_release(hold);
    nothing_left(at.server);
}

/* The dead leave rows at names that nobody uses any more. */
TEST(conditions, what_the_dead_have_left_is_swept)
{
    struct rivals at = postgres_rivals(TABLE);
    struct client_wait wait;

    (void)postgres_do(
        at.server,
        "INSERT INTO holdfast_cond SELECT 'old' || n, 'id', n, 'c', n > 2, 1, "
        "'', clock_timestamp() - n * interval '50 s', clock_timestamp() "
        "FROM generate_series(1, 3) n; "
        "INSERT INTO holdfast_cond VALUES ('busy', 'called', 4, 'c', true, 1, "
        "'', clock_timestamp() - interval '1 h', clock_timestamp()), "
        "('busy', 'parked', 5, 'c', false, 1, '', "
        "clock_timestamp() + interval '1 h', clock_timestamp())");
    wait = start_wait(at.client, HF_FOREVER);
    EVENTUALLY(rows(at.server, "WHERE name = 'jobs'") == 1);
    /* One may still be seen alive, and a wake-up may have to be passed on. */
    EVENTUALLY(strcmp(postgres_do(at.server,
                                  "SELECT string_agg(name || number, ' ' ORDER "
                                  "BY number) FROM holdfast_cond "
                                  "WHERE name <> 'jobs'"),
                      "old11 busy4 busy5\n") == 0);
    cancel(&wait);
}

/* ---- those who use none ---------------------------------------------------- */

static int scans(struct server *server, const char *table)
{
    return atoi(postgres_do(server,
                            "SELECT coalesce(idx_scan, 0) + seq_scan FROM "
                            "pg_stat_user_tables WHERE relname = '%s'",
                            table));
}

static void hand_over(struct server *server, hf_client *client,
                      hf_client *rival)
{
    hf_hold *hold = client_acquire(client, "jobs");
    hf_request *request = client_start(rival, "jobs");

    EVENTUALLY(atoi(postgres_do(server, "SELECT count(*) FROM holdfast_place "
                                        "WHERE token IS NULL")) == 1);
    client_release(hold);
    client_release(client_finish(request));
}

static void work(struct server *server)
{
    const char *url = postgres_url(server_port(server), TABLE);
    hf_client *client;
    hf_client *rival;
    hf_error err;

    ASSERT_OK(hf_open(url, NULL, &client, &err), &err);
    ASSERT_OK(hf_open(url, NULL, &rival, &err), &err);
    for (int i = 0; i < 10; i++) {
        client_release(client_acquire(client, "jobs"));
        hand_over(server, client, rival);
    }
    hf_close(client);
    hf_close(rival);
    EVENTUALLY(atoi(postgres_do(server, "SELECT count(*) FROM pg_stat_activity "
                                        "WHERE application_name = "
                                        "'holdfast'")) == 0);
}

/* A session has told its statistics when it has ended. Making a table reads it. */
TEST(conditions, cost_nothing_where_nobody_uses_them)
{
    struct server *server = postgres_start();
    int before;
    int place;

    work(server);
    before = scans(server, "holdfast_cond");
    place = scans(server, "holdfast_place");
    work(server);
    ASSERT_EQ(scans(server, "holdfast_cond"), before);
    ASSERT_GE(scans(server, "holdfast_place"), place + 10);
    nothing_left(server);
}

static const char *poor_url(struct server *server)
{
    return test_text("postgresql://poor@127.0.0.1:%d/postgres?" TABLE,
                     server_port(server));
}

/* The tables are those of an earlier version, and the role may make none. */
TEST(conditions, a_role_that_may_not_make_the_table_goes_without)
{
    struct server *server = postgres_start();
    hf_client *client = postgres_open(server_port(server), TABLE);
    hf_hold *hold;
    hf_error err;

    ASSERT_TRUE(hf_capabilities(client) & HF_CAP_CONDITIONS);
    (void)postgres_do(server, "DROP ROLE IF EXISTS poor; "
                              "CREATE ROLE poor LOGIN; "
                              "DROP TABLE holdfast_cond");
    (void)postgres_do(server, "GRANT ALL ON ALL TABLES IN SCHEMA public TO "
                              "poor; GRANT ALL ON ALL SEQUENCES IN SCHEMA "
                              "public TO poor; GRANT USAGE ON SCHEMA public "
                              "TO poor");
    client = client_open(poor_url(server));
    ASSERT_FALSE(hf_capabilities(client) & HF_CAP_CONDITIONS);
    hold = client_acquire(client, "jobs");
    ASSERT_RC(hf_cond_wait(hold, "c", 0, &err), HF_EUNSUPPORTED, &err);
    ASSERT_EQ(client_count(client, "jobs", HF_HOLDER), 1);
    client_release(hold);
    /* One that may makes it. */
    client = postgres_open(server_port(server), TABLE);
    ASSERT_TRUE(hf_capabilities(client) & HF_CAP_CONDITIONS);
    nothing_left(server);
}

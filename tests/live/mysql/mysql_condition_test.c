/* SPDX-License-Identifier: MIT */
/*
 * mysql_condition_test.c - mode=table: no wake-up is lost: not with who signals,
 * not with who is woken, not with an answer, not with a row.
 *
 * CONDITION_ROUNDS sets how often each is tried (3).
 */
#include <stdlib.h>

#include "event.h"
#include "mysql.h"
#include "proc.h"

#define QUICK "retry.base=2ms&retry.max_interval=20ms&ttl=10s"

static int rounds(void)
{
    const char *text = getenv("CONDITION_ROUNDS");

    return text ? atoi(text) : 3;
}

/* ---- who waits, who signals -------------------------------------------- */

struct stage {
    int port;
    struct proxy *proxy; /* before the waiter and the signaller */
    hf_client *waiter;
    hf_client *signaller;
    hf_client *next; /* without a proxy */
};

static struct stage set_up(void)
{
    struct stage stage = {.port = mysql_fresh()};

    stage.proxy = proxy_start(stage.port);
    stage.waiter = mysql_open(proxy_port(stage.proxy), QUICK);
    stage.signaller = mysql_open(proxy_port(stage.proxy), QUICK);
    stage.next = mysql_open(stage.port, QUICK);
    client_release(client_acquire(stage.next, "jobs")); /* there are tables */
    return stage;
}

static int count(int port, const char *table)
{
    return atoi(mysql_do(port, "SELECT COUNT(*) FROM %s", table));
}

static int parked(int port)
{
    return count(port, "holdfast_cond WHERE called=0");
}

static struct client_wait start_wait(hf_client *client)
{
    struct client_wait wait = {.hold = client_acquire(client, "jobs")};

    wait.request = client_wait_start(wait.hold, "c");
    return wait;
}

/* It is the @n-th that is parked. */
static struct client_wait park(int port, hf_client *client, int n)
{
    struct client_wait wait = start_wait(client);

    EVENTUALLY(parked(port) == n);
    return wait;
}

/* It returns 0, and holds the lock. */
static void await_return(const struct client_wait *wait)
{
    hf_error err;

    ASSERT_OK(hf_request_wait(wait->request, EVENT_PATIENCE_MS, NULL, &err),
              &err);
    ASSERT_EQ(hf_check(wait->hold), HF_HELD);
    hf_request_free(wait->request);
}

static int signal_one(hf_client *client)
{
    return client_signal(client, "jobs", "c");
}

static void nothing_left(int port)
{
    EVENTUALLY(count(port, "holdfast_cond") == 0);
    EVENTUALLY(count(port, "holdfast_ticket") == 0);
    EVENTUALLY(count(port, "holdfast_lock WHERE until>0") == 0);
}

/* ---- the quick way ------------------------------------------------------- */

TEST(conditions, leave_the_quick_way_open_while_nobody_signals)
{
    struct stage stage = set_up();
    struct client_wait wait = park(stage.port, stage.waiter, 1);

    client_release(client_acquire(stage.next, "jobs"));
    ASSERT_EQ(count(stage.port, "holdfast_ticket"), 0);
    ASSERT_EQ(count(stage.port, "holdfast_lock WHERE gate>0"), 0);
    ASSERT_EQ(signal_one(stage.next), 1);
    client_woken(&wait);
    nothing_left(stage.port);
}

TEST(conditions, are_not_of_the_other_modes)
{
    static const char *const queries[] = {"mode=get_lock", "mode=for_update",
                                          "dialect=shedlock"};
    int port = mysql_fresh();

    for (size_t i = 0; i < sizeof(queries) / sizeof(queries[0]); i++) {
        hf_client *client = mysql_open(port, queries[i]);
        hf_hold *hold = client_acquire(client, "jobs");
        hf_error err;

        ASSERT_FALSE(hf_capabilities(client) & HF_CAP_CONDITIONS);
        ASSERT_RC(hf_cond_wait(hold, "c", 0, &err), HF_EUNSUPPORTED, &err);
        ASSERT_RC(hf_cond_signal(hold, "c", &err), HF_EUNSUPPORTED, &err);
        client_release(hold);
    }
}

/* ---- a signaller is killed ------------------------------------------------ */

/* Whoever locks the row of "jobs" for its own, so that all others wait. */
static hf_hold *lock_the_row(int port)
{
    return client_acquire(
        mysql_open(port, "mode=for_update&table=holdfast_lock&key=name"),
        "jobs");
}

/* The session that waits for it; 0: none. */
static int blocked(int port)
{
    return atoi(mysql_do(port, "SELECT id FROM information_schema.processlist "
                               "WHERE user='locker' AND info LIKE "
                               "'SELECT token%%FOR UPDATE%%'"));
}

/* Its session ends in the middle of the text: the transaction is undone, and it
 * is made again. */
TEST(conditions, a_signal_whose_session_is_killed_is_made_again)
{
    struct stage stage = set_up();

    for (int i = 0; i < rounds(); i++) {
        struct client_wait wait = park(stage.port, stage.waiter, 1);
        hf_hold *hold = client_acquire(stage.signaller, "jobs");
        hf_hold *row = lock_the_row(stage.port);
        hf_request *request;
        hf_error err;
        int session;

        ASSERT_OK(
            hf_cond_signal_start(hold, "c", 0, NULL, NULL, &request, &err),
            &err);
        EVENTUALLY(blocked(stage.port) != 0);
        session = blocked(stage.port);
        proxy_reset(stage.proxy);
        EVENTUALLY(blocked(stage.port) != session);
        ASSERT_EQ(parked(stage.port), 1);
        client_release(row);
        ASSERT_RC(hf_request_wait(request, EVENT_PATIENCE_MS, NULL, &err), 1,
                  &err);
        hf_request_free(request);
        client_release(hold);
        client_woken(&wait);
        nothing_left(stage.port);
    }
}

static void signal_and_die(struct proc *self, void *port)
{
    hf_hold *hold;

    (void)proc_hear(self);
    hold = client_acquire(mysql_open(*(int *)port, "retry.base=2ms&ttl=1s"),
                          "jobs");
    proc_tell(self, "woke %d", hf_cond_signal(hold, "c", NULL));
    (void)proc_hear(self);
}

/* It dies with the lock: the woken one gets it when the lease is over. */
TEST(conditions, a_killed_signaller_takes_no_wake_up_along)
{
    int port = mysql_fresh();

    for (int i = 0; i < rounds(); i++) {
        struct proc *signaller = proc_start(signal_and_die, &port);
        hf_client *client = mysql_open(port, QUICK);
        struct client_wait wait;

        client_release(client_acquire(client, "jobs"));
        wait = park(port, client, 1);
        proc_say(signaller, "go");
        (void)proc_expect(signaller, "woke 1");
        proc_kill(signaller);
        client_woken(&wait);
        nothing_left(port);
    }
}

/* ---- a bearer is killed --------------------------------------------------- */

/* @way takes the bearer of a wake-up away, and the next one has it. */
static void take_bearer(void (*way)(struct stage *stage))
{
    struct stage stage = set_up();

    for (int i = 0; i < rounds(); i++) {
        struct client_wait first = park(stage.port, stage.waiter, 1);
        struct client_wait second = park(stage.port, stage.next, 2);
        hf_hold *hold = client_acquire(stage.next, "jobs");

        /* It learns nothing before it is gone. */
        proxy_hold(stage.proxy, PROXY_TO_SERVER, true);
        ASSERT_EQ(hf_cond_signal(hold, "c", NULL), 1);
        way(&stage);
        client_release(hold);
        client_woken(&second);
        proxy_pass(stage.proxy);
        client_woken(&first); /* without a signal */
        nothing_left(stage.port);
    }
}

/* It has not asked for three seconds. */
static void be_silent(struct stage *stage)
{
    EVENTUALLY(count(stage->port, "holdfast_cond WHERE called>0") == 1);
}

/* … and another waiter has deleted it. */
static void be_deleted(struct stage *stage)
{
    (void)mysql_do(stage->port, "DELETE FROM holdfast_ticket");
}

TEST_CALL(conditions, a_silent_bearer_in_line_passes_its_wake_up_on,
          take_bearer(be_silent))
TEST_CALL(conditions, a_bearer_that_was_deleted_passes_its_wake_up_on,
          take_bearer(be_deleted))

static void wait_and_die(struct proc *self, void *port)
{
    hf_client *client = mysql_open(*(int *)port, "retry.base=2ms&ttl=1s");
    hf_hold *hold = client_acquire(client, "jobs");

    proc_tell(self, "woken %d", hf_cond_wait(hold, "c", HF_FOREVER, NULL));
    (void)proc_hear(self);
}

TEST(conditions, a_killed_holder_passes_its_wake_up_on)
{
    int port = mysql_fresh();

    client_release(client_acquire(mysql_open(port, QUICK), "jobs"));
    for (int i = 0; i < rounds(); i++) {
        struct proc *victim = proc_start(wait_and_die, &port);
        hf_client *client = mysql_open(port, QUICK);
        struct client_wait second;

        EVENTUALLY(parked(port) == 1);
        second = park(port, client, 2);
        ASSERT_EQ(signal_one(mysql_open(port, QUICK)), 1);
        (void)proc_expect(victim, "woken 0");
        proc_kill(victim);
        client_woken(&second);
        nothing_left(port);
    }
}

/* Nobody else is woken by it any more. */
TEST(conditions, a_bearer_that_waits_again_has_used_its_wake_up_up)
{
    struct stage stage = set_up();
    struct client_wait first = park(stage.port, stage.waiter, 1);
    struct client_wait second = park(stage.port, stage.next, 2);

    ASSERT_EQ(signal_one(stage.next), 1);
    await_return(&first);
    first.request = client_wait_start(first.hold, "c");
    EVENTUALLY(parked(stage.port) == 2);
    ASSERT_EQ(count(stage.port, "holdfast_cond"), 2);
    ASSERT_EQ(signal_one(stage.next), 1);
    client_woken(&second);
    ASSERT_EQ(signal_one(stage.next), 1);
    client_woken(&first);
    nothing_left(stage.port);
}

/* ---- an answer is lost ---------------------------------------------------- */

/* What was sent is carried out, and its answer does not come. */
static void lose_answer(const struct stage *stage)
{
    proxy_reset(stage->proxy);
    proxy_pass(stage->proxy);
}

TEST(conditions, a_lost_answer_to_a_park_is_asked_for_again)
{
    struct stage stage = set_up();

    for (int i = 0; i < rounds(); i++) {
        struct client_wait wait = {.hold =
                                       client_acquire(stage.waiter, "jobs")};

        proxy_hold(stage.proxy, PROXY_TO_CLIENT, true);
        wait.request = client_wait_start(wait.hold, "c");
        EVENTUALLY(parked(stage.port) == 1);
        if (i % 2 == 1) /* it is called before it knows that it was parked */
            ASSERT_EQ(signal_one(stage.next), 1);
        lose_answer(&stage);
        if (i % 2 == 0)
            ASSERT_EQ(signal_one(stage.next), 1);
        client_woken(&wait);
        nothing_left(stage.port);
    }
}

TEST(conditions, a_lost_answer_to_a_signal_is_asked_for_again)
{
    struct stage stage = set_up();

    for (int i = 0; i < rounds(); i++) {
        struct client_wait first = park(stage.port, stage.next, 1);
        struct client_wait second = park(stage.port, stage.next, 2);
        hf_hold *hold = client_acquire(stage.signaller, "jobs");
        hf_request *request;
        hf_error err;

        proxy_hold(stage.proxy, PROXY_TO_CLIENT, true);
        ASSERT_OK(
            hf_cond_signal_start(hold, "c", 0, NULL, NULL, &request, &err),
            &err);
        EVENTUALLY(parked(stage.port) == 1);
        lose_answer(&stage);
        ASSERT_RC(hf_request_wait(request, EVENT_PATIENCE_MS, NULL, &err), 1,
                  &err); /* once more: it wakes the second */
        hf_request_free(request);
        client_release(hold);
        client_woken(&first);
        client_woken(&second);
        nothing_left(stage.port);
    }
}

/* It has used its wake-up up, and does not know; nobody else is woken. */
TEST(conditions, a_lost_answer_to_a_release_wakes_nobody)
{
    struct stage stage = set_up();

    for (int i = 0; i < rounds(); i++) {
        struct client_wait first = park(stage.port, stage.waiter, 1);
        struct client_wait second = park(stage.port, stage.next, 2);
        hf_request *request;
        hf_error err;

        ASSERT_EQ(signal_one(stage.next), 1);
        await_return(&first);
        proxy_hold(stage.proxy, PROXY_TO_CLIENT, true);
        ASSERT_OK(hf_release_start(first.hold, NULL, NULL, &request, &err),
                  &err);
        EVENTUALLY(count(stage.port, "holdfast_cond WHERE called>0") == 0);
        lose_answer(&stage);
        ASSERT_OK(hf_request_wait(request, EVENT_PATIENCE_MS, NULL, &err),
                  &err);
        hf_request_free(request);
        ASSERT_EQ(parked(stage.port), 1);
        ASSERT_EQ(signal_one(stage.next), 1);
        client_woken(&second);
        nothing_left(stage.port);
    }
}

/* ---- an administrator ----------------------------------------------------- */

static void forget_by(const char *statement)
{
    struct stage stage = set_up();
    struct client_wait wait = park(stage.port, stage.waiter, 1);

    (void)mysql_do(stage.port, "%s", statement);
    client_woken(&wait);
    wait = park(stage.port, stage.waiter, 1);
    ASSERT_EQ(signal_one(stage.next), 1);
    client_woken(&wait);
    nothing_left(stage.port);
}

TEST_CALL(conditions, whoever_is_forgotten_returns_holding,
          forget_by("DELETE FROM holdfast_cond"))
TEST_CALL(conditions, whoever_is_overdue_returns_holding,
          forget_by("UPDATE holdfast_cond SET until=1"))
TEST_CALL(conditions, a_table_that_is_dropped_ends_the_wait_and_is_made,
          forget_by("DROP TABLE holdfast_cond"))

TEST(conditions, a_table_that_is_dropped_is_made_for_a_release)
{
    struct stage stage = set_up();
    struct client_wait wait = park(stage.port, stage.waiter, 1);

    ASSERT_EQ(signal_one(stage.next), 1);
    await_return(&wait);
    (void)mysql_do(stage.port, "DROP TABLE holdfast_cond");
    client_release(wait.hold);
    nothing_left(stage.port);
}

static int count_any(const hf_lock_info *info, void *ctx)
{
    (void)info;
    ++*(int *)ctx;
    return 0;
}

/* As it is after an update of holdfast, for who may not make tables. */
TEST(conditions, who_may_not_make_the_table_lists_locks)
{
    struct stage stage = set_up();
    hf_client *client;
    hf_client *other;
    hf_hold *hold;
    int listed = 0;
    hf_error err;

    (void)mysql_do(stage.port, "DROP TABLE IF EXISTS holdfast_cond;"
                               "REVOKE CREATE ON locks.* FROM "
                               "locker@127.0.0.1");
    client = mysql_open(stage.port, QUICK); /* which the server asks again */
    other = mysql_open(stage.port, QUICK);
    hold = client_acquire(client, "jobs");
    ASSERT_EQ(client_count(other, "jobs", HF_HOLDER), 1);
    ASSERT_OK(hf_list(other, "", count_any, &listed, &err), &err);
    ASSERT_EQ(listed, 1);
    ASSERT_TRUE(hf_cond_wait(hold, "ready", 10, &err) < 0);
    ASSERT_EQ(hf_check(hold), HF_HELD);
    client_release(hold);
}

static long long until(int port)
{
    return atoll(mysql_do(port, "SELECT until FROM holdfast_cond"));
}

TEST(conditions, who_is_parked_stays_so_beyond_its_lease)
{
    int port = mysql_fresh();
    hf_client *client = mysql_open(port, QUICK "&ttl=1s");
    struct client_wait wait = start_wait(client);
    long long first;

    EVENTUALLY(client_count(client, "jobs", HF_PARKED) == 1);
    first = until(port);
    EVENTUALLY(until(port) > first + 1500000);
    ASSERT_EQ(hf_request_pending(wait.request), 1);
    ASSERT_EQ(signal_one(client), 1);
    client_woken(&wait);
    nothing_left(port);
}

TEST(conditions, who_is_parked_outlasts_a_restart_of_the_server)
{
    struct server *server = mysql_start(NULL);
    int port = server_port(server);
    hf_client *client = mysql_open(port, QUICK "&ttl=60s");
    struct client_wait wait = start_wait(client);

    EVENTUALLY(client_count(client, "jobs", HF_PARKED) == 1);
    server_kill(server);
    server_restart(server);
    EVENTUALLY(parked(port) == 1);
    ASSERT_EQ(signal_one(client), 1);
    client_woken(&wait);
    nothing_left(port);
}

/* ---- the dead ------------------------------------------------------------- */

#define DEAD "INSERT INTO holdfast_cond VALUES('jobs','a ticket','c',"

TEST(conditions, rows_of_the_dead_are_deleted)
{
    int port = mysql_fresh();
    hf_client *client = mysql_open(port, QUICK);
    struct client_wait wait = start_wait(client);

    EVENTUALLY(client_count(client, "jobs", HF_PARKED) == 1);
    ASSERT_EQ(signal_one(client), 1);
    client_woken(&wait);
    (void)mysql_do(port, DEAD "1,0,1,1,'')");
    (void)mysql_do(port, "INSERT INTO holdfast_cond VALUES('jobs','another',"
                         "'d',2,3,1,1,'')");
    ASSERT_EQ(client_count(client, "jobs", HF_PARKED), 0);
    (void)mysql_open(port, QUICK); /* after three seconds */
    nothing_left(port);
}

/* A wake-up is for those who were parked when it was signalled. */
TEST(conditions, a_wake_up_of_the_dead_is_not_for_who_parks_later)
{
    struct stage stage = set_up();
    struct client_wait wait = park(stage.port, stage.waiter, 1);

    ASSERT_EQ(signal_one(stage.next), 1);
    client_woken(&wait);
    (void)mysql_do(stage.port, DEAD "1,2,1,1,'')");
    wait = park(stage.port, stage.waiter, 1);
    EVENTUALLY(count(stage.port, "holdfast_cond WHERE called>0") == 0);
    ASSERT_EQ(parked(stage.port), 1);
    ASSERT_EQ(hf_request_pending(wait.request), 1);
    ASSERT_EQ(signal_one(stage.next), 1);
    client_woken(&wait);
    nothing_left(stage.port);
}

/* ---- lists ---------------------------------------------------------------- */

static int put_row(const hf_lock_info *info, void *text)
{
    (void)snprintf((char *)text + strlen(text), 256 - strlen(text), "%d %s %u;",
                   info->role, info->cond, info->place);
    return 0;
}

TEST(conditions, are_listed_with_their_places)
{
    struct stage stage = set_up();
    struct client_wait first = park(stage.port, stage.waiter, 1);
    struct client_wait second = park(stage.port, stage.next, 2);
    hf_hold *hold = client_acquire(stage.next, "jobs");
    hf_request *third = client_start(stage.waiter, "jobs");
    char text[256] = "";
    hf_error err;

    EVENTUALLY(client_count(stage.next, "jobs", HF_WAITER) == 1);
    ASSERT_OK(hf_list(stage.next, "", put_row, text, &err), &err);
    ASSERT_STREQ(text, "0  0;1  1;2 c 1;2 c 2;");
    ASSERT_EQ(hf_cond_broadcast(hold, "c", &err), 2);
    text[0] = '\0';
    ASSERT_OK(hf_show(stage.next, "jobs", put_row, text, &err), &err);
    ASSERT_STREQ(text, "0  0;1  1;1  2;1  3;");
    client_release(hold);
    client_release(client_finish(third));
    client_woken(&first);
    client_woken(&second);
    nothing_left(stage.port);
}

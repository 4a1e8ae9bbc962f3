/* SPDX-License-Identifier: MIT */
/*
 * deadlock.c - owners that wait for one another: found, named and, if they want,
 * broken. On engines with a board; hf_deadlocks() says which those are.
 */
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "contract.h"
#include "tempdir.h"

enum { RING = 5 };

static int count_cycle(const char *text, void *ctx)
{
    int *count = ctx;

    ASSERT_NOT_NULL(strstr(text, "waits for"));
    (*count)++;
    return 0;
}

static int cycles(hf_client *client)
{
    int count = 0;
    hf_error err;

    ASSERT_OK(hf_deadlocks(client, count_cycle, &count, &err), &err);
    return count;
}

static bool finds_deadlocks(void)
{
    hf_client *client = contract_open(NULL);
    int count = 0;
    int rc = hf_deadlocks(client, count_cycle, &count, NULL);

    contract_close(client);
    ASSERT_TRUE(rc == 0 || rc == HF_EUNSUPPORTED);
    if (rc != 0)
        test_not_tested("%s: the engine cannot tell who waits for whom",
                        test_name());
    return rc == 0;
}

/* What a client logs. */
struct log {
    struct event told;
    char text[512]; /* the first deadlock */
};

static void on_log(int level, const char *text, void *ctx)
{
    struct log *log = ctx;

    (void)level;
    if (strncmp(text, "deadlock: ", 10) != 0)
        return;
    if (event_count(&log->told) == 0)
        (void)snprintf(log->text, sizeof(log->text), "%s", text);
    event_tell(&log->told, 1);
}

static void close_logging(void *client)
{
    hf_close(client);
}

static hf_client *open_logging(const char *mode, struct log *log)
{
    hf_config *config = hf_config_new();
    hf_client *client;
    hf_error err;

    ASSERT_NOT_NULL(config);
    ASSERT_OK(hf_config_set(config, "deadlock", mode, &err), &err);
    hf_config_set_log(config, on_log, HF_LOG_WARNING, log);
    ASSERT_OK(hf_open(contract_url(NULL), config, &client, &err), &err);
    hf_config_free(config);
    test_defer(close_logging, client);
    return client;
}

/* A thread that holds one lock and waits for another. */
struct crossing {
    hf_client *client;
    const char *held;
    const char *wanted;
    int mode;
    int64_t wait_ms;
    struct event holds;
    struct event go;
    int rc;
    hf_error err;
    pthread_t thread;
};

static void *cross(void *arg)
{
    struct crossing *crossing = arg;
    hf_hold *held = contract_acquire(crossing->client, crossing->held);
    hf_opts opts = HF_OPTS_INIT;
    hf_hold *wanted;

    event_tell(&crossing->holds, 1);
    event_await(&crossing->go, 1, EVENT_PATIENCE_MS);
    opts.mode = crossing->mode;
    opts.wait_ms = crossing->wait_ms;
    crossing->rc = hf_acquire(crossing->client, crossing->wanted, &opts,
                              &wanted, &crossing->err);
    if (crossing->rc == 0)
        (void)hf_release(wanted, NULL);
    (void)hf_release(held, NULL);
    return NULL;
}

static void start_crossing(struct crossing *crossing)
{
    ASSERT_EQ(pthread_create(&crossing->thread, NULL, cross, crossing), 0);
    event_await(&crossing->holds, 1, EVENT_PATIENCE_MS);
}

static void run_two(struct crossing *one, struct crossing *two)
{
    start_crossing(one);
    start_crossing(two);
    event_tell(&one->go, 1);
    event_tell(&two->go, 1);
}

static void join_two(struct crossing *one, struct crossing *two)
{
    ASSERT_EQ(pthread_join(one->thread, NULL), 0);
    ASSERT_EQ(pthread_join(two->thread, NULL), 0);
}

/* Both directions of two owners, each with a client of its own. */
struct pair {
    struct log logs[2];
    struct crossing one;
    struct crossing two;
};

static void make_pair(struct pair *pair, const char *mode, int64_t wait_ms)
{
    const char *a = contract_name("a");
    const char *b = contract_name("b");

    *pair = (struct pair){.logs = {{.told = EVENT_INIT}, {.told = EVENT_INIT}},
                          .one = {.held = a,
                                  .wanted = b,
                                  .wait_ms = wait_ms,
                                  .holds = EVENT_INIT,
                                  .go = EVENT_INIT},
                          .two = {.held = b,
                                  .wanted = a,
                                  .wait_ms = wait_ms,
                                  .holds = EVENT_INIT,
                                  .go = EVENT_INIT}};
    pair->one.client = open_logging(mode, &pair->logs[0]);
    pair->two.client = open_logging(mode, &pair->logs[1]);
}

TEST(deadlock, two_owners_are_reported_and_go_on_waiting)
{
    static struct pair pair;
    hf_client *looker;
    char expected[64];

    if (!finds_deadlocks())
        return;
    make_pair(&pair, "report", 8000);
    looker = contract_open(NULL);
    run_two(&pair.one, &pair.two);
    event_await(&pair.logs[0].told, 1, EVENT_PATIENCE_MS);
    event_await(&pair.logs[1].told, 1, EVENT_PATIENCE_MS);
    ASSERT_EQ(cycles(looker), 1);
    ASSERT_EQ(client_finding(looker, "deadlock"), HF_FINDING_WARN);
    ASSERT_GT(contract_metric(pair.one.client, "holdfast_deadlocks_total"), 0);
    join_two(&pair.one, &pair.two);
    ASSERT_TRUE(pair.one.rc == HF_ETIMEOUT || pair.two.rc == HF_ETIMEOUT);
    (void)snprintf(expected, sizeof(expected), ":%d waits for %s held by ",
                   (int)getpid(), pair.one.wanted);
    if (!strstr(pair.logs[0].text, expected))
        FAIL("not in \"%s\": %s", pair.logs[0].text, expected);
    EVENTUALLY(cycles(looker) == 0);
}

TEST(deadlock, of_two_owners_one_gives_way)
{
    static struct pair pair;
    const hf_error *err;

    if (!finds_deadlocks())
        return;
    make_pair(&pair, "break", EVENT_PATIENCE_MS);
    run_two(&pair.one, &pair.two);
    join_two(&pair.one, &pair.two);
    ASSERT_EQ((pair.one.rc == HF_EDEADLK) + (pair.two.rc == HF_EDEADLK), 1);
    ASSERT_EQ((pair.one.rc == 0) + (pair.two.rc == 0), 1);
    err = pair.one.rc != 0 ? &pair.one.err : &pair.two.err;
    ASSERT_EQ(err->code, HF_EDEADLK);
    if (!strstr(err->text, " held by ") || !strstr(err->text, pair.one.held) ||
        !strstr(err->text, pair.two.held))
        FAIL("does not name the cycle: %s", err->text);
}

/* Its own client cannot give way: the other one is the victim. */
TEST(deadlock, who_only_reports_is_no_victim)
{
    static struct pair pair;

    if (!finds_deadlocks())
        return;
    make_pair(&pair, "report", EVENT_PATIENCE_MS);
    pair.one.client = open_logging("break", &pair.logs[0]);
    run_two(&pair.one, &pair.two);
    join_two(&pair.one, &pair.two);
    ASSERT_EQ(pair.one.rc, HF_EDEADLK);
    ASSERT_EQ(pair.two.rc, 0);
}

TEST(deadlock, off_neither_posts_nor_looks)
{
    static struct pair pair;
    hf_client *looker;

    if (!finds_deadlocks())
        return;
    make_pair(&pair, "off", 2500);
    looker = contract_open(NULL);
    run_two(&pair.one, &pair.two);
    EVENTUALLY(client_count(looker, pair.one.held, HF_WAITER) == 1);
    ASSERT_EQ(cycles(looker), 0);
    join_two(&pair.one, &pair.two);
    ASSERT_EQ(event_count(&pair.logs[0].told), 0);
    ASSERT_EQ(event_count(&pair.logs[1].told), 0);
}

/* A line of waiters, whose first holder works: nobody is stuck. */
TEST(deadlock, waits_without_a_cycle_are_no_deadlock)
{
    static struct pair pair;
    hf_client *worker;
    hf_hold *work;

    if (!finds_deadlocks())
        return;
    make_pair(&pair, "break", EVENT_PATIENCE_MS);
    worker = contract_open(NULL);
    pair.two.wanted = contract_name("c");
    work = contract_acquire(worker, pair.two.wanted);
    run_two(&pair.one, &pair.two);
    /* Both are looked for twice in this time. */
    ASSERT_TRUE(event_is_silent(&pair.logs[0].told, 1, 3000));
    ASSERT_EQ(event_count(&pair.logs[1].told), 0);
    ASSERT_EQ(cycles(worker), 0);
    client_release(work);
    join_two(&pair.one, &pair.two);
    ASSERT_EQ(pair.one.rc, 0);
    ASSERT_EQ(pair.two.rc, 0);
}

/* ---- processes ------------------------------------------------------------------- */

struct member {
    const char *held_url;
    const char *wanted_url;
    const char *held;
    const char *wanted;
};

/* Holds by one client, and waits by another. */
static void member_main(struct proc *self, void *arg)
{
    const struct member *member = arg;
    hf_client *holding = contract_open_url(member->held_url);
    hf_client *waiting = contract_open_url(member->wanted_url);
    hf_hold *held = contract_acquire(holding, member->held);
    hf_hold *wanted;
    hf_error err;
    int rc;

    proc_tell(self, "holds");
    (void)proc_hear(self);
    rc = hf_acquire(waiting, member->wanted, NULL, &wanted, &err);
    proc_tell(self, "%s %s", hf_errname(rc), rc == 0 ? "" : err.text);
    if (rc == 0)
        (void)hf_release(wanted, NULL);
    (void)hf_release(held, NULL);
    contract_close(waiting);
    contract_close(holding);
}

/* All hold before the first of them waits. */
static void start_members(struct proc **procs, struct member *members, int n)
{
    for (int i = 0; i < n; i++)
        procs[i] = proc_start(member_main, &members[i]);
    for (int i = 0; i < n; i++)
        (void)proc_expect(procs[i], "holds");
    for (int i = 0; i < n; i++)
        proc_say(procs[i], "go");
}

/* Did it give way, and name every lock of the cycle? */
static bool is_victim(struct proc *proc, const struct member *members, int n)
{
    const char *line = proc_next(proc, EVENT_PATIENCE_MS);

    ASSERT_NOT_NULL(line);
    if (strncmp(line, "HF_EDEADLK", 10) != 0) {
        if (strncmp(line, "HF_OK", 5) != 0)
            FAIL("a member: %s", line);
        return false;
    }
    for (int i = 0; i < n; i++)
        ASSERT_NOT_NULL(strstr(line, members[i].held));
    return true;
}

static void expect_one_victim(struct proc **procs, struct member *members,
                              int n)
{
    int64_t began_ms = clock_ms();
    int victims = 0;

    for (int i = 0; i < n; i++)
        victims += is_victim(procs[i], members, n);
    printf("# %s: broken within %lld ms\n", test_name(),
           (long long)(clock_ms() - began_ms));
    ASSERT_EQ(victims, 1);
    for (int i = 0; i < n; i++)
        proc_join(procs[i]);
}

TEST(deadlock, five_processes_are_named_and_one_gives_way)
{
    static const char *const bases[RING] = {"r0", "r1", "r2", "r3", "r4"};
    static struct member members[RING];
    struct proc *procs[RING];
    const char *url = contract_url("deadlock=break");

    if (!finds_deadlocks())
        return;
    for (int i = 0; i < RING; i++)
        members[i] = (struct member){url, url, contract_name(bases[i]),
                                     contract_name(bases[(i + 1) % RING])};
    start_members(procs, members, RING);
    expect_one_victim(procs, members, RING);
}

/* Each store sees a holder and a waiter, and neither sees the cycle. */
TEST(deadlock, over_two_stores_is_found)
{
    static struct member members[2];
    struct proc *procs[2];
    const char *here = contract_url("deadlock=break");
    const char *there = test_text("local://%s?deadlock=break", tempdir_new());
    const char *a = contract_name("a");
    const char *b = contract_name("b");

    if (!finds_deadlocks())
        return;
    members[0] = (struct member){here, there, a, b};
    members[1] = (struct member){there, here, b, a};
    start_members(procs, members, 2);
    expect_one_victim(procs, members, 2);
}

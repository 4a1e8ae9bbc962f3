/* SPDX-License-Identifier: MIT */
/*
 * zookeeper_fault_test.c - what networks, administrators and servers do to
 * locks on an ensemble of three.
 */
#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "engines/zookeeper/zookeeper.h"
#include "proc.h"
#include "zookeeper.h"

/* Quick to ask again; a lease that an election on a busy machine outlasts would
 * be lost, and rightly. */
#define QUICK "ttl=30s&retry.base=1ms&retry.max_interval=50ms"

/* Was LOST ever told? */
static bool was_lost(struct event *events)
{
    for (int i = 0; i < event_count(events) && i < 64; i++) {
        if (events->values[i] == HF_LOST)
            return true;
    }
    return false;
}

/* It is held, by the same grant, and the server says so. */
static void assert_kept(hf_hold *hold, uint64_t token, struct event *events)
{
    EVENTUALLY(hf_verify(hold, NULL) == 0);
    EVENTUALLY(hf_check(hold) == HF_HELD);
    ASSERT_FALSE(was_lost(events));
    ASSERT_EQ(hf_token(hold), token);
}

static void assert_nothing_left(hf_client *client, const char *name)
{
    ASSERT_EQ(client_count(client, name, HF_HOLDER), 0);
    ASSERT_EQ(client_count(client, name, HF_WAITER), 0);
}

/* ---- servers ------------------------------------------------------------ */

TEST(server, a_leader_that_is_killed_takes_no_lock_with_it)
{
    struct event events = EVENT_INIT;
    hf_client *client;
    hf_client *rival;
    hf_hold *hold;
    hf_error err;

    ensemble();
    client = client_open(ensemble_url(QUICK));
    rival = client_open(ensemble_url(QUICK));
    hold = client_acquire_told(client, "held", &events);
    ensemble_kill(ensemble_leader());
    assert_kept(hold, hf_token(hold), &events);
    EVENTUALLY(client_try(rival, "held", &err) == HF_EBUSY);
    client_release(hold);
    client_release(client_acquire(rival, "held"));
    assert_nothing_left(rival, "held");
}

static void *wait_for_it(void *arg)
{
    return client_acquire(arg, "waited");
}

TEST(server, a_leader_that_is_killed_costs_nobody_his_place)
{
    struct event events = EVENT_INIT;
    hf_client *client;
    hf_client *waiter;
    void *got = NULL;
    pthread_t thread;
    hf_hold *hold;

    ensemble();
    client = client_open(ensemble_url(QUICK));
    waiter = client_open(ensemble_url(QUICK));
    hold = client_acquire_told(client, "waited", &events);
    ASSERT_EQ(pthread_create(&thread, NULL, wait_for_it, waiter), 0);
    EVENTUALLY(client_count(client, "waited", HF_WAITER) == 1);
    ensemble_kill(ensemble_leader());
    EVENTUALLY(hf_verify(hold, NULL) == 0);
    ASSERT_FALSE(was_lost(&events));
    client_release(hold);
    (void)pthread_join(thread, &got);
    ASSERT_NOT_NULL(got);
    client_release(got);
    assert_nothing_left(client, "waited");
}

/* A hold through proxies; returns the server that it is at. */
static int hold_by_detour(struct detour *detour, const char *query,
                          struct event *events, hf_hold **ret_hold)
{
    ensemble();
    detour_start(detour);
    *ret_hold = client_acquire_told(client_open(detour_url(detour, query)),
                                    "far", events);
    return detour_server(detour);
}

TEST(server, one_that_is_stopped_is_left_for_another)
{
    struct event events = EVENT_INIT;
    struct detour detour;
    hf_hold *hold;
    int server = hold_by_detour(&detour, "ttl=30s&io_timeout=2s&retry.base=1ms",
                                &events, &hold);

    ensemble_stop(server);
    assert_kept(hold, hf_token(hold), &events); /* the others tell */
    ASSERT_TRUE(proxy_connections(detour.proxies[(server + 1) % SERVERS]) > 0 ||
                proxy_connections(detour.proxies[(server + 2) % SERVERS]) > 0);
    client_release(hold);
    ensemble_continue(server);
}

TEST(server, without_a_majority_jeopardy_and_then_loss_are_told_in_time)
{
    struct event events = EVENT_INIT;
    hf_client *client;
    uint64_t token;
    hf_hold *hold;
    int alone;

    ensemble();
    client = client_open(ensemble_url("ttl=2s&retry.base=1ms"));
    hold = client_acquire_told(client, "minority", &events);
    token = hf_token(hold);
    alone = (ensemble_leader() + 1) % SERVERS;
    for (int i = 0; i < SERVERS; i++)
        if (i != alone)
            ensemble_stop(i);
    event_await(&events, 2, EVENT_PATIENCE_MS);
    ASSERT_EQ(events.values[0], HF_JEOPARDY);
    EVENTUALLY(hf_check(hold) == HF_LOST);
    ASSERT_EQ(hf_remaining_ms(hold), 0);
    ASSERT_EQ(hf_release(hold, NULL), HF_ELOST);
    ensemble();
    hold = client_acquire(client_open(ensemble_url(QUICK)), "minority");
    ASSERT_GT(hf_token(hold), token);
    client_release(hold);
}

/* The holder's server is cut off: no byte passes between it and the other two,
 * while all three run. */
TEST(server, cut_off_by_the_network_loses_its_locks_before_another_holds)
{
    struct event events = EVENT_INIT;
    hf_client *client;
    hf_client *rival;
    hf_hold *hold;
    hf_hold *next;
    hf_error err;
    char url[128];
    int rc;

    ensemble_linked();
    (void)snprintf(url, sizeof(url), "zk://127.0.0.1:%d/locks?%s",
                   ensemble_port(0), "ttl=3s&retry.base=1ms");
    client = client_open(url);
    (void)snprintf(url, sizeof(url), "zk://127.0.0.1:%d,127.0.0.1:%d/locks?%s",
                   ensemble_port(1), ensemble_port(2),
                   "ttl=30s&io_timeout=15s");
    rival = client_open(url);
    hold = client_acquire_told(client, "cut off", &events);
    ensemble_cut(0);
    next = client_acquire(rival, "cut off");
    ASSERT_EQ(hf_check(hold), HF_LOST);
    ASSERT_GT(hf_token(next), hf_token(hold));
    client_told_lost(&events);
    ASSERT_EQ(hf_release(hold, NULL), HF_ELOST);
    /* The two that are left may still be at their election. */
    rc = hf_release(next, &err);
    ASSERT_TRUE(rc == 0 || rc == HF_EUNKNOWN);
    next = client_acquire(rival, "cut off");
    ASSERT_EQ(hf_check(next), HF_HELD);
    (void)hf_release(next, NULL);
}

TEST(server, that_reaps_the_locks_node_is_no_obstacle)
{
    hf_client *client;

    ensemble();
    client = client_open(ensemble_url(QUICK));
    for (int i = 0; i < 3; i++) {
        hf_hold *hold = client_acquire(client, "reaped");
        int nodes = zk_nodes(client); /* with the board of long waits */

        client_release(hold);
        EVENTUALLY(zk_nodes(client) < nodes);
    }
    client_release(client_acquire(client, "reaped"));
}

static const char *url_of(int server)
{
    static char urls[4][160];
    static int at;
    char *url = urls[at++ % 4];

    (void)snprintf(url, sizeof(urls[0]), "zk://127.0.0.1:%d/locks?" QUICK,
                   ensemble_port(server));
    return url;
}

/* A follower may apply what the leader has committed before the leader does. */
TEST(list, at_the_leader_knows_what_a_follower_has_answered)
{
    hf_client *follower;
    hf_client *leader;
    int at;

    ensemble();
    at = ensemble_leader();
    leader = client_open(url_of(at));
    follower = client_open(url_of((at + 1) % SERVERS));
    for (int i = 0; i < 1000; i++) {
        hf_hold *hold = client_acquire(follower, "listed");

        client_release(hold);
        assert_nothing_left(leader, "listed");
    }
}

static int see_alive(const hf_lock_info *info, void *ctx)
{
    ASSERT_EQ(info->alive, 1); /* the node is there while its session is */
    ++*(int *)ctx;
    return 0;
}

TEST(list, tells_that_a_holder_is_alive)
{
    hf_client *client;
    hf_hold *hold;
    hf_error err;
    int rows = 0;

    ensemble();
    client = client_open(ensemble_url(QUICK));
    hold = client_acquire(client, "alive");
    ASSERT_OK(hf_show(client, "alive", see_alive, &rows, &err), &err);
    ASSERT_EQ(rows, 1);
    client_release(hold);
}

/* ---- connections -------------------------------------------------------- */

TEST(connection, that_is_cut_moves_to_another_server_and_keeps_its_hold)
{
    struct event events = EVENT_INIT;
    struct detour detour;
    hf_hold *hold;
    int server =
        hold_by_detour(&detour, "ttl=39s&retry.base=1ms", &events, &hold);

    proxy_refuse(detour.proxies[server], true);
    proxy_reset(detour.proxies[server]);
    /* At once, not with the next renewal, which is 13 s away. */
    event_await(&events, 1, 10000);
    ASSERT_LE(events.values[0], HF_JEOPARDY); /* or HELD again already */
    assert_kept(hold, hf_token(hold), &events);
    ASSERT_NE(detour_server(&detour), server);
    client_release(hold);
}

/* The one server of the URL falls silent: no answer, no end of the connection. */
TEST(connection, that_falls_silent_is_told_as_lost_before_another_holds)
{
    struct event events = EVENT_INIT;
    struct proxy *proxy;
    hf_client *rival;
    hf_hold *next;
    hf_hold *hold;
    hf_error err;
    int64_t start_ms;
    clock_t start;
    char url[128];

    ensemble();
    proxy = proxy_start(ensemble_port(0));
    (void)snprintf(url, sizeof(url), "zk://127.0.0.1:%d/locks?ttl=3s",
                   proxy_port(proxy));
    hold = client_acquire_told(client_open(url), "silent", &events);
    rival = client_open(ensemble_url("ttl=30s&io_timeout=15s"));
    ASSERT_OK(hf_verify(hold, &err), &err);
    start_ms = clock_ms();
    start = clock();
    proxy_hold(proxy, PROXY_TO_SERVER, true);
    proxy_hold(proxy, PROXY_TO_CLIENT, true);
    next = client_acquire(rival, "silent");
    ASSERT_TRUE(was_lost(&events)); /* told, and nobody had to ask */
    ASSERT_LT((clock() - start) / (CLOCKS_PER_SEC / 1000),
              (clock_ms() - start_ms) /
                  10); /* nor does the loop turn in vain */
    ASSERT_EQ(hf_release(hold, NULL), HF_ELOST);
    client_release(next);
    proxy_reset(proxy);
}

/* A create that the server carries out, and whose answer never arrives. It is
 * in line, so that the lock's node is there. */
static hf_request *lose_the_answer(const char *query, hf_client *other,
                                   const char *name)
{
    struct detour detour;
    struct proxy *proxy;
    hf_request *request;
    hf_client *client;

    detour_start(&detour);
    client = client_open(detour_url(&detour, query));
    proxy = detour.proxies[detour_server(&detour)];
    proxy_hold(proxy, PROXY_TO_CLIENT, true);
    request = client_start(client, name);
    EVENTUALLY(client_count(other, name, HF_WAITER) == 1);
    proxy_reset(proxy);
    proxy_pass(proxy);
    return request;
}

static void adopt(const char *query)
{
    hf_client *other;
    hf_request *request;
    hf_hold *held;
    hf_hold *hold;
    hf_error err;

    ensemble();
    other = client_open(ensemble_url(query));
    held = client_acquire(other, "adopted");
    request = lose_the_answer(query, other, "adopted");
    client_release(held);
    ASSERT_OK(hf_request_wait(request, EVENT_PATIENCE_MS, &hold, &err), &err);
    ASSERT_GT(hf_token(hold), 0);
    ASSERT_EQ(client_count(other, "adopted", HF_HOLDER), 1);
    ASSERT_EQ(client_count(other, "adopted", HF_WAITER), 0);
    ASSERT_EQ(hf_check_token(other, "adopted", hf_token(hold), NULL), 0);
    client_release(hold);
    assert_nothing_left(other, "adopted");
    hf_request_free(request);
}

static void give_up(const char *query)
{
    hf_client *other;
    hf_request *request;
    hf_hold *held;

    ensemble();
    other = client_open(ensemble_url(query));
    held = client_acquire(other, "orphan");
    request = lose_the_answer(query, other, "orphan");
    hf_cancel(request);
    hf_request_free(request);
    EVENTUALLY(client_count(other, "orphan", HF_WAITER) == 0);
    client_release(held);
    assert_nothing_left(other, "orphan");
}

TEST(connection, lost_between_create_and_answer_leaves_one_node_that_is_ours)
{
    adopt(QUICK);
}

TEST(connection, lost_between_create_and_answer_leaves_no_orphan)
{
    give_up(QUICK);
}

/* These nodes do not tell by their names whose they are. */
TEST(medallion, whose_answer_is_lost_has_one_node_that_is_ours_or_none)
{
    adopt(QUICK "&dialect=medallion");
    give_up(QUICK "&dialect=medallion");
}

TEST(medallion, writes_the_nodes_of_its_library)
{
    hf_opts opts = HF_OPTS_INIT;
    hf_client *locks;
    hf_client *readers;
    hf_hold *reading;
    hf_hold *writing;
    hf_hold *hold;
    hf_error err;

    ensemble();
    locks = client_open(ensemble_url(QUICK "&dialect=medallion"));
    readers = client_open(ensemble_url(QUICK "&dialect=medallion-rw"));
    hold = client_acquire(locks, "dotnet");
    writing = client_acquire(readers, "dotnet.write");
    opts.mode = HF_SHARED;
    ASSERT_OK(hf_acquire(readers, "dotnet.read", &opts, &reading, &err), &err);
    ASSERT_HAS(ensemble_ephemerals(), "/locks/dotnet/lock-0000000000\n");
    ASSERT_HAS(ensemble_ephemerals(), "/locks/dotnet.write/write-0000000000\n");
    ASSERT_HAS(ensemble_ephemerals(), "/locks/dotnet.read/read-0000000000\n");
    client_release(hold);
    client_release(reading);
    client_release(writing);
    opts.mode = HF_SLOT;
    opts.slots = 2;
    ASSERT_RC(hf_acquire(locks, "dotnet.slots", &opts, &hold, &err),
              HF_EUNSUPPORTED, &err);
}

TEST(connection, that_is_away_when_its_watch_fires_misses_nothing)
{
    struct detour detour;
    hf_client *holder;
    hf_client *waiter;
    hf_request *request;
    hf_hold *hold;
    hf_error err;

    ensemble();
    detour_start(&detour);
    waiter = client_open(detour_url(&detour, QUICK));
    holder = client_open(ensemble_url(QUICK));
    hold = client_acquire(holder, "missed");
    request = client_start(waiter, "missed");
    EVENTUALLY(client_count(holder, "missed", HF_WAITER) == 1);
    for (int i = 0; i < SERVERS; i++) {
        proxy_refuse(detour.proxies[i], true);
        proxy_reset(detour.proxies[i]);
    }
    client_release(hold);
    for (int i = 0; i < SERVERS; i++)
        proxy_pass(detour.proxies[i]);
    ASSERT_OK(hf_request_wait(request, 10000, &hold, &err), &err);
    client_release(hold);
    hf_request_free(request);
    assert_nothing_left(holder, "missed");
}

/* What is garbled on the way to the server may be a node that nobody asked for:
 * it ends with its session. */
TEST(connection, that_garbles_what_it_carries_does_no_harm_beyond_its_session)
{
    struct detour detour;
    hf_client *client;
    hf_hold *hold = NULL;
    hf_error err;

    ensemble();
    detour_start(&detour);
    ASSERT_OK(hf_open(detour_url(&detour, "ttl=2s&io_timeout=300ms"), NULL,
                      &client, &err),
              &err);
    for (int i = 0; i < SERVERS; i++)
        proxy_corrupt(detour.proxies[i], 97);
    for (int i = 0; i < 40; i++) {
        if (hf_acquire(client, "garbled", WITHIN(20), &hold, &err) == 0)
            (void)hf_release(hold, NULL);
    }
    hf_close(client);
    client = client_open(ensemble_url(QUICK));
    client_release(client_acquire(client, "garbled"));
    assert_nothing_left(client, "garbled");
}

/* A client that watches its node hears when it goes, also if it did that itself. */
TEST(session, that_downgrades_does_not_take_it_for_a_loss)
{
    struct event events = EVENT_INIT;
    hf_client *client;
    hf_hold *hold;
    hf_error err;

    ensemble();
    client = client_open(ensemble_url(QUICK));
    for (int i = 0; i < 10; i++) {
        hold = client_acquire_told(client, "downgraded", &events);
        ASSERT_OK(hf_verify(hold, &err), &err); /* watches its node */
        ASSERT_OK(hf_downgrade(hold, &err), &err);
        ASSERT_OK(hf_verify(hold, &err), &err);
        ASSERT_EQ(hf_check(hold), HF_HELD);
        client_release(hold);
        assert_nothing_left(client, "downgraded");
    }
    ASSERT_EQ(event_count(&events), 0);
}

/* Its node among the leases goes when it may have the slot, and before it has
 * left the line for the mutex: the slot may be another's by now. */
static void lose_a_node_among_the_leases(void)
{
    hf_opts opts = HF_OPTS_INIT;
    hf_request *request;
    hf_client *other;
    hf_hold *first;
    hf_hold *hold;
    hf_error err;
    char url[160];
    struct proxy *proxy = proxy_start(ensemble_port(0));

    (void)snprintf(url, sizeof(url),
                   "zk://127.0.0.1:%d/locks?dialect=curator-semaphore&"
                   "ttl=3s&io_timeout=60s&retry.base=1ms",
                   proxy_port(proxy));
    other = client_open(ensemble_url(QUICK "&dialect=curator-semaphore"));
    opts.mode = HF_SLOT;
    opts.slots = 1;
    ASSERT_OK(hf_acquire(other, "pool", &opts, &first, &err), &err);
    opts.owner = "late";
    ASSERT_OK(hf_acquire_start(client_open(url), "pool", &opts, NULL, NULL,
                               &request, &err),
              &err);
    EVENTUALLY(client_count(other, "pool", HF_WAITER) == 1);
    proxy_hold_at(proxy, PROXY_TO_SERVER,
                  "-lease-"); /* it knows that it waits */
    EVENTUALLY(proxy_holds(proxy) == 1);
    proxy_hold_at(proxy, PROXY_TO_SERVER, NULL);
    proxy_hold_at(proxy, PROXY_TO_CLIENT, "-lease-"); /* that it is the first */
    client_release(first);
    EVENTUALLY(proxy_holds(proxy) == 1);
    proxy_hold_at(proxy, PROXY_TO_SERVER, "-lease-"); /* is it still there? */
    EVENTUALLY(proxy_holds(proxy) == 2);
    ASSERT_OK(hf_break(other, "pool", 0, "late", &err), &err);
    proxy_hold_at(proxy, PROXY_TO_SERVER, NULL);
    proxy_hold_at(proxy, PROXY_TO_CLIENT, NULL);
    ASSERT_OK(hf_request_wait(request, EVENT_PATIENCE_MS, &hold, &err), &err);
    ASSERT_EQ(client_count(other, "pool", HF_HOLDER), 1);
    ASSERT_EQ(hf_check_token(other, "pool", hf_token(hold), NULL), 0);
    client_release(hold);
    hf_request_free(request);
    assert_nothing_left(other, "pool");
}

TEST(semaphore, whose_node_goes_before_it_has_passed_is_not_granted_by_it)
{
    ensemble();
    for (int i = 0; i < 3; i++)
        lose_a_node_among_the_leases();
}

static void *commit(void *arg)
{
    static int rc;
    uint64_t version;

    rc = hf_version_commit(arg, "versioned", 0, &version, NULL);
    return &rc;
}

TEST(version, whose_answer_is_lost_is_unknown)
{
    struct proxy *proxy;
    pthread_t thread;
    void *rc = NULL;
    char url[128];

    ensemble();
    proxy = proxy_start(ensemble_port(0));
    (void)snprintf(url, sizeof(url),
                   "zk://127.0.0.1:%d/locks?ttl=30s&io_timeout=60s",
                   proxy_port(proxy));
    /* What only the request has that makes a node: its access list. */
    proxy_hold_at(proxy, PROXY_TO_SERVER, "anyone");
    ASSERT_EQ(pthread_create(&thread, NULL, commit, client_open(url)), 0);
    EVENTUALLY(proxy_holds(proxy));
    proxy_reset(proxy);
    (void)pthread_join(thread, &rc);
    ASSERT_EQ(*(int *)rc, HF_EUNKNOWN);
}

/* ---- sessions ----------------------------------------------------------- */

static void hold_it(struct proc *self, void *arg)
{
    hf_client *client = client_open(arg);
    hf_hold *hold = client_acquire(client, "paused");

    proc_tell(self, "holds %llu", (unsigned long long)hf_token(hold));
    (void)proc_hear(self);
    proc_tell(self, "check %d", hf_check(hold));
    proc_tell(self, "release %s", hf_errname(hf_release(hold, NULL)));
    hold = client_acquire(client, "paused"); /* in a new session */
    proc_tell(self, "again %llu", (unsigned long long)hf_token(hold));
    (void)hf_release(hold, NULL);
}

TEST(session, that_expires_in_a_pause_is_told_and_replaced)
{
    unsigned long long first = 0;
    unsigned long long again = 0;
    struct proc *proc;
    hf_hold *hold;

    ensemble();
    proc = proc_start(hold_it, (void *)(uintptr_t)ensemble_url("ttl=700ms"));
    ASSERT_EQ(sscanf(proc_expect(proc, "holds"), "holds %llu", &first), 1);
    proc_stop(proc);
    hold = client_acquire(client_open(ensemble_url(QUICK)), "paused");
    ASSERT_GT(hf_token(hold), first);
    proc_say(proc, "go");
    proc_continue(proc);
    (void)proc_expect(proc, "check 2");
    (void)proc_expect(proc, "release HF_ELOST");
    ASSERT_EQ(hf_check(hold), HF_HELD);
    first = hf_token(hold);
    client_release(hold);
    ASSERT_EQ(sscanf(proc_expect(proc, "again"), "again %llu", &again), 1);
    ASSERT_GT(again, first);
    proc_join(proc);
}

TEST(session, with_lock_delay_is_free_at_once_when_it_is_released)
{
    hf_client *client;
    hf_client *rival;
    hf_hold *hold;
    hf_error err;

    ensemble();
    client = client_open(ensemble_url("ttl=2s&lock_delay=30s"));
    rival = client_open(ensemble_url(QUICK));
    hold = client_acquire(client, "released");
    ASSERT_LE(hf_remaining_ms(hold), 2000);
    client_release(hold);
    ASSERT_OK(client_try(rival, "released", &err), &err);
}

static void is_refused(const char *query, const char *why)
{
    hf_client *client;
    hf_error err;

    ensemble();
    ASSERT_RC(hf_open(ensemble_url(query), NULL, &client, &err), HF_ECONFIG,
              &err);
    ASSERT_HAS(err.text, why);
}

/* The servers of these tests allow a minute. */
TEST(session, that_the_servers_make_too_short_for_lock_delay_is_refused)
{
    is_refused("lock_delay=10m", "maxSessionTimeout");
}

/* ---- the doctor --------------------------------------------------------- */

struct seen {
    int leaders; /* servers, by what they say */
    int followers;
    int unfit;
    int affected; /* servers whose version may lose data */
    int warned;   /* of them */
    bool session; /* what was asked for is granted */
    bool rights;
    bool clock;
};

static bool is_found(const hf_finding *finding, const char *check,
                     const char *text)
{
    return strcmp(finding->check, check) == 0 && strstr(finding->detail, text);
}

static int see(const hf_finding *finding, void *ctx)
{
    struct seen *seen = ctx;

    seen->leaders += is_found(finding, "member", ", leader, version 3.");
    seen->followers += is_found(finding, "member", ", follower, version 3.");
    seen->unfit +=
        is_found(finding, "member", "") && finding->status != HF_FINDING_OK;
    if (is_found(finding, "member", "version "))
        seen->affected += hf__zk_doctor_members_may_differ(
            strstr(finding->detail, "version ") + strlen("version "));
    seen->warned += is_found(finding, "copies", "may lose writes") &&
                    finding->status == HF_FINDING_WARN;
    seen->session |= is_found(finding, "session timeout",
                              "51429 ms granted, 51429 ms asked");
    seen->rights |= is_found(finding, "rights", "nodes can be made");
    seen->clock |= is_found(finding, "clock", "clock is 0 s from ours");
    return 0;
}

static int count_unfit(hf_client *client)
{
    struct seen seen = {0};

    return hf_doctor(client, see, &seen, NULL) == 0 ? seen.unfit : -1;
}

TEST(doctor, asks_every_server_and_tries_what_locks_need)
{
    struct seen seen = {0};
    hf_client *client;
    hf_error err;

    ensemble();
    client = client_open(ensemble_url("ttl=30s&io_timeout=15s"));
    ASSERT_OK(hf_doctor(client, see, &seen, &err), &err);
    ASSERT_EQ(seen.leaders, 1);
    ASSERT_EQ(seen.followers, 2);
    ASSERT_EQ(seen.unfit, 0);
    ASSERT_EQ(seen.warned, seen.affected);
    ASSERT_TRUE(seen.session);
    ASSERT_TRUE(seen.rights);
    ASSERT_TRUE(seen.clock);
    ensemble_kill((ensemble_leader() + 1) % SERVERS);
    EVENTUALLY(count_unfit(client) == 1);
}

/* ---- the root of the tree ------------------------------------------------- */

TEST(root, holds_locks_where_two_slashes_ask_for_it)
{
    char url[128];
    hf_client *client;
    hf_hold *hold;
    hf_error err;

    ensemble();
    (void)snprintf(url, sizeof(url), "zk://127.0.0.1:%d//?" QUICK,
                   ensemble_port(0));
    client = client_open(url);
    hold = client_acquire(client, "test");
    ASSERT_HAS(ensemble_ephemerals(), "\t/test/_c_");
    ASSERT_EQ(client_count(client, "test", HF_HOLDER), 1);
    ASSERT_GT(zk_nodes(client), 1); /* this one, and /zookeeper */
    ASSERT_EQ(hf_check_token(client, "test", hf_token(hold), NULL), 0);
    ASSERT_EQ(count_unfit(client), 0);
    /* The path of one slash is another place, and so is none. */
    (void)snprintf(url, sizeof(url), "zk://127.0.0.1:%d/?" QUICK,
                   ensemble_port(0));
    ASSERT_OK(client_try(client_open(url), "test", &err), &err);
    client_release(hold);
}

/* ---- rights ------------------------------------------------------------- */

static const char *url_as(const char *credentials, const char *query)
{
    static char urls[4][300];
    static int at;
    char *url = urls[at++ % 4];

    (void)snprintf(url, sizeof(urls[0]), "zk://%s@127.0.0.1:%d/private?%s",
                   credentials, ensemble_port(0), query);
    return url;
}

TEST(rights, what_a_user_makes_is_his_alone)
{
    hf_client *owner;
    hf_client *other;
    hf_hold *hold;
    hf_error err;

    ensemble();
    owner = client_open(url_as("alice:one", QUICK));
    hold = client_acquire(owner, "mine");
    other = client_open(url_as("bob:two", QUICK));
    ASSERT_RC(client_try(other, "mine", &err), HF_EAUTH, &err);
    ASSERT_EQ(hf_break(other, "mine", hf_token(hold), NULL, NULL), HF_EAUTH);
    ASSERT_EQ(hf_check(hold), HF_HELD);
    ASSERT_OK(hf_verify(hold, &err), &err);
    client_release(hold);
}

TEST(rights, an_access_list_that_is_none_is_refused)
{
    is_refused("acl=everybody", "scheme:id:permissions");
}

/* SPDX-License-Identifier: MIT */
/*
 * etcd_fault_test.c - what networks, administrators and members do to locks.
 *
 * Each test has a cluster of its own, and looks at the end whether anything
 * was left behind on it.
 */
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "engines/etcd/etcd.h"
#include "etcd.h"
#include "event.h"
#include "heap.h"
#include "proc.h"

#define QUICK "retry.base=5ms&retry.max_interval=100ms&"

/* What a request begins with: its path in HTTP/2's Huffman code. */
#define TO_WATCH                                                               \
    "\x60\xa9\x24\x88\x2d\x9d\xcb\x65\x71\xaf\xc8\x69\x24\xec\x72\x1a\x49\x3f"
#define TO_TXN "\x60\xa9\x24\x88\x2d\x9d\xcb\x65\x71\xaf\x9b\x8b\x1b\xfc\xd5"
/* What a watch answers first: its field "created" is true. */
#define CREATED "\x18\x01"
/* … and what one of nothing answers: "canceled", too. */
#define CREATED_NOTHING CREATED "\x20\x01"

/* The request is served; its lock is released again. */
static void finish_waiting(hf_request *request)
{
    client_release(client_finish(request));
}

static void await_lost(struct event *events)
{
    event_await(events, 1, EVENT_PATIENCE_MS);
    if (events->values[0] != HF_LOST)
        event_await(events, 2, EVENT_PATIENCE_MS);
    ASSERT_EQ(events->values[event_count(events) - 1], HF_LOST);
}

/* ---- members ------------------------------------------------------------- */

TEST(client, that_closes_leaves_no_lease_behind)
{
    struct etcd *etcd = etcd_start(1);
    hf_error err;

    for (int i = 0; i < 10; i++) {
        hf_client *client;

        ASSERT_OK(hf_open(etcd_url((int[]){server_port(etcd->members[0])}, 1,
                                   "ttl=600s"),
                          NULL, &client, &err),
                  &err);
        client_release(client_acquire(client, "jobs"));
        hf_close(client);
    }
    ASSERT_HAS(etcd_ctl(etcd, "lease list"), "found 0 leases");
}

TEST(leader, killed_while_held_keeps_the_lock)
{
    struct etcd *etcd = etcd_start(3);
    hf_client *client = etcd_open(etcd, QUICK "ttl=20s&io_timeout=1s");
    hf_client *rival = etcd_open(etcd, QUICK "ttl=20s&io_timeout=1s");
    hf_hold *hold = client_acquire(client, "jobs");
    hf_error err;

    server_kill(etcd->members[etcd_leader(etcd)]);
    EVENTUALLY(hf_verify(hold, NULL) == 0);
    EVENTUALLY(client_try(rival, "jobs", &err) == HF_EBUSY);
    ASSERT_NE(hf_check(hold), HF_LOST);
    EVENTUALLY(hf_check_token(rival, "jobs", hf_token(hold), &err) == 0);
    (void)hf_release(hold, &err);
    EVENTUALLY(etcd_keys(etcd, "") == 0);
}

TEST(leader, killed_while_waiting_serves_the_next)
{
    struct etcd *etcd = etcd_start(3);
    hf_client *client = etcd_open(etcd, QUICK "ttl=20s&io_timeout=1s");
    hf_client *waiter = etcd_open(etcd, QUICK "ttl=20s&io_timeout=1s");
    hf_hold *hold = client_acquire(client, "jobs");
    hf_request *request = client_start(waiter, "jobs");

    EVENTUALLY(etcd_keys(etcd, "jobs") == 2);
    server_kill(etcd->members[etcd_leader(etcd)]);
    EVENTUALLY(hf_verify(hold, NULL) == 0);
    ASSERT_EQ(hf_request_pending(request), 1);
    (void)hf_release(hold, NULL);
    finish_waiting(request);
    EVENTUALLY(etcd_keys(etcd, "") == 0);
}

TEST(follower, stopped_costs_no_lock)
{
    struct etcd *etcd = etcd_start(3);
    int follower = (etcd_leader(etcd) + 1) % 3;
    hf_client *client = etcd_open(etcd, QUICK "ttl=20s&io_timeout=3s");
    hf_hold *hold = client_acquire(client, "jobs");

    server_pause(etcd->members[follower]);
    EVENTUALLY(hf_verify(hold, NULL) == 0);
    client_release(hold);
    for (int i = 0; i < 3; i++)
        client_release(client_acquire(client, "jobs"));
    server_resume(etcd->members[follower]);
    EVENTUALLY(etcd_keys(etcd, "") == 0);
}

TEST(client, cut_from_one_member_moves_and_keeps_its_hold)
{
    struct etcd *etcd = etcd_start(3);
    struct proxy *proxies[3];
    int ports[3];
    hf_client *client;
    hf_hold *hold;
    hf_error err;
    int used = 0;

    for (int i = 0; i < 3; i++) {
        proxies[i] = proxy_start(server_port(etcd->members[i]));
        ports[i] = proxy_port(proxies[i]);
    }
    ASSERT_OK(hf_open(etcd_url(ports, 3, QUICK "ttl=20s"), NULL, &client, &err),
              &err);
    hold = client_acquire(client, "jobs");
    while (proxy_connections(proxies[used]) == 0)
        used = (used + 1) % 3;
    proxy_refuse(proxies[used], true);
    proxy_reset(proxies[used]);
    EVENTUALLY(hf_verify(hold, NULL) == 0);
    ASSERT_EQ(hf_check(hold), HF_HELD);
    ASSERT_EQ(etcd_keys(etcd, "jobs"), 1);
    client_release(hold);
    hf_close(client);
    EVENTUALLY(etcd_keys(etcd, "") == 0);
}

struct change {
    hf_client *client;
    uint64_t token; /* to break; 0: commit */
    int rc;
};

static void *change(void *arg)
{
    struct change *change = arg;
    uint64_t version;

    change->rc =
        change->token != 0
            ? hf_break(change->client, "jobs", change->token, NULL, NULL)
            : hf_version_commit(change->client, "jobs", 0, &version, NULL);
    return NULL;
}

static uint64_t version_of(hf_client *client)
{
    uint64_t version = 0;
    hf_error err;

    ASSERT_OK(hf_version_read(client, "jobs", &version, &err), &err);
    return version;
}

TEST(version, whose_answer_is_lost_is_unknown)
{
    struct etcd *etcd = etcd_start(1);
    struct proxy *proxy = proxy_start(server_port(etcd->members[0]));
    hf_client *witness = etcd_open(etcd, QUICK "ttl=20s");
    struct change commit = {
        etcd_open_port(proxy_port(proxy), QUICK "io_timeout=60s"), 0, 0};
    pthread_t thread;

    proxy_hold(proxy, PROXY_TO_CLIENT, true);
    ASSERT_EQ(pthread_create(&thread, NULL, change, &commit), 0);
    EVENTUALLY(version_of(witness) != 0);
    proxy_reset(proxy);
    (void)pthread_join(thread, NULL);
    ASSERT_EQ(commit.rc, HF_EUNKNOWN);
}

TEST(break, whose_answer_is_lost_is_unknown)
{
    struct etcd *etcd = etcd_start(1);
    struct proxy *proxy = proxy_start(server_port(etcd->members[0]));
    hf_hold *hold = client_acquire(etcd_open(etcd, QUICK "ttl=20s"), "jobs");
    struct change change_it = {
        etcd_open_port(proxy_port(proxy), QUICK "io_timeout=60s"),
        hf_token(hold), 0};
    pthread_t thread;

    proxy_hold_at(proxy, PROXY_TO_SERVER, TO_TXN);
    ASSERT_EQ(pthread_create(&thread, NULL, change, &change_it), 0);
    EVENTUALLY(proxy_holds(proxy));
    proxy_reset(proxy);
    (void)pthread_join(thread, NULL);
    ASSERT_EQ(change_it.rc, HF_EUNKNOWN);
    (void)hf_release(hold, NULL); /* broken, or not */
}

/* Two of three members stand still: the third one grants nothing, and a holder
 * there knows in time. */
TEST(minority, holders_are_in_jeopardy_and_lost_in_time)
{
    struct event events = EVENT_INIT;
    struct etcd *etcd = etcd_start(3);
    hf_client *client = etcd_open_port(server_port(etcd->members[0]),
                                       QUICK "ttl=3s&io_timeout=500ms");
    hf_hold *hold = client_acquire_told(client, "jobs", &events);

    server_pause(etcd->members[1]);
    server_pause(etcd->members[2]);
    client_told_lost(&events);
    ASSERT_EQ(hf_release(hold, NULL), HF_ELOST);
    server_resume(etcd->members[1]);
    server_resume(etcd->members[2]);
    EVENTUALLY(etcd_keys(etcd, "jobs") == 0);
}

/* A client of the first member, and one of the other two. */
static struct rivals open_sides(struct etcd *etcd, const char *query,
                                const char *rival_query)
{
    int ports[2] = {server_port(etcd->members[1]),
                    server_port(etcd->members[2])};
    struct rivals at = {
        .client = etcd_open_port(server_port(etcd->members[0]), query)};

    at.rival = client_open(etcd_url(ports, 2, rival_query));
    return at;
}

/* The holder's only member stands still: the majority grants the lock to
 * another, after the holder has lost it. */
TEST(minority, there_are_never_two_holders)
{
    struct event events = EVENT_INIT;
    struct etcd *etcd = etcd_start(3);
    struct rivals at = open_sides(etcd, QUICK "ttl=2s&io_timeout=500ms",
                                  QUICK "ttl=2s&io_timeout=1s");
    hf_hold *hold = client_acquire_told(at.client, "jobs", &events);
    hf_hold *next;

    server_pause(etcd->members[0]);
    next = client_acquire(at.rival, "jobs");
    ASSERT_EQ(hf_check(hold), HF_LOST);
    ASSERT_GT(hf_token(next), hf_token(hold));
    await_lost(&events);
    ASSERT_EQ(hf_release(hold, NULL), HF_ELOST);
    client_release(next);
    server_resume(etcd->members[0]);
}

/* The holder's member is cut off: no byte passes between it and the other two,
 * while all three run. */
TEST(minority, cut_off_by_the_network_is_lost_before_another_holds)
{
    struct event events = EVENT_INIT;
    struct etcd *etcd = etcd_start_linked();
    struct rivals at =
        open_sides(etcd, QUICK "ttl=3s&io_timeout=500ms", QUICK "ttl=20s");
    hf_hold *hold = client_acquire_told(at.client, "jobs", &events);
    hf_hold *next;
    hf_error err;

    etcd_cut(etcd, 0);
    next = client_acquire(at.rival, "jobs");
    ASSERT_EQ(hf_check(hold), HF_LOST);
    ASSERT_GT(hf_token(next), hf_token(hold));
    client_told_lost(&events);
    ASSERT_NE(client_try(at.client, "jobs", &err), 0);
    ASSERT_EQ(hf_release(hold, NULL), HF_ELOST);
    for (int i = 0; i < etcd->n; i++)
        proxy_pass(etcd->links[i]);
    EVENTUALLY(client_try(at.client, "jobs", &err) == HF_EBUSY);
    client_release(next);
    EVENTUALLY(etcd_keys(etcd, "jobs") == 0);
}

/* ---- the network --------------------------------------------------------- */

TEST(answer, lost_after_the_transaction_makes_one_key)
{
    struct etcd_detour at = etcd_detour(QUICK "ttl=20s");
    hf_request *request;
    hf_hold *hold;
    hf_error err;

    client_release(client_acquire(at.client, "warm"));
    proxy_hold(at.proxy, PROXY_TO_CLIENT, true);
    request = client_start(at.client, "jobs");
    EVENTUALLY(etcd_keys(at.etcd, "jobs") == 1);
    proxy_reset(at.proxy);
    proxy_pass(at.proxy);
    hold = client_finish(request);
    ASSERT_EQ(etcd_keys(at.etcd, "jobs"), 1);
    ASSERT_OK(hf_check_token(at.client, "jobs", hf_token(hold), &err), &err);
    client_release(hold);
    ASSERT_EQ(etcd_keys(at.etcd, ""), 0);
}

TEST(answer, lost_to_who_gave_up_leaves_no_orphan)
{
    struct etcd_detour at = etcd_detour(QUICK "ttl=60s");
    hf_request *request;

    client_release(client_acquire(at.client, "warm"));
    proxy_hold(at.proxy, PROXY_TO_CLIENT, true);
    request = client_start(at.client, "jobs");
    EVENTUALLY(etcd_keys(at.etcd, "jobs") == 1);
    hf_cancel(request);
    hf_request_free(request);
    proxy_reset(at.proxy);
    proxy_pass(at.proxy);
    EVENTUALLY(etcd_keys(at.etcd, "") == 0);
}

TEST(answer, of_a_release_that_is_lost_is_made_good)
{
    struct etcd_detour at = etcd_detour(QUICK "ttl=60s&io_timeout=500ms");
    hf_hold *hold = client_acquire(at.client, "jobs");
    int rc;

    proxy_hold(at.proxy, PROXY_TO_SERVER, true);
    rc = hf_release(hold, NULL);
    ASSERT_TRUE(rc == HF_EUNKNOWN || rc == HF_EUNAVAILABLE);
    proxy_reset(at.proxy);
    proxy_pass(at.proxy);
    EVENTUALLY(etcd_keys(at.etcd, "") == 0);
}

TEST(watch, broken_while_the_lock_is_released_misses_nothing)
{
    struct etcd_detour at = etcd_detour(QUICK "ttl=20s");
    hf_client *holder = etcd_open(at.etcd, QUICK "ttl=20s");
    hf_hold *hold = client_acquire(holder, "jobs");
    hf_request *request = client_start(at.client, "jobs");

    EVENTUALLY(etcd_keys(at.etcd, "jobs") == 2);
    proxy_refuse(at.proxy, true);
    proxy_reset(at.proxy);
    client_release(hold);
    proxy_refuse(at.proxy, false);
    finish_waiting(request);
    EVENTUALLY(etcd_keys(at.etcd, "") == 0);
}

/* ---- the administrator --------------------------------------------------- */

/* Everything that is in the store now will not be there as history. */
static void compact(struct etcd *etcd)
{
    const char *at;

    (void)etcd_ctl(etcd, "put other 1");
    at = strstr(etcd_ctl(etcd, "put other 2 -w json"), "\"revision\":");
    ASSERT_NOT_NULL(at);
    ASSERT_HAS(etcd_ctl(etcd, "compaction %llu",
                        strtoull(at + strlen("\"revision\":"), NULL, 10)),
               "compacted");
}

/* A waiter behind a proxy. No renewal looks for it while a test is patient. */
struct late_watch {
    struct etcd *etcd;
    struct proxy *proxy;
    hf_hold *hold;
    hf_request *request;
};

/* The watch is on its way when what was looked at is compacted away. */
static struct late_watch watch_late(void)
{
    struct late_watch late = {.etcd = etcd_start(1)};

    late.proxy = proxy_start(server_port(late.etcd->members[0]));
    late.hold = client_acquire(etcd_open(late.etcd, QUICK "ttl=10m"), "jobs");
    proxy_hold_at(late.proxy, PROXY_TO_SERVER, TO_WATCH);
    late.request = client_start(
        etcd_open_port(proxy_port(late.proxy), QUICK "ttl=10m&io_timeout=30s"),
        "jobs");
    EVENTUALLY(proxy_holds(late.proxy));
    ASSERT_EQ(etcd_keys(late.etcd, "jobs"), 2);
    compact(late.etcd);
    return late;
}

TEST(watch, that_is_made_after_the_release_misses_nothing)
{
    struct late_watch late = watch_late();

    client_release(late.hold);
    proxy_pass(late.proxy);
    finish_waiting(late.request);
    EVENTUALLY(etcd_keys(late.etcd, "jobs") == 0);
}

/* The lock is released while the waiter looks; then it looks once more, and the
 * @nth allocation from there fails. True if there was one. */
static bool look_again_without_memory(long nth)
{
    struct late_watch late = watch_late();
    uint64_t passed;
    bool failed;

    proxy_hold(late.proxy, PROXY_TO_CLIENT, true);
    proxy_hold_at(late.proxy, PROXY_TO_SERVER, NULL);
    proxy_hold_at(late.proxy, PROXY_TO_SERVER, "jobs");
    proxy_hold(late.proxy, PROXY_TO_CLIENT, false);
    EVENTUALLY(proxy_holds(late.proxy));
    passed = proxy_bytes(late.proxy, PROXY_TO_CLIENT);
    client_release(late.hold);
    EVENTUALLY(proxy_bytes(late.proxy, PROXY_TO_CLIENT) > passed);
    heap_fail_at(nth);
    proxy_pass(late.proxy);
    finish_waiting(late.request);
    failed = heap_has_failed();
    heap_fail_at(0);
    return failed;
}

TEST_FORKED(watch, whose_look_has_no_memory_is_repeated)
{
    long n = 1;

    heap_install();
    while (n < 4 && look_again_without_memory(n))
        n++;
    test_note("%ld allocations", n);
}

TEST(compaction, that_overtakes_a_watch_costs_nothing)
{
    struct late_watch late = watch_late();

    proxy_hold_at(late.proxy, PROXY_TO_CLIENT, CREATED);
    proxy_hold_at(late.proxy, PROXY_TO_SERVER, NULL);
    EVENTUALLY(proxy_holds(late.proxy)); /* it is there */
    client_release(late.hold);
    proxy_pass(late.proxy);
    finish_waiting(late.request);
    EVENTUALLY(etcd_keys(late.etcd, "jobs") == 0);
}

/* The request was withdrawn while its transaction was on its way, by another
 * connection, and is carried out after that. */
TEST(transaction, that_comes_after_its_ticket_has_left_makes_no_key)
{
    struct etcd_detour at = etcd_detour(QUICK "ttl=60s&io_timeout=3s");
    hf_request *request;
    uint64_t answered;

    client_release(client_acquire(at.client, "warm"));
    proxy_lose_ends(at.proxy, true);
    proxy_hold_at(at.proxy, PROXY_TO_SERVER, TO_TXN);
    request = client_start(at.client, "jobs");
    EVENTUALLY(proxy_holds(at.proxy));
    hf_cancel(request);
    hf_request_free(request);
    EVENTUALLY(strstr(etcd_ctl(at.etcd, "get --prefix --keys-only '~gone/'"),
                      "~gone/") != NULL);
    answered = proxy_bytes(at.proxy, PROXY_TO_CLIENT);
    proxy_hold_at(at.proxy, PROXY_TO_SERVER, NULL);
    EVENTUALLY(proxy_bytes(at.proxy, PROXY_TO_CLIENT) > answered);
    ASSERT_EQ(etcd_keys(at.etcd, "jobs"), 0);
    client_release(client_acquire(at.client, "jobs"));
}

/* "~lease/<hex>" is there when the lease is watched. */
static const char *watched_lease(struct etcd *etcd)
{
    const char *key =
        strstr(etcd_ctl(etcd, "get --prefix --keys-only '~lease/'"), "~lease/");

    return key ? key + strlen("~lease/") : NULL;
}

TEST(lease, revoked_behind_our_back_is_lost_at_once)
{
    struct event events = EVENT_INIT;
    struct etcd *etcd = etcd_start(1);
    hf_client *client = etcd_open(etcd, QUICK "ttl=300s");
    hf_hold *hold = client_acquire_told(client, "jobs", &events);
    char hex[32] = "";
    const char *lease;

    EVENTUALLY((lease = watched_lease(etcd)) != NULL);
    (void)sscanf(lease, "%31[0-9a-f]", hex);
    ASSERT_HAS(etcd_ctl(etcd, "lease revoke %s", hex), "revoked");
    /* The next renewal is 100 s away. */
    event_await(&events, 1, EVENT_PATIENCE_MS);
    ASSERT_EQ(events.values[0], HF_LOST);
    ASSERT_EQ(hf_release(hold, NULL), HF_ELOST);
    ASSERT_OK(hf_release(client_acquire(client, "jobs"), NULL), NULL);
    ASSERT_EQ(etcd_keys(etcd, ""), 0);
}

TEST(lease, that_ended_while_idle_is_replaced)
{
    struct etcd *etcd = etcd_start(1);
    hf_client *client = etcd_open(etcd, QUICK "ttl=1s");

    client_release(client_acquire(client, "jobs"));
    EVENTUALLY(strstr(etcd_ctl(etcd, "lease list"), "found 0 leases") != NULL);
    client_release(client_acquire(client, "jobs"));
    ASSERT_EQ(etcd_keys(etcd, ""), 0);
}

TEST(lease, delayed_by_lock_delay_only_for_the_dead)
{
    struct etcd *etcd = etcd_start(1);
    hf_client *client = etcd_open(etcd, QUICK "ttl=2s&lock_delay=30s");
    hf_client *rival = etcd_open(etcd, QUICK "ttl=2s");
    hf_hold *hold = client_acquire(client, "jobs");
    hf_error err;

    ASSERT_HAS(etcd_ctl(etcd, "lease list"), "found 1 leases");
    ASSERT_LE(hf_remaining_ms(hold), 2000);
    client_release(hold);
    ASSERT_EQ(client_try(rival, "jobs", &err), 0);
}

static void *take_turns(void *arg)
{
    int64_t until = clock_ms() + 3000;

    while (clock_ms() < until) {
        hf_hold *hold = client_acquire(arg, "jobs");

        (void)hf_verify(hold, NULL);
        client_release(hold);
    }
    return NULL;
}

/* Renewals of the lease look at the keys of all its tickets, also of one that
 * is just being released. */
TEST(renewal, that_meets_a_release_is_no_loss)
{
    struct etcd *etcd = etcd_start(1);
    hf_client *client = etcd_open(etcd, QUICK "ttl=3s");
    pthread_t threads[4];

    for (size_t i = 0; i < 4; i++)
        ASSERT_EQ(pthread_create(&threads[i], NULL, take_turns, client), 0);
    for (size_t i = 0; i < 4; i++)
        (void)pthread_join(threads[i], NULL);
    ASSERT_EQ(etcd_keys(etcd, ""), 0);
}

static void pausing(struct proc *self, void *arg)
{
    hf_client *client = etcd_open(arg, QUICK "ttl=20s&session_timeout=1s");
    hf_hold *hold = client_acquire(client, "jobs");

    proc_tell(self, "holds");
    (void)proc_hear(self);
    proc_tell(self, "check %d", hf_check(hold));
    (void)hf_release(hold, NULL);
    proc_tell(self, "free");
}

TEST(session, expired_by_a_pause_is_lost)
{
    struct etcd *etcd = etcd_start(1);
    struct proc *proc = proc_start(pausing, etcd);

    (void)proc_expect(proc, "holds");
    proc_stop(proc);
    EVENTUALLY(etcd_keys(etcd, "jobs") == 0);
    proc_say(proc, "go");
    proc_continue(proc);
    (void)proc_expect(proc, "check 2");
    (void)proc_expect(proc, "free");
}

/* ---- the doctor ---------------------------------------------------------- */

struct seen {
    int fit; /* members that are not in use */
    int unfit;
    int late; /* members whose watches may be */
    bool is_late_here;
    bool lease; /* what was asked for is given */
    bool alarms;
};

static int see(const hf_finding *finding, void *ctx)
{
    struct seen *seen = ctx;
    bool good = finding->status == HF_FINDING_OK;

    if (strcmp(finding->check, "member") == 0)
        *(good ? &seen->fit : &seen->unfit) += 1;
    if (strcmp(finding->check, "server") == 0)
        seen->is_late_here = hf__etcd_wait_is_late(
            strstr(finding->detail, "version ") + strlen("version "));
    seen->late += strcmp(finding->check, "watches") == 0;
    seen->lease |= strcmp(finding->check, "lease") == 0 && good &&
                   strcmp(finding->detail, "asked for 30 s, given 30 s") == 0;
    seen->alarms |= strcmp(finding->check, "alarms") == 0 && good;
    return 0;
}

static int count_unfit(hf_client *client)
{
    struct seen seen = {0};

    return hf_doctor(client, see, &seen, NULL) == 0 ? seen.unfit : -1;
}

/* It hears of the release, and then of its own end: what it asked for in
 * between is about a place that it has not any more. */
TEST(session, that_ended_in_line_is_not_granted_what_it_asked_for_before)
{
    struct etcd *etcd = etcd_start(1);
    struct proxy *proxy = proxy_start(server_port(etcd->members[0]));
    int port = proxy_port(proxy);
    hf_client *client = etcd_open(etcd, QUICK "ttl=20s");
    hf_client *waiter = client_open(
        etcd_url(&port, 1, QUICK "ttl=1s&io_timeout=30s&connect_timeout=30s"));
    hf_hold *hold = client_acquire(client, "jobs");
    hf_request *request = client_start(waiter, "jobs");

    EVENTUALLY(etcd_keys(etcd, "jobs") == 2);
    proxy_hold(proxy, PROXY_TO_SERVER, true);
    proxy_hold(proxy, PROXY_TO_CLIENT, true);
    client_release(hold);
    hold = client_acquire(client, "jobs");
    proxy_pass(proxy);
    EVENTUALLY(etcd_keys(etcd, "jobs") == 2);
    ASSERT_EQ(hf_request_pending(request), 1);
    client_release(hold);
    finish_waiting(request);
    EVENTUALLY(etcd_keys(etcd, "") == 0);
}

TEST(doctor, asks_every_member_and_for_alarms_and_a_lease)
{
    struct etcd *etcd = etcd_start(3);
    hf_client *client = etcd_open(etcd, "ttl=30s&io_timeout=15s");
    struct seen seen = {0};
    hf_error err;

    ASSERT_OK(hf_doctor(client, see, &seen, &err), &err);
    ASSERT_EQ(seen.fit, 2);
    ASSERT_EQ(seen.unfit, 0);
    ASSERT_EQ(seen.late, seen.is_late_here ? 3 : 0);
    ASSERT_TRUE(seen.lease);
    ASSERT_TRUE(seen.alarms);
    server_kill(etcd->members[0]); /* the one in use, or another */
    EVENTUALLY(count_unfit(client) == 1);
}

/* ---- users --------------------------------------------------------------- */

static void enable_users(struct etcd *etcd)
{
    (void)etcd_ctl(etcd, "user add root:root");
    (void)etcd_ctl(etcd, "user grant-role root root");
    (void)etcd_ctl(etcd, "role add locker");
    (void)etcd_ctl(etcd, "role grant-permission locker --prefix=true "
                         "readwrite locks/");
    (void)etcd_ctl(etcd, "user add locker:s3cret");
    (void)etcd_ctl(etcd, "user grant-role locker locker");
    ASSERT_HAS(etcd_ctl(etcd, "auth enable"), "Enabled");
}

static struct etcd *start_with_users(void)
{
    struct etcd *etcd = etcd_start(1);

    enable_users(etcd);
    return etcd;
}

/* The user locker, with @path and what follows it. */
static const char *locker_url(int port, const char *password, const char *path)
{
    return test_text("etcd://locker:%s@127.0.0.1:%d/%s", password, port, path);
}

TEST(user, with_a_wrong_password_is_refused)
{
    int port = server_port(start_with_users()->members[0]);
    hf_client *client;
    hf_error err;

    ASSERT_RC(hf_open(locker_url(port, "wrong", "locks"), NULL, &client, &err),
              HF_EAUTH, &err);
    ASSERT_TRUE(strstr(err.text, "wrong@") == NULL);
}

TEST(user, without_rights_for_the_prefix_is_told)
{
    int port = server_port(start_with_users()->members[0]);
    hf_client *client = client_open(locker_url(port, "s3cret", "other"));
    hf_error err;

    ASSERT_EQ(client_try(client, "jobs", &err), HF_EAUTH);
}

TEST(user, whose_token_has_ended_gets_another)
{
    struct event events = EVENT_INIT;
    struct etcd *etcd = start_with_users();
    int port = server_port(etcd->members[0]);
    hf_client *client =
        client_open(locker_url(port, "s3cret", "locks?ttl=60s"));
    hf_hold *hold = client_acquire_told(client, "jobs", &events);
    hf_error err;

    ASSERT_HAS(etcd_ctl(etcd, "--user root:root user add other:pass"),
               "created"); /* "revision of auth store is old" */
    ASSERT_OK(hf_verify(hold, &err), &err);
    ASSERT_HAS(etcd_ctl(etcd, "--user root:root user passwd locker "
                              "--interactive=false <<'E'\ns3cret\nE\n"),
               "updated"); /* "invalid auth token" */
    ASSERT_OK(hf_verify(hold, &err), &err);
    client_release(hold);
    ASSERT_EQ(event_count(&events), 0);
}

/* The server tells a user, too, whether others wrote meanwhile. */
TEST(user, whose_watch_is_made_hears_at_which_revision)
{
    static const char path[] = "locks?ttl=10m";
    int port = server_port(start_with_users()->members[0]);
    struct proxy *proxy = proxy_start(port);
    hf_client *holder = client_open(locker_url(port, "s3cret", path));
    hf_client *client =
        client_open(locker_url(proxy_port(proxy), "s3cret", path));
    hf_hold *hold = client_acquire(holder, "jobs");
    struct seen seen = {0};
    hf_request *request;
    hf_error err;

    ASSERT_OK(hf_doctor(client, see, &seen, &err), &err);
    proxy_hold_at(proxy, PROXY_TO_CLIENT,
                  seen.is_late_here ? CREATED_NOTHING : CREATED);
    request = client_start(client, "jobs");
    EVENTUALLY(proxy_holds(proxy));
    proxy_pass(proxy);
    ASSERT_OK(hf_release(hold, &err), &err);
    finish_waiting(request);
}

/* SPDX-License-Identifier: MIT */
/*
 * redis_redisson_test.c - Redisson's locks when something goes wrong.
 *
 * The other side is written by hand here, as a Redisson client would leave it;
 * the real one is in tests/interop.
 */
#include <stdlib.h>

#include "event.h"
#include "proc.h"
#include "redis.h"

#define R "dialect=redisson&retry.base=1ms&retry.max_interval=20ms&mode="

static const char *const modes[] = {R "lock", R "fenced", R "fair", R "rw",
                                    R "permits"};

static hf_request *await_lock(hf_client *client, int mode, int slots)
{
    return client_start_with(client, "jobs",
                             OPTS(HF_CONFIGURED, .mode = mode, .slots = slots));
}

static hf_hold *get_lock(hf_request *request)
{
    hf_hold *hold;
    hf_error err;

    ASSERT_OK(hf_request_wait(request, 10000, &hold, &err), &err);
    hf_request_free(request);
    return hold;
}

static void give(hf_hold *hold)
{
    client_release(hold);
}

/* What stays on purpose: the counter of tokens, the size of a semaphore. */
static int leftovers(struct server *server)
{
    (void)redis_do(server, "DEL redisson_lock_token:{jobs}");
    if (strcmp(redis_do(server, "GET jobs"), "$1\r\n1\r\n") == 0)
        (void)redis_do(server, "DEL jobs");
    return redis_leftovers(server);
}

/* Two clients of one server, in each of the modes. */
static void in_each_mode(void (*check)(const struct rivals *at))
{
    struct server *server = redis_start();

    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        struct rivals at =
            client_rivals(server, redis_url(server_port(server), modes[i]));

        check(&at);
    }
}

static void outlast_a_flush_of_scripts(const struct rivals *at)
{
    hf_request *request;
    hf_hold *hold;
    hf_error err;

    (void)redis_do(at->server, "SCRIPT FLUSH SYNC");
    hold = client_acquire(at->client, "jobs");
    request = await_lock(at->rival, HF_EXCLUSIVE, 0);
    (void)redis_do(at->server, "SCRIPT FLUSH SYNC");
    ASSERT_OK(hf_verify(hold, &err), &err);
    (void)redis_do(at->server, "SCRIPT FLUSH SYNC");
    give(hold);
    give(get_lock(request));
    ASSERT_EQ(leftovers(at->server), 0);
}

TEST_CALL(redisson, scripts_are_flushed_and_nothing_happens,
          in_each_mode(outlast_a_flush_of_scripts))

static void hear_of_a_flush(const struct rivals *at)
{
    hf_hold *hold = client_acquire(at->client, "jobs");
    uint64_t token = hf_token(hold);
    hf_request *request = await_lock(at->rival, HF_EXCLUSIVE, 0);
    hf_error err;

    (void)redis_do(at->server, "FLUSHALL");
    ASSERT_EQ(hf_verify(hold, &err), HF_ELOST);
    ASSERT_EQ(hf_release(hold, &err), HF_ELOST);
    hold = get_lock(request);
    ASSERT_TRUE(token == 0 || hf_token(hold) > token);
    give(hold);
    ASSERT_EQ(leftovers(at->server), 0);
}

TEST_CALL(redisson, everything_is_flushed_and_told_as_lost,
          in_each_mode(hear_of_a_flush))

/* Nobody publishes: the waiter looks when the lease it was told has ended. */
TEST(redisson, a_lost_message_costs_no_more_than_the_lease)
{
    struct server *server = redis_start();
    hf_client *client = redis_open(server_port(server), R "lock");
    hf_request *request;

    (void)redis_do(server,
                   "HSET jobs 00000000-0000-4000-8000-000000000000:1 1");
    (void)redis_do(server, "PEXPIRE jobs 700");
    request = await_lock(client, HF_EXCLUSIVE, 0);
    EVENTUALLY(
        strstr(redis_do(server, "PUBSUB NUMSUB redisson_lock__channel:{jobs}"),
               ":1") != NULL);
    (void)redis_do(server, "DEL jobs");
    give(get_lock(request));
    ASSERT_EQ(leftovers(server), 0);
}

/* A user who may publish can make a waiter look, no more. */
TEST(redisson, a_message_makes_a_waiter_look_and_grants_nothing)
{
    struct rivals at = redis_rivals(R "lock");
    hf_hold *hold = client_acquire(at.client, "jobs");
    hf_request *request = await_lock(at.rival, HF_EXCLUSIVE, 0);
    hf_hold *next;
    hf_error err;

    EVENTUALLY(strstr(redis_do(at.server,
                               "PUBSUB NUMSUB redisson_lock__channel:{jobs}"),
                      ":1") != NULL);
    for (int i = 0; i < 3; i++)
        ASSERT_STREQ(
            redis_do(at.server, "PUBLISH redisson_lock__channel:{jobs} 0"),
            ":1\r\n");
    /* These answers come behind what the messages led to. */
    ASSERT_EQ(client_try(at.rival, "other", &err), 0);
    ASSERT_EQ(client_try(at.rival, "other", &err), 0);
    ASSERT_EQ(hf_request_wait(request, 0, &next, &err), HF_ETIMEOUT);
    give(hold);
    give(get_lock(request));
    ASSERT_EQ(leftovers(at.server), 0);
}

/* The at.server's number of the only connection that listens; 0: none does. */
static long listener(struct server *server)
{
    const char *at = strstr(redis_do(server, "CLIENT LIST TYPE pubsub"), "id=");

    return at ? strtol(at + 3, NULL, 10) : 0;
}

static void listen_for_writers(struct proc *self, void *arg)
{
    const char *argv[] = {
        "redis-cli", "-p", arg, "SUBSCRIBE", "redisson_rwlock:{jobs}", NULL};

    proc_become(self, argv);
}

static void expect_lines(struct proc *proc, const char *const *lines, size_t n)
{
    for (size_t i = 0; i < n; i++)
        (void)proc_expect(proc, lines[i]);
}

/* A Redisson client loses message 1 on a thread that is about to sleep; message
 * 0 it keeps. */
TEST(redisson, a_writer_that_goes_wakes_those_who_are_about_to_sleep)
{
    static const char *const begun[] = {"subscribe", "redisson_rwlock:{jobs}",
                                        "1"};
    static const char *const told[] = {
        "message", "redisson_rwlock:{jobs}", "1",
        "message", "redisson_rwlock:{jobs}", "0"};
    struct server *server = redis_start();
    hf_client *client = redis_open(server_port(server), R "rw");
    char port[16];
    struct proc *listener;
    hf_hold *hold;
    hf_error err;

    (void)snprintf(port, sizeof(port), "%d", server_port(server));
    listener = proc_start(listen_for_writers, port);
    expect_lines(listener, begun, 3);
    give(client_acquire(client, "jobs"));
    expect_lines(listener, told, 6);
    hold = client_acquire(client, "jobs");
    ASSERT_OK(hf_downgrade(hold, &err), &err);
    expect_lines(listener, told, 6);
    give(hold);
    expect_lines(listener, &told[3], 3);
    proc_kill(listener);
    ASSERT_EQ(leftovers(server), 0);
}

TEST(redisson, a_waiter_listens_again_on_a_new_connection)
{
    struct rivals at = redis_rivals(R "lock");
    hf_hold *hold = client_acquire(at.client, "jobs");
    hf_request *request = await_lock(at.rival, HF_EXCLUSIVE, 0);
    const char *ask = "PUBSUB NUMSUB redisson_lock__channel:{jobs}";
    long before;

    EVENTUALLY(strstr(redis_do(at.server, "%s", ask), ":1") != NULL);
    before = listener(at.server);
    ASSERT_HAS(redis_do(at.server, "CLIENT KILL TYPE pubsub"), ":1");
    EVENTUALLY(listener(at.server) > before);
    EVENTUALLY(strstr(redis_do(at.server, "%s", ask), ":1") != NULL);
    give(hold);
    give(get_lock(request));
    /* Nobody waits, so nobody listens. */
    EVENTUALLY(strstr(redis_do(at.server, "%s", ask), ":0") != NULL);
}

TEST(redisson, memory_runs_out_and_releases_still_work)
{
    struct server *server = redis_start();
    hf_client *client = redis_open(server_port(server), R "rw");
    hf_hold *hold = client_acquire(client, "jobs");
    hf_error err;

    (void)redis_do(server, "CONFIG SET maxmemory 1");
    ASSERT_EQ(client_try(client, "other", &err), HF_ENOSPACE);
    ASSERT_OK(hf_verify(hold, &err), &err);
    give(hold);
    (void)redis_do(server, "CONFIG SET maxmemory 0");
    ASSERT_EQ(leftovers(server), 0);
}

TEST(redisson, something_else_at_the_key_is_said)
{
    struct server *server = redis_start();
    hf_client *client = redis_open(server_port(server), R "lock");
    hf_error err;

    (void)redis_do(server, "SET jobs text");
    ASSERT_EQ(client_try(client, "jobs", &err), HF_ECONFIG);
    ASSERT_HAS(err.text, "prefix=");
}

/* ---- looking ----------------------------------------------------------- */

struct seen {
    char holder[128];
    int holders;
    int waiters;
    uint32_t place;
};

static int see(const hf_lock_info *info, void *ctx)
{
    struct seen *seen = ctx;

    if (info->role == HF_WAITER) {
        seen->waiters++;
        ASSERT_EQ(info->place, ++seen->place);
        return 0;
    }
    seen->holders++;
    (void)snprintf(seen->holder, sizeof(seen->holder), "%s", info->owner);
    return 0;
}

static struct seen look(hf_client *client)
{
    struct seen seen = {.holders = 0};
    hf_error err;

    ASSERT_OK(hf_show(client, "jobs", see, &seen, &err), &err);
    return seen;
}

static void break_who_is_shown(const struct rivals *at)
{
    hf_hold *hold = client_acquire(at->client, "jobs");
    struct seen seen = look(at->rival);
    hf_error err;

    ASSERT_EQ(seen.holders, 1);
    ASSERT_EQ(hf_break(at->rival, "jobs", 0, "0123456789abcdef0123456789abcdef",
                       &err),
              HF_ECONFLICT);
    ASSERT_OK(hf_break(at->rival, "jobs", 0, seen.holder, &err), &err);
    ASSERT_EQ(hf_verify(hold, &err), HF_ELOST);
    (void)hf_release(hold, NULL);
    ASSERT_EQ(client_try(at->rival, "jobs", &err), 0);
    ASSERT_EQ(look(at->rival).holders, 0);
    ASSERT_EQ(leftovers(at->server), 0);
}

TEST_CALL(redisson, an_owner_that_is_shown_can_be_broken,
          in_each_mode(break_who_is_shown))

struct listed {
    char names[256];
    int n;
};

static int list_one(const hf_lock_info *info, void *ctx)
{
    struct listed *listed = ctx;
    size_t used = strlen(listed->names);

    (void)snprintf(listed->names + used, sizeof(listed->names) - used, "%s ",
                   info->name);
    listed->n++;
    return 0;
}

static void list_among_other_keys(const struct rivals *at)
{
    hf_hold *one = client_acquire(at->client, "night/one");
    hf_hold *two = client_acquire(at->client, "night/two[x]");
    hf_hold *day = client_acquire(at->client, "day");
    struct listed all = {.n = 0};
    struct listed some = {.n = 0};
    hf_error err;

    (void)redis_do(at->server, "HSET night/session user 7");
    (void)redis_do(at->server, "ZADD {night/scores} 1 a");
    ASSERT_OK(hf_list(at->rival, "", list_one, &all, &err), &err);
    ASSERT_STREQ(all.names, "day night/one night/two[x] ");
    ASSERT_OK(hf_list(at->rival, "night/two[", list_one, &some, &err), &err);
    ASSERT_STREQ(some.names, "night/two[x] ");
    give(one);
    give(two);
    give(day);
    (void)redis_do(at->server, "FLUSHALL");
}

TEST_CALL(redisson, a_list_tells_locks_from_other_keys,
          in_each_mode(list_among_other_keys))

TEST(redisson, the_fair_lock_is_first_come_first_served)
{
    enum { WAITERS = 4 };
    struct server *server = redis_start();
    hf_client *holder = redis_open(server_port(server), R "fair");
    hf_hold *hold = client_acquire(holder, "jobs");
    hf_request *requests[WAITERS];
    hf_error err;

    for (int i = 0; i < WAITERS; i++) {
        requests[i] = await_lock(redis_open(server_port(server), R "fair"),
                                 HF_EXCLUSIVE, 0);
        EVENTUALLY(look(holder).waiters == i + 1);
    }
    for (int i = 0; i < WAITERS; i++) {
        give(hold);
        hold = get_lock(requests[i]);
        ASSERT_EQ(look(holder).waiters, WAITERS - i - 1);
        ASSERT_EQ(client_try(holder, "jobs", &err), HF_EBUSY);
    }
    give(hold);
    ASSERT_EQ(leftovers(server), 0);
}

static void wait_until_killed(struct proc *self, void *arg)
{
    hf_client *client;
    hf_error err;

    (void)arg;
    ASSERT_OK(hf_open(proc_hear(self), NULL, &client, &err), &err);
    (void)await_lock(client, HF_EXCLUSIVE, 0);
    (void)proc_hear(self);
}

TEST(redisson, a_dead_waiter_is_in_the_way_for_one_lease)
{
    struct proc *dead = proc_start(wait_until_killed, NULL);
    struct rivals at = redis_rivals(R "fair&ttl=800ms");
    hf_hold *hold = client_acquire(at.client, "jobs");
    hf_request *request;

    proc_say(dead, redis_url(server_port(at.server), R "fair&ttl=800ms"));
    EVENTUALLY(look(at.client).waiters == 1);
    request = await_lock(at.rival, HF_EXCLUSIVE, 0);
    EVENTUALLY(look(at.client).waiters == 2);
    proc_kill(dead);
    give(hold);
    give(get_lock(request));
    ASSERT_EQ(leftovers(at.server), 0);
}

/* ---- semaphores -------------------------------------------------------- */

static void hold_until_killed(struct proc *self, void *arg)
{
    hf_client *client;
    hf_error err;

    (void)arg;
    ASSERT_OK(hf_open(proc_hear(self), NULL, &client, &err), &err);
    (void)get_lock(await_lock(client, HF_SLOT, 1));
    proc_tell(self, "holding");
    (void)proc_hear(self);
}

TEST(redisson, the_permits_of_a_dead_holder_come_back)
{
    static const char *const kinds[] = {R "semaphore&ttl=600ms",
                                        R "permits&ttl=600ms"};

    struct proc *dying[2] = {proc_start(hold_until_killed, NULL),
                             proc_start(hold_until_killed, NULL)};

    for (int i = 0; i < 2; i++) {
        struct proc *dead = dying[i];
        struct server *server = redis_start();
        hf_client *client;
        hf_hold *hold;

        proc_say(dead, redis_url(server_port(server), kinds[i]));
        (void)proc_expect(dead, "holding");
        proc_kill(dead);
        client = redis_open(server_port(server), kinds[i]);
        hold = get_lock(await_lock(client, HF_SLOT, 1));
        ASSERT_STREQ(redis_do(server, "GET jobs"), "$1\r\n0\r\n");
        give(hold);
        ASSERT_STREQ(redis_do(server, "GET jobs"), "$1\r\n1\r\n");
        ASSERT_EQ(leftovers(server), 0);
    }
}

TEST(redisson, a_semaphore_refuses_to_be_exclusive)
{
    struct server *server = redis_start();
    hf_client *client = redis_open(server_port(server), R "semaphore");
    hf_error err;

    ASSERT_EQ(client_try(client, "jobs", &err), HF_EUNSUPPORTED);
    ASSERT_HAS(err.text, "mode=permits");
    ASSERT_EQ(leftovers(server), 0);
}

static int no_failure(const hf_finding *finding, void *ctx)
{
    if (strcmp(finding->check, "acquire") == 0 ||
        strcmp(finding->check, "release") == 0)
        ++*(int *)ctx;
    ASSERT_NE(finding->status, HF_FINDING_FAIL);
    return 0;
}

static void ask_the_doctor(const struct rivals *at)
{
    int tried = 0;
    hf_error err;

    ASSERT_OK(hf_doctor(at->client, no_failure, &tried, &err), &err);
    ASSERT_EQ(tried, 2);
    ASSERT_EQ(redis_leftovers(at->server), 0);
}

TEST_CALL(redisson, the_doctor_tries_a_lock_and_leaves_nothing,
          in_each_mode(ask_the_doctor))

/* SPDX-License-Identifier: MIT */
/*
 * redis_condition_test.c - no wake-up is lost: not with who signals, not with who
 * is woken, not with an answer.
 *
 * Each round has a number of lanes, a lock each, that go through it at the same
 * time, because who is killed with a lock keeps it for a lease. All actors are
 * processes: waiters and helpers that live on, and one per lane and round that
 * is killed at some instant. What the killed one had done is in a page that all
 * share.
 *
 * CONDITION_ROUNDS sets how many rounds (2), of LANES kills each.
 */
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#include "event.h"
#include "proc.h"
#include "redis.h"

enum { LANES = 8 };

/* How far the one that is killed has come. */
enum { BEFORE, WOKE_ONE, RETURNED, RELEASING };

struct lane {
    int port;
    char name[8];
    _Atomic int phase;
};

static struct lane *lanes;

static int rounds(void)
{
    const char *text = getenv("CONDITION_ROUNDS");

    return text ? atoi(text) : 2;
}

static void unmap(void *arg)
{
    (void)arg;
    (void)munmap(lanes, LANES * sizeof(*lanes));
}

static struct server *start_lanes(void)
{
    struct server *server = redis_start();

    lanes = mmap(NULL, LANES * sizeof(*lanes), PROT_READ | PROT_WRITE,
                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT_TRUE(lanes != MAP_FAILED);
    test_defer(unmap, NULL);
    for (int i = 0; i < LANES; i++) {
        lanes[i].port = server_port(server);
        (void)snprintf(lanes[i].name, sizeof(lanes[i].name), "n%d", i);
    }
    return server;
}

/* ---- actors ------------------------------------------------------------ */

/* Waits each time it is told to, and says that it has been woken. */
static void wait_again(struct proc *self, void *arg)
{
    struct lane *lane = arg;
    hf_client *client = redis_open(lane->port, "ttl=400ms");

    while (proc_hear(self)) {
        int rc = HF_ELOST;
        bool told = false;

        /* A busy machine may be too slow for the lease. */
        while (rc == HF_ELOST) {
            hf_hold *hold = client_acquire(client, lane->name);
            hf_error err;

            if (!told)
                proc_tell(self, "holding");
            told = true;
            rc = hf_cond_wait(hold, "c", HF_FOREVER, &err);
            if (rc != HF_ELOST)
                ASSERT_OK(rc, &err);
            (void)hf_release(hold, NULL);
        }
        proc_tell(self, "woken");
    }
}

/* Signals each time it is told to, and says how many it woke. */
static void signal_again(struct proc *self, void *arg)
{
    struct lane *lane = arg;
    hf_client *client = redis_open(lane->port, "ttl=400ms");

    while (proc_hear(self)) {
        int rc = HF_ELOST;

        while (rc < 0) {
            hf_hold *hold = client_acquire(client, lane->name);

            rc = hf_cond_signal(hold, "c", NULL);
            (void)hf_release(hold, NULL);
        }
        proc_tell(self, "signalled %d", rc);
    }
}

/* Signals once, and is killed meanwhile. */
static void signal_and_die(struct proc *self, void *arg)
{
    struct lane *lane = arg;
    hf_client *client = redis_open(lane->port, "ttl=400ms");
    hf_hold *hold;

    proc_tell(self, "ready");
    (void)proc_hear(self);
    hold = client_acquire(client, lane->name);
    if (hf_cond_signal(hold, "c", NULL) == 1)
        atomic_store(&lane->phase, WOKE_ONE);
    (void)hf_release(hold, NULL);
    (void)proc_hear(self);
}

/* Waits once, and is killed meanwhile. */
static void wait_and_die(struct proc *self, void *arg)
{
    struct lane *lane = arg;
    hf_client *client = redis_open(lane->port, "ttl=400ms");
    hf_hold *hold = client_acquire(client, lane->name);
    int rc;

    proc_tell(self, "holding");
    rc = hf_cond_wait(hold, "c", HF_FOREVER, NULL);
    if (rc == 0)
        atomic_store(&lane->phase, RETURNED);
    for (int64_t until = clock_ms() + 3; clock_ms() <= until;)
        continue; /* so that some die while they hold it */
    atomic_store(&lane->phase, RELEASING);
    (void)hf_release(hold, NULL);
    (void)proc_hear(self);
}

static void spin(unsigned *seed)
{
    struct timespec pause = {.tv_nsec = rand_r(seed) % 3000000};

    (void)nanosleep(&pause, NULL);
}

/* ---- a signaller dies --------------------------------------------------- */

static void kill_signallers(struct proc *const *waiters,
                            struct proc *const *helpers, unsigned *seed,
                            int *woke)
{
    struct proc *victims[LANES];

    for (int i = 0; i < LANES; i++) {
        atomic_store(&lanes[i].phase, BEFORE);
        victims[i] = proc_start(signal_and_die, &lanes[i]);
        proc_say(waiters[i], "wait");
    }
    for (int i = 0; i < LANES; i++) {
        (void)proc_expect(victims[i], "ready");
        (void)proc_expect(waiters[i], "holding");
    }
    for (int i = 0; i < LANES; i++) {
        proc_say(victims[i], "go");
        spin(seed);
        proc_kill(victims[i]);
    }
    for (int i = 0; i < LANES; i++) {
        if (atomic_load(&lanes[i].phase) == BEFORE)
            proc_say(helpers[i], "signal");
        else
            (*woke)++;
    }
    for (int i = 0; i < LANES; i++)
        (void)proc_expect(waiters[i], "woken");
    for (int i = 0; i < LANES; i++) {
        if (atomic_load(&lanes[i].phase) == BEFORE)
            (void)proc_expect(helpers[i], "signalled");
    }
}

TEST(conditions, a_killed_signaller_loses_no_wake_up)
{
    struct proc *waiters[LANES];
    struct proc *helpers[LANES];
    unsigned seed = 1;
    int woke = 0;

    (void)start_lanes();
    for (int i = 0; i < LANES; i++) {
        waiters[i] = proc_start(wait_again, &lanes[i]);
        helpers[i] = proc_start(signal_again, &lanes[i]);
    }
    for (int i = 0; i < rounds(); i++)
        kill_signallers(waiters, helpers, &seed, &woke);
    test_note("%d signallers killed, %d of them had woken one",
              rounds() * LANES, woke);
}

/* ---- a woken waiter dies ------------------------------------------------ */

static void kill_waiters(struct proc *const *waiters,
                         struct proc *const *helpers, unsigned *seed,
                         int *passed)
{
    struct proc *victims[LANES];

    for (int i = 0; i < LANES; i++) {
        atomic_store(&lanes[i].phase, BEFORE);
        victims[i] = proc_start(wait_and_die, &lanes[i]);
    }
    for (int i = 0; i < LANES; i++) {
        (void)proc_expect(victims[i], "holding");
        proc_say(waiters[i], "wait");
        (void)proc_expect(waiters[i], "holding");
    }
    for (int i = 0; i < LANES; i++) {
        if (rand_r(seed) % 4 == 0) /* it dies parked */
            proc_kill(victims[i]);
        proc_say(helpers[i], "signal");
    }
    for (int i = 0; i < LANES; i++) {
        (void)proc_expect(helpers[i], "signalled 1");
        spin(seed);
        proc_kill(victims[i]);
    }
    for (int i = 0; i < LANES; i++) {
        if (atomic_load(&lanes[i].phase) == RELEASING)
            proc_say(helpers[i], "signal");
        else
            (*passed)++;
    }
    for (int i = 0; i < LANES; i++)
        (void)proc_expect(waiters[i], "woken");
    for (int i = 0; i < LANES; i++) {
        if (atomic_load(&lanes[i].phase) == RELEASING)
            (void)proc_expect(helpers[i], "signalled");
    }
}

TEST(conditions, a_killed_waiter_passes_its_wake_up_on)
{
    struct proc *waiters[LANES];
    struct proc *helpers[LANES];
    unsigned seed = 2;
    int passed = 0;

    (void)start_lanes();
    for (int i = 0; i < LANES; i++) {
        waiters[i] = proc_start(wait_again, &lanes[i]);
        helpers[i] = proc_start(signal_again, &lanes[i]);
    }
    for (int i = 0; i < rounds(); i++)
        kill_waiters(waiters, helpers, &seed, &passed);
    test_note("%d waiters killed, %d wake-ups passed on", rounds() * LANES,
              passed);
}

/* ---- an answer is lost -------------------------------------------------- */

struct stage {
    struct server *server;
    struct proxy *to_waiter;
    struct proxy *to_signaller;
    hf_client *waiter;
    hf_client *signaller;
    hf_client *next; /* waits behind the waiter */
};

static void set_up(struct stage *stage)
{
    stage->server = redis_start();
    stage->to_waiter = proxy_start(server_port(stage->server));
    stage->to_signaller = proxy_start(server_port(stage->server));
    stage->waiter = redis_open(proxy_port(stage->to_waiter), "ttl=3s");
    stage->signaller = redis_open(proxy_port(stage->to_signaller), "ttl=3s");
    stage->next = redis_open(server_port(stage->server), "ttl=3s");
}

static int parked(const struct stage *stage)
{
    return atoi(redis_do(stage->server, "LLEN hf:{jobs}:p") + 1);
}

static void lose_answers(struct proxy *proxy)
{
    proxy_reset(proxy);
    proxy_pass(proxy);
}

/* A wait on "c" has begun when this returns. */
static hf_request *begin_wait(struct stage *stage, hf_client *client,
                              hf_hold **hold)
{
    int before = parked(stage);
    hf_request *request;
    hf_error err;

    *hold = client_acquire(client, "jobs");
    ASSERT_OK(
        hf_cond_wait_start(*hold, "c", HF_FOREVER, NULL, NULL, &request, &err),
        &err);
    EVENTUALLY(parked(stage) > before);
    return request;
}

static void signal_it(struct stage *stage, bool lose)
{
    hf_hold *hold = client_acquire(stage->signaller, "jobs");
    int before = parked(stage);
    hf_request *request;
    hf_error err;

    if (lose)
        proxy_hold(stage->to_signaller, PROXY_TO_CLIENT, true);
    ASSERT_OK(hf_cond_signal_start(hold, "c", 0, NULL, NULL, &request, &err),
              &err);
    if (lose) {
        EVENTUALLY(parked(stage) < before);
        lose_answers(stage->to_signaller);
    }
    ASSERT_GE(hf_request_wait(request, EVENT_PATIENCE_MS, NULL, &err), 0);
    hf_request_free(request);
    ASSERT_OK(hf_release(hold, &err), &err);
}

/* The woken one releases; with @lose it does not learn that it has. */
static void release_it(struct stage *stage, hf_hold *hold, bool lose)
{
    hf_request *request;
    hf_error err;
    int rc;

    if (lose)
        proxy_hold(stage->to_waiter, PROXY_TO_CLIENT, true);
    ASSERT_OK(hf_release_start(hold, NULL, NULL, &request, &err), &err);
    if (lose) {
        EVENTUALLY(client_count(stage->next, "jobs", HF_HOLDER) == 0);
        lose_answers(stage->to_waiter);
    }
    rc = hf_request_wait(request, EVENT_PATIENCE_MS, NULL, &err);
    ASSERT_TRUE(rc == 0 || (lose && (rc == HF_EUNKNOWN || rc == HF_ELOST)));
    hf_request_free(request);
}

enum lost { NOTHING, PARK, SIGNAL, RELEASE };

/* Who loses the answer to its park is granted the lock while it is away: then
 * its wake-up is the next one's. */
static void one_wait(struct stage *stage, enum lost lose)
{
    hf_request *request;
    hf_request *behind;
    hf_hold *hold;
    hf_hold *last;
    hf_error err;
    int rc;

    if (lose == PARK)
        proxy_hold_at(stage->to_waiter, PROXY_TO_CLIENT, "*1\r\n$1\r\np");
    request = begin_wait(stage, stage->waiter, &hold);
    behind = begin_wait(stage, stage->next, &last);
    if (lose == PARK)
        lose_answers(stage->to_waiter);
    signal_it(stage, lose == SIGNAL);
    rc = hf_request_wait(request, EVENT_PATIENCE_MS, NULL, &err);
    if (lose == PARK && rc == HF_ELOST)
        ASSERT_OK(hf_request_wait(behind, EVENT_PATIENCE_MS, NULL, &err), &err);
    else
        ASSERT_OK(rc, &err);
    hf_request_free(request);
    if (rc == 0)
        release_it(stage, hold, lose == RELEASE);
    else
        (void)hf_release(hold, NULL);
    hf_cancel(behind);
    (void)hf_request_wait(behind, EVENT_PATIENCE_MS, NULL, &err);
    hf_request_free(behind);
    (void)hf_release(last, NULL);
}

TEST(conditions, a_lost_answer_loses_no_wake_up)
{
    struct stage stage;

    set_up(&stage);
    one_wait(&stage, NOTHING); /* the server has the scripts now */
    for (int i = 0; i < rounds() * LANES; i++)
        one_wait(&stage, PARK + i % 3);
    EVENTUALLY(redis_leftovers(stage.server) == 0);
    test_note("%d answers lost: of park, signal and release in turn",
              rounds() * LANES);
}

/* ---- a server that forgets ----------------------------------------------- */

static void returns_holding(hf_request *request, hf_hold *hold)
{
    hf_error err;

    ASSERT_OK(hf_request_wait(request, EVENT_PATIENCE_MS, NULL, &err), &err);
    hf_request_free(request);
    ASSERT_EQ(hf_check(hold), HF_HELD);
    ASSERT_OK(hf_release(hold, &err), &err);
}

TEST(conditions, whoever_is_forgotten_returns_holding)
{
    struct stage stage;
    hf_request *request;
    hf_hold *hold;

    set_up(&stage);
    request = begin_wait(&stage, stage.waiter, &hold);
    (void)redis_do(stage.server, "FLUSHALL");
    returns_holding(request, hold);
    ASSERT_EQ(redis_leftovers(stage.server), 0);
}

/* The data are there, but a signal may be missing in them. */
TEST(conditions, whoever_waited_at_another_run_of_the_server_returns_holding)
{
    struct server *server = redis_start_durable();
    hf_client *client = redis_open(server_port(server), "ttl=60s");
    hf_hold *hold = client_acquire(client, "jobs");
    hf_request *request;
    hf_error err;

    ASSERT_OK(
        hf_cond_wait_start(hold, "c", HF_FOREVER, NULL, NULL, &request, &err),
        &err);
    EVENTUALLY(client_count(client, "jobs", HF_PARKED) == 1);
    server_kill(server);
    server_restart(server);
    returns_holding(request, hold);
    ASSERT_EQ(redis_leftovers(server), 0);
}

/* ---- memory --------------------------------------------------------------- */

TEST(conditions, a_full_server_refuses_to_park_and_the_hold_stays)
{
    struct server *server = redis_start();
    hf_client *client = redis_open(server_port(server), NULL);
    hf_hold *hold = client_acquire(client, "jobs");
    hf_error err;

    (void)redis_do(server, "CONFIG SET maxmemory 1");
    ASSERT_LT(hf_cond_wait(hold, "c", HF_FOREVER, &err), 0);
    ASSERT_EQ(hf_check(hold), HF_HELD);
    ASSERT_LT(hf_cond_signal(hold, "c", &err), 0);
    ASSERT_OK(hf_verify(hold, &err), &err);
    (void)redis_do(server, "CONFIG SET maxmemory 0");
    ASSERT_EQ(hf_cond_signal(hold, "c", &err), 0);
    ASSERT_OK(hf_release(hold, &err), &err);
    ASSERT_EQ(redis_leftovers(server), 0);
}

/* ---- other dialects ------------------------------------------------------- */

TEST(conditions, plain_and_redisson_refuse)
{
    static const char *const dialects[] = {"dialect=plain", "dialect=redisson"};
    struct server *server = redis_start();

    for (size_t i = 0; i < sizeof(dialects) / sizeof(dialects[0]); i++) {
        hf_client *client = redis_open(server_port(server), dialects[i]);
        hf_hold *hold = client_acquire(client, "jobs");
        hf_error err;

        ASSERT_FALSE(hf_capabilities(client) & HF_CAP_CONDITIONS);
        ASSERT_RC(hf_cond_wait(hold, "c", 0, &err), HF_EUNSUPPORTED, &err);
        ASSERT_RC(hf_cond_signal(hold, "c", &err), HF_EUNSUPPORTED, &err);
        ASSERT_EQ(hf_check(hold), HF_HELD);
        client_release(hold);
    }
}

/* SPDX-License-Identifier: MIT */
/*
 * redis_condition_test.c - no wake-up is lost: not with who signals, not with who
 * is woken, not with an answer.
 *
 * Each round has a number of lanes, a lock each, that go through it at the same
 * time, because who is killed with a lock keeps it for a lease. All actors are
 * processes: waiters and helpers that live on, and one per lane and round that
 * is killed at some instant. What the killed one had done is in a page that all
 * share. It dies where it was told to stop, or a moment after it came by.
 *
 * CONDITION_ROUNDS sets how many rounds (2), of LANES kills each.
 */
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "event.h"
#include "proc.h"
#include "redis.h"

enum { LANES = 8 };

/* How far the one that is killed has come: it signals, or it waits. */
enum { BEFORE, SIGNALLING, IN_VAIN, WOKE_ONE, PHASES };
enum { RETURNED = 1, RELEASING };

struct lane {
    int port;
    char name[8];
    _Atomic int phase;
    int stays_at; /* the one that is killed goes no further; PHASES: it does */
};

/* Those who live on. */
struct crew {
    struct proc *waiters[LANES];
    struct proc *helpers[LANES];
    unsigned seed;
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

/* Signals each time it is told to, and says how many it woke. "wake": until it
 * has woken one, for on a busy machine a waiter may lose its lease first. */
static void signal_again(struct proc *self, void *arg)
{
    struct lane *lane = arg;
    hf_client *client = redis_open(lane->port, "ttl=400ms");
    const char *word;

    while ((word = proc_hear(self)) != NULL) {
        int least = strcmp(word, "wake") == 0;
        int rc = HF_ELOST;

        while (rc < least) {
            hf_hold *hold = client_acquire(client, lane->name);

            rc = hf_cond_signal(hold, "c", NULL);
            (void)hf_release(hold, NULL);
        }
        proc_tell(self, "signalled %d", rc);
    }
}

static void reach(struct proc *self, struct lane *lane, int phase)
{
    atomic_store(&lane->phase, phase);
    if (phase >= lane->stays_at)
        (void)proc_hear(self); /* until it is killed */
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
    reach(self, lane, SIGNALLING);
    reach(self, lane,
          hf_cond_signal(hold, "c", NULL) == 1 ? WOKE_ONE : IN_VAIN);
    (void)hf_release(hold, NULL);
    (void)proc_hear(self);
}

/* Waits once, and is killed meanwhile. */
static void wait_and_die(struct proc *self, void *arg)
{
    struct lane *lane = arg;
    hf_client *client = redis_open(lane->port, "ttl=400ms");
    hf_hold *hold = client_acquire(client, lane->name);

    proc_tell(self, "holding");
    (void)hf_cond_wait(hold, "c", HF_FOREVER, NULL);
    reach(self, lane, RETURNED);
    reach(self, lane, RELEASING);
    (void)hf_release(hold, NULL);
    (void)proc_hear(self);
}

/* ---- a round -------------------------------------------------------------- */

static void start_crew(struct crew *crew)
{
    (void)start_lanes();
    crew->seed = 1;
    for (int i = 0; i < LANES; i++) {
        crew->waiters[i] = proc_start(wait_again, &lanes[i]);
        crew->helpers[i] = proc_start(signal_again, &lanes[i]);
    }
}

/* Where the next one of @lane dies: there, or a moment later. */
static struct proc *start_victim(struct crew *crew, struct lane *lane,
                                 proc_fn *victim, int *ret_dies_at)
{
    *ret_dies_at = rand_r(&crew->seed) % 3;
    lane->stays_at = rand_r(&crew->seed) % 4 == 0 ? PHASES : *ret_dies_at;
    atomic_store(&lane->phase, BEFORE);
    return proc_start(victim, lane);
}

static void kill_at(struct proc *victim, struct lane *lane, int phase)
{
    EVENTUALLY(atomic_load(&lane->phase) >= phase);
    proc_kill(victim);
}

/* A helper signals where that is needed, and all waiters are woken. Returns
 * where it was not needed. */
static int end_round(struct crew *crew, bool (*needed)(int phase))
{
    int n = 0;

    for (int i = 0; i < LANES; i++) {
        if (needed(atomic_load(&lanes[i].phase)))
            proc_say(crew->helpers[i], "signal");
        else
            n++;
    }
    for (int i = 0; i < LANES; i++)
        (void)proc_expect(crew->waiters[i], "woken");
    for (int i = 0; i < LANES; i++) {
        if (needed(atomic_load(&lanes[i].phase)))
            (void)proc_expect(crew->helpers[i], "signalled");
    }
    return n;
}

/* What the rounds return, in all. */
static int repeat(int (*round)(struct crew *crew))
{
    struct crew crew;
    int sum = 0;

    start_crew(&crew);
    for (int i = 0; i < rounds(); i++)
        sum += round(&crew);
    return sum;
}

/* ---- a signaller dies --------------------------------------------------- */

static bool may_have_woken_nobody(int phase)
{
    return phase != WOKE_ONE;
}

static int kill_signallers(struct crew *crew)
{
    struct proc *victims[LANES];
    int dies_at[LANES];

    for (int i = 0; i < LANES; i++) {
        victims[i] = start_victim(crew, &lanes[i], signal_and_die, &dies_at[i]);
        proc_say(crew->waiters[i], "wait");
    }
    for (int i = 0; i < LANES; i++) {
        (void)proc_expect(victims[i], "ready");
        (void)proc_expect(crew->waiters[i], "holding");
    }
    for (int i = 0; i < LANES; i++) {
        proc_say(victims[i], "go");
        kill_at(victims[i], &lanes[i], dies_at[i]);
    }
    return end_round(crew, may_have_woken_nobody);
}

TEST(conditions, a_killed_signaller_loses_no_wake_up)
{
    int woke = repeat(kill_signallers);

    test_note("%d signallers killed, %d of them had woken one",
              rounds() * LANES, woke);
}

/* ---- a woken waiter dies ------------------------------------------------ */

static bool may_have_used_it_up(int phase)
{
    return phase == RELEASING;
}

static int kill_waiters(struct crew *crew)
{
    struct proc *victims[LANES];
    int dies_at[LANES];

    for (int i = 0; i < LANES; i++)
        victims[i] = start_victim(crew, &lanes[i], wait_and_die, &dies_at[i]);
    for (int i = 0; i < LANES; i++) {
        (void)proc_expect(victims[i], "holding");
        proc_say(crew->waiters[i], "wait");
        (void)proc_expect(crew->waiters[i], "holding");
    }
    for (int i = 0; i < LANES; i++) {
        if (dies_at[i] == BEFORE && lanes[i].stays_at == BEFORE)
            proc_kill(victims[i]); /* it dies parked */
        proc_say(crew->helpers[i], "wake");
    }
    for (int i = 0; i < LANES; i++) {
        (void)proc_expect(crew->helpers[i], "signalled 1");
        kill_at(victims[i], &lanes[i], dies_at[i]);
    }
    return end_round(crew, may_have_used_it_up);
}

TEST(conditions, a_killed_waiter_passes_its_wake_up_on)
{
    int passed = repeat(kill_waiters);

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
static struct client_wait begin_wait(struct stage *stage, hf_client *client)
{
    int before = parked(stage);
    struct client_wait wait = {.hold = client_acquire(client, "jobs")};

    wait.request = client_wait_start(wait.hold, "c");
    EVENTUALLY(parked(stage) > before);
    return wait;
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
    struct client_wait first;
    struct client_wait behind;
    hf_error err;
    int rc;

    if (lose == PARK)
        proxy_hold_at(stage->to_waiter, PROXY_TO_CLIENT, "*1\r\n$1\r\np");
    first = begin_wait(stage, stage->waiter);
    behind = begin_wait(stage, stage->next);
    if (lose == PARK)
        lose_answers(stage->to_waiter);
    signal_it(stage, lose == SIGNAL);
    rc = hf_request_wait(first.request, EVENT_PATIENCE_MS, NULL, &err);
    if (lose == PARK && rc == HF_ELOST)
        ASSERT_OK(
            hf_request_wait(behind.request, EVENT_PATIENCE_MS, NULL, &err),
            &err);
    else
        ASSERT_OK(rc, &err);
    hf_request_free(first.request);
    if (rc == 0)
        release_it(stage, first.hold, lose == RELEASE);
    else
        (void)hf_release(first.hold, NULL);
    hf_cancel(behind.request);
    (void)hf_request_wait(behind.request, EVENT_PATIENCE_MS, NULL, &err);
    hf_request_free(behind.request);
    (void)hf_release(behind.hold, NULL);
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

TEST(conditions, whoever_is_forgotten_returns_holding)
{
    struct client_wait wait;
    struct stage stage;

    set_up(&stage);
    wait = begin_wait(&stage, stage.waiter);
    (void)redis_do(stage.server, "FLUSHALL");
    client_woken(&wait);
    ASSERT_EQ(redis_leftovers(stage.server), 0);
}

/* The data are there, but a signal may be missing in them. */
TEST(conditions, whoever_waited_at_another_run_of_the_server_returns_holding)
{
    struct server *server = redis_start_durable();
    hf_client *client = redis_open(server_port(server), "ttl=60s");
    struct client_wait wait = client_park(client, "jobs", "c", client);

    server_kill(server);
    server_restart(server);
    client_woken(&wait);
    ASSERT_EQ(redis_leftovers(server), 0);
}

/* Nobody can say that no signal came in time. */
TEST(conditions, whose_time_ends_without_the_server_returns_as_if_woken)
{
    struct server *server = redis_start_durable();
    hf_client *client =
        redis_open(server_port(server), "ttl=60s&io_timeout=30s");
    struct client_wait wait = {.hold = client_acquire(client, "jobs")};
    int64_t until_ms = clock_ms() + 3000;
    bool in_time;
    hf_error err;
    int rc;

    ASSERT_OK(hf_cond_wait_start(wait.hold, "c", 3000, NULL, NULL,
                                 &wait.request, &err),
              &err);
    EVENTUALLY(client_count(client, "jobs", HF_PARKED) == 1);
    server_kill(server);
    in_time = clock_ms() < until_ms; /* or this machine is too slow */
    EVENTUALLY(clock_ms() > until_ms);
    server_restart(server);
    rc = hf_request_wait(wait.request, EVENT_PATIENCE_MS, NULL, &err);
    ASSERT_TRUE(rc == 0 || (rc == HF_ETIMEOUT && !in_time));
    hf_request_free(wait.request);
    client_release(wait.hold);
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

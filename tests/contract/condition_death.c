/* SPDX-License-Identifier: MIT */
/*
 * condition_death.c - no kill loses a wake-up, and no wait lets two inside.
 *
 * HOLDFAST_TEST_ROUNDS says how often each kill is made; 2 unless it is set.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "condition.h"

/* Of who is killed, so that the others need not wait long. Where one lease is
 * the whole client's, it has to be as short. */
enum { SHORT_MS = 1000, LONG_MS = 9000 };

static const char *short_lived_url(void)
{
    return contract_url(
        contract_can(HF_CAP_SESSION_BOUND) ? "session_timeout=1s" : NULL);
}

static int rounds(void)
{
    const char *text = getenv("HOLDFAST_TEST_ROUNDS");

    return text ? atoi(text) : 2;
}

/* ---- kills -------------------------------------------------------------- */

struct job {
    const char *url;
    const char *name;
    int64_t ttl_ms;
};

/* Does what it is told, a word at a time, and tells what came of it. */
static void worker(struct proc *self, void *arg)
{
    struct job *job = arg;
    hf_client *client = contract_open_url(job->url);
    hf_opts opts = HF_OPTS_INIT;
    hf_hold *hold = NULL;
    const char *word;
    hf_error err;

    opts.ttl_ms = job->ttl_ms;
    proc_tell(self, "open");
    while ((word = proc_hear(self)) != NULL) {
        int rc = 0;

        if (strcmp(word, "acquire") == 0)
            rc = hf_acquire(client, job->name, &opts, &hold, &err);
        else if (strcmp(word, "wait") == 0)
            rc = hf_cond_wait(hold, READY, HF_FOREVER, &err);
        else if (strcmp(word, "signal") == 0)
            rc = hf_cond_signal(hold, READY, &err);
        else if (strcmp(word, "broadcast") == 0)
            rc = hf_cond_broadcast(hold, READY, &err);
        else if (strcmp(word, "release") == 0)
            rc = hf_release(hold, &err);
        else
            break;
        if (rc < 0)
            test_note("%s: %s", word, err.text);
        proc_tell(self, "%s %d", word, rc);
    }
    contract_close(client);
    proc_tell(self, "gone");
}

static struct proc *start_worker(struct job *job)
{
    struct proc *proc = proc_start(worker, job);

    (void)proc_expect(proc, "open");
    return proc;
}

static void ask(struct proc *proc, const char *word, const char *answer)
{
    proc_say(proc, word);
    (void)proc_expect(proc, answer);
}

/* Two workers that are parked, in this order, and a third one. The leases of the
 * survivors do not run out on a busy machine; after a third of its lease each
 * survivor looks for workers that have died. */
struct three {
    struct job living;
    struct job mortal;
    struct proc *first;
    struct proc *second;
    struct proc *third;
    hf_client *client; /* which looks */
};

static void park_worker(struct three *three, struct proc *proc, int n)
{
    ask(proc, "acquire", "acquire 0");
    proc_say(proc, "wait");
    EVENTUALLY(client_count(three->client, three->living.name, HF_PARKED) == n);
}

enum victim { FIRST, THIRD };

static void start_three(struct three *three, enum victim victim)
{
    const char *name = contract_name("jobs");

    three->living = (struct job){contract_url(NULL), name, LONG_MS};
    three->mortal = (struct job){short_lived_url(), name, SHORT_MS};
    three->first =
        start_worker(victim == FIRST ? &three->mortal : &three->living);
    three->second = start_worker(&three->living);
    three->third =
        start_worker(victim == THIRD ? &three->mortal : &three->living);
    three->client = contract_open(NULL);
    park_worker(three, three->first, 1);
    park_worker(three, three->second, 2);
}

/* Both have been woken; who gets the lock first is not promised. */
static void end_first_and_second(struct three *three)
{
    proc_say(three->first, "release");
    proc_say(three->second, "release");
    (void)proc_expect(three->first, "wait 0");
    (void)proc_expect(three->first, "release 0");
    (void)proc_expect(three->second, "wait 0");
    (void)proc_expect(three->second, "release 0");
    condition_nothing_left(three->client, three->living.name);
    proc_kill(three->first);
    proc_kill(three->second);
    contract_close(three->client);
}

/* The second has been woken; all go. */
static void end_three(struct three *three)
{
    (void)proc_expect(three->second, "wait 0");
    ask(three->second, "release", "release 0");
    condition_nothing_left(three->client, three->living.name);
    proc_kill(three->second);
    proc_kill(three->third);
    contract_close(three->client);
}

static void signal_once(struct three *three)
{
    ask(three->third, "acquire", "acquire 0");
    ask(three->third, "signal", "signal 1");
    ask(three->third, "release", "release 0");
}

/* @act with three of them, as often as there are rounds. */
static void each_round(enum victim victim,
                       void (*act)(struct three *three, int i))
{
    for (int i = 0; i < rounds(); i++) {
        struct three three;

        start_three(&three, victim);
        act(&three, i);
    }
}

static void kill_a_waiter(struct three *three, int i)
{
    (void)i;
    proc_kill(three->first);
    signal_once(three); /* it may still seem to live, and then passes it on */
    end_three(three);
}

TEST(condition, a_killed_waiter_is_passed_over)
{
    NEEDS(HF_CAP_CONDITIONS);
    each_round(FIRST, kill_a_waiter);
}

static void kill_a_waiter_in_line(struct three *three, int i)
{
    (void)i;
    ask(three->third, "acquire", "acquire 0");
    ask(three->third, "signal", "signal 1");
    proc_kill(three->first);
    ask(three->third, "release", "release 0");
    end_three(three);
}

TEST(condition, a_killed_waiter_in_line_passes_its_wake_up_on)
{
    NEEDS(HF_CAP_CONDITIONS);
    each_round(FIRST, kill_a_waiter_in_line);
}

static void kill_a_holder(struct three *three, int i)
{
    signal_once(three);
    if (i % 2 == 0)
        (void)proc_expect(three->first, "wait 0"); /* else: at any moment */
    proc_kill(three->first);
    end_three(three);
}

TEST(condition, a_killed_holder_passes_its_wake_up_on)
{
    NEEDS(HF_CAP_CONDITIONS);
    each_round(FIRST, kill_a_holder);
}

static void kill_a_signaller(struct three *three, int i)
{
    (void)i;
    ask(three->third, "acquire", "acquire 0");
    ask(three->third, "broadcast", "broadcast 2");
    proc_kill(three->third);
    end_first_and_second(three);
}

TEST(condition, a_killed_signaller_takes_no_wake_up_along)
{
    NEEDS(HF_CAP_CONDITIONS);
    each_round(THIRD, kill_a_signaller);
}

/* At any moment of its request: then somebody else signals. */
static void kill_in_a_request(struct three *three, int i)
{
    hf_hold *hold;

    (void)i;
    ask(three->third, "acquire", "acquire 0");
    proc_say(three->third, "broadcast");
    proc_kill(three->third);
    while (client_count(three->client, three->living.name, HF_PARKED) > 0) {
        if (hf_try(three->client, three->living.name, &hold, NULL) == 0) {
            ASSERT_TRUE(hf_cond_broadcast(hold, READY, NULL) >= 0);
            client_release(hold);
        }
        event_breathe();
    }
    end_first_and_second(three);
}

TEST(condition, a_signaller_killed_in_its_request_harms_nobody)
{
    NEEDS(HF_CAP_CONDITIONS);
    each_round(THIRD, kill_in_a_request);
}

TEST(condition, a_broken_bearer_passes_its_wake_up_on)
{
    hf_client *client;
    hf_client *other;
    const char *name = contract_name("jobs");
    struct condition_wait first;
    struct condition_wait second;
    hf_error err;

    NEEDS(HF_CAP_CONDITIONS | HF_CAP_BREAK | HF_CAP_FENCED);
    client = contract_open(NULL);
    other = contract_open(NULL);
    first = condition_park(client, name, READY, 1);
    second = condition_park(other, name, READY, 2);
    ASSERT_EQ(condition_signal(other, name, READY), 1);
    ASSERT_OK(hf_request_wait(first.request, EVENT_PATIENCE_MS, NULL, &err),
              &err);
    ASSERT_OK(hf_break(other, name, hf_token(first.hold), NULL, &err), &err);
    condition_finish(&second, 0);
    hf_request_free(first.request);
    (void)hf_release(first.hold, NULL);
    condition_nothing_left(other, name);
}

/* ---- an engine that is silent ----------------------------------------------- */

/* Nobody knows whether it parked, until the lease ends. */
TEST(condition, a_wait_of_unknown_beginning_ends_with_the_lease)
{
    const char *name = contract_name("jobs");
    hf_opts opts = HF_OPTS_INIT;
    hf_client *client;
    hf_client *other;
    hf_hold *hold;
    hf_error err;

    NEEDS(HF_CAP_CONDITIONS | HF_CAP_LEASED);
    client = contract_open_url(
        contract_wrapped_url("fault", contract_can(HF_CAP_SESSION_BOUND)
                                          ? "session_timeout=1s&fault=park:drop"
                                          : "fault=park:drop"));
    other = contract_open(NULL);
    opts.ttl_ms = 1000;
    ASSERT_OK(hf_acquire(client, name, &opts, &hold, &err), &err);
    ASSERT_RC(hf_cond_wait(hold, READY, HF_FOREVER, &err), HF_ELOST, &err);
    ASSERT_EQ(hf_check(hold), HF_LOST);
    ASSERT_RC(hf_release(hold, &err), HF_ELOST, &err);
    condition_nothing_left(other, name);
}

TEST(condition, a_wait_ends_when_the_engine_does_not_answer)
{
    const char *name = contract_name("jobs");
    hf_client *client;
    hf_client *other;
    hf_hold *hold;
    hf_error err;

    NEEDS(HF_CAP_CONDITIONS);
    client = contract_open_url(
        contract_wrapped_url("fault", "io_timeout=300ms&fault=unpark:cut"));
    other = contract_open(NULL);
    hold = condition_acquire(client, name);
    ASSERT_RC(hf_cond_wait(hold, READY, 1, &err), HF_EUNAVAILABLE, &err);
    ASSERT_EQ(hf_check(hold), HF_LOST);
    ASSERT_RC(hf_release(hold, &err), HF_ELOST, &err);
    condition_nothing_left(other, name);
}

/* Where its lease has ended it returns for no reason, else it is woken. */
TEST(condition, a_stopped_waiter_holds_the_lock_when_it_returns)
{
    struct job job = {short_lived_url(), contract_name("jobs"), SHORT_MS};
    struct proc *proc;
    hf_client *client;
    int64_t stopped_ms;
    hf_hold *hold;

    NEEDS(HF_CAP_CONDITIONS);
    proc = start_worker(&job);
    client = contract_open(NULL);
    ask(proc, "acquire", "acquire 0");
    proc_say(proc, "wait");
    EVENTUALLY(client_count(client, job.name, HF_PARKED) == 1);
    proc_stop(proc);
    stopped_ms = clock_ms();
    EVENTUALLY(clock_ms() - stopped_ms > 2500);
    proc_continue(proc);
    /* It may have the lock already. */
    if (hf_try(client, job.name, &hold, NULL) == 0) {
        ASSERT_TRUE(hf_cond_signal(hold, READY, NULL) >= 0);
        client_release(hold);
    }
    /* Stopped before it heard that it was parked, it has lost the lock. */
    if (strcmp(proc_expect(proc, "wait"), "wait -4") != 0) {
        ASSERT_EQ(contract_try(client, job.name, HF_EXCLUSIVE, 0), HF_EBUSY);
        ask(proc, "release", "release 0");
    }
    condition_nothing_left(client, job.name);
    proc_kill(proc);
}

/* ---- exclusion --------------------------------------------------------------- */

enum { WORKERS = 4, CONDITIONS = 3, TURNS = 30 };

struct crowd {
    struct contract_job job;
    _Atomic int *inside;
    int number; /* of the next worker */
};

static void work_inside(const struct crowd *crowd)
{
    if (atomic_fetch_add(crowd->inside, 1) != 0)
        FAIL("two are inside");
    event_breathe();
    (void)atomic_fetch_sub(crowd->inside, 1);
}

static void crowd_worker(struct proc *self, void *arg)
{
    static const char *const conds[CONDITIONS] = {"red", "green", "blue"};
    struct crowd *crowd = arg;
    hf_client *client = contract_open_url(crowd->job.url);
    hf_error err;

    proc_tell(self, "open");
    (void)proc_hear(self);
    for (int i = 0; i < TURNS; i++) {
        hf_hold *hold = contract_acquire(client, crowd->job.name);
        int rc;

        work_inside(crowd);
        rc = i % 5 == 0 ? hf_cond_broadcast(hold, conds[i % CONDITIONS], &err)
                        : hf_cond_signal(hold, conds[i % CONDITIONS], &err);
        if (rc < 0)
            FAIL("signal: %s", err.text);
        rc = hf_cond_wait(hold, conds[(i + crowd->number) % CONDITIONS],
                          20 + i % 3 * 10, &err);
        if (rc != 0 && rc != HF_ETIMEOUT)
            FAIL("wait: %s", err.text);
        work_inside(crowd);
        client_release(hold);
    }
    contract_close(client);
    proc_tell(self, "done");
}

TEST(condition, one_is_inside_whoever_waits)
{
    struct crowd crowd = {.job = {contract_url(NULL), contract_name("jobs")}};
    struct proc *procs[WORKERS];
    void *shared;
    hf_client *client;

    NEEDS(HF_CAP_CONDITIONS);
    shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT_TRUE(shared != MAP_FAILED);
    crowd.inside = shared;
    for (int i = 0; i < WORKERS; i++) {
        crowd.number = i;
        procs[i] = proc_start(crowd_worker, &crowd);
        (void)proc_expect(procs[i], "open");
    }
    for (int i = 0; i < WORKERS; i++)
        proc_say(procs[i], "go");
    for (int i = 0; i < WORKERS; i++) {
        (void)proc_expect(procs[i], "done");
        proc_join(procs[i]);
    }
    client = contract_open(NULL);
    condition_nothing_left(client, crowd.job.name);
    (void)munmap(shared, 4096);
}

/* SPDX-License-Identifier: MIT */
/* death.c - processes that die or stand still. */
#include "contract.h"

struct job {
    const char *url;
    const char *name;
    int64_t ttl_ms;
};

/* Where one lease is the whole client's, it has to be as short. */
static const char *short_lived_url(void)
{
    return contract_url(
        contract_can(HF_CAP_SESSION_BOUND) ? "session_timeout=1s" : NULL);
}

static hf_hold *acquire_with_ttl(hf_client *client, const struct job *job,
                                 struct event *lost)
{
    return client_acquire_with(client, job->name,
                               OPTS(HF_CONFIGURED, .ttl_ms = job->ttl_ms,
                                    .on_event = lost ? client_on_event : NULL,
                                    .ctx = lost));
}

/* Takes the lock, tells, and keeps it until it is told to go. */
static void holder(struct proc *self, void *arg)
{
    struct job *job = arg;
    hf_client *client = contract_open_url(job->url);
    struct event lost = EVENT_INIT;
    hf_hold *hold;

    proc_tell(self, "open");
    (void)proc_hear(self);
    hold = acquire_with_ttl(client, job, &lost);
    proc_tell(self, "holds %llu", (unsigned long long)hf_token(hold));
    (void)proc_hear(self);
    proc_tell(self, "check %d", hf_check(hold));
    proc_tell(self, "release %s", hf_errname(hf_release(hold, NULL)));
    contract_close(client);
}

static struct proc *start_holder(struct job *job)
{
    struct proc *proc = proc_start(holder, job);

    (void)proc_expect(proc, "open");
    return proc;
}

/* Let it acquire; returns "holds TOKEN". */
static const char *let_acquire(struct proc *proc)
{
    proc_say(proc, "go");
    return proc_expect(proc, "holds");
}

/* What it finds when it looks, and what its release says; then it ends. */
static void expect_end(struct proc *proc, const char *check,
                       const char *release)
{
    (void)proc_expect(proc, check);
    (void)proc_expect(proc, release);
    proc_join(proc);
}

/* A lock that another process holds, and a client that will want it. */
static hf_client *start_and_open(struct job *job, struct proc **ret_proc)
{
    *ret_proc = start_holder(job);
    (void)let_acquire(*ret_proc);
    return contract_open(NULL);
}

/* At once where the engine notices, else when its lease has ended. */
TEST(death, a_killed_holder_frees_the_lock)
{
    int64_t ttl_ms = contract_can(HF_CAP_DEATH_NOTICE) ? 30000 : 1000;
    struct job job = {short_lived_url(), contract_name("jobs"), ttl_ms};
    struct proc *proc;
    hf_client *client = start_and_open(&job, &proc);
    int64_t killed_ms;

    ASSERT_EQ(contract_try(client, job.name, HF_EXCLUSIVE, 0), HF_EBUSY);
    proc_kill(proc);
    killed_ms = clock_ms();
    client_release(contract_acquire(client, job.name));
    ASSERT_LT(clock_ms() - killed_ms, 10000);
}

static const char *delayed_url(void)
{
    return contract_url(contract_can(HF_CAP_SESSION_BOUND)
                            ? "lock_delay=2500ms&session_timeout=1s"
                            : "lock_delay=2500ms");
}

/* Longer than the lease, which would keep it closed by itself. */
TEST(death, a_killed_holders_lock_stays_closed_for_its_delay)
{
    struct job job = {delayed_url(), contract_name("jobs"), 1000};
    struct proc *proc;
    hf_client *client;
    int64_t killed_ms;

    NEEDS(HF_CAP_LOCK_DELAY);
    client = start_and_open(&job, &proc);
    killed_ms = clock_ms();
    proc_kill(proc);
    client_release(contract_acquire(client, job.name));
    ASSERT_GE(clock_ms() - killed_ms, 2500);
}

TEST(death, a_lost_lock_stays_closed_for_its_delay_when_its_holder_comes_back)
{
    struct job job = {delayed_url(), contract_name("jobs"), 1500};
    hf_client *client;
    struct proc *proc;
    int64_t stopped_ms;

    NEEDS(HF_CAP_LOCK_DELAY);
    client = start_and_open(&job, &proc);
    stopped_ms = clock_ms();
    proc_stop(proc);
    EVENTUALLY(clock_ms() - stopped_ms > 1600);
    proc_say(proc, "go");
    proc_continue(proc);
    expect_end(proc, "check 2", "release HF_ELOST");
    client_release(contract_acquire(client, job.name));
    ASSERT_GE(clock_ms() - stopped_ms, 2500);
}

TEST(death, a_waiter_is_woken_by_the_holders_death)
{
    struct job job = {short_lived_url(), contract_name("jobs"), 1000};
    struct proc *first = start_holder(&job);
    struct proc *second = start_holder(&job);
    hf_client *client;

    NEEDS(HF_CAP_LIST);
    (void)let_acquire(first);
    proc_say(second, "go");
    client = contract_open(NULL);
    EVENTUALLY(client_count(client, job.name, HF_WAITER) == 1);
    proc_kill(first);
    (void)proc_expect(second, "holds");
    proc_say(second, "go");
    expect_end(second, "check 0", "release HF_OK");
}

TEST(death, a_killed_waiter_holds_nobody_up)
{
    struct job job = {short_lived_url(), contract_name("jobs"), 1000};
    struct proc *first = start_holder(&job);
    struct proc *second = start_holder(&job);
    hf_client *client;
    hf_hold *hold;

    NEEDS(HF_CAP_LIST);
    client = contract_open(NULL);
    hold = contract_acquire(client, job.name);
    proc_say(first, "go");
    EVENTUALLY(client_count(client, job.name, HF_WAITER) == 1);
    proc_say(second, "go");
    EVENTUALLY(client_count(client, job.name, HF_WAITER) == 2);
    proc_kill(first);
    client_release(hold);
    (void)proc_expect(second, "holds");
    proc_say(second, "go");
    (void)proc_expect(second, "check 0");
    proc_join(second);
    ASSERT_EQ(client_count(client, job.name, HF_HOLDER), 0);
    ASSERT_EQ(client_count(client, job.name, HF_WAITER), 0);
}

TEST(death, a_stopped_holder_loses_its_lease_and_knows_it)
{
    struct job job = {short_lived_url(), contract_name("jobs"), 300};
    struct proc *proc = start_holder(&job);
    hf_client *client;
    hf_hold *hold;
    unsigned long long first;
    const char *line;

    NEEDS(HF_CAP_LEASED);
    line = let_acquire(proc);
    ASSERT_EQ(sscanf(line, "holds %llu", &first), 1);
    proc_stop(proc);
    client = contract_open(NULL);
    hold = contract_acquire(client, job.name);
    if (contract_can(HF_CAP_FENCED))
        ASSERT_GT(hf_token(hold), first);
    proc_say(proc, "go");
    proc_continue(proc);
    expect_end(proc, "check 2", "release HF_ELOST");
    ASSERT_EQ(hf_check(hold), HF_HELD);
    ASSERT_OK(hf_verify(hold, NULL), NULL);
    client_release(hold);
}

TEST(death, a_stopped_waiter_holds_nobody_up)
{
    struct job job = {short_lived_url(), contract_name("jobs"), 1000};
    struct proc *proc = start_holder(&job);
    hf_client *client;
    hf_hold *hold;

    NEEDS(HF_CAP_LEASED | HF_CAP_LIST);
    client = contract_open(NULL);
    hold = contract_acquire(client, job.name);
    proc_say(proc, "go");
    EVENTUALLY(client_count(client, job.name, HF_WAITER) == 1);
    proc_stop(proc);
    client_release(hold);
    client_release(contract_acquire(client, job.name));
    proc_continue(proc);
    (void)proc_expect(proc, "holds");
    proc_say(proc, "go");
    expect_end(proc, "check 0", "release HF_OK");
}

/* Opens, acquires, and dies without a word while it holds. */
static void careless(struct proc *self, void *arg)
{
    struct job *job = arg;
    hf_client *client = contract_open_url(job->url);

    (void)acquire_with_ttl(client, job, NULL);
    proc_tell(self, "holds");
}

TEST(death, a_process_that_exits_without_release_frees_the_lock)
{
    struct job job = {short_lived_url(), contract_name("jobs"), 500};

    for (int i = 0; i < 3; i++) {
        struct proc *proc = proc_start(careless, &job);

        (void)proc_expect(proc, "holds");
        proc_join(proc);
    }
}

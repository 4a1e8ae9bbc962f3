/* SPDX-License-Identifier: MIT */
/*
 * exclusion.c - one at a time, in order, with growing tokens.
 *
 * The counter is changed without any protection but the lock, and slowly: who
 * enters while another is inside loses an update.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "contract.h"

/* Each thread counts for BUDGET_MS, at least LEAST and at most ROUNDS times. */
enum { PROCESSES = 4, THREADS = 8, LEAST = 10, ROUNDS = 150, BUDGET_MS = 2000 };

struct shared {
    volatile long counter;
    atomic_long rounds; /* what the counter should say */
    volatile int inside;
    volatile uint64_t last_token;
    volatile int order[16];
    volatile int n_order;
};

struct job {
    struct shared *shared;
    const char *url;
    const char *name;
    hf_client *client;
    int threads;
    int number;
};

static void unmap(void *arg)
{
    (void)munmap(arg, sizeof(struct shared));
}

static struct shared *shared_new(void)
{
    struct shared *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
                                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    ASSERT_TRUE(shared != MAP_FAILED);
    test_defer(unmap, shared);
    return shared;
}

static void count_once(struct job *job)
{
    hf_hold *hold = contract_acquire(job->client, job->name);
    struct shared *shared = job->shared;
    uint64_t token = hf_token(hold);
    long before = shared->counter;

    ASSERT_EQ(shared->inside, 0);
    shared->inside = 1;
    if (contract_can(HF_CAP_FENCED)) {
        ASSERT_GT(token, shared->last_token);
        shared->last_token = token;
    }
    (void)sched_yield();
    shared->counter = before + 1;
    shared->inside = 0;
    client_release(hold);
}

static void *count_thread(void *arg)
{
    struct job *job = arg;
    int64_t until = clock_ms() + BUDGET_MS;
    int i;

    for (i = 0; i < ROUNDS && (i < LEAST || clock_ms() < until); i++)
        count_once(job);
    (void)atomic_fetch_add(&job->shared->rounds, i);
    return NULL;
}

static void count_in_threads(struct job *job)
{
    pthread_t threads[THREADS];

    for (int i = 0; i < job->threads; i++)
        ASSERT_EQ(pthread_create(&threads[i], NULL, count_thread, job), 0);
    for (int i = 0; i < job->threads; i++)
        ASSERT_EQ(pthread_join(threads[i], NULL), 0);
}

static void count_process(struct proc *self, void *arg)
{
    struct job job = *(struct job *)arg;

    (void)self;
    job.client = contract_open_url(job.url);
    count_in_threads(&job);
    contract_close(job.client);
}

static void count_in_processes(int threads)
{
    struct job job = {.shared = shared_new(),
                      .url = contract_url(NULL),
                      .name = contract_name("counter"),
                      .threads = threads};
    struct proc *procs[PROCESSES];

    for (int i = 0; i < PROCESSES; i++)
        procs[i] = proc_start(count_process, &job);
    for (int i = 0; i < PROCESSES; i++)
        proc_join(procs[i]);
    ASSERT_EQ(job.shared->counter, job.shared->rounds);
    ASSERT_GE(job.shared->counter, PROCESSES * threads * LEAST);
}

TEST(exclusion, many_processes_count_right)
{
    count_in_processes(1);
}

TEST(exclusion, many_processes_with_many_threads_count_right)
{
    count_in_processes(3);
}

TEST(exclusion, many_threads_of_one_client_count_right)
{
    struct job job = {.shared = shared_new(),
                      .name = contract_name("counter"),
                      .threads = THREADS};

    job.client = contract_open(NULL);
    count_in_threads(&job);
    ASSERT_EQ(job.shared->counter, job.shared->rounds);
    ASSERT_GE(job.shared->counter, THREADS * LEAST);
}

TEST(exclusion, two_clients_of_one_process_exclude_each_other)
{
    struct rivals at = contract_rivals("jobs");
    hf_hold *hold = contract_acquire(at.client, at.name);

    ASSERT_EQ(contract_try(at.rival, at.name, HF_EXCLUSIVE, 0), HF_EBUSY);
    ASSERT_EQ(contract_try(at.client, at.name, HF_EXCLUSIVE, 0), HF_EBUSY);
    client_release(hold);
    ASSERT_EQ(contract_try(at.rival, at.name, HF_EXCLUSIVE, 0), 0);
}

TEST(exclusion, different_names_do_not_exclude_each_other)
{
    hf_client *client = contract_open(NULL);
    hf_hold *one = contract_acquire(client, contract_name("one"));
    hf_hold *two = contract_acquire(client, contract_name("two"));

    client_release(one);
    client_release(two);
}

/* ---- order -------------------------------------------------------------- */

static void stand_in_line(struct proc *self, void *arg)
{
    struct job *job = arg;
    hf_hold *hold;

    job->client = contract_open_url(job->url);
    proc_tell(self, "open");
    (void)proc_hear(self);
    hold = contract_acquire(job->client, job->name);
    job->shared->order[job->shared->n_order] = job->number;
    job->shared->n_order++;
    client_release(hold);
    contract_close(job->client);
}

TEST(exclusion, processes_are_served_in_the_order_they_came)
{
    enum { WAITERS = 5 };
    struct proc *procs[WAITERS];
    struct job job = {.shared = shared_new(), .name = contract_name("line")};
    hf_client *client;
    hf_hold *hold;

    NEEDS(HF_CAP_FIFO | HF_CAP_LIST);
    job.url = contract_url(NULL);
    for (job.number = 0; job.number < WAITERS; job.number++) {
        procs[job.number] = proc_start(stand_in_line, &job);
        (void)proc_expect(procs[job.number], "open");
    }
    client = contract_open(NULL);
    hold = contract_acquire(client, job.name);
    for (int i = 0; i < WAITERS; i++) {
        proc_say(procs[i], "go");
        EVENTUALLY(client_count(client, job.name, HF_WAITER) == i + 1);
    }
    client_release(hold);
    for (int i = 0; i < WAITERS; i++) {
        proc_join(procs[i]);
        ASSERT_EQ(job.shared->order[i], i);
    }
}

struct turn {
    struct job *job;
    struct event *started;
    int number;
};

static void *stand_in_local_line(void *arg)
{
    struct turn *turn = arg;
    struct job *job = turn->job;
    hf_hold *hold;

    event_tell(turn->started, turn->number);
    hold = contract_acquire(job->client, job->name);
    job->shared->order[job->shared->n_order++] = turn->number;
    client_release(hold);
    return NULL;
}

TEST(exclusion, threads_are_served_in_the_order_they_came)
{
    enum { WAITERS = 5 };
    struct event started = EVENT_INIT;
    struct job job = {.shared = shared_new(), .name = contract_name("line")};
    struct turn turns[WAITERS];
    pthread_t threads[WAITERS];
    hf_hold *hold;

    job.client = contract_open(NULL);
    hold = contract_acquire(job.client, job.name);
    for (int i = 0; i < WAITERS; i++) {
        turns[i] = (struct turn){&job, &started, i};
        ASSERT_EQ(
            pthread_create(&threads[i], NULL, stand_in_local_line, &turns[i]),
            0);
        EVENTUALLY(contract_metric(job.client, "holdfast_waiting{") == i + 1);
    }
    client_release(hold);
    for (int i = 0; i < WAITERS; i++)
        (void)pthread_join(threads[i], NULL);
    for (int i = 0; i < WAITERS; i++)
        ASSERT_EQ(job.shared->order[i], i);
}

TEST(exclusion, a_busy_process_does_not_starve_another)
{
    struct job job = {.shared = shared_new(),
                      .url = contract_url(NULL),
                      .name = contract_name("counter"),
                      .threads = 4};
    struct proc *busy = proc_start(count_process, &job);
    hf_client *client = contract_open(NULL);

    /* Four threads hand it to each other; we still get our turns. */
    for (int i = 0; i < 10; i++)
        client_release(contract_acquire(client, job.name));
    proc_join(busy);
}

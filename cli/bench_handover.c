/* SPDX-License-Identifier: MIT */
/*
 * bench_handover.c - the scenario handover.
 *
 * N processes contend for one name. The holder writes into a page that
 * all share which process it is and when it calls release; the next holder reads
 * its clock when acquire has returned. The lock itself makes these writes safe,
 * and so the run also proves that it excludes: two holders at once would be
 * counted as errors. Only hand-overs between different processes count.
 *
 * A lock that nobody waits for is not handed over, and a process that has just
 * released can take it again many times before another one is awake. So the
 * holder waits until the others are in the queue before it releases.
 *
 * The processes are forked before any client is opened, because a client does
 * not survive a fork.
 */
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"

/* One process's part of the page. */
struct part {
    uint64_t grants;
    struct figures figures;
};

struct page {
    _Atomic int ready;
    _Atomic int go; /* 1: begin, 2: stop */
    _Atomic int inside;
    _Atomic int at_the_door;      /* how many have called acquire */
    _Atomic int last;             /* who released */
    _Atomic uint64_t released_ns; /* when it called release */
    char name[64];
    struct part parts[];
};

static void await_others(struct page *page)
{
    while (atomic_load(&page->at_the_door) == 0 && atomic_load(&page->go) == 1)
        sched_yield();
}

static void take_turns(struct page *page, int me, hf_client *client)
{
    struct part *part = &page->parts[me];
    hf_error err = {0};
    hf_hold *hold;

    while (atomic_load(&page->go) == 1) {
        atomic_fetch_add(&page->at_the_door, 1);

        int rc = hf_acquire(client, page->name, NULL, &hold, &err);
        uint64_t now = bench_now_ns();

        atomic_fetch_sub(&page->at_the_door, 1);
        if (rc != 0) {
            bench_error(&part->figures, &err);
            continue;
        }
        if (atomic_exchange(&page->inside, 1) != 0) {
            snprintf(err.text, sizeof(err.text), "two holders at once");
            bench_error(&part->figures, &err);
        }
        part->grants++;
        if (atomic_load(&page->last) != me)
            histogram_add(&part->figures.histogram,
                          now - atomic_load(&page->released_ns));
        atomic_store(&page->last, me);
        atomic_store(&page->inside, 0);
        await_others(page);
        atomic_store(&page->released_ns, bench_now_ns());
        if (hf_release(hold, &err) != 0)
            bench_error(&part->figures, &err);
    }
}

static void nap(void)
{
    struct timespec ms = {0, 1000000};

    clock_nanosleep(CLOCK_MONOTONIC, 0, &ms, NULL);
}

/* A hundred that look every millisecond would leave no time to those who are
 * still connecting. */
static void await_go(struct page *page)
{
    while (atomic_load(&page->go) == 0)
        (void)syscall(SYS_futex, &page->go, FUTEX_WAIT, 0, NULL, NULL, 0);
}

static void tell_go(struct page *page)
{
    atomic_store(&page->go, 1);
    (void)syscall(SYS_futex, &page->go, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static int be_process(struct page *page, int me)
{
    hf_client *client = NULL;
    int rc = bench_open(&page->parts[me].figures, &client);

    if (rc != 0)
        return rc;
    atomic_fetch_add(&page->ready, 1);
    await_go(page);
    take_turns(page, me, client);
    hf_close(client);
    return 0;
}

/* Start them all. Returns how many there are. */
static int start(const struct bench *bench, struct page *page, pid_t *pids)
{
    pid_t parent = getpid();
    int n = 0;

    fflush(NULL);
    for (; n < bench->processes; n++) {
        pids[n] = fork();
        if (pids[n] < 0)
            break;
        if (pids[n] == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            _exit(getppid() == parent ? be_process(page, n) : CLI_INTERNAL);
        }
    }
    return n;
}

/* Wait until all are ready. 0, or the exit code of one that ended instead. */
static int gather(struct page *page, int n)
{
    while (atomic_load(&page->ready) < n) {
        int status;

        if (waitpid(-1, &status, WNOHANG) > 0)
            return WIFEXITED(status) ? WEXITSTATUS(status) : CLI_INTERNAL;
        nap();
    }
    return 0;
}

static void add_up(const struct bench *bench, const struct page *page,
                   struct figures *figures)
{
    uint64_t least = UINT64_MAX;
    uint64_t most = 0;

    memcpy(figures->engine, page->parts[0].figures.engine,
           sizeof(figures->engine));
    memcpy(figures->url, page->parts[0].figures.url, sizeof(figures->url));
    for (int i = 0; i < bench->processes; i++) {
        const struct part *part = &page->parts[i];

        histogram_merge(&figures->histogram, &part->figures.histogram);
        least = part->grants < least ? part->grants : least;
        most = part->grants > most ? part->grants : most;
        if (part->figures.errors && !figures->errors)
            memcpy(figures->error, part->figures.error, sizeof(figures->error));
        figures->errors += part->figures.errors;
    }
    figures->per_s = (double)figures->histogram.total / figures->seconds;
    figures->fairness = most ? (double)least / (double)most : 0;
}

static int measure(const struct bench *bench, struct page *page, pid_t *pids,
                   struct figures *figures)
{
    int n = start(bench, page, pids);
    int rc = n == bench->processes ? gather(page, n) : CLI_INTERNAL;
    uint64_t began = bench_now_ns();

    if (rc == 0) {
        tell_go(page);
        bench_wait(bench, began, began + (uint64_t)(bench->seconds * 1e9));
        figures->seconds = (double)(bench_now_ns() - began) / 1e9;
    }
    atomic_store(&page->go, 2);
    for (int i = 0; i < n; i++) {
        if (rc != 0)
            kill(pids[i], SIGKILL);
        while (waitpid(pids[i], NULL, 0) < 0 && errno == EINTR)
            continue;
    }
    return rc;
}

int bench_handover(const struct bench *bench, struct figures *figures)
{
    size_t size =
        sizeof(struct page) + (size_t)bench->processes * sizeof(struct part);
    pid_t *pids = calloc((size_t)bench->processes, sizeof(*pids));
    struct page *page = mmap(NULL, size, PROT_READ | PROT_WRITE,
                             MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int rc = CLI_INTERNAL;

    if (pids && page != MAP_FAILED) {
        atomic_init(&page->last, 0);
        bench_name(page->name, sizeof(page->name), bench->scenario, 0);
        atomic_store(&page->released_ns, bench_now_ns());
        rc = measure(bench, page, pids, figures);
        if (rc == 0)
            add_up(bench, page, figures);
    }
    if (page != MAP_FAILED)
        munmap(page, size);
    free(pids);
    return rc;
}

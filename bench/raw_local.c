/* SPDX-License-Identifier: MIT */
/*
 * raw_local.c - what this machine can do at most, for ./dev bench local.
 *
 *     raw_local SCENARIO SECONDS [N]
 *
 *   pair         flock(LOCK_EX) and flock(LOCK_UN) of one file, one process
 *   try          flock(LOCK_EX | LOCK_NB) of a file that is locked
 *   handover     N processes (2) pass a turn by FUTEX_WAKE, the next one
 *                asleep: from before the wake to the return of the wait
 *   shared-name  eight threads in a FIFO queue: a ticket lock in which every
 *                waiter sleeps on a futex of its own
 *
 * No library between us and the kernel.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "raw.h"

enum { THREADS = 8, PLACES = 64, PROCESSES = 1024 };

static double seconds;
static struct samples *samples;

static void futex_wait(_Atomic uint32_t *word, uint32_t value)
{
    (void)syscall(SYS_futex, word, FUTEX_WAIT, value, NULL, NULL, 0);
}

static void futex_wake(_Atomic uint32_t *word)
{
    (void)syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static void nap(void)
{
    struct timespec time = {
        .tv_sec = (time_t)seconds,
        .tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9)};

    (void)nanosleep(&time, NULL);
}

/* ---- pair, try ---------------------------------------------------------- */

static int one_pair(int fd)
{
    return flock(fd, LOCK_EX) != 0 ? -1 : flock(fd, LOCK_UN);
}

static int one_try(int fd)
{
    return flock(fd, LOCK_EX | LOCK_NB) == 0 ? -1 : 0;
}

/* One in 64 is timed: a look at the clock would be a tenth of it. */
static void repeat(const char *scenario, int fd, int (*what)(int))
{
    uint64_t began = now_ns();
    uint64_t until = began + (uint64_t)(seconds * 1e9);
    uint64_t n = 0;
    uint64_t now = began;

    while (now < until) {
        uint64_t before;

        for (int i = 1; i < 64; i++) {
            if (what(fd) != 0)
                die("flock");
        }
        before = now_ns();
        (void)what(fd);
        now = now_ns();
        sample(samples, now - before);
        n += 64;
    }
    print(scenario, (double)n * 1e9 / (double)(now - began), samples);
}

static void pair_or_try(const char *scenario)
{
    char path[] = "/tmp/raw_local-XXXXXX";
    int fd = mkostemp(path, O_CLOEXEC);
    int other = fd < 0 ? -1 : open(path, O_RDWR | O_CLOEXEC);

    if (other < 0)
        die(path);
    (void)unlink(path);
    if (strcmp(scenario, "pair") == 0)
        repeat(scenario, fd, one_pair);
    else if (flock(other, LOCK_EX) == 0)
        repeat(scenario, fd, one_try);
    (void)close(other);
    (void)close(fd);
}

/* ---- handover ---------------------------------------------------------- */

struct page {
    _Atomic uint32_t turn[PROCESSES];   /* +1: it is this one's */
    _Atomic uint32_t asleep[PROCESSES]; /* about to wait */
    _Atomic uint64_t woken_ns;
    _Atomic uint32_t stop;
};

/* The other one has said that it will wait; give it time to get there. */
static void await_sleeper(struct page *page, int other)
{
    uint64_t until_ns;

    while (atomic_load(&page->asleep[other]) == 0 &&
           atomic_load(&page->stop) == 0)
        (void)sched_yield();
    until_ns = now_ns() + 20000;
    while (now_ns() < until_ns)
        (void)sched_yield();
}

static void wake(struct page *page, int i)
{
    atomic_store(&page->woken_ns, now_ns());
    atomic_fetch_add(&page->turn[i], 1);
    futex_wake(&page->turn[i]);
}

static void take_turns(struct page *page, int me, int next)
{
    uint32_t seen = atomic_load(&page->turn[me]);

    while (atomic_load(&page->stop) == 0) {
        atomic_store(&page->asleep[me], 1);
        while (atomic_load(&page->turn[me]) == seen)
            futex_wait(&page->turn[me], seen);
        uint64_t took_ns = now_ns() - atomic_load(&page->woken_ns);

        seen++;
        atomic_store(&page->asleep[me], 0);
        sample(samples, took_ns);
        await_sleeper(page, next);
        wake(page, next);
    }
}

static void handover(int n)
{
    struct page *page = shared_page(sizeof(*page));
    pid_t pids[PROCESSES];

    for (int i = 0; i < n; i++) {
        pids[i] = fork();
        if (pids[i] < 0)
            die("fork");
        if (pids[i] == 0) {
            take_turns(page, i, (i + 1) % n);
            _exit(0);
        }
    }
    for (int i = 0; i < n; i++) {
        while (atomic_load(&page->asleep[i]) == 0)
            (void)sched_yield();
    }
    wake(page, 0);
    do
        nap();
    while (samples->n == 0);
    atomic_store(&page->stop, 1);
    for (int i = 0; i < n; i++)
        wake(page, i);
    for (int i = 0; i < n; i++)
        (void)waitpid(pids[i], NULL, 0);
    print("handover", (double)samples->n / seconds, samples);
}

/* ---- shared-name ------------------------------------------------------- */

static struct {
    _Atomic uint32_t next;
    _Atomic uint32_t serving;
    _Atomic uint32_t stop;
    pthread_barrier_t begin; /* one alone would be much faster than eight */
    struct {
        _Atomic uint32_t word; /* the ticket that may enter */
        char unused[60];
    } place[PLACES];
} queue;

static void enter(uint32_t ticket)
{
    _Atomic uint32_t *word = &queue.place[ticket % PLACES].word;

    for (;;) {
        uint32_t seen = atomic_load(word);

        if (atomic_load(&queue.serving) == ticket)
            return;
        futex_wait(word, seen);
    }
}

static void leave(uint32_t ticket)
{
    _Atomic uint32_t *word = &queue.place[(ticket + 1) % PLACES].word;

    atomic_store(&queue.serving, ticket + 1);
    atomic_fetch_add(word, 1);
    if (atomic_load(&queue.next) != ticket + 1)
        futex_wake(word);
}

static void *queue_up(void *arg)
{
    uint64_t *n = arg;
    uint32_t ticket = atomic_fetch_add(&queue.next, 1);

    (void)pthread_barrier_wait(&queue.begin);
    for (; atomic_load(&queue.stop) == 0;
         ticket = atomic_fetch_add(&queue.next, 1)) {
        enter(ticket);
        (*n)++;
        leave(ticket);
    }
    enter(ticket);
    (*n)++;
    leave(ticket);
    return NULL;
}

static void shared_name(void)
{
    pthread_t threads[THREADS];
    static uint64_t n[THREADS][8];
    uint64_t sum = 0;
    uint64_t began;

    (void)pthread_barrier_init(&queue.begin, NULL, THREADS + 1);
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, queue_up, n[i]) != 0)
            die("pthread_create");
    (void)pthread_barrier_wait(&queue.begin);
    began = now_ns();
    nap();
    atomic_store(&queue.stop, 1);
    for (int i = 0; i < THREADS; i++)
        (void)pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++)
        sum += n[i][0];
    sample(samples, (now_ns() - began) / (sum > 0 ? sum : 1));
    print("shared-name", (double)sum / seconds, samples);
}

/* ---- main -------------------------------------------------------------- */

int main(int argc, char **argv)
{
    const char *scenario = argc > 2 ? argv[1] : "";
    int n = argc > 3 ? atoi(argv[3]) : 2;

    seconds = argc > 2 ? atof(argv[2]) : 0;
    samples = samples_new();
    if (strcmp(scenario, "pair") == 0 || strcmp(scenario, "try") == 0) {
        pair_or_try(scenario);
    } else if (strcmp(scenario, "handover") == 0 && n > 1 && n <= PROCESSES) {
        handover(n);
    } else if (strcmp(scenario, "shared-name") == 0) {
        shared_name();
    } else {
        fprintf(stderr, "usage: raw_local pair|try|handover|shared-name "
                        "SECONDS [PROCESSES]\n");
        return 64;
    }
    return 0;
}

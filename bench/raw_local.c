/* SPDX-License-Identifier: MIT */
/*
 * raw_local.c - what this machine can do at most, for bench/local.sh.
 *
 *     raw_local [--seconds N] [--pin CPU] [SCENARIO…]
 *
 *   pair         flock(LOCK_EX) and flock(LOCK_UN) of one file, one process
 *   handover     two processes pass a turn by FUTEX_WAKE, the other asleep:
 *                from before the wake to the return of the wait
 *   shared-name  eight threads in a FIFO queue: a ticket lock in which every
 *                waiter sleeps on a futex of its own
 *
 * One JSON line each. No library between us and the kernel: these are limits,
 * not competitors.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { SAMPLES = 1 << 18, THREADS = 8, PLACES = 64 };

static double seconds = 3;

static void die(const char *what)
{
    perror(what);
    exit(1);
}

static int64_t now_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static void futex_wait(_Atomic uint32_t *word, uint32_t value)
{
    (void)syscall(SYS_futex, word, FUTEX_WAIT, value, NULL, NULL, 0);
}

static void futex_wake(_Atomic uint32_t *word)
{
    (void)syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0);
}

/* ---- pair -------------------------------------------------------------- */

static void pair(void)
{
    char path[] = "/tmp/raw_local-XXXXXX";
    int fd = mkostemp(path, O_CLOEXEC);
    int64_t begin_ns = now_ns();
    int64_t until_ns = begin_ns + (int64_t)(seconds * 1e9);
    uint64_t n = 0;
    double rate;

    if (fd < 0)
        die(path);
    (void)unlink(path);
    while (now_ns() < until_ns) {
        for (int i = 0; i < 1000; i++) {
            if (flock(fd, LOCK_EX) != 0 || flock(fd, LOCK_UN) != 0)
                die("flock");
        }
        n += 1000;
    }
    rate = (double)n * 1e9 / (double)(now_ns() - begin_ns);
    (void)close(fd);
    printf("{\"scenario\":\"pair\",\"raw\":\"flock\",\"pairs_per_s\":%.0f,"
           "\"ns\":%.1f}\n",
           rate, 1e9 / rate);
}

/* ---- handover ---------------------------------------------------------- */

struct page {
    _Atomic uint32_t turn[2];   /* +1: it is this one's */
    _Atomic uint32_t asleep[2]; /* about to wait */
    _Atomic int64_t woken_ns;
    _Atomic uint32_t stop;
    uint32_t n;
    uint32_t samples_ns[SAMPLES];
};

/* The other one has said that it will wait; give it time to get there. */
static void await_sleeper(struct page *page, int other)
{
    int64_t until_ns;

    while (atomic_load(&page->asleep[other]) == 0 &&
           atomic_load(&page->stop) == 0)
        (void)sched_yield();
    until_ns = now_ns() + 20000;
    while (now_ns() < until_ns)
        (void)sched_yield();
}

static void take_turns(struct page *page, int me)
{
    uint32_t seen = atomic_load(&page->turn[me]);

    while (atomic_load(&page->stop) == 0) {
        atomic_store(&page->asleep[me], 1);
        while (atomic_load(&page->turn[me]) == seen)
            futex_wait(&page->turn[me], seen);
        int64_t took_ns = now_ns() - atomic_load(&page->woken_ns);

        seen++;
        atomic_store(&page->asleep[me], 0);
        if (page->n < SAMPLES)
            page->samples_ns[page->n++] = (uint32_t)took_ns;
        await_sleeper(page, 1 - me);
        atomic_store(&page->woken_ns, now_ns());
        atomic_fetch_add(&page->turn[1 - me], 1);
        futex_wake(&page->turn[1 - me]);
    }
}

static int by_size(const void *a, const void *b)
{
    const uint32_t *x = a;
    const uint32_t *y = b;

    return *x < *y ? -1 : *x > *y;
}

static void handover(void)
{
    struct page *page = mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE,
                             MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct timespec time = {
        .tv_sec = (time_t)seconds,
        .tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9)};
    pid_t pids[2];

    if (page == MAP_FAILED)
        die("mmap");
    for (int i = 0; i < 2; i++) {
        pids[i] = fork();
        if (pids[i] < 0)
            die("fork");
        if (pids[i] == 0) {
            take_turns(page, i);
            _exit(0);
        }
    }
    while (atomic_load(&page->asleep[0]) + atomic_load(&page->asleep[1]) < 2)
        (void)sched_yield();
    atomic_store(&page->woken_ns, now_ns());
    atomic_fetch_add(&page->turn[0], 1);
    futex_wake(&page->turn[0]);
    (void)nanosleep(&time, NULL);
    atomic_store(&page->stop, 1);
    for (int i = 0; i < 2; i++) {
        atomic_fetch_add(&page->turn[i], 1);
        futex_wake(&page->turn[i]);
    }
    for (int i = 0; i < 2; i++)
        (void)waitpid(pids[i], NULL, 0);
    if (page->n == 0)
        die("no hand-over");
    qsort(page->samples_ns, page->n, sizeof(uint32_t), by_size);
    printf("{\"scenario\":\"handover\",\"raw\":\"futex\","
           "\"handovers_per_s\":%.0f,\"p50_us\":%.2f,\"p99_us\":%.2f}\n",
           (double)page->n / seconds, page->samples_ns[page->n / 2] / 1e3,
           page->samples_ns[(uint64_t)page->n * 99 / 100] / 1e3);
    (void)munmap(page, sizeof(*page));
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
    leave(ticket);
    return NULL;
}

static void shared_name(void)
{
    struct timespec time = {
        .tv_sec = (time_t)seconds,
        .tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9)};
    pthread_t threads[THREADS];
    static uint64_t n[THREADS][8];
    uint64_t sum = 0;
    int64_t begin_ns;

    (void)pthread_barrier_init(&queue.begin, NULL, THREADS + 1);
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, queue_up, n[i]) != 0)
            die("pthread_create");
    (void)pthread_barrier_wait(&queue.begin);
    begin_ns = now_ns();
    (void)nanosleep(&time, NULL);
    atomic_store(&queue.stop, 1);
    for (int i = 0; i < THREADS; i++)
        (void)pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++)
        sum += n[i][0];
    printf("{\"scenario\":\"shared-name\",\"raw\":\"fifo futex queue\","
           "\"threads\":%d,\"pairs_per_s\":%.0f}\n",
           (int)THREADS, (double)sum * 1e9 / (double)(now_ns() - begin_ns));
}

/* ---- main -------------------------------------------------------------- */

static void pin(int cpu)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET((size_t)cpu, &set);
    if (sched_setaffinity(0, sizeof(set), &set) != 0)
        die("--pin");
}

int main(int argc, char **argv)
{
    bool all = true;
    int i = 1;

    for (; i + 1 < argc && strncmp(argv[i], "--", 2) == 0; i += 2) {
        if (strcmp(argv[i], "--seconds") == 0)
            seconds = atof(argv[i + 1]);
        else if (strcmp(argv[i], "--pin") == 0)
            pin(atoi(argv[i + 1]));
        else
            break;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (; i < argc; i++, all = false) {
        if (strcmp(argv[i], "pair") == 0) {
            pair();
        } else if (strcmp(argv[i], "handover") == 0) {
            handover();
        } else if (strcmp(argv[i], "shared-name") == 0) {
            shared_name();
        } else {
            fprintf(stderr, "usage: raw_local [--seconds N] [--pin CPU] "
                            "[pair|handover|shared-name]…\n");
            return 2;
        }
    }
    if (all) {
        pair();
        handover();
        shared_name();
    }
    return 0;
}

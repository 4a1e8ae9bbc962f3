/* SPDX-License-Identifier: MIT */
/*
 * raw.h - what the raw programs share.
 *
 *     raw_ENGINE SCENARIO SECONDS TARGET…
 *
 * prints "SCENARIO rate p50_us p99_us". The programs are limits, not
 * competitors: no lock has its way in them, only the calls that one cannot do
 * without, and nothing of ours is between them and the engine.
 */
#ifndef BENCH_RAW_H
#define BENCH_RAW_H

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* Those after the last place are counted and not kept. */
struct samples {
    size_t n;
    uint32_t ns[1 << 20];
};

static inline _Noreturn void die(const char *what)
{
    perror(what);
    exit(1);
}

static inline uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static inline uint64_t end_of(double seconds)
{
    return now_ns() + (uint64_t)(seconds * 1e9);
}

/* Memory that a forked child shares. */
static inline void *shared_page(size_t size)
{
    void *page = mmap(NULL, size, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (page == MAP_FAILED)
        die("mmap");
    return page;
}

static inline struct samples *samples_new(void)
{
    return shared_page(sizeof(struct samples));
}

static inline void sample(struct samples *samples, uint64_t ns)
{
    if (samples->n < sizeof(samples->ns) / sizeof(samples->ns[0]))
        samples->ns[samples->n] = (uint32_t)ns;
    samples->n++;
}

static inline int by_size(const void *a, const void *b)
{
    uint32_t left = *(const uint32_t *)a;
    uint32_t right = *(const uint32_t *)b;

    return (left > right) - (left < right);
}

static inline void print(const char *scenario, double per_s,
                         struct samples *samples)
{
    size_t most = sizeof(samples->ns) / sizeof(samples->ns[0]);
    size_t n = samples->n < most ? samples->n : most;

    if (n == 0) {
        fprintf(stderr, "%s: nothing was measured\n", scenario);
        exit(1);
    }
    qsort(samples->ns, n, sizeof(samples->ns[0]), by_size);
    printf("%s %.1f %.2f %.2f\n", scenario, per_s,
           (double)samples->ns[n / 2] / 1e3,
           (double)samples->ns[n * 99 / 100] / 1e3);
}

static inline int dial_tcp(int port)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int on = 1;

    if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof(to)) != 0)
        die("connect");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    return fd;
}

/* @n threads, each with its number, until the last has ended. */
static inline void run_threads(int n, void *(*run)(void *))
{
    pthread_t *threads = calloc((size_t)n, sizeof(*threads));

    if (!threads)
        die("calloc");
    for (intptr_t i = 0; i < n; i++)
        pthread_create(&threads[i], NULL, run, (void *)i);
    for (int i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
    free(threads);
}

/* What the threads of "blocking" did together. */
static inline void print_blocking(struct samples *samples, int n, size_t total,
                                  double seconds)
{
    sample(samples, (uint64_t)(seconds * 1e9 * n / (double)(total + 1)));
    print("blocking", (double)total / seconds, samples);
}

#endif

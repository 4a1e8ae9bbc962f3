/* SPDX-License-Identifier: MIT */
/*
 * raw_redis.c - what one Redis server can do at most, for bench/redis.sh.
 *
 *     raw_redis SCENARIO PORT SECONDS
 *
 *   pair      SET NX PX, then EVALSHA that compares and deletes; blocking,
 *             preformatted, one process
 *   handover  two processes pass a turn by RPUSH and BLPOP
 *   pipeline  8 pairs in one write, then 8 answers
 *   blocking  8 threads, each with a connection of its own, do pairs
 *
 * Prints "SCENARIO rate p50_us". No library between us and the socket: these
 * are limits, not competitors.
 */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { SAMPLES = 1 << 20, DEEP = 8 };

static int port;
static double seconds;
static char digest[41];

static void die(const char *what)
{
    perror(what);
    exit(1);
}

static uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static int dial(void)
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

static void put(int fd, const char *bytes, size_t len)
{
    if (write(fd, bytes, len) != (ssize_t)len)
        die("write");
}

/* Read until @lines line ends have come. */
static void get(int fd, int lines, char *to, size_t size)
{
    size_t used = 0;

    while (lines > 0) {
        ssize_t n = read(fd, to + used, size - 1 - used);

        if (n <= 0)
            die("read");
        for (ssize_t i = 0; i < n; i++)
            lines -= to[used + (size_t)i] == '\n';
        used += (size_t)n;
    }
    to[used] = '\0';
}

static void load(void)
{
    static const char text[] = "if redis.call('GET',KEYS[1])==ARGV[1] then "
                               "return redis.call('DEL',KEYS[1]) end return 0";
    char command[512];
    char answer[256];
    int fd = dial();
    int n = snprintf(command, sizeof(command),
                     "*3\r\n$6\r\nSCRIPT\r\n$4\r\nLOAD\r\n$%zu\r\n%s\r\n",
                     strlen(text), text);

    put(fd, command, (size_t)n);
    get(fd, 2, answer, sizeof(answer));
    memcpy(digest, strchr(answer, '\n') + 1, 40);
    close(fd);
}

/* The two commands of a pair on key @i. */
static int set_command(char *to, size_t size, int i)
{
    return snprintf(to, size,
                    "*6\r\n$3\r\nSET\r\n$9\r\nraw:%05d\r\n$40\r\n%040d\r\n"
                    "$2\r\nNX\r\n$2\r\nPX\r\n$5\r\n30000\r\n",
                    i, i);
}

static int del_command(char *to, size_t size, int i)
{
    return snprintf(to, size,
                    "*5\r\n$7\r\nEVALSHA\r\n$40\r\n%s\r\n$1\r\n1\r\n"
                    "$9\r\nraw:%05d\r\n$40\r\n%040d\r\n",
                    digest, i, i);
}

static int by_size(const void *a, const void *b)
{
    uint32_t left = *(const uint32_t *)a;
    uint32_t right = *(const uint32_t *)b;

    return (left > right) - (left < right);
}

static void print(const char *scenario, double per_s, uint32_t *samples,
                  size_t n)
{
    qsort(samples, n, sizeof(*samples), by_size);
    printf("%s %.0f %.2f\n", scenario, per_s,
           n ? (double)samples[n / 2] / 1e3 : 0.0);
}

static size_t run_pairs(int i, uint32_t *samples, uint64_t until_ns)
{
    char set[256];
    char del[256];
    char answer[256];
    int set_len = set_command(set, sizeof(set), i);
    int del_len = del_command(del, sizeof(del), i);
    int fd = dial();
    uint64_t began = now_ns();
    size_t n = 0;

    while (began < until_ns) {
        uint64_t ended;

        put(fd, set, (size_t)set_len);
        get(fd, 1, answer, sizeof(answer));
        put(fd, del, (size_t)del_len);
        get(fd, 1, answer, sizeof(answer));
        ended = now_ns();
        if (n < SAMPLES)
            samples[n] = (uint32_t)(ended - began);
        n++;
        began = ended;
    }
    close(fd);
    return n;
}

static void pair(uint32_t *samples)
{
    size_t n = run_pairs(0, samples, now_ns() + (uint64_t)(seconds * 1e9));

    print("pair", (double)n / seconds, samples, n < SAMPLES ? n : SAMPLES);
}

static _Atomic size_t total;

static void *one_thread(void *arg)
{
    uint32_t *samples = malloc(SAMPLES * sizeof(*samples));

    atomic_fetch_add(&total, run_pairs((int)(intptr_t)arg, samples,
                                       now_ns() + (uint64_t)(seconds * 1e9)));
    free(samples);
    return NULL;
}

static void blocking(void)
{
    pthread_t threads[DEEP];

    for (intptr_t i = 0; i < DEEP; i++)
        pthread_create(&threads[i], NULL, one_thread, (void *)i);
    for (int i = 0; i < DEEP; i++)
        pthread_join(threads[i], NULL);
    printf("blocking %.0f 0\n", (double)total / seconds);
}

static void pipeline(uint32_t *samples)
{
    char sets[DEEP * 256];
    char dels[DEEP * 256];
    char answer[1024];
    size_t sets_len = 0;
    size_t dels_len = 0;
    int fd = dial();
    uint64_t began = now_ns();
    uint64_t until_ns = began + (uint64_t)(seconds * 1e9);
    size_t n = 0;

    for (int i = 0; i < DEEP; i++) {
        sets_len += (size_t)set_command(sets + sets_len, 256, i);
        dels_len += (size_t)del_command(dels + dels_len, 256, i);
    }
    while (began < until_ns) {
        uint64_t ended;

        put(fd, sets, sets_len);
        get(fd, DEEP, answer, sizeof(answer));
        put(fd, dels, dels_len);
        get(fd, DEEP, answer, sizeof(answer));
        ended = now_ns();
        if (n < SAMPLES)
            samples[n] = (uint32_t)(ended - began);
        n++;
        began = ended;
    }
    print("pipeline", (double)n * DEEP / seconds, samples,
          n < SAMPLES ? n : SAMPLES);
}

struct page {
    _Atomic uint64_t pushed_ns;
    _Atomic uint64_t turns;
    size_t n;
    uint32_t samples[SAMPLES];
};

/* Wait for the turn, note how long it was on its way, pass it on. */
static void take_turns(struct page *page, const char *mine, const char *other,
                       uint64_t until_ns)
{
    char pop[128];
    char push[128];
    char answer[256];
    int pop_len = snprintf(
        pop, sizeof(pop), "*3\r\n$5\r\nBLPOP\r\n$5\r\n%s\r\n$1\r\n1\r\n", mine);
    int push_len =
        snprintf(push, sizeof(push),
                 "*3\r\n$5\r\nRPUSH\r\n$5\r\n%s\r\n$1\r\n1\r\n", other);
    int fd = dial();

    while (now_ns() < until_ns) {
        put(fd, pop, (size_t)pop_len);
        get(fd, 1, answer, sizeof(answer));
        if (answer[1] == '-')
            break; /* nothing for a second: the other one has gone */
        if (page->n < SAMPLES)
            page->samples[page->n++] =
                (uint32_t)(now_ns() - atomic_load(&page->pushed_ns));
        page->turns++;
        atomic_store(&page->pushed_ns, now_ns());
        put(fd, push, (size_t)push_len);
        get(fd, 1, answer, sizeof(answer));
    }
    close(fd);
}

static void handover(void)
{
    struct page *page = mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE,
                             MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    uint64_t until_ns = now_ns() + (uint64_t)(seconds * 1e9);
    char answer[64];
    pid_t child;
    int fd;

    if (page == MAP_FAILED)
        die("mmap");
    child = fork();
    if (child < 0)
        die("fork");
    if (child == 0) {
        take_turns(page, "raw:a", "raw:b", until_ns);
        _exit(0);
    }
    fd = dial();
    atomic_store(&page->pushed_ns, now_ns());
    put(fd, "*3\r\n$5\r\nRPUSH\r\n$5\r\nraw:a\r\n$1\r\n1\r\n", 33);
    get(fd, 1, answer, sizeof(answer));
    take_turns(page, "raw:b", "raw:a", until_ns);
    waitpid(child, NULL, 0);
    put(fd, "*3\r\n$3\r\nDEL\r\n$5\r\nraw:a\r\n$5\r\nraw:b\r\n", 35);
    get(fd, 1, answer, sizeof(answer));
    print("handover", (double)page->turns / seconds, page->samples, page->n);
}

int main(int argc, char **argv)
{
    uint32_t *samples = malloc(SAMPLES * sizeof(*samples));

    if (argc != 4 || !samples) {
        fprintf(stderr, "usage: raw_redis "
                        "pair|handover|pipeline|blocking PORT SECONDS\n");
        return 64;
    }
    port = atoi(argv[2]);
    seconds = atof(argv[3]);
    load();
    if (strcmp(argv[1], "pair") == 0)
        pair(samples);
    else if (strcmp(argv[1], "handover") == 0)
        handover();
    else if (strcmp(argv[1], "pipeline") == 0)
        pipeline(samples);
    else if (strcmp(argv[1], "blocking") == 0)
        blocking();
    else
        return 64;
    free(samples);
    return 0;
}

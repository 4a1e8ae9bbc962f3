/* SPDX-License-Identifier: MIT */
/*
 * raw_redis.c - what one Redis server can do at most, for ./dev bench redis.
 *
 *     raw_redis SCENARIO SECONDS PORT [N]
 *
 *   pair      SET NX PX, then EVALSHA that compares and deletes; blocking,
 *             preformatted, one process
 *   try       SET NX PX of a key that is there
 *   handover  N processes (2) pass a turn round by RPUSH and BLPOP
 *   pipeline  N pairs (8): N commands in one write, then N answers, twice
 *   blocking  N threads (8), each with a connection of its own, do pairs
 *
 * No library between us and the socket.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>

#include "raw.h"

enum { MOST = 100000, COMMAND = 256 };

static int port;
static double seconds;
static char digest[41];
static struct samples *samples;

static int dial(void)
{
    return dial_tcp(port);
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

static size_t run_pairs(int i, struct samples *times)
{
    char set[COMMAND];
    char del[COMMAND];
    char answer[COMMAND];
    int set_len = set_command(set, sizeof(set), i);
    int del_len = del_command(del, sizeof(del), i);
    int fd = dial();
    uint64_t until_ns = end_of(seconds);
    uint64_t began = now_ns();
    size_t n = 0;

    for (; began < until_ns; n++) {
        uint64_t ended;

        put(fd, set, (size_t)set_len);
        get(fd, 1, answer, sizeof(answer));
        put(fd, del, (size_t)del_len);
        get(fd, 1, answer, sizeof(answer));
        ended = now_ns();
        if (times)
            sample(times, ended - began);
        began = ended;
    }
    close(fd);
    return n;
}

static void pair(void)
{
    size_t n = run_pairs(0, samples);

    print("pair", (double)n / seconds, samples);
}

static void try_taken(void)
{
    char set[COMMAND];
    char del[COMMAND];
    char answer[COMMAND];
    int set_len = set_command(set, sizeof(set), 0);
    int del_len = del_command(del, sizeof(del), 0);
    int fd = dial();
    uint64_t until_ns = end_of(seconds);

    for (uint64_t now = now_ns(); now < until_ns;) {
        uint64_t before = now;

        put(fd, set, (size_t)set_len);
        get(fd, 1, answer, sizeof(answer));
        now = now_ns();
        sample(samples, now - before);
    }
    put(fd, del, (size_t)del_len);
    get(fd, 1, answer, sizeof(answer));
    print("try", (double)samples->n / seconds, samples);
}

static _Atomic size_t total;

static void *one_thread(void *arg)
{
    atomic_fetch_add(&total, run_pairs((int)(intptr_t)arg, NULL));
    return NULL;
}

static void blocking(int n)
{
    run_threads(n, one_thread);
    print_blocking(samples, n, total, seconds);
}

static void pipeline(int deep)
{
    char *sets = malloc((size_t)deep * COMMAND);
    char *dels = malloc((size_t)deep * COMMAND);
    size_t answer_size = (size_t)deep * 16 + 64;
    char *answer = malloc(answer_size);
    size_t sets_len = 0;
    size_t dels_len = 0;
    int fd = dial();
    uint64_t until_ns = end_of(seconds);
    uint64_t began;

    if (!sets || !dels || !answer)
        die("malloc");
    for (int i = 0; i < deep; i++) {
        sets_len += (size_t)set_command(sets + sets_len, COMMAND, i);
        dels_len += (size_t)del_command(dels + dels_len, COMMAND, i);
    }
    began = now_ns();
    for (uint64_t now = began; now < until_ns;) {
        uint64_t before = now;

        put(fd, sets, sets_len);
        get(fd, deep, answer, answer_size);
        put(fd, dels, dels_len);
        get(fd, deep, answer, answer_size);
        now = now_ns();
        sample(samples, now - before);
    }
    print("pipeline",
          (double)samples->n * deep * 1e9 / (double)(now_ns() - began),
          samples);
    free(sets);
    free(dels);
    free(answer);
}

/* ---- handover ---------------------------------------------------------- */

struct page {
    _Atomic uint64_t pushed_ns;
    _Atomic uint64_t turns;
    _Atomic int ready;
};

static void push_to(int fd, int i, struct page *page)
{
    char push[COMMAND];
    char answer[COMMAND];
    int len = snprintf(push, sizeof(push),
                       "*3\r\n$5\r\nRPUSH\r\n$9\r\nraw:%05d\r\n$1\r\n1\r\n", i);

    atomic_store(&page->pushed_ns, now_ns());
    put(fd, push, (size_t)len);
    get(fd, 1, answer, sizeof(answer));
}

/* Wait for the turn, note how long it was on its way, pass it on. */
static void take_turns(struct page *page, int me, int next)
{
    char pop[COMMAND];
    char answer[COMMAND];
    int pop_len =
        snprintf(pop, sizeof(pop),
                 "*3\r\n$5\r\nBLPOP\r\n$9\r\nraw:%05d\r\n$1\r\n1\r\n", me);
    int fd = dial();
    uint64_t until_ns;

    atomic_fetch_add(&page->ready, 1);
    for (until_ns = end_of(seconds); now_ns() < until_ns;) {
        put(fd, pop, (size_t)pop_len);
        get(fd, 1, answer, sizeof(answer));
        if (answer[1] == '-' || answer[0] == '_')
            continue; /* nothing for a second */
        sample(samples, now_ns() - atomic_load(&page->pushed_ns));
        page->turns++;
        push_to(fd, next, page);
    }
    close(fd);
}

static void handover(int n)
{
    struct page *page = shared_page(sizeof(*page));
    struct timespec ms = {0, 1000000};
    int fd = dial();
    char del[COMMAND];
    char answer[COMMAND];

    for (int i = 0; i < n; i++) {
        pid_t child = fork();

        if (child < 0)
            die("fork");
        if (child == 0) {
            take_turns(page, i, (i + 1) % n);
            _exit(0);
        }
    }
    while (atomic_load(&page->ready) < n)
        nanosleep(&ms, NULL);
    push_to(fd, 0, page);
    while (wait(NULL) > 0)
        continue;
    for (int i = 0; i < n; i++) {
        int len = snprintf(del, sizeof(del),
                           "*2\r\n$3\r\nDEL\r\n$9\r\nraw:%05d\r\n", i);

        put(fd, del, (size_t)len);
        get(fd, 1, answer, sizeof(answer));
    }
    print("handover", (double)page->turns / seconds, samples);
}

int main(int argc, char **argv)
{
    const char *scenario = argc > 3 ? argv[1] : "";
    int n = argc > 4 ? atoi(argv[4]) : 8;

    if (argc > 3) {
        seconds = atof(argv[2]);
        port = atoi(argv[3]);
        samples = samples_new();
        load();
    }
    if (strcmp(scenario, "pair") == 0) {
        pair();
    } else if (strcmp(scenario, "try") == 0) {
        try_taken();
    } else if (strcmp(scenario, "handover") == 0) {
        handover(argc > 4 ? n : 2);
    } else if (strcmp(scenario, "pipeline") == 0 && n > 0 && n <= MOST) {
        pipeline(n);
    } else if (strcmp(scenario, "blocking") == 0 && n > 0) {
        blocking(n);
    } else {
        fprintf(stderr, "usage: raw_redis pair|try|handover|pipeline|blocking "
                        "SECONDS PORT [N]\n");
        return 64;
    }
    return 0;
}

/* SPDX-License-Identifier: MIT */
/*
 * raw_redlock.c - what several Redis servers can do at most, for
 * bench/redlock.sh.
 *
 *     raw_redlock SECONDS PORT…
 *
 * SET NX PX to all servers, then all answers; EVALSHA that compares and deletes
 * to all, then all answers. Preformatted, on bare sockets: a limit, not a
 * competitor. Prints "pair rate p50_us".
 */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { SAMPLES = 1 << 20, NODES = 9 };

static int fds[NODES];
static int nodes;

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

static int dial(int port)
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

/* @text to every server, then one answer of each; the last in @answer. */
static void ask_all(const char *text, size_t len, char *answer, size_t size)
{
    for (int i = 0; i < nodes; i++) {
        if (write(fds[i], text, len) != (ssize_t)len)
            die("write");
    }
    for (int i = 0; i < nodes; i++) {
        ssize_t n = read(fds[i], answer, size - 1);

        if (n <= 0)
            die("read");
        answer[n] = '\0';
    }
}

static int by_size(const void *a, const void *b)
{
    uint32_t left = *(const uint32_t *)a;
    uint32_t right = *(const uint32_t *)b;

    return (left > right) - (left < right);
}

static void run(const char *digest, double seconds)
{
    uint32_t *samples = malloc(SAMPLES * sizeof(*samples));
    char set[256];
    char del[256];
    char answer[256];
    size_t set_len = (size_t)snprintf(
        set, sizeof(set),
        "*6\r\n$3\r\nSET\r\n$3\r\nraw\r\n$40\r\n%040d\r\n$2\r\nNX\r\n"
        "$2\r\nPX\r\n$5\r\n30000\r\n",
        0);
    size_t del_len = (size_t)snprintf(
        del, sizeof(del),
        "*5\r\n$7\r\nEVALSHA\r\n$40\r\n%.40s\r\n$1\r\n1\r\n$3\r\nraw\r\n"
        "$40\r\n%040d\r\n",
        digest, 0);
    uint64_t began = now_ns();
    uint64_t until_ns = began + (uint64_t)(seconds * 1e9);
    size_t n = 0;
    size_t middle;

    if (!samples)
        die("malloc");
    while (began < until_ns && n < SAMPLES) {
        uint64_t ended;

        ask_all(set, set_len, answer, sizeof(answer));
        ask_all(del, del_len, answer, sizeof(answer));
        ended = now_ns();
        samples[n++] = (uint32_t)(ended - began);
        began = ended;
    }
    middle = n / 2;
    qsort(samples, n, sizeof(*samples), by_size);
    printf("pair %.0f %.2f\n", (double)n / seconds,
           n ? (double)samples[middle] / 1e3 : 0.0);
    free(samples);
}

int main(int argc, char **argv)
{
    static const char script[] = "if redis.call('GET',KEYS[1])==ARGV[1] then "
                                 "return redis.call('DEL',KEYS[1]) end "
                                 "return 0";
    char load[512];
    char answer[256];
    int len = snprintf(load, sizeof(load),
                       "*3\r\n$6\r\nSCRIPT\r\n$4\r\nLOAD\r\n$%zu\r\n%s\r\n",
                       strlen(script), script);

    if (argc < 3 || argc > 2 + NODES) {
        fprintf(stderr, "usage: raw_redlock SECONDS PORT…\n");
        return 64;
    }
    for (int i = 2; i < argc; i++)
        fds[nodes++] = dial(atoi(argv[i]));
    ask_all(load, (size_t)len, answer, sizeof(answer));
    run(strchr(answer, '\n') + 1, atof(argv[1]));
    return 0;
}

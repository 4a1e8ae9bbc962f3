/* SPDX-License-Identifier: MIT */
/*
 * raw_memcached.c - what one Memcached server can do at most, for
 * bench/memcached.sh.
 *
 *     raw_memcached PORT SECONDS
 *
 * add and delete, blocking, preformatted, on a bare socket: a limit, not a
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

enum { SAMPLES = 1 << 20 };

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

static void ask(int fd, const char *text, size_t len, const char *wanted)
{
    char answer[256];
    ssize_t n;

    if (write(fd, text, len) != (ssize_t)len)
        die("write");
    n = read(fd, answer, sizeof(answer) - 1);
    if (n <= 0)
        die("read");
    answer[n] = '\0';
    if (strncmp(answer, wanted, strlen(wanted)) != 0) {
        fprintf(stderr, "raw_memcached: %s", answer);
        exit(1);
    }
}

static int by_size(const void *a, const void *b)
{
    uint32_t left = *(const uint32_t *)a;
    uint32_t right = *(const uint32_t *)b;

    return (left > right) - (left < right);
}

int main(int argc, char **argv)
{
    static const char delete[] = "delete raw\r\n";
    uint32_t *samples;
    char add[256];
    int add_len = snprintf(add, sizeof(add), "add raw 0 31 80\r\n%080d\r\n", 0);
    uint64_t began;
    uint64_t until_ns;
    size_t n = 0;
    size_t middle;
    int fd;

    if (argc != 3) {
        fprintf(stderr, "usage: raw_memcached PORT SECONDS\n");
        return 64;
    }
    samples = malloc(SAMPLES * sizeof(*samples));
    if (!samples)
        die("malloc");
    fd = dial(atoi(argv[1]));
    began = now_ns();
    until_ns = began + (uint64_t)(atof(argv[2]) * 1e9);
    while (began < until_ns && n < SAMPLES) {
        uint64_t ended;

        ask(fd, add, (size_t)add_len, "STORED");
        ask(fd, delete, sizeof(delete) - 1, "DELETED");
        ended = now_ns();
        samples[n++] = (uint32_t)(ended - began);
        began = ended;
    }
    middle = n / 2;
    qsort(samples, n, sizeof(*samples), by_size);
    printf("pair %.0f %.2f\n", (double)n / atof(argv[2]),
           n ? (double)samples[middle] / 1e3 : 0.0);
    free(samples);
    return 0;
}

/* SPDX-License-Identifier: MIT */
/*
 * raw_memcached.c - what one Memcached server can do at most, for
 * ./dev bench memcached.
 *
 *     raw_memcached pair SECONDS PORT
 *
 * add and delete, blocking, preformatted, on a bare socket.
 */
#include "raw.h"

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

int main(int argc, char **argv)
{
    static const char delete[] = "delete raw\r\n";
    struct samples *samples = samples_new();
    char add[256];
    int add_len = snprintf(add, sizeof(add), "add raw 0 31 80\r\n%080d\r\n", 0);
    uint64_t began;
    uint64_t until_ns;
    int fd;

    if (argc != 4 || strcmp(argv[1], "pair") != 0) {
        fprintf(stderr, "usage: raw_memcached pair SECONDS PORT\n");
        return 64;
    }
    fd = dial_tcp(atoi(argv[3]));
    began = now_ns();
    until_ns = end_of(atof(argv[2]));
    while (began < until_ns) {
        uint64_t ended;

        ask(fd, add, (size_t)add_len, "STORED");
        ask(fd, delete, sizeof(delete) - 1, "DELETED");
        ended = now_ns();
        sample(samples, ended - began);
        began = ended;
    }
    print("pair", (double)samples->n / atof(argv[2]), samples);
    return 0;
}

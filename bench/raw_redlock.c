/* SPDX-License-Identifier: MIT */
/*
 * raw_redlock.c - what several Redis servers can do at most, for
 * ./dev bench redlock.
 *
 *     raw_redlock pair SECONDS PORT…
 *
 * SET NX PX to all servers, then all answers; EVALSHA that compares and deletes
 * to all, then all answers. Preformatted, on bare sockets.
 */
#include "raw.h"

enum { NODES = 9 };

static int fds[NODES];
static int nodes;

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

static void run(const char *digest, double seconds)
{
    struct samples *samples = samples_new();
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
    uint64_t until_ns = end_of(seconds);

    while (began < until_ns) {
        uint64_t ended;

        ask_all(set, set_len, answer, sizeof(answer));
        ask_all(del, del_len, answer, sizeof(answer));
        ended = now_ns();
        sample(samples, ended - began);
        began = ended;
    }
    print("pair", (double)samples->n / seconds, samples);
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

    if (argc < 4 || argc > 3 + NODES || strcmp(argv[1], "pair") != 0) {
        fprintf(stderr, "usage: raw_redlock pair SECONDS PORT…\n");
        return 64;
    }
    for (int i = 3; i < argc; i++)
        fds[nodes++] = dial_tcp(atoi(argv[i]));
    ask_all(load, (size_t)len, answer, sizeof(answer));
    run(strchr(answer, '\n') + 1, atof(argv[2]));
    return 0;
}

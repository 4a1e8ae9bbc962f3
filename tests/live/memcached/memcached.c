/* SPDX-License-Identifier: MIT */
/* memcached.c - a Memcached server for a test, and a word with it. */
#include "memcached.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "sockets.h"

struct server *memcached_start(const char *megabytes, const char *option)
{
    const char *const words[] = {
        "memcached", "-u", "root", "-l", "127.0.0.1", "-p",   "{port}", "-U",
        "0",         "-t", "2",    "-m", megabytes,   option, NULL,
    };
    const char **kept = malloc(sizeof(words)); /* for a restart */

    ASSERT_NOT_NULL(kept);
    memcpy(kept, words, sizeof(words));
    test_defer(free, kept);
    return server_start(kept);
}

/* Has a line that begins with @last come to its end? */
static bool is_over(const char *answer, const char *last)
{
    const char *line = answer;

    while (line && *line) {
        const char *end = strchr(line, '\n');

        if (end && strncmp(line, last, strlen(last)) == 0)
            return true;
        line = end ? end + 1 : NULL;
    }
    return false;
}

const char *memcached_do(struct server *server, const char *last,
                         const char *format, ...)
{
    static char answer[1 << 16];
    int fd = socket_dial_now(server_port(server));
    size_t used = 0;
    va_list args;

    va_start(args, format);
    if (vdprintf(fd, format, args) < 0 || dprintf(fd, "\r\n") < 0)
        FAIL("write: %s", strerror(errno));
    va_end(args);
    answer[0] = '\0';
    while (!is_over(answer, last)) {
        ssize_t n = read(fd, answer + used, sizeof(answer) - 1 - used);

        if (n <= 0)
            FAIL("no line '%s' in: %s", last, answer);
        used += (size_t)n;
        answer[used] = '\0';
    }
    close(fd);
    return answer;
}

bool memcached_has(struct server *server, const char *key)
{
    return strncmp(memcached_do(server, "", "mg %s", key), "HD", 2) == 0;
}

const char *memcached_url(int port, const char *query)
{
    return test_text("memcached://127.0.0.1:%d?%s", port, query);
}

hf_client *memcached_open(int port, const char *query)
{
    return client_open(memcached_url(port, query));
}

/* SPDX-License-Identifier: MIT */
/* redis.c - a Redis server for a test, and a word with it. */
#include "redis.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "engines/redis/resp.h"
#include "sockets.h"

enum { ANSWER_MAX = 1 << 20 };

const char *redis_program(void)
{
    const char *given = getenv("HOLDFAST_TEST_REDIS_SERVER");

    return given && given[0] ? given : "redis-server";
}

const char *const *redis_words(const char *const *const lists[], size_t n)
{
    enum { WORDS_MAX = 64 };
    const char **words = calloc(WORDS_MAX + 1, sizeof(*words));
    size_t used = 0;

    ASSERT_NOT_NULL(words);
    test_defer(free, words);
    for (size_t i = 0; i < n; i++)
        for (const char *const *word = lists[i]; *word; word++) {
            ASSERT_LT(used, WORDS_MAX);
            words[used++] = *word;
        }
    return words;
}

struct server *redis_start_under(const char *const *prefix,
                                 const char *const *more)
{
    const char *const common[] = {redis_program(), "--port", "{port}", "--bind",
                                  "127.0.0.1",     "--save", "",       "--dir",
                                  "{dir}",         NULL};
    const char *const *const lists[] = {prefix, common, more};

    return server_start(redis_words(lists, 3));
}

struct server *redis_start_with(const char *const *more)
{
    static const char *const none[] = {NULL};

    return redis_start_under(none, more);
}

struct server *redis_start_tls(int port, const char *dir, const char *name,
                               const char *const *more)
{
    const char *const secure[] = {"--tls-port",
                                  port ? test_text("%d", port) : "{port}",
                                  "--tls-cert-file",
                                  test_text("%s/%s.crt", dir, name),
                                  "--tls-key-file",
                                  test_text("%s/%s.key", dir, name),
                                  "--tls-ca-cert-file",
                                  test_text("%s/good.crt", dir),
                                  NULL};
    static const char *const no_other_port[] = {"--port", "0", NULL};
    static const char *const none[] = {NULL};
    const char *const *const lists[] = {port ? none : no_other_port, secure,
                                        more};

    return redis_start_with(redis_words(lists, 3));
}

struct server *redis_start(void)
{
    static const char *const words[] = {"--appendonly", "no",
                                        "--enable-debug-command", "yes", NULL};

    return redis_start_with(words);
}

struct server *redis_start_durable(void)
{
    static const char *const words[] = {"--appendonly", "yes", "--appendfsync",
                                        "always", NULL};

    return redis_start_with(words);
}

const char *redis_do(struct server *server, const char *format, ...)
{
    static char answer[ANSWER_MAX];
    struct hf__resp_scan scan = {0};
    char line[2048];
    va_list args;
    size_t used = 0;
    int fd = socket_dial_now(server_port(server));

    va_start(args, format);
    (void)vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    if (dprintf(fd, "%s\r\n", line) < 0)
        FAIL("write: %s", strerror(errno));
    while (hf__resp_scan(&scan, answer, used) == HF__RESP_MORE) {
        ssize_t n = read(fd, answer + used, sizeof(answer) - 1 - used);

        if (n <= 0)
            break;
        used += (size_t)n;
    }
    answer[used] = '\0';
    close(fd);
    return answer;
}

long redis_calls(struct server *server, const char *command)
{
    const char *field = test_text("cmdstat_%s:calls=", command);
    const char *at = strstr(redis_do(server, "INFO commandstats"), field);

    return at ? strtol(at + strlen(field), NULL, 10) : 0;
}

static bool is(struct server *server, const char *command,
               const struct hf__resp_value *key, const char *answer)
{
    return strcmp(
               redis_do(server, "%s %.*s", command, (int)key->len, key->text),
               answer) == 0;
}

/* The memory of a token, and a board on which only the store's number is left;
 * both with a TTL. */
static bool may_stay(struct server *server, const struct hf__resp_value *key)
{
    const char *end = key->len > 2 ? key->text + key->len - 2 : "  ";

    if (memcmp(end, ":t", 2) != 0 &&
        (memcmp(end, ":w", 2) != 0 || !is(server, "HLEN", key, ":1\r\n")))
        return false;
    return !is(server, "PTTL", key, ":-1\r\n");
}

int redis_leftovers(struct server *server)
{
    static char keys[ANSWER_MAX];
    struct hf__resp reply;
    struct hf__resp_value head;
    int left = 0;

    (void)snprintf(keys, sizeof(keys), "%s", redis_do(server, "KEYS *"));
    reply.at = keys;
    reply.end = keys + strlen(keys);
    head = hf__resp_next(&reply);
    for (uint32_t i = 0; i < head.count; i++) {
        struct hf__resp_value key = hf__resp_next(&reply);

        if (may_stay(server, &key))
            continue;
        test_note("left: %.*s", (int)key.len, key.text);
        left++;
    }
    return left;
}

const char *redis_url(int port, const char *query)
{
    return test_text("redis://127.0.0.1:%d%s%s", port, query ? "?" : "",
                     query ? query : "");
}

hf_client *redis_open(int port, const char *query)
{
    return client_open(redis_url(port, query));
}

struct rivals redis_rivals(const char *query)
{
    struct server *server = redis_start();

    return client_rivals(server, redis_url(server_port(server), query));
}

struct rivals redis_proxied(const char *query, const char *rival_query)
{
    return client_proxied(redis_start(), redis_url, query, rival_query);
}

hf_request *redis_stand_in_line(hf_client *client, struct server *server,
                                const char *name)
{
    hf_request *request = client_start(client, name);

    EVENTUALLY(strcmp(redis_do(server, "LLEN hf:{%s}:q", name), ":1\r\n") == 0);
    return request;
}

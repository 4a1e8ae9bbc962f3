/* SPDX-License-Identifier: MIT */
/*
 * redis_hostile_test.c - answers that no Redis would give.
 *
 * A server of our own speaks the protocol well, and lies: pages that never end,
 * slots that two serve.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "engines/redis/resp.h"
#include "event.h"
#include "test.h"
#include "test_client.h"

struct fake {
    int listener;
    int port;
    pthread_t thread;
    const char *mode;  /* of INFO: standalone, cluster */
    const char *scan;  /* the answer to SCAN */
    const char *slots; /* the answer to CLUSTER SLOTS */
    atomic_int scans;
};

static void say(int fd, const char *text)
{
    size_t len = strlen(text);

    while (len > 0) {
        ssize_t n = send(fd, text, len, MSG_NOSIGNAL);

        if (n <= 0)
            return;
        text += n;
        len -= (size_t)n;
    }
}

static void answer(struct fake *fake, int fd, const struct hf__resp_value *word)
{
    char info[96];

    if (hf__resp_is(word, "HELLO")) {
        say(fd, "|1\r\n+an\r\n+attribute\r\n"
                "%3\r\n$2\r\nid\r\n:5\r\n$7\r\nversion\r\n$5\r\n7.0.1\r\n"
                "$4\r\nrole\r\n$6\r\nmaster\r\n");
    } else if (hf__resp_is(word, "INFO")) {
        (void)snprintf(info, sizeof(info), "+redis_mode:%s\r\n", fake->mode);
        say(fd, info);
    } else if (hf__resp_is(word, "SCAN")) {
        atomic_fetch_add(&fake->scans, 1);
        say(fd, fake->scan);
    } else if (hf__resp_is(word, "CLUSTER")) {
        say(fd, fake->slots);
    } else if (hf__resp_is(word, "GET")) {
        say(fd, "$1\r\n5\r\n");
    } else {
        say(fd, "-ERR no\r\n");
    }
}

static void *serve(void *arg)
{
    struct fake *fake = arg;
    char bytes[65536];
    int fd;

    while ((fd = accept(fake->listener, NULL, NULL)) >= 0) {
        size_t used = 0;
        ssize_t n;

        while ((n = read(fd, bytes + used, sizeof(bytes) - used)) > 0) {
            struct hf__resp_scan scan = {0};

            used += (size_t)n;
            while (hf__resp_scan(&scan, bytes, used) == HF__RESP_WHOLE) {
                struct hf__resp command = {bytes, bytes + scan.at};
                struct hf__resp_value word;

                (void)hf__resp_next(&command);
                word = hf__resp_next(&command);
                answer(fake, fd, &word);
                used -= scan.at;
                memmove(bytes, bytes + scan.at, used);
                memset(&scan, 0, sizeof(scan));
            }
        }
        close(fd);
    }
    return NULL;
}

static void stop(void *arg)
{
    struct fake *fake = arg;

    (void)shutdown(fake->listener, SHUT_RDWR);
    (void)pthread_join(fake->thread, NULL);
    close(fake->listener);
    free(fake);
}

/* Stopped after the clients of the test: it serves one after the other. */
static struct fake *fake_start(const char *mode)
{
    struct fake *fake = calloc(1, sizeof(*fake));
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(at);

    ASSERT_NOT_NULL(fake);
    fake->mode = mode;
    fake->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ASSERT_GE(fake->listener, 0);
    ASSERT_EQ(bind(fake->listener, (struct sockaddr *)&at, sizeof(at)), 0);
    ASSERT_EQ(listen(fake->listener, 8), 0);
    ASSERT_EQ(getsockname(fake->listener, (struct sockaddr *)&at, &len), 0);
    fake->port = ntohs(at.sin_port);
    ASSERT_EQ(pthread_create(&fake->thread, NULL, serve, fake), 0);
    test_defer(stop, fake);
    return fake;
}

static const char *fake_url(const struct fake *fake, const char *scheme,
                            const char *query)
{
    static char url[256];

    (void)snprintf(url, sizeof(url), "%s://127.0.0.1:%d?%s", scheme, fake->port,
                   query);
    return url;
}

static int count_row(const hf_lock_info *info, void *ctx)
{
    (void)info;
    ++*(int *)ctx;
    return 0;
}

TEST(hostile, pages_without_end_end_when_nobody_waits_for_them)
{
    struct fake *fake = fake_start("standalone");
    hf_client *client;
    uint64_t version;
    int before;
    int rows = 0;
    hf_error err;

    fake->scan = "*2\r\n$1\r\n7\r\n*0\r\n";
    client = client_open(fake_url(fake, "redis", "io_timeout=300ms"));
    ASSERT_RC(hf_list(client, "", count_row, &rows, &err), HF_EUNAVAILABLE,
              &err);
    ASSERT_OK(hf_version_read(client, "page", &version, &err), &err);
    before = atomic_load(&fake->scans);
    for (int i = 0; i < 20; i++)
        ASSERT_OK(hf_version_read(client, "page", &version, &err), &err);
    ASSERT_LE(atomic_load(&fake->scans), before + 1);
    ASSERT_EQ(rows, 0);
}

TEST(hostile, a_page_of_a_hundred_thousand_keys_is_refused)
{
    enum { KEYS = 100001, EACH = 10 };
    struct fake *fake = fake_start("standalone");
    char *page = malloc(64 + KEYS * EACH);
    int rows = 0;
    hf_error err;
    size_t used;

    ASSERT_NOT_NULL(page);
    test_defer(free, page);
    used = (size_t)sprintf(page, "*2\r\n$1\r\n0\r\n*%d\r\n", KEYS);
    for (int i = 0; i < KEYS; i++)
        used += (size_t)sprintf(page + used, "$1\r\nx\r\n");
    fake->scan = page;
    ASSERT_RC(hf_list(client_open(fake_url(fake, "redis", "io_timeout=30s")),
                      "", count_row, &rows, &err),
              HF_ENOSPACE, &err);
}

TEST(hostile, slots_that_two_serve_are_refused)
{
    static const char *const answers[] = {
        "*2\r\n*3\r\n:0\r\n:9\r\n*2\r\n$0\r\n\r\n:1\r\n"
        "*3\r\n:9\r\n:10\r\n*2\r\n$0\r\n\r\n:2\r\n",
        "*2\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$0\r\n\r\n:1\r\n"
        "*3\r\n:0\r\n:16383\r\n*2\r\n$0\r\n\r\n:1\r\n",
    };
    struct fake *fake = fake_start("cluster");

    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
        hf_client *client;
        hf_error err;

        fake->slots = answers[i];
        ASSERT_RC(hf_open(fake_url(fake, "redis-cluster", "connect_timeout=2s"),
                          NULL, &client, &err),
                  HF_EUNAVAILABLE, &err);
        ASSERT_HAS(err.text, "makes no sense");
    }
}

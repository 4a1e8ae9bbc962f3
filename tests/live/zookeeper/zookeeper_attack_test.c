/* SPDX-License-Identifier: MIT */
/*
 * zookeeper_attack_test.c - answers that no ZooKeeper would give.
 *
 * A server of our own greets, and answers each kind of request with what the
 * test wants. Whatever comes: no crash, nothing believed, and an end.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "engines/zookeeper/zookeeper.h"
#include "event.h"
#include "test.h"
#include "test_client.h"

enum { TYPES = 32, STAT = 68 };

struct fake {
    int fd;
    int port;
    int pause_us;                 /* before each answer */
    struct hf__buf bodies[TYPES]; /* of a good answer, by the request's type */
    _Atomic int requests[TYPES];
    pthread_t thread;
};

/* ---- the server ------------------------------------------------------------ */

static bool receive(int fd, char *to, size_t len)
{
    return recv(fd, to, len, MSG_WAITALL) == (ssize_t)len;
}

static bool say(int fd, const struct hf__buf *frame)
{
    return send(fd, frame->text, frame->len, MSG_NOSIGNAL) ==
           (ssize_t)frame->len;
}

/* One message of the client; its length, or 0 at the end. */
static size_t hear(int fd, char *to, size_t size)
{
    char head[4];
    int64_t len;

    if (!receive(fd, head, 4))
        return 0;
    len = hf__zk_wire_frame(head, 4);
    return len > 0 && (size_t)len <= size && receive(fd, to, (size_t)len)
               ? (size_t)len
               : 0;
}

static bool greet(int fd)
{
    struct hf__buf frame = {0};
    bool said;

    hf__zk_wire_put_int(&frame, 36);
    hf__zk_wire_put_int(&frame, 0);
    hf__zk_wire_put_int(&frame, 30000); /* the session's timeout */
    hf__zk_wire_put_long(&frame, 7);
    hf__zk_wire_put_text(&frame, "0123456789abcdef", 16);
    said = say(fd, &frame);
    hf__buf_release(&frame);
    return said;
}

static bool answer(struct fake *fake, int fd, struct hf__zk_wire in)
{
    int32_t xid = hf__zk_wire_int(&in);
    int32_t type = hf__zk_wire_int(&in);
    struct hf__buf frame = {0};
    const struct hf__buf *body;
    bool said;

    if (type < 0 || type >= TYPES)
        return false; /* the client says goodbye */
    body = &fake->bodies[type];
    atomic_fetch_add(&fake->requests[type], 1);
    hf__zk_wire_put_int(&frame, (int32_t)(16 + body->len));
    hf__zk_wire_put_int(&frame, xid);
    hf__zk_wire_put_long(&frame, 9);
    hf__zk_wire_put_int(&frame, HF__ZK_OK);
    hf__buf_append(&frame, body->text, body->len);
    (void)usleep((useconds_t)fake->pause_us);
    said = say(fd, &frame);
    hf__buf_release(&frame);
    return said;
}

static void *serve(void *arg)
{
    struct fake *fake = arg;
    char bytes[1 << 12];
    size_t len;
    int fd;

    while ((fd = accept4(fake->fd, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
        if (hear(fd, bytes, sizeof(bytes)) > 0 && greet(fd)) {
            while ((len = hear(fd, bytes, sizeof(bytes))) > 0 &&
                   answer(fake, fd,
                          (struct hf__zk_wire){bytes, bytes + len, false}))
                continue;
        }
        (void)close(fd);
    }
    return NULL;
}

static void end_fake(void *arg)
{
    struct fake *fake = arg;

    (void)shutdown(fake->fd, SHUT_RDWR);
    (void)pthread_join(fake->thread, NULL);
    (void)close(fake->fd);
    for (int i = 0; i < TYPES; i++)
        hf__buf_release(&fake->bodies[i]);
    free(fake);
}

/* Its bodies are filled in, then it is started. */
static struct fake *make_fake(void)
{
    struct fake *fake = calloc(1, sizeof(*fake));

    ASSERT_NOT_NULL(fake);
    return fake;
}

static hf_client *open_fake(struct fake *fake, const char *query)
{
    struct sockaddr_in here = {.sin_family = AF_INET,
                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(here);
    char url[128];

    fake->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fake->fd < 0 || bind(fake->fd, (struct sockaddr *)&here, len) != 0 ||
        listen(fake->fd, 8) != 0 ||
        getsockname(fake->fd, (struct sockaddr *)&here, &len) != 0)
        FAIL("listen: %s", strerror(errno));
    ASSERT_EQ(pthread_create(&fake->thread, NULL, serve, fake), 0);
    test_defer(end_fake, fake);
    (void)snprintf(url, sizeof(url), "zk://127.0.0.1:%d/locks?ttl=15s&%s",
                   ntohs(here.sin_port), query);
    return client_open(url);
}

static void add_stat(struct hf__buf *to)
{
    static const char zeros[STAT];

    hf__buf_append(to, zeros, STAT);
}

/* @n names with a number; what has one at its end stands in line. */
static void add_children(struct hf__buf *to, int n, const char *suffix)
{
    hf__zk_wire_put_int(to, n);
    for (int i = 0; i < n; i++) {
        char name[32];

        hf__zk_wire_put_text(
            to, name,
            (size_t)snprintf(name, sizeof(name), "x-lock-%010d%s", i, suffix));
    }
}

/* ---- answers ---------------------------------------------------------------- */

TEST(answer, that_is_cut_is_not_believed)
{
    for (size_t len = 0; len < STAT; len += 17) {
        struct fake *fake = make_fake();
        hf_client *client;
        uint64_t version;

        add_stat(&fake->bodies[HF__ZK_EXISTS]);
        fake->bodies[HF__ZK_EXISTS].len = len;
        client = open_fake(fake, "io_timeout=60s");
        ASSERT_EQ(hf_version_read(client, "jobs", &version, NULL),
                  HF_EUNAVAILABLE);
    }
}

static int count_row(const hf_lock_info *info, void *ctx)
{
    (void)info;
    ++*(int *)ctx;
    return 0;
}

TEST(list, asks_no_more_nodes_than_a_bound)
{
    struct fake *fake = make_fake();
    hf_client *client;
    hf_error err;
    int rows = 0;

    add_children(&fake->bodies[HF__ZK_GET_CHILDREN], 3 * HF__ZK_ROWS / 2, "");
    hf__zk_wire_put_text(&fake->bodies[HF__ZK_GET_DATA], "", 0);
    add_stat(&fake->bodies[HF__ZK_GET_DATA]);
    client = open_fake(fake, "io_timeout=60s");
    ASSERT_OK(hf_show(client, "jobs", count_row, &rows, &err), &err);
    ASSERT_EQ(rows, HF__ZK_ROWS);
    ASSERT_EQ(atomic_load(&fake->requests[HF__ZK_GET_DATA]), HF__ZK_ROWS);
}

TEST(list, that_nobody_waits_for_any_more_ends)
{
    _Atomic int *asked;
    struct fake *fake = make_fake();
    hf_client *client;
    uint64_t version;
    hf_error err;
    int rows = 0;
    int before;

    add_children(&fake->bodies[HF__ZK_GET_CHILDREN], 1000, "x");
    add_stat(&fake->bodies[HF__ZK_EXISTS]);
    fake->pause_us = 20000;
    asked = &fake->requests[HF__ZK_GET_CHILDREN];
    client = open_fake(fake, "io_timeout=1s");
    ASSERT_RC(hf_list(client, NULL, count_row, &rows, &err), HF_EUNAVAILABLE,
              &err);
    before = atomic_load(asked);
    for (int i = 0; i < 10; i++)
        ASSERT_OK(hf_version_read(client, "jobs", &version, &err), &err);
    ASSERT_LE(atomic_load(asked), before + 1);
}

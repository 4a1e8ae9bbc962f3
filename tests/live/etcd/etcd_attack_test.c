/* SPDX-License-Identifier: MIT */
/*
 * etcd_attack_test.c - answers that no etcd would give.
 *
 * A server of our own speaks just enough HTTP, and answers each path with what
 * the test wants. Whatever comes: no crash, no lock, and an end in time.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "etcd.h"
#include "event.h"

#define QUICK                                                                  \
    "retry.base=1ms&retry.max_interval=20ms&io_timeout=300ms&"                 \
    "connect_timeout=1s"

struct page {
    const char *path;
    const char *body;
    size_t len; /* 0: strlen(body) */
    int status; /* 0: 200 */
};

struct fake {
    int fd;
    int port;
    const struct page *pages;
    pthread_t thread;
    _Atomic int requests;
    _Atomic bool stop;
};

static const char good_status[] =
    "{\"header\":{\"revision\":\"1\"},\"version\":\"3.4.23\",\"leader\":\"7\"}";
static const char good_lease[] =
    "{\"header\":{\"revision\":\"1\"},\"ID\":\"99\",\"TTL\":\"30\"}";

static const struct page *find_page(const struct fake *fake, const char *head)
{
    const struct page *page = fake->pages;

    while (page->path && !strstr(head, page->path))
        page++;
    return page;
}

/* One request with its body; false when the peer has gone. */
static bool read_request(int fd, char *head, size_t size)
{
    size_t used = 0;
    size_t wanted = size - 1;

    while (used < wanted) {
        ssize_t n = recv(fd, head + used, wanted - used, 0);
        const char *end;
        const char *length;

        if (n <= 0)
            return false;
        used += (size_t)n;
        head[used] = '\0';
        end = strstr(head, "\r\n\r\n");
        length = strstr(head, "Content-Length: ");
        if (end && length)
            wanted = (size_t)(end + 4 - head) +
                     strtoul(length + strlen("Content-Length: "), NULL, 10);
    }
    return true;
}

static bool send_all(int fd, const char *bytes, size_t len)
{
    while (len > 0) {
        ssize_t n = send(fd, bytes, len, MSG_NOSIGNAL);

        if (n <= 0)
            return false;
        bytes += n;
        len -= (size_t)n;
    }
    return true;
}

static void serve(struct fake *fake, int fd)
{
    static _Thread_local char head[1 << 16];

    while (read_request(fd, head, sizeof(head))) {
        const struct page *page = find_page(fake, head);
        size_t len = page->len != 0 ? page->len : strlen(page->body);
        char line[128];
        int n = snprintf(line, sizeof(line),
                         "HTTP/1.1 %d OK\r\nContent-Length: %zu\r\n\r\n",
                         page->status != 0 ? page->status : 200, len);

        atomic_fetch_add(&fake->requests, 1);
        if (!send_all(fd, line, (size_t)n) || !send_all(fd, page->body, len))
            break;
    }
    close(fd);
}

struct visitor {
    struct fake *fake;
    int fd;
};

static void *visit(void *arg)
{
    struct visitor *visitor = arg;
    struct timeval patience = {.tv_sec = 2};

    (void)setsockopt(visitor->fd, SOL_SOCKET, SO_RCVTIMEO, &patience,
                     sizeof(patience));
    serve(visitor->fake, visitor->fd);
    free(visitor);
    return NULL;
}

static void *accept_all(void *arg)
{
    struct fake *fake = arg;
    pthread_t threads[256];
    size_t n = 0;

    while (n < 256) {
        struct visitor *visitor = malloc(sizeof(*visitor));
        int fd = accept4(fake->fd, NULL, NULL, SOCK_CLOEXEC);

        if (fd < 0 || !visitor || atomic_load(&fake->stop)) {
            free(visitor);
            if (fd >= 0)
                close(fd);
            break;
        }
        *visitor = (struct visitor){fake, fd};
        if (pthread_create(&threads[n], NULL, visit, visitor) == 0)
            n++;
    }
    while (n > 0)
        (void)pthread_join(threads[--n], NULL);
    return NULL;
}

static void end_fake(void *arg)
{
    struct fake *fake = arg;

    atomic_store(&fake->stop, true);
    (void)shutdown(fake->fd, SHUT_RDWR);
    (void)pthread_join(fake->thread, NULL);
    close(fake->fd);
    free(fake);
}

/* A server that answers with @pages; the last has no path, and is for all
 * that is left. */
static struct fake *start_fake(const struct page *pages)
{
    struct fake *fake = calloc(1, sizeof(*fake));
    struct sockaddr_in here = {.sin_family = AF_INET,
                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(here);

    if (!fake)
        FAIL("out of memory");
    fake->pages = pages;
    fake->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fake->fd < 0 || bind(fake->fd, (struct sockaddr *)&here, len) != 0 ||
        listen(fake->fd, 64) != 0 ||
        getsockname(fake->fd, (struct sockaddr *)&here, &len) != 0)
        FAIL("listen: %s", strerror(errno));
    fake->port = ntohs(here.sin_port);
    ASSERT_EQ(pthread_create(&fake->thread, NULL, accept_all, fake), 0);
    test_defer(end_fake, fake);
    return fake;
}

/* ---- greetings ------------------------------------------------------------ */

static void refuses_to_open(const char *body, size_t len, int status)
{
    struct page pages[] = {{NULL, body, len, status}};
    struct fake *fake = start_fake(pages);
    hf_client *client;
    hf_error err;
    int rc = hf_open(etcd_url(&fake->port, 1, QUICK), NULL, &client, &err);

    ASSERT_RC(rc, HF_EUNAVAILABLE, &err);
    ASSERT_GT(atomic_load(&fake->requests), 0);
}

TEST(greeting, that_is_no_json_is_refused)
{
    refuses_to_open("<html>It works!</html>", 0, 0);
    refuses_to_open("", 0, 200);
    refuses_to_open("{\"leader\":\"7\"", 0, 0);
    refuses_to_open("{\"leader\":\"7\"}{\"leader\":\"7\"}", 0, 0);
    refuses_to_open("{\"leader\":\"\0\"}", 14, 0);
}

TEST(greeting, that_is_nested_without_end_is_refused)
{
    char *deep = malloc(1 << 20);

    if (!deep)
        FAIL("out of memory");
    test_defer(free, deep);
    memset(deep, '[', 1 << 20);
    refuses_to_open(deep, 1 << 20, 0);
}

TEST(greeting, that_is_longer_than_any_answer_is_refused)
{
    size_t len = 20 << 20;
    char *text = malloc(len);

    if (!text)
        FAIL("out of memory");
    test_defer(free, text);
    memset(text, ' ', len);
    refuses_to_open(text, len, 0);
}

TEST(greeting, without_a_leader_is_refused)
{
    refuses_to_open("{\"version\":\"3.4.23\"}", 0, 0);
    refuses_to_open("{\"leader\":[\"7\"]}", 0, 0);
    refuses_to_open("{\"leader\":\"99999999999999999999999\"}", 0, 0);
    refuses_to_open("{\"error\":\"no\",\"code\":14}", 0, 503);
    refuses_to_open("not found", 0, 404);
}

/* ---- locks ---------------------------------------------------------------- */

/* Nobody may believe to hold a lock after @lease and @txn. */
static void grants_nothing(const char *lease, const char *txn)
{
    struct page pages[] = {{"/v3/maintenance/status", good_status, 0, 0},
                           {"/v3/lease/grant", lease, 0, 0},
                           {NULL, txn, 0, 0}};
    struct fake *fake = start_fake(pages);
    hf_opts opts = HF_OPTS_INIT;
    hf_client *client;
    hf_hold *hold;
    hf_error err;

    opts.wait_ms = 500;
    ASSERT_OK(hf_open(etcd_url(&fake->port, 1, QUICK), NULL, &client, &err),
              &err);
    ASSERT_NE(hf_acquire(client, "jobs", &opts, &hold, &err), 0);
    hf_close(client);
}

TEST(grant, by_a_lease_without_number_or_time_is_none)
{
    grants_nothing("{}", "{}");
    grants_nothing("{\"ID\":\"99\"}", "{}");
    grants_nothing("{\"ID\":\"0\",\"TTL\":\"30\"}", "{}");
    grants_nothing("{\"ID\":\"99\",\"TTL\":\"-5\"}", "{}");
    grants_nothing("{\"ID\":{},\"TTL\":[]}", "{}");
}

TEST(grant, by_a_misshapen_transaction_is_none)
{
    grants_nothing(good_lease, "{}");
    grants_nothing(good_lease, "[]");
    grants_nothing(good_lease, "{\"succeeded\":\"true\"}");
    grants_nothing(good_lease, "{\"succeeded\":true,");
    grants_nothing(good_lease, "{\"succeeded\":false,\"responses\":7}");
    grants_nothing(good_lease, "{\"responses\":[{\"response_range\":{\"kvs\":["
                               "{\"create_revision\":\"x\"}]}}]}");
    /* A queue with somebody before us whose key is missing. */
    grants_nothing(good_lease,
                   "{\"header\":{\"revision\":\"9\"},\"succeeded\":true,"
                   "\"responses\":[{},{\"response_range\":{\"kvs\":["
                   "{\"create_revision\":\"3\",\"value\":\"!!!\"}]}}]}");
}

TEST(grant, without_a_revision_is_none)
{
    grants_nothing(good_lease, "{\"succeeded\":true,\"responses\":[{},{}]}");
    grants_nothing(good_lease, "{\"header\":{\"revision\":\"-4\"},"
                               "\"succeeded\":true,\"responses\":[{},{}]}");
}

/* SPDX-License-Identifier: MIT */
/*
 * redis_torture_test.c - the n-th allocation fails, for every n.
 *
 * Two clients open, contend, look, downgrade, release and close. Any call may
 * fail; none may crash, keep memory, or leave something on the server.
 */
#include <stdlib.h>

#include "event.h"
#include "heap.h"
#include "redis.h"

enum { FAILURES_MAX = 3000 };

static int ignore_row(const hf_lock_info *info, void *ctx)
{
    (void)info;
    (void)ctx;
    return 0;
}

static int ignore_finding(const hf_finding *finding, void *ctx)
{
    (void)finding;
    (void)ctx;
    return 0;
}

/* What does not depend on holding something. */
static void look(hf_client *client, bool native)
{
    uint64_t version;

    (void)hf_show(client, "jobs", ignore_row, NULL, NULL);
    if (native)
        (void)hf_list(client, "", ignore_row, NULL, NULL);
    (void)hf_check_token(client, "jobs", 7, NULL);
    (void)hf_version_read(client, "jobs", &version, NULL);
    (void)hf_doctor(client, ignore_finding, NULL, NULL);
}

static void contend(hf_client *client, hf_client *rival, bool native)
{
    hf_opts opts = HF_OPTS_INIT;
    hf_request *request = NULL;
    hf_hold *hold = NULL;
    hf_hold *next = NULL;

    opts.wait_ms = 2000;
    if (hf_acquire(client, "jobs", &opts, &hold, NULL) != 0)
        return;
    if (hf_acquire_start(rival, "jobs", &opts, NULL, NULL, &request, NULL) != 0)
        request = NULL;
    (void)redis_try(rival, "jobs", &(hf_error){0});
    (void)hf_verify(hold, NULL);
    if (native)
        (void)hf_downgrade(hold, NULL);
    look(client, native);
    (void)hf_release(hold, NULL);
    if (request && hf_request_wait(request, 2000, &next, NULL) == 0)
        (void)hf_release(next, NULL);
    hf_request_free(request);
}

static void torture_at(struct server *server, const char *url)
{
    bool native = !strstr(url, "dialect=");
    long before = heap_in_use();
    long n;

    for (n = 1; n <= FAILURES_MAX; n++) {
        hf_client *client = NULL;
        hf_client *rival = NULL;
        bool failed;

        heap_fail_at(n);
        if (hf_open(url, NULL, &client, NULL) == 0 &&
            hf_open(url, NULL, &rival, NULL) == 0)
            contend(client, rival, native);
        hf_close(client);
        hf_close(rival);
        failed = heap_has_failed();
        heap_fail_at(0);
        EVENTUALLY(heap_in_use() == before); /* a name may be looked up yet */
        EVENTUALLY(redis_leftovers(server) == 0);
        if (!failed)
            break;
    }
    ASSERT_LE(n, FAILURES_MAX);
    test_note("%ld allocations", n - 1);
}

static void torture(const char *query)
{
    struct server *server = redis_start();

    torture_at(server, redis_url(server_port(server), query));
}

/* A cluster of one node. */
static struct server *start_cluster(void)
{
    static const char *const words[] = {
        "redis-server", "--port",         "{port}", "--bind",
        "127.0.0.1",    "--save",         "",       "--appendonly",
        "no",           "--dir",          "{dir}",  "--cluster-enabled",
        "yes",          "--cluster-port", "0",      NULL};
    const char **filled =
        calloc(sizeof(words) / sizeof(words[0]) + 1, sizeof(*filled));
    char *port = NULL;
    struct server *server;

    if (!filled || asprintf(&port, "%d", server_free_port()) < 0)
        FAIL("out of memory");
    test_defer(free, filled);
    test_defer(free, port);
    memcpy(filled, words, sizeof(words));
    filled[14] = port;
    server = server_start(filled);
    ASSERT_EQ(redis_do(server, "CLUSTER ADDSLOTSRANGE 0 16383")[0], '+');
    EVENTUALLY(strstr(redis_do(server, "CLUSTER INFO"), "state:ok") != NULL);
    return server;
}

#define QUICK "retry.base=1ms&retry.max_interval=20ms&io_timeout=500ms&ttl=1s"

TEST_FORKED(torture, native)
{
    heap_install();
    torture(QUICK);
}

TEST_FORKED(torture, plain)
{
    heap_install();
    torture(QUICK "&dialect=plain");
}

TEST_FORKED(torture, redisson)
{
    heap_install();
    torture(QUICK "&dialect=redisson&mode=rw");
}

TEST_FORKED(torture, cluster)
{
    struct server *server;
    char url[256];

    heap_install();
    server = start_cluster();
    (void)snprintf(url, sizeof(url), "redis-cluster://127.0.0.1:%d?" QUICK,
                   server_port(server));
    torture_at(server, url);
}

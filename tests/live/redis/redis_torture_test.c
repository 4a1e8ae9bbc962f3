/* SPDX-License-Identifier: MIT */
/* redis_torture_test.c - the n-th allocation fails, for every n. */
#include <stdlib.h>

#include "event.h"
#include "heap.h"
#include "topology.h"
#include "torture.h"

static bool clean(void *server)
{
    return redis_leftovers(server) == 0;
}

static void torture_at(struct server *server, const char *url)
{
    torture(&(struct torture){.url = url, .clean = clean, .ctx = server});
}

static void torture_with(const char *query)
{
    struct server *server;

    heap_install();
    server = redis_start();
    torture_at(server, redis_url(server_port(server), query));
}

/* A cluster of one node. */
static struct server *start_cluster(void)
{
    static const char *const words[] = {
        NULL,        "--port",         "{port}", "--bind",
        "127.0.0.1", "--save",         "",       "--appendonly",
        "no",        "--dir",          "{dir}",  "--cluster-enabled",
        "yes",       "--cluster-port", "0",      NULL};
    const char **filled =
        calloc(sizeof(words) / sizeof(words[0]) + 1, sizeof(*filled));
    char *port = NULL;
    struct server *server;

    if (!filled || asprintf(&port, "%d", server_free_port()) < 0)
        FAIL("out of memory");
    test_defer(free, filled);
    test_defer(free, port);
    memcpy(filled, words, sizeof(words));
    filled[0] = redis_program();
    filled[14] = port;
    server = server_start(filled);
    ASSERT_EQ(redis_do(server, "CLUSTER ADDSLOTSRANGE 0 16383")[0], '+');
    EVENTUALLY(strstr(redis_do(server, "CLUSTER INFO"), "state:ok") != NULL);
    return server;
}

#define QUICK "retry.base=1ms&retry.max_interval=20ms&io_timeout=500ms&ttl=1s"

TEST_FORKED(torture, native)
{
    torture_with(QUICK);
}

TEST_FORKED(torture, plain)
{
    torture_with(QUICK "&dialect=plain");
}

TEST_FORKED(torture, redisson)
{
    torture_with(QUICK "&dialect=redisson&mode=rw");
}

/* The master is told by sentinels, and a grant by a replica. */
TEST_FORKED(torture, sentinel_and_sync_replicas)
{
    struct sentinel_set *set;

    heap_install();
    set = sentinel_set_start();
    torture_at(set->servers[0],
               sentinel_set_url(set, QUICK "&sync_replicas=1"));
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

TEST_FORKED(torture, conditions)
{
    struct server *server;

    heap_install();
    server = redis_start();
    torture_conditions(
        &(struct torture){.url = redis_url(server_port(server), QUICK),
                          .clean = clean,
                          .ctx = server});
}

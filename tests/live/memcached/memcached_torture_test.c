/* SPDX-License-Identifier: MIT */
/* memcached_torture_test.c - the n-th allocation fails, for every n. */
#include "heap.h"
#include "memcached.h"
#include "torture.h"

static bool clean(void *server)
{
    return !memcached_has(server, "hf:jobs");
}

TEST_FORKED(torture, every_allocation_fails_once)
{
    struct server *server;
    char url[128];

    heap_install();
    server = memcached_start("64", NULL);
    (void)snprintf(url, sizeof(url),
                   "memcached://127.0.0.1:%d?retry.base=1ms&"
                   "retry.max_interval=20ms&io_timeout=500ms&ttl=1s",
                   server_port(server));
    torture(&(struct torture){.url = url, .clean = clean, .ctx = server});
}

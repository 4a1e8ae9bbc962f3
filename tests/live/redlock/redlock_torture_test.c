/* SPDX-License-Identifier: MIT */
/* redlock_torture_test.c - the n-th allocation fails, for every n. */
#include "heap.h"
#include "redlock.h"
#include "torture.h"

static bool clean(void *servers)
{
    return redlock_votes(servers, "jobs") == 0;
}

TEST_FORKED(torture, every_allocation_fails_once)
{
    struct server *servers[NODES];
    int ports[NODES];

    heap_install();
    redlock_start(servers);
    for (int i = 0; i < NODES; i++)
        ports[i] = server_port(servers[i]);
    torture(&(struct torture){
        .url = redlock_url(ports, "retry.base=1ms&retry.max_interval=20ms&"
                                  "io_timeout=500ms&ttl=1s"),
        .clean = clean,
        .ctx = servers});
}

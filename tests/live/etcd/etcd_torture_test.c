/* SPDX-License-Identifier: MIT */
/* etcd_torture_test.c - the n-th allocation fails, for every n. */
#include "etcd.h"
#include "heap.h"
#include "torture.h"

#define QUICK "retry.base=1ms&retry.max_interval=20ms&io_timeout=1s&ttl=1s"

static bool clean(void *etcd)
{
    return etcd_keys(etcd, "") == 0;
}

/* What is left ends with its lease, at the latest. */
static void torture_with(torture_fn *torture_by)
{
    struct etcd *etcd;
    int port;

    heap_install();
    etcd = etcd_start(1);
    port = server_port(etcd->members[0]);
    torture_by(&(struct torture){.url = etcd_url(&port, 1, QUICK),
                                 .clean = clean,
                                 .ctx = etcd,
                                 .every = 10});
}

TEST_FORKED(torture, every_allocation_may_fail)
{
    torture_with(torture);
}

TEST_FORKED(torture, conditions)
{
    torture_with(torture_conditions);
}

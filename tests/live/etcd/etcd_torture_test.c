/* SPDX-License-Identifier: MIT */
/*
 * etcd_torture_test.c - the n-th allocation fails, for every n.
 *
 * Two clients open, contend, look, downgrade, release and close. Any call may
 * fail; none may crash, keep memory, or leave something on the server.
 */
#include "etcd.h"
#include "event.h"
#include "heap.h"

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
static void look(hf_client *client)
{
    uint64_t version;

    (void)hf_show(client, "jobs", ignore_row, NULL, NULL);
    (void)hf_list(client, "", ignore_row, NULL, NULL);
    (void)hf_check_token(client, "jobs", 7, NULL);
    (void)hf_version_read(client, "jobs", &version, NULL);
    (void)hf_doctor(client, ignore_finding, NULL, NULL);
}

static void contend(hf_client *client, hf_client *rival)
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
    (void)etcd_try(rival, "jobs", &(hf_error){0});
    (void)hf_verify(hold, NULL);
    (void)hf_downgrade(hold, NULL);
    look(client);
    (void)hf_release(hold, NULL);
    if (request && hf_request_wait(request, 2000, &next, NULL) == 0)
        (void)hf_release(next, NULL);
    hf_request_free(request);
}

#define QUICK "retry.base=1ms&retry.max_interval=20ms&io_timeout=1s&ttl=1s"

TEST_FORKED(torture, every_allocation_may_fail)
{
    struct etcd *etcd = etcd_start(1);
    int port = server_port(etcd->members[0]);
    const char *url = etcd_url(&port, 1, QUICK);
    long before;
    long n;

    heap_install();
    before = heap_in_use();
    for (n = 1; n <= FAILURES_MAX; n++) {
        hf_client *client = NULL;
        hf_client *rival = NULL;
        bool failed;

        heap_fail_at(n);
        if (hf_open(url, NULL, &client, NULL) == 0 &&
            hf_open(url, NULL, &rival, NULL) == 0)
            contend(client, rival);
        hf_close(client);
        hf_close(rival);
        failed = heap_has_failed();
        heap_fail_at(0);
        ASSERT_EQ(heap_in_use(), before);
        if (n % 10 == 0) /* what is left ends with its lease, at the latest */
            EVENTUALLY(etcd_keys(etcd, "") == 0);
        if (!failed)
            break;
    }
    ASSERT_LE(n, FAILURES_MAX);
    EVENTUALLY(etcd_keys(etcd, "") == 0);
    test_note("%ld allocations", n - 1);
}

/* SPDX-License-Identifier: MIT */
/*
 * memcached_torture_test.c - the n-th allocation fails, for every n.
 *
 * Two clients open, contend, renew, look, release and close. Any call may fail;
 * none may crash, keep memory, or leave something on the server.
 */
#include "event.h"
#include "heap.h"
#include "memcached.h"

enum { FAILURES_MAX = 3000 };

static int ignore_finding(const hf_finding *finding, void *ctx)
{
    (void)finding;
    (void)ctx;
    return 0;
}

static void contend(hf_client *client, hf_client *rival)
{
    hf_opts opts = HF_OPTS_INIT;
    hf_request *request = NULL;
    hf_hold *hold = NULL;
    hf_hold *next = NULL;

    opts.wait_ms = 1000;
    if (hf_acquire(client, "jobs", &opts, &hold, NULL) != 0)
        return;
    if (hf_acquire_start(rival, "jobs", &opts, NULL, NULL, &request, NULL) != 0)
        request = NULL;
    (void)hf_verify(hold, NULL);
    (void)hf_doctor(client, ignore_finding, NULL, NULL);
    (void)hf_release(hold, NULL);
    if (request && hf_request_wait(request, 1000, &next, NULL) == 0)
        (void)hf_release(next, NULL);
    hf_request_free(request);
}

TEST_FORKED(torture, every_allocation_fails_once)
{
    struct server *server;
    char url[128];
    long before;
    long n;

    heap_install();
    server = memcached_start("64", NULL);
    (void)snprintf(url, sizeof(url),
                   "memcached://127.0.0.1:%d?retry.base=1ms&"
                   "retry.max_interval=20ms&io_timeout=500ms&ttl=1s",
                   server_port(server));
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
        EVENTUALLY(heap_in_use() == before);
        EVENTUALLY(!memcached_has(server, "hf:jobs"));
        if (!failed)
            break;
    }
    ASSERT_LE(n, FAILURES_MAX);
    test_note("%ld allocations", n - 1);
}

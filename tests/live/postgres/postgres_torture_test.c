/* SPDX-License-Identifier: MIT */
/*
 * postgres_torture_test.c - the n-th allocation fails, for every n.
 *
 * Two clients open, contend, look, downgrade, release and close. Any call may
 * fail; none may crash, keep memory, or leave something on the server. libpq's
 * own allocations do not pass through ours, and do not fail here.
 */
#include "event.h"
#include "heap.h"
#include "postgres.h"

enum { FAILURES_MAX = 600 };

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

static void look(hf_client *client)
{
    uint64_t version;

    (void)hf_show(client, "jobs", ignore_row, NULL, NULL);
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
    (void)postgres_try(rival, "jobs", &(hf_error){0});
    (void)hf_verify(hold, NULL);
    (void)hf_downgrade(hold, NULL);
    look(client);
    (void)hf_release(hold, NULL);
    if (request && hf_request_wait(request, 2000, &next, NULL) == 0)
        (void)hf_release(next, NULL);
    hf_request_free(request);
}

static void torture(const char *query)
{
    struct server *server = postgres_start();
    char url[512];
    hf_client *first;
    long before;
    long n;

    (void)snprintf(url, sizeof(url), "%s",
                   postgres_url(server_port(server), query));
    /* The tables are made, and what is kept for good is loaded. */
    ASSERT_OK(hf_open(url, NULL, &first, NULL), NULL);
    hf_close(first);
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
        if (!failed)
            break;
    }
    ASSERT_LE(n, FAILURES_MAX);
    EVENTUALLY(postgres_leftovers(server) == 0);
    test_note("%ld allocations", n - 1);
}

#define QUICK "retry.base=1ms&retry.max_interval=20ms&io_timeout=500ms&ttl=2s"

TEST_FORKED(torture, advisory)
{
    heap_install();
    torture(QUICK);
}

TEST_FORKED(torture, table)
{
    heap_install();
    torture(QUICK "&mode=table");
}

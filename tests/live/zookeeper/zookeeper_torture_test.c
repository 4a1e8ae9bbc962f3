/* SPDX-License-Identifier: MIT */
/*
 * zookeeper_torture_test.c - the n-th allocation fails, for every n.
 *
 * Two clients open, contend, look, downgrade, release and close, on the server
 * of HOLDFAST_TEST_URL. Any call may fail; none may crash, keep memory, or
 * leave something on the server beyond its session.
 */
#include <stdlib.h>

#include "event.h"
#include "heap.h"
#include "test.h"

enum { FAILURES_MAX = 3000 };

static int count_row(const hf_lock_info *info, void *ctx)
{
    (void)info;
    ++*(int *)ctx;
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
    int rows = 0;

    (void)hf_list(client, "", count_row, &rows, NULL);
    (void)hf_check_token(client, "jobs", 7, NULL);
    if (hf_version_read(client, "jobs", &version, NULL) == 0)
        (void)hf_version_commit(client, "jobs", version, &version, NULL);
    (void)hf_doctor(client, ignore_finding, NULL, NULL);
}

static void contend(hf_client *client, hf_client *rival, int mode)
{
    hf_opts opts = HF_OPTS_INIT;
    hf_request *request = NULL;
    hf_hold *hold = NULL;
    hf_hold *next = NULL;

    opts.mode = mode;
    opts.slots = mode == HF_SLOT;
    opts.wait_ms = 2000;
    if (hf_acquire(client, "jobs", &opts, &hold, NULL) != 0)
        return;
    if (hf_acquire_start(rival, "jobs", &opts, NULL, NULL, &request, NULL) != 0)
        request = NULL;
    opts.wait_ms = 0;
    opts.owner = "trying";
    if (hf_acquire(rival, "jobs", &opts, &next, NULL) == 0)
        (void)hf_release(next, NULL);
    (void)hf_verify(hold, NULL);
    if (mode == HF_EXCLUSIVE)
        (void)hf_downgrade(hold, NULL);
    look(client);
    (void)hf_release(hold, NULL);
    if (request && hf_request_wait(request, 2000, &next, NULL) == 0)
        (void)hf_release(next, NULL);
    hf_request_free(request);
}

static int rows_of(hf_client *client)
{
    int rows = 0;

    return hf_show(client, "jobs", count_row, &rows, NULL) == 0 ? rows : -1;
}

static void torture(const char *query, int mode)
{
    const char *base = getenv("HOLDFAST_TEST_URL");
    hf_client *observer;
    char url[512];
    hf_error err;
    long before;
    long n;

    if (!base)
        FAIL("HOLDFAST_TEST_URL is not set");
    (void)snprintf(url, sizeof(url), "%s?%s", base, query);
    ASSERT_OK(hf_open(url, NULL, &observer, &err), &err);
    ASSERT_EQ(rows_of(observer), 0);
    before = heap_in_use();
    for (n = 1; n <= FAILURES_MAX; n++) {
        hf_client *client = NULL;
        hf_client *rival = NULL;
        bool failed;

        heap_fail_at(n);
        if (hf_open(url, NULL, &client, NULL) == 0 &&
            hf_open(url, NULL, &rival, NULL) == 0)
            contend(client, rival, mode);
        hf_close(client);
        hf_close(rival);
        failed = heap_has_failed();
        heap_fail_at(0);
        EVENTUALLY(heap_in_use() <= before);
        EVENTUALLY(rows_of(observer) == 0);
        if (!failed)
            break;
    }
    hf_close(observer);
    ASSERT_LE(n, FAILURES_MAX);
    test_note("%ld allocations", n - 1);
}

#define QUICK                                                                  \
    "retry.base=1ms&retry.max_interval=20ms&io_timeout=200ms&ttl=400ms"

TEST_FORKED(torture, exclusive)
{
    heap_install();
    torture(QUICK, HF_EXCLUSIVE);
}

TEST_FORKED(torture, semaphore)
{
    heap_install();
    torture(QUICK "&dialect=curator-semaphore", HF_SLOT);
}

/* SPDX-License-Identifier: MIT */
/* torture.c - see torture.h. */
#include "torture.h"

#include "event.h"
#include "heap.h"
#include "test.h"
#include "test_client.h"

enum { FAILURES_MAX = 3000, WAIT_MS = 2000 };

/* What does not depend on holding something. */
static void look(hf_client *client)
{
    uint64_t version;

    (void)hf_show(client, "jobs", client_ignore_lock, NULL, NULL);
    (void)hf_list(client, "", client_ignore_lock, NULL, NULL);
    (void)hf_check_token(client, "jobs", 7, NULL);
    (void)hf_version_read(client, "jobs", &version, NULL);
    (void)hf_doctor(client, client_ignore_finding, NULL, NULL);
}

static void try_once(hf_client *client, const hf_opts *like)
{
    hf_opts opts = *like;
    hf_hold *hold;

    opts.wait_ms = 0;
    opts.owner = "trying";
    if (hf_acquire(client, "jobs", &opts, &hold, NULL) == 0)
        (void)hf_release(hold, NULL);
}

static void contend(hf_client *client, hf_client *rival, int mode)
{
    hf_opts opts = HF_OPTS_INIT;
    hf_request *request = NULL;
    hf_hold *hold = NULL;
    hf_hold *next = NULL;

    opts.mode = mode;
    opts.slots = mode == HF_SLOT;
    opts.wait_ms = WAIT_MS;
    if (hf_acquire(client, "jobs", &opts, &hold, NULL) != 0)
        return;
    if (hf_acquire_start(rival, "jobs", &opts, NULL, NULL, &request, NULL) != 0)
        request = NULL;
    try_once(rival, &opts);
    (void)hf_verify(hold, NULL);
    if (mode == HF_EXCLUSIVE)
        (void)hf_downgrade(hold, NULL);
    look(client);
    (void)hf_release(hold, NULL);
    if (request && hf_request_wait(request, WAIT_MS, &next, NULL) == 0)
        (void)hf_release(next, NULL);
    hf_request_free(request);
}

/* True if the @nth allocation was made at all. */
static bool fail_at(const struct torture *torture, long nth)
{
    hf_client *client = NULL;
    hf_client *rival = NULL;
    bool failed;

    heap_fail_at(nth);
    if (hf_open(torture->url, NULL, &client, NULL) == 0 &&
        hf_open(torture->url, NULL, &rival, NULL) == 0)
        contend(client, rival, torture->mode);
    hf_close(client);
    hf_close(rival);
    failed = heap_has_failed();
    heap_fail_at(0);
    return failed;
}

void torture(const struct torture *torture)
{
    int every = torture->every > 0 ? torture->every : 1;
    long before = heap_in_use();
    long n = 1;

    while (n <= FAILURES_MAX && fail_at(torture, n)) {
        /* A thread of the resolver may still have its name. */
        EVENTUALLY(heap_in_use() <= before);
        if (n % every == 0)
            EVENTUALLY(torture->clean(torture->ctx));
        n++;
    }
    ASSERT_LE(n, FAILURES_MAX);
    EVENTUALLY(torture->clean(torture->ctx));
    test_note("%ld allocations", n - 1);
}

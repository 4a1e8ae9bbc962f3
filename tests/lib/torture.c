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
    (void)hf_deadlocks(client, client_ignore_cycle, NULL, NULL);
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

/* A wake-up that is borne into another wait, which nobody ends. */
static void wait_again(hf_hold *hold)
{
    (void)hf_cond_wait(hold, "ready", 1, NULL);
    (void)hf_cond_broadcast(hold, "ready", NULL);
}

/* Whoever parks has given the lock up: @rival gets it, and wakes. */
static bool wake(hf_client *rival)
{
    hf_hold *hold;
    int woken;

    if (hf_acquire(rival, "jobs", WITHIN(WAIT_MS), &hold, NULL) != 0)
        return false;
    look(rival);
    woken = hf_cond_signal(hold, "ready", NULL);
    (void)hf_release(hold, NULL);
    return woken == 1;
}

static void park(hf_client *client, hf_client *rival, int mode)
{
    hf_hold *hold;
    hf_request *request;

    if (hf_acquire(client, "jobs", OPTS(WAIT_MS, .mode = mode), &hold, NULL) !=
        0)
        return;
    if (hf_cond_wait_start(hold, "ready", HF_FOREVER, NULL, NULL, &request,
                           NULL) == 0) {
        if (wake(rival))
            (void)hf_request_wait(request, WAIT_MS, NULL, NULL);
        hf_request_free(request);
    }
    if (hf_check(hold) == HF_HELD)
        wait_again(hold);
    (void)hf_release(hold, NULL);
}

typedef void scene_fn(hf_client *client, hf_client *rival, int mode);

/* True if the @nth allocation was made at all. */
static bool fail_at(const struct torture *torture, scene_fn *scene, long nth)
{
    hf_client *client = NULL;
    hf_client *rival = NULL;
    bool failed;

    heap_fail_at(nth);
    if (hf_open(torture->url, NULL, &client, NULL) == 0 &&
        hf_open(torture->url, NULL, &rival, NULL) == 0)
        scene(client, rival, torture->mode);
    hf_close(client);
    hf_close(rival);
    failed = heap_has_failed();
    heap_fail_at(0);
    return failed;
}

static void torture_by(const struct torture *torture, scene_fn *scene)
{
    int every = torture->every > 0 ? torture->every : 1;
    long before = heap_in_use();
    long n = 1;

    while (n <= FAILURES_MAX && fail_at(torture, scene, n)) {
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

void torture(const struct torture *torture)
{
    torture_by(torture, contend);
}

void torture_conditions(const struct torture *torture)
{
    torture_by(torture, park);
}

/* SPDX-License-Identifier: MIT */
/*
 * zookeeper_torture_test.c - the n-th allocation fails, for every n, on the
 * server of HOLDFAST_TEST_URL.
 */
#include <stdlib.h>

#include "event.h"
#include "heap.h"
#include "test.h"
#include "torture.h"

#define QUICK                                                                  \
    "retry.base=1ms&retry.max_interval=20ms&io_timeout=200ms&ttl=400ms"

static int count_row(const hf_lock_info *info, void *ctx)
{
    (void)info;
    ++*(int *)ctx;
    return 0;
}

static bool clean(void *observer)
{
    int rows = 0;

    return hf_show(observer, "jobs", count_row, &rows, NULL) == 0 && rows == 0;
}

/* Who looks has time; who is tortured has not. */
static void torture_with(const char *dialect, int mode, torture_fn *torture_by)
{
    const char *base = getenv("HOLDFAST_TEST_URL");
    hf_client *observer;
    char url[512];
    hf_error err;

    if (!base)
        FAIL("HOLDFAST_TEST_URL is not set");
    heap_install();
    (void)snprintf(url, sizeof(url), "%s?dialect=%s", base, dialect);
    ASSERT_OK(hf_open(url, NULL, &observer, &err), &err);
    EVENTUALLY(clean(observer)); /* and has what it keeps */
    (void)snprintf(url, sizeof(url), "%s?" QUICK "&dialect=%s", base, dialect);
    torture_by(&(struct torture){
        .url = url, .mode = mode, .clean = clean, .ctx = observer});
    hf_close(observer);
}

TEST_FORKED(torture, exclusive)
{
    torture_with("curator", HF_EXCLUSIVE, torture);
}

TEST_FORKED(torture, semaphore)
{
    torture_with("curator-semaphore", HF_SLOT, torture);
}

TEST_FORKED(torture, conditions)
{
    torture_with("curator", HF_EXCLUSIVE, torture_conditions);
}

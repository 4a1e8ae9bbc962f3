/* SPDX-License-Identifier: MIT */
/* test_client.c - see test_client.h. */
#include "test_client.h"

#include <string.h>

#include "test.h"

static void close_client(void *arg)
{
    hf_close(arg);
}

hf_client *client_open(const char *url)
{
    hf_client *client;
    hf_error err;

    ASSERT_OK(hf_open(url, NULL, &client, &err), &err);
    test_defer(close_client, client);
    return client;
}

hf_hold *client_acquire(hf_client *client, const char *name)
{
    return client_acquire_told(client, name, /* events= */ NULL);
}

hf_hold *client_acquire_told(hf_client *client, const char *name,
                             struct event *events)
{
    hf_opts opts = HF_OPTS_INIT;
    hf_hold *hold;
    hf_error err;

    opts.on_event = events ? client_on_event : NULL;
    opts.ctx = events;
    opts.wait_ms = EVENT_PATIENCE_MS;
    ASSERT_OK(hf_acquire(client, name, &opts, &hold, &err), &err);
    return hold;
}

hf_request *client_start(hf_client *client, const char *name)
{
    hf_request *request;
    hf_error err;

    ASSERT_OK(hf_acquire_start(client, name, NULL, NULL, NULL, &request, &err),
              &err);
    return request;
}

hf_hold *client_finish(hf_request *request)
{
    hf_hold *hold;
    hf_error err;

    ASSERT_OK(hf_request_wait(request, EVENT_PATIENCE_MS, &hold, &err), &err);
    hf_request_free(request);
    return hold;
}

int client_try(hf_client *client, const char *name, hf_error *err)
{
    hf_opts opts = HF_OPTS_INIT;
    hf_hold *hold;
    int rc;

    opts.wait_ms = 0;
    opts.owner = "somebody else";
    rc = hf_acquire(client, name, &opts, &hold, err);
    if (rc == 0)
        ASSERT_OK(hf_release(hold, err), err);
    return rc;
}

void client_on_event(hf_hold *hold, int state, void *ctx)
{
    (void)hold;
    event_tell(ctx, state);
}

struct wanted {
    const char *check;
    int status;
};

static int find(const hf_finding *finding, void *ctx)
{
    struct wanted *wanted = ctx;

    if (strcmp(finding->check, wanted->check) == 0)
        wanted->status = finding->status;
    return 0;
}

int client_finding(hf_client *client, const char *check)
{
    struct wanted wanted = {check, -1};
    hf_error err;

    ASSERT_OK(hf_doctor(client, find, &wanted, &err), &err);
    return wanted.status;
}

/* SPDX-License-Identifier: MIT */
/* test_client.c - see test_client.h. */
#include "test_client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proc.h"
#include "proxy.h"
#include "server.h"
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

struct rivals client_rivals(struct server *server, const char *url)
{
    return (struct rivals){.server = server,
                           .client = client_open(url),
                           .rival = client_open(url)};
}

struct rivals client_proxied(struct server *server, client_url_fn *url,
                             const char *query, const char *rival_query)
{
    struct proxy *proxy = proxy_start(server_port(server));

    return (struct rivals){
        .server = server,
        .proxy = proxy,
        .client = client_open(url(proxy_port(proxy), query)),
        .rival = client_open(url(server_port(server), rival_query))};
}

hf_hold *client_acquire(hf_client *client, const char *name)
{
    return client_acquire_told(client, name, /* events= */ NULL);
}

hf_hold *client_acquire_with(hf_client *client, const char *name,
                             const hf_opts *opts)
{
    hf_hold *hold;
    hf_error err;

    ASSERT_OK(hf_acquire(client, name, opts, &hold, &err), &err);
    return hold;
}

hf_hold *client_acquire_told(hf_client *client, const char *name,
                             struct event *events)
{
    return client_acquire_with(client, name,
                               OPTS(EVENT_PATIENCE_MS,
                                    .on_event = events ? client_on_event : NULL,
                                    .ctx = events));
}

hf_request *client_start_with(hf_client *client, const char *name,
                              const hf_opts *opts)
{
    hf_request *request;
    hf_error err;

    ASSERT_OK(hf_acquire_start(client, name, opts, NULL, NULL, &request, &err),
              &err);
    return request;
}

hf_request *client_start(hf_client *client, const char *name)
{
    return client_start_with(client, name, /* opts= */ NULL);
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
    return client_try_with(client, name, OPTS(0, .owner = "somebody else"),
                           err);
}

int client_try_with(hf_client *client, const char *name, const hf_opts *opts,
                    hf_error *err)
{
    hf_opts once = *opts;
    hf_hold *hold;
    int rc;

    once.wait_ms = 0;
    rc = hf_acquire(client, name, &once, &hold, err);
    if (rc == 0)
        client_release(hold);
    return rc;
}

int client_try_url(const char *url, hf_config *config, hf_error *err)
{
    hf_client *client;
    int rc = hf_open(url, config, &client, err);

    hf_config_free(config);
    if (rc != 0)
        return rc;
    rc = client_try(client, "jobs", err);
    hf_close(client);
    return rc;
}

void client_release(hf_hold *hold)
{
    hf_error err;

    ASSERT_OK(hf_release(hold, &err), &err);
}

struct counting {
    int role;
    int count;
};

static int count_row(const hf_lock_info *info, void *ctx)
{
    struct counting *counting = ctx;

    counting->count += info->role == counting->role;
    return 0;
}

int client_count(hf_client *client, const char *name, int role)
{
    struct counting counting = {role, 0};
    hf_error err;

    ASSERT_OK(hf_show(client, name, count_row, &counting, &err), &err);
    return counting.count;
}

hf_request *client_wait_start(hf_hold *hold, const char *cond)
{
    hf_request *request;
    hf_error err;

    ASSERT_OK(
        hf_cond_wait_start(hold, cond, HF_FOREVER, NULL, NULL, &request, &err),
        &err);
    return request;
}

struct client_wait client_park(hf_client *client, const char *name,
                               const char *cond, hf_client *looks)
{
    struct client_wait wait = {.hold = client_acquire(client, name)};
    int parked = client_count(looks, name, HF_PARKED);

    wait.request = client_wait_start(wait.hold, cond);
    EVENTUALLY(client_count(looks, name, HF_PARKED) == parked + 1);
    return wait;
}

void client_woken(struct client_wait *wait)
{
    hf_error err;

    ASSERT_OK(hf_request_wait(wait->request, EVENT_PATIENCE_MS, NULL, &err),
              &err);
    hf_request_free(wait->request);
    ASSERT_EQ(hf_check(wait->hold), HF_HELD);
    client_release(wait->hold);
}

int client_signal(hf_client *client, const char *name, const char *cond)
{
    hf_hold *hold = client_acquire(client, name);
    hf_error err;
    int n = hf_cond_signal(hold, cond, &err);

    client_release(hold);
    return n;
}

int client_port_of(const char *url)
{
    static const char host[] = "127.0.0.1:";
    const char *at = url ? strstr(url, host) : NULL;

    if (!at)
        FAIL("no server of this machine: %s", url ? url : "no URL");
    return atoi(at + strlen(host));
}

int client_ignore_lock(const hf_lock_info *info, void *ctx)
{
    (void)info;
    (void)ctx;
    return 0;
}

int client_ignore_finding(const hf_finding *finding, void *ctx)
{
    (void)finding;
    (void)ctx;
    return 0;
}

int client_ignore_cycle(const char *text, void *ctx)
{
    (void)text;
    (void)ctx;
    return 0;
}

void client_on_event(hf_hold *hold, int state, void *ctx)
{
    (void)hold;
    event_tell(ctx, state);
}

void client_told_lost(struct event *events)
{
    event_await(events, 2, EVENT_PATIENCE_MS);
    ASSERT_EQ(events->values[0], HF_JEOPARDY);
    ASSERT_EQ(events->values[1], HF_LOST);
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

/* ---- pauses -------------------------------------------------------------- */

void client_outlasts_pause(hf_client *client, struct server *server)
{
    hf_opts opts = HF_OPTS_INIT;
    hf_hold *hold;
    int rc;

    opts.wait_ms = 600;
    server_pause(server);
    rc = hf_acquire(client, "jobs", &opts, &hold, NULL);
    ASSERT_TRUE(rc == HF_EUNAVAILABLE || rc == HF_EUNKNOWN);
    server_resume(server);
    client_release(client_acquire(client, "jobs"));
}

static void hold_and_look(struct proc *self, void *url)
{
    hf_hold *hold;

    (void)proc_hear(self);
    hold = client_acquire(client_open(url), "jobs");
    proc_tell(self, "holds");
    (void)proc_hear(self);
    proc_tell(self, "check %d", hf_check(hold));
    proc_tell(self, "release %s", hf_errname(hf_release(hold, NULL)));
}

void client_loses_by_pause(const char *url, const char *next_url)
{
    struct proc *proc = proc_start(hold_and_look, (void *)(uintptr_t)url);
    hf_hold *hold;
    hf_error err;
    char lost[32];

    proc_say(proc, "go");
    (void)proc_expect(proc, "holds");
    proc_stop(proc);
    hold = client_acquire(client_open(next_url), "jobs");
    proc_say(proc, "look");
    proc_continue(proc);
    (void)snprintf(lost, sizeof(lost), "check %d", HF_LOST);
    (void)proc_expect(proc, lost);
    (void)proc_expect(proc, "release HF_ELOST");
    proc_join(proc);
    ASSERT_OK(hf_verify(hold, &err), &err); /* the other's was not touched */
    client_release(hold);
}

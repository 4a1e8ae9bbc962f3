/* SPDX-License-Identifier: MIT */
/*
 * event_loop.c - locks inside a program's own poll loop, with no thread of
 * the library's, and without ever waiting for the engine.
 *
 * drive=app makes the descriptor carry everything: connections, timers and
 * finished requests. In return the program must dispatch, or leases end. What
 * would wait has a form that does not: hf_open_start(), hf_acquire_start(),
 * hf_release_start().
 */
#include <holdfast.h>
#include <poll.h>
#include <stdio.h>

/* One lock: opened requests are counted, and freed where they end. */
struct job {
    int *open;
    hf_request *request;
};

static void ended(struct job *job, int rc, const hf_error *err)
{
    if (rc != 0)
        fprintf(stderr, "event_loop: %s\n", err->text);
    hf_request_free(job->request);
    job->request = NULL;
    --*job->open;
}

static void on_end(int rc, hf_hold *hold, const hf_error *err, void *ctx)
{
    (void)hold;
    ended(ctx, rc, err);
}

static void on_acquired(int rc, hf_hold *hold, const hf_error *err, void *ctx)
{
    struct job *job = ctx;
    hf_error failure;

    ended(job, rc, err);
    if (rc != 0)
        return;
    printf("holding %s\n", hf_hold_name(hold));
    rc = hf_release_start(hold, on_end, job, &job->request, &failure);
    if (rc == 0)
        ++*job->open;
    else
        fprintf(stderr, "event_loop: %s\n", failure.text);
}

static void acquire(hf_client *client, const char *name, struct job *job)
{
    hf_error err;

    if (hf_acquire_start(client, name, NULL, on_acquired, job, &job->request,
                         &err) == 0)
        ++*job->open;
    else
        fprintf(stderr, "event_loop: %s\n", err.text);
}

static void loop(hf_client *client, const int *open)
{
    struct pollfd watched = {.fd = hf_event_fd(client), .events = POLLIN};

    while (*open > 0) {
        poll(&watched, 1, -1);
        hf_dispatch(client);
    }
}

int main(void)
{
    hf_config *config = hf_config_new();
    int open = 1;
    struct job opening = {&open, NULL};
    struct job jobs[2] = {{&open, NULL}, {&open, NULL}};
    hf_client *client;
    hf_error err;

    if (!config || hf_config_set(config, "drive", "app", &err) != 0 ||
        hf_open_start(NULL, config, on_end, &opening, &client, &opening.request,
                      &err) != 0) {
        fprintf(stderr, "event_loop: cannot open\n");
        hf_config_free(config);
        return 1;
    }
    hf_config_free(config);

    acquire(client, "a", &jobs[0]);
    acquire(client, "b", &jobs[1]);
    loop(client, &open);
    hf_close(client);
    return 0;
}

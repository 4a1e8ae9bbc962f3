/* SPDX-License-Identifier: MIT */
/*
 * event_loop.c - locks inside a program's own poll loop, with no thread of
 * the library's.
 *
 * drive=app makes the descriptor carry everything: connections, timers and
 * finished requests. In return the program must dispatch, or leases end.
 * release=post lets hf_release() return at once: the loop would stand still
 * while it waits for the engine's answer.
 */
#include <holdfast.h>
#include <poll.h>
#include <stdio.h>

struct work {
    int open;
};

static void on_done(int rc, hf_hold *hold, const hf_error *err, void *ctx)
{
    struct work *work = ctx;

    work->open--;
    if (rc != 0) {
        fprintf(stderr, "event_loop: %s\n", err->text);
        return;
    }
    printf("holding %s\n", hf_hold_name(hold));
    (void)hf_release(hold, NULL); /* nothing depends on how it ends */
}

static int start(hf_client *client, const char *name, struct work *work,
                 hf_request **ret_request, hf_error *err)
{
    int rc =
        hf_acquire_start(client, name, NULL, on_done, work, ret_request, err);

    if (rc == 0)
        work->open++;
    return rc;
}

static void loop(hf_client *client, const struct work *work)
{
    struct pollfd watched = {.fd = hf_event_fd(client), .events = POLLIN};

    while (work->open > 0) {
        poll(&watched, 1, -1);
        hf_dispatch(client);
    }
}

int main(void)
{
    hf_config *config = hf_config_new();
    hf_request *requests[2] = {NULL, NULL};
    struct work work = {0};
    hf_client *client;
    hf_error err;

    if (!config || hf_config_set(config, "drive", "app", &err) != 0 ||
        hf_config_set(config, "release", "post", &err) != 0 ||
        hf_open(NULL, config, &client, &err) != 0) {
        fprintf(stderr, "event_loop: cannot open\n");
        hf_config_free(config);
        return 1;
    }
    hf_config_free(config);

    if (start(client, "a", &work, &requests[0], &err) != 0 ||
        start(client, "b", &work, &requests[1], &err) != 0)
        fprintf(stderr, "event_loop: %s\n", err.text);
    loop(client, &work);

    hf_request_free(requests[0]);
    hf_request_free(requests[1]);
    hf_close(client);
    return 0;
}

/* SPDX-License-Identifier: MIT */
/*
 * follow.c - wait until something happens to locks, for who shows them.
 *
 * The library watches, and says when to look; what there is to see, the look
 * tells. So elect --observe, ls --watch and top ask the engine when something
 * has changed, and not again and again.
 */
#include "follow.h"

#include "cli.h"
#include "lock.h"
#include "signals.h"

enum { STANDARD_MS = 1000 };

int follow_pace_check(struct follow_pace *pace)
{
    pace->given = pace->ms >= 0;
    if (!pace->given)
        pace->ms = STANDARD_MS;
    return pace->ms >= pace->least_ms
               ? 0
               : cli_usage("--interval is at least %dms", (int)pace->least_ms);
}

static void on_event(const hf_watch_event *event, void *ctx)
{
    struct follow *follow = ctx;

    (void)event;
    follow->changed = true;
}

void follow_start(struct follow *follow, hf_client *client, const char *name,
                  uint32_t flags)
{
    follow->client = client;
    follow->fd = hf_event_fd(client);
    if (follow->fd < 0 || hf_watch_start(client, name, flags, on_event, follow,
                                         &follow->watch, NULL) != 0)
        follow->watch = NULL;
}

void follow_stop(struct follow *follow)
{
    hf_watch_stop(follow->watch);
    follow->watch = NULL;
}

bool follow_take(struct follow *follow)
{
    bool changed;

    while (follow->watch && hf_dispatch(follow->client) > 0)
        continue;
    changed = follow->changed;
    follow->changed = false;
    return changed;
}

bool follow_wait(struct follow *follow, int fd, int64_t timeout_ms)
{
    int64_t due_ms = timeout_ms < 0 ? INT64_MAX : lock_now_ms() + timeout_ms;
    int ready = 0;

    while (!follow_take(follow) && !(ready & 1) && signals_first() == 0) {
        int64_t left_ms = due_ms - lock_now_ms();

        if (left_ms <= 0)
            break;
        ready = signals_wait_two(fd, follow->watch ? follow->fd : -1,
                                 timeout_ms < 0 ? -1 : left_ms);
    }
    return ready & 1;
}

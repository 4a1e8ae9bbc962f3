/* SPDX-License-Identifier: MIT */
/*
 * callbacks.c - run the callbacks of the application.
 *
 * A callback never runs with the monitor held, and never on a thread that is
 * inside a blocking call of ours: that caller may hold a mutex that the
 * callback wants. Nor does it run on the background thread, whose renewals a
 * slow callback would stop. So there is one more thread, the callback thread,
 * made when the first callback is registered; or the application's own, in
 * hf_dispatch(), once it has called hf_event_fd().
 *
 * The core adds a callback to the list with the monitor held. The callback
 * thread prepares it (takes the state to report) with the monitor held, and
 * runs it without. A call that ends a hold or a request cancels its callback
 * first: afterwards the callback does not run any more, and one that was
 * running has returned, unless it is the callback itself that calls.
 */
#include "core/callbacks.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "core/client.h"
#include "core/monitor.h"

void hf__callbacks_init(struct hf__callbacks *callbacks)
{
    hf__list_init(&callbacks->pending);
    hf__list_init(&callbacks->cancelling);
    callbacks->announce_fd = -1;
    callbacks->app_fd = -1;
}

static void announce(hf_client *client)
{
    struct hf__callbacks *callbacks = &client->callbacks;

    if (callbacks->dispatcher != 0)
        return; /* it looks again before it ends */
    if (callbacks->announce_fd >= 0) {
        hf__fd_signal(callbacks->announce_fd);
    } else if (client->settings.drive != HF__DRIVE_APP) {
        atomic_store_explicit(&callbacks->word, 1, memory_order_release);
        hf__monitor_wake_word(client, &callbacks->word);
    }
}

void hf__callbacks_add(hf_client *client, struct hf__callback *callback)
{
    if (callback->listed)
        return;
    callback->listed = true;
    if (hf__list_empty(&client->callbacks.pending))
        announce(client);
    hf__list_append(&client->callbacks.pending, &callback->link);
}

void hf__callbacks_unlist(struct hf__callback *callback)
{
    if (callback->listed) {
        hf__list_remove(&callback->link);
        callback->listed = false;
    }
}

void hf__callbacks_cancel(hf_client *client, struct hf__callback *callback)
{
    struct hf__callbacks *callbacks = &client->callbacks;

    if (HF_LIKELY(!callback->listed && callbacks->running != callback))
        return;
    hf__callbacks_unlist(callback);
    while (callbacks->running == callback &&
           callbacks->running_thread != hf__world->self()) {
        struct hf__waiter waiter;

        hf__waiter_init(&waiter);
        hf__list_append(&callbacks->cancelling, &waiter.watch);
        hf__monitor_sleep(client, &waiter);
    }
}

static void tell_one(hf_client *client, struct hf__callback *callback)
{
    struct hf__callbacks *callbacks = &client->callbacks;

    hf__list_remove(&callback->link);
    callback->listed = false;
    callback->prepare(callback);
    callbacks->running = callback;
    callbacks->running_thread = hf__world->self();
    hf__monitor_unlock(client);
    callback->tell(callback); /* which may free what it is about */
    hf__monitor_lock(client);
    callbacks->running = NULL;
    HF_LIST_EACH(&callbacks->cancelling, link) {
        hf__waiter_done(client, HF_CONTAINER_OF(link, struct hf__waiter, watch),
                        0);
    }
}

/* Tell what there is, not what comes of it: a callback that asks again, and
 * gets it at once, would keep us here for ever. */
static int run(hf_client *client)
{
    struct hf__callbacks *callbacks = &client->callbacks;
    struct hf__list pending;
    int ran = 0;

    hf__list_take(&pending, &callbacks->pending);
    while (!hf__list_empty(&pending)) {
        tell_one(client, HF_CONTAINER_OF(hf__list_first(&pending),
                                         struct hf__callback, link));
        ran++;
    }
    return ran;
}

int hf__callbacks_dispatch(hf_client *client)
{
    struct hf__callbacks *callbacks = &client->callbacks;
    bool first = callbacks->dispatcher == 0;
    int ran = 0;

    if (first)
        callbacks->dispatcher = hf__world->self();
    if (client->settings.drive == HF__DRIVE_APP)
        hf__monitor_look(client);
    if (callbacks->announce_fd >= 0)
        hf__fd_drain(callbacks->announce_fd);
    /* Of two threads one tells, and the other finds nothing to do. */
    if (first && !callbacks->running)
        ran = run(client);
    if (first) {
        callbacks->dispatcher = 0;
        if (!hf__list_empty(&callbacks->pending))
            announce(client);
    }
    return ran;
}

static void callbacks_main(void *arg)
{
    hf_client *client = arg;
    struct hf__callbacks *callbacks = &client->callbacks;

    hf__monitor_lock(client);
    for (;;) {
        while (!callbacks->dispatched && !hf__list_empty(&callbacks->pending))
            (void)run(client); /* also what the close has ended */
        if (callbacks->stop)
            break;
        atomic_store_explicit(&callbacks->word, 0, memory_order_relaxed);
        hf__monitor_unlock(client);
        hf__world->park(&callbacks->word, 0, HF_ANYBODY, HF_NEVER);
        hf__monitor_lock(client);
    }
    hf__monitor_unlock(client);
}

int hf__callbacks_need(hf_client *client, hf_error *err)
{
    struct hf__callbacks *callbacks = &client->callbacks;
    int rc;

    if (callbacks->thread || callbacks->dispatched ||
        client->settings.drive == HF__DRIVE_APP)
        return 0;
    rc = hf__world->thread_start(&callbacks->thread, "holdfast-tell",
                                 callbacks_main, client);
    if (rc != 0)
        return hf__fail(err, rc, "cannot start the thread for callbacks");
    return 0;
}

static int no_descriptor(hf_error *err)
{
    return hf__fail_engine(err, HF_ENOMEM, errno,
                           "no descriptor left: raise the limit (ulimit -n)");
}

/* A descriptor that is readable when the loop has something to do, or when
 * callbacks are pending. They have one of their own: a thread that polls the
 * loop drains what woke it. */
static int app_fd(hf_client *client, hf_error *err)
{
    struct hf__callbacks *callbacks = &client->callbacks;
    struct epoll_event readable = {.events = EPOLLIN};

    if (callbacks->app_fd >= 0)
        return callbacks->app_fd;
    callbacks->app_fd = epoll_create1(EPOLL_CLOEXEC);
    if (callbacks->app_fd < 0 ||
        epoll_ctl(callbacks->app_fd, EPOLL_CTL_ADD, callbacks->announce_fd,
                  &readable) != 0 ||
        epoll_ctl(callbacks->app_fd, EPOLL_CTL_ADD, client->loop.epoll_fd,
                  &readable) != 0)
        return no_descriptor(err);
    return callbacks->app_fd;
}

int hf__callbacks_dispatch_fd(hf_client *client, hf_error *err)
{
    struct hf__callbacks *callbacks = &client->callbacks;

    if (callbacks->announce_fd < 0)
        callbacks->announce_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (callbacks->announce_fd < 0)
        return no_descriptor(err);
    callbacks->dispatched = true;
    if (!hf__list_empty(&callbacks->pending))
        announce(client);
    return client->settings.drive == HF__DRIVE_APP ? app_fd(client, err)
                                                   : callbacks->announce_fd;
}

void hf__callbacks_stop(hf_client *client)
{
    struct hf__callbacks *callbacks = &client->callbacks;

    if (!callbacks->thread)
        return;
    hf__monitor_lock(client);
    callbacks->stop = true;
    atomic_store_explicit(&callbacks->word, 1, memory_order_release);
    hf__monitor_unlock(client);
    hf__world->unpark(&callbacks->word, HF_ANYBODY);
    hf__world->thread_join(callbacks->thread);
    callbacks->thread = NULL;
}

void hf__callbacks_release(struct hf__callbacks *callbacks)
{
    if (callbacks->announce_fd >= 0)
        (void)close(callbacks->announce_fd);
    if (callbacks->app_fd >= 0)
        (void)close(callbacks->app_fd);
    callbacks->announce_fd = -1;
    callbacks->app_fd = -1;
}

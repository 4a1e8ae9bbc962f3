/* SPDX-License-Identifier: MIT */
/*
 * callbacks.h - the one who runs callbacks of the host.
 */
#ifndef HF_CALLBACKS_H
#define HF_CALLBACKS_H

#include "base/list.h"
#include "base/world.h"

struct hf__callback;
struct hf__waiter;

/* Run the callback: called without the monitor. */
typedef void hf__callback_fn(struct hf__callback *callback);

/* Something to be told; lives in a hold or a request. Zeroed is "nothing". */
struct hf__callback {
    struct hf__list link;     /* callbacks->pending, while it is to be told */
    hf__callback_fn *prepare; /* with the monitor: take what is to be said */
    hf__callback_fn *tell;    /* without it: say it */
    bool listed;
};

struct hf__callbacks {
    struct hf__list pending;
    struct hf__callback
        *running;               /* being told right now, without the monitor */
    uint64_t running_thread;    /* serial of the thread that tells it */
    struct hf__list cancelling; /* waiters for the end of a running */
    struct hf__thread *thread;
    _Atomic uint32_t word; /* what the thread is parked on */
    bool stop;
    int announce_fd;     /* hf_event_fd() with drive=auto; else -1 */
    bool dispatched;     /* callbacks run in hf_dispatch() only */
    uint64_t dispatcher; /* serial of the thread in hf_dispatch(); 0: none */
};

void hf__callbacks_init(struct hf__callbacks *callbacks);
/* There must be somebody who tells, before a callback is registered. */
int hf__callbacks_need(hf_client *client, hf_error *err);
/* With the monitor: have @callback told, once, soon. */
void hf__callbacks_add(hf_client *client, struct hf__callback *callback);
/* With the monitor: after this @callback is not told any more; waits for a running
 * under way unless that is what calls us. */
void hf__callbacks_cancel(hf_client *client, struct hf__callback *callback);
/* With the monitor, leaves and re-enters it: look what there is, tell it. */
int hf__callbacks_dispatch(hf_client *client);
/* From now on hf_dispatch() tells: the descriptor that says when. */
int hf__callbacks_dispatch_fd(hf_client *client, hf_error *err);
/* End the thread. Without the monitor. */
void hf__callbacks_stop(hf_client *client);
void hf__callbacks_release(struct hf__callbacks *callbacks);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * callbacks.h - run the callbacks of the application.
 */
#ifndef HF_CALLBACKS_H
#define HF_CALLBACKS_H

#include "base/list.h"
#include "base/world.h"

struct hf__callback;
struct hf__waiter;

/* Run the callback: called without the monitor. */
typedef void hf__callback_fn(struct hf__callback *callback);

/* One call of the application's function; lives in a hold or a request. */
struct hf__callback {
    struct hf__list link;     /* callbacks->pending, until it runs */
    hf__callback_fn *prepare; /* with the monitor: take what it will say */
    hf__callback_fn *tell;    /* without it: call the function */
    bool listed;
};

struct hf__callbacks {
    struct hf__list pending;
    struct hf__callback *running; /* runs right now, without the monitor */
    uint64_t running_thread;      /* serial of the thread that runs it */
    struct hf__list cancelling;   /* waiters for the end of the running one */
    struct hf__thread *thread;
    _Atomic uint32_t word; /* what the thread is parked on */
    bool stop;
    int announce_fd;     /* readable while callbacks are pending; or -1 */
    int app_fd;          /* drive=app: that one and the loop's; or -1 */
    bool dispatched;     /* callbacks run in hf_dispatch() only */
    uint64_t dispatcher; /* serial of the thread in hf_dispatch(); 0: none */
};

void hf__callbacks_init(struct hf__callbacks *callbacks);
/* Start the thread, before a callback is registered. */
int hf__callbacks_need(hf_client *client, hf_error *err);
/* With the monitor: run @callback once, soon. */
void hf__callbacks_add(hf_client *client, struct hf__callback *callback);
/* With the monitor: after this @callback is not told any more; waits for a running
 * under way unless that is what calls us. */
void hf__callbacks_cancel(hf_client *client, struct hf__callback *callback);
/* With the monitor: after this @callback does not begin; it may still run. */
void hf__callbacks_unlist(struct hf__callback *callback);
/* With the monitor, leaves and re-enters it: run what is pending. */
int hf__callbacks_dispatch(hf_client *client);
/* From now on hf_dispatch() runs them; the descriptor says when. */
int hf__callbacks_dispatch_fd(hf_client *client, hf_error *err);
/* End the thread. Without the monitor. */
void hf__callbacks_stop(hf_client *client);
void hf__callbacks_release(struct hf__callbacks *callbacks);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * teller.h - the one who runs callbacks of the host.
 */
#ifndef HF_TELLER_H
#define HF_TELLER_H

#include "base/list.h"
#include "base/world.h"

struct hf__tale;
struct hf__waiter;

/* Run the callback: called without the monitor. */
typedef void hf__tale_fn(struct hf__tale *tale);

/* Something to be told; lives in a hold or a request. Zeroed is "nothing". */
struct hf__tale {
    struct hf__list link; /* teller->tales, while it is to be told */
    hf__tale_fn *prepare; /* with the monitor: take what is to be said */
    hf__tale_fn *tell;    /* without it: say it */
    bool listed;
};

struct hf__teller {
    struct hf__list tales;
    struct hf__tale *telling; /* being told right now, without the monitor */
    uint64_t telling_thread;  /* serial of the thread that tells it */
    struct hf__list hushing;  /* waiters for the end of a telling */
    struct hf__thread *thread;
    _Atomic uint32_t word; /* what the thread is parked on */
    bool stop;
    int announce_fd;     /* hf_event_fd() with drive=auto; else -1 */
    bool dispatched;     /* callbacks run in hf_dispatch() only */
    uint64_t dispatcher; /* serial of the thread in hf_dispatch(); 0: none */
};

void hf__teller_init(struct hf__teller *teller);
/* There must be somebody who tells, before a callback is registered. */
int hf__teller_need(hf_client *client, hf_error *err);
/* With the monitor: have @tale told, once, soon. */
void hf__teller_add(hf_client *client, struct hf__tale *tale);
/* With the monitor: after this @tale is not told any more; waits for a telling
 * under way unless that is what calls us. */
void hf__teller_hush(hf_client *client, struct hf__tale *tale);
/* With the monitor, leaves and re-enters it: look what there is, tell it. */
int hf__teller_dispatch(hf_client *client);
/* From now on hf_dispatch() tells: the descriptor that says when. */
int hf__teller_dispatch_fd(hf_client *client, hf_error *err);
/* End the thread. Without the monitor. */
void hf__teller_stop(hf_client *client);
void hf__teller_release(struct hf__teller *teller);

#endif

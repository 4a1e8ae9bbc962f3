/* SPDX-License-Identifier: MIT */
/* request.h - what one caller asked for, until it has its outcome. */
#ifndef HF_CORE_REQUEST_H
#define HF_CORE_REQUEST_H

#include "base/list.h"
#include "core/callbacks.h"
#include "core/hold.h"

struct hf__gate;

/* One caller's wish; on its stack, or allocated for hf_acquire_start(). */
struct hf_request {
    struct hf__list link; /* gate->waiting */
    hf_client *client;
    struct hf__gate *gate;
    int32_t mode;
    int32_t slots;
    uint32_t flags;
    bool nowait;
    bool finished;
    int64_t ttl_ms;
    int64_t max_hold_ms;
    const char *owner;     /* the caller's text, or NULL */
    uint64_t owner_serial; /* else the thread's, or a new one */
    const char *note;      /* "" for none */
    int64_t asked_ns;
    int64_t until_ns;
    hf_hold *hold;             /* made beforehand: a grant cannot fail */
    struct hf__waiter *waiter; /* a blocked thread */
    int rc;
    hf_error *err; /* where the outcome is explained; may be NULL */

    /* hf_acquire_start() only. */
    bool started;           /* this is one */
    struct hf__list all;    /* client->requests */
    struct hf__timer timer; /* until_ns */
    struct hf__callback callback;
    hf_done_cb *done;
    void *ctx;
    _Atomic uint32_t canceled;
    struct hf_request *cancel_next;
    hf_error error; /* what err points to; the last field, so that a
                               request on the stack need not clear it */
};

#endif

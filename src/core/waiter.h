/* SPDX-License-Identifier: MIT */
/* waiter.h - who waits for an answer: a blocked thread, or a request. */
#ifndef HF_WAITER_H
#define HF_WAITER_H

#include <stdatomic.h>

#include "base/list.h"

struct hf_request;

/* What a thread that waits does; its waker moves it to WOKEN. */
enum hf__waiter_word {
    HF__WAITER_PARKED,
    HF__WAITER_WOKEN,
    HF__WAITER_LINGERS /* it looks at the word, and needs no unpark */
};

/* A thread inside a call that waits for the engine or for another thread, on
 * that thread's stack; or one answer that an asynchronous request needs. */
struct hf__waiter {
    struct hf__list link;  /* client->waiters, while it waits */
    struct hf__list watch; /* ticket->waiters: whose outcome it waits for */
    uint32_t call;         /* its bit of client->calls: parked on the bell */
    _Atomic uint32_t word; /* enum hf__waiter_word; parked on without a call */
    bool done;
    bool served;     /* by another thread, which wakes it */
    bool for_shared; /* a downgrade: a mere renewal is not its answer */
    int rc;
    struct hf_request *request; /* whose answer it is; NULL: a thread */
};

#endif

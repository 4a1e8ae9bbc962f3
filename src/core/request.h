/* SPDX-License-Identifier: MIT */
/* request.h - what one caller asked for, until it has its outcome. */
#ifndef HF_CORE_REQUEST_H
#define HF_CORE_REQUEST_H

#include "base/list.h"
#include "core/callbacks.h"
#include "core/hold.h"
#include "core/waiter.h"

struct hf__gate;
struct hf__query;

/* What differs between an acquire, a release, a verification, an opening and a
 * list, once they have been started. With the monitor, but for tell(). */
struct hf__request_kind {
    /* No answer is awaited any more: the time is over (HF_ETIMEOUT), the caller
     * cancels (HF_ECANCELED), or the client closes (HF_ECLOSED). Finishes. */
    void (*forget)(struct hf_request *request, int rc);
    /* All answers are there, and @rc is the worst of them. Finishes. */
    void (*conclude)(struct hf_request *request, int rc);
    /* The callback is about to run. May be NULL. */
    void (*prepare)(struct hf_request *request);
    /* Call the application. The request may be gone afterwards. */
    void (*tell)(struct hf_request *request);
    /* The handle is given back, finished. May be NULL. */
    void (*drop)(struct hf_request *request);
    bool at_the_gate;    /* it waits there, and not for answers */
    bool outlasts_close; /* the client waits for its answer when it closes */
};

/* One caller's wish; on its stack, or allocated for hf_*_start(). */
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
    uint64_t owner_serial; /* who owns; 0: the owner of that text */
    const char *note;      /* "" for none */
    int64_t asked_ns;
    int64_t until_ns;
    hf_hold *hold;             /* made beforehand: a grant cannot fail. A
                                  release and a verification: whose */
    struct hf__waiter *waiter; /* a blocked thread */
    int rc;
    hf_error *err; /* where the outcome is explained; may be NULL */

    /* Asynchronous ones only. */
    bool started;           /* this is one */
    struct hf__list all;    /* client->requests */
    struct hf__timer timer; /* until_ns */
    struct hf__callback callback;
    hf_done_cb *done;
    void *ctx;
    const struct hf__request_kind *kind;
    _Atomic uint32_t canceled;
    struct hf_request *cancel_next;

    /* All but an acquire, which only asks who holds the lock when its time is
     * over. */
    struct hf__ticket *ticket; /* a wait on a condition: what stands for it */
    bool overdue;              /* the same: its time is over */
    bool spurious;             /* the same: signals may have been missed. A
                                signal: an attempt may have woken */
    bool awaited;              /* somebody has to read its answer soon */
    uint32_t attempts;         /* a signal: how often it was asked in vain */
    uint32_t open;             /* answers that are still to come */
    uint32_t answers_n;        /* one, or one for each member of a multi-lock */
    struct hf__query *query;   /* the question, then the rows */
    hf_list_cb *each;          /* who gets them */
    hf_error error;            /* what err points to; the last field, so that a
                               request on the stack need not clear it */
    struct hf__waiter answers[];
};

/* Memory for a request with @answers_n answers and @room bytes behind them;
 * NULL without. */
struct hf_request *hf__request_new(hf_client *client, uint32_t answers_n,
                                   size_t room);
/* With the monitor: threads and room for what a started request needs. */
int hf__request_reserve(hf_client *client, hf_done_cb *done, hf_error *err);
/* With the monitor, reserved: from now on it has an outcome, at request->
 * until_ns at the latest. */
void hf__request_start(struct hf_request *request,
                       const struct hf__request_kind *kind, hf_done_cb *done,
                       void *ctx);
/* With the monitor: it was started in vain; the caller frees it. */
void hf__request_undo(struct hf_request *request);
/* The one place where a request gets its outcome. */
void hf__request_finish(struct hf_request *request, int rc);
/* One of its answers is there. */
void hf__request_answered(struct hf_request *request, int rc);
/* Its answers are nobody's business any more. */
void hf__request_unwatch(struct hf_request *request);
/* The client closes: finish all requests; with @late also those whose answer
 * was waited for. */
void hf__request_close(hf_client *client, bool late);

#endif

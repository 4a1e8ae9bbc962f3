/* SPDX-License-Identifier: MIT */
/* parked.h - those who have given up the lock and wait on a condition. */
#ifndef HF_PARKED_H
#define HF_PARKED_H

#include "engines/engine.h"

struct hf_request;

/* @request, started, waits on @cond with its hold, which is held and alone on
 * its ticket. It may be finished when this returns. Non-zero: nothing has
 * begun. */
int hf__parked_begin(struct hf_request *request, const char *cond,
                     hf_error *err);
/* The wait is over: HF_ETIMEOUT, which is no outcome yet because the lock has to
 * be had again; HF_ECANCELED or HF_ECLOSED, which finish it. */
void hf__parked_forget(struct hf_request *request, int rc);

/* Reports of the engine about a ticket that stands for a wait. */
void hf__parked_parked(struct hf__ticket *ticket);
void hf__parked_queued(struct hf__ticket *ticket);
void hf__parked_granted(struct hf__ticket *ticket,
                        const struct hf__grant *grant);
void hf__parked_lost(struct hf__ticket *ticket, int reason);
void hf__parked_failed(struct hf__ticket *ticket, const hf_error *err);
void hf__parked_unknown(struct hf__ticket *ticket);

/* A new connection: ask about all of them. */
void hf__parked_ask_again(struct hf__gate *gate);
/* Every wait of this gate fails with @err. */
void hf__parked_fail_all(struct hf__gate *gate, const hf_error *err);

#endif

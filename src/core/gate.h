/* SPDX-License-Identifier: MIT */
/*
 * gate.h - one name inside this process.
 */
#ifndef HF_GATE_H
#define HF_GATE_H

#include "base/list.h"
#include "core/callbacks.h"
#include "core/hold.h"
#include "core/request.h"
#include "core/ticket.h"
#include "core/waiter.h"

struct hf__gate {
    struct hf__gate *next; /* in the client's hash chain */
    hf_client *client;
    uint64_t hash;
    struct hf__list seats;    /* HELD tickets */
    struct hf__list parked;   /* tickets of those who wait on a condition */
    struct hf__list waiting;  /* requests, first come first */
    struct hf__ticket *place; /* our one place in line at the engine */
    struct hf__timer timer;   /* an idle place is given up then */
    int64_t passing_since_ns;
    uint32_t passes;  /* local hand-overs in a row */
    uint32_t leaving; /* tickets that still use our name */
    uint32_t pins;
    uint32_t name_len;
    char *name; /* small_name, or its own memory */
    char small_name[HF__SMALL_NAME];
};

/* Put @request (filled in, with its hold) before the gate of @name. It may be
 * finished when this returns. Non-zero: it never entered. */
int hf__gate_ask(hf_client *client, const char *name, size_t name_len,
                 struct hf_request *request, hf_error *err);
/* The request's caller does not want it any more: finish it with @rc, which
 * HF_ETIMEOUT makes precise: was it kept, did nobody answer, is it unknown? */
void hf__gate_forget(struct hf_request *request, int rc);
/* The time of @request is over because others kept the lock: does nobody know
 * who, and could the engine tell? */
bool hf__gate_is_anonymous(const struct hf_request *request);
/* That is who. */
void hf__gate_name_holder(struct hf__gate *gate, const hf_lock_info *holder);
/* The last hold of @ticket was released: pass it on inside the process (true),
 * or give it back to the engine, and tell @waiter (may be NULL) when that is
 * done. */
bool hf__gate_release(struct hf__ticket *ticket, struct hf__waiter *waiter);

/* Around everything that may change a gate: the last unpin asks for the
 * first request, and frees a gate that nobody needs. */
void hf__gate_pin(struct hf__gate *gate);
void hf__gate_unpin(struct hf__gate *gate);

/* The place was granted: it is a seat now. */
void hf__gate_granted(struct hf__ticket *ticket);
/* The place is gone, and with it the first request's chance. */
void hf__gate_busy(struct hf__gate *gate, const char *holder);
void hf__gate_failed(struct hf__gate *gate, const hf_error *err);
/* How often a seat may be passed on inside the process, in a row. */
uint32_t hf__gate_most_passes(const hf_client *client);
/* Every request that waits fails with @err. */
void hf__gate_fail_all(struct hf__gate *gate, const hf_error *err);
/* Call @each for every gate; it must not make or free gates, except the one it
 * is called for. */
void hf__gate_each(hf_client *client, void (*each)(struct hf__gate *));
/* The first table. */
int hf__gate_init(hf_client *client);
void hf__gate_release_all(hf_client *client);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * hold.h - the caller's proof. hf_check() reads it without the monitor, so
 * what it reads is atomic, and the hold never points to memory that a check
 * would have to follow.
 */
#ifndef HF_HOLD_H
#define HF_HOLD_H

#include <stdatomic.h>

#include "base/list.h"
#include "core/callbacks.h"
#include "core/ticket.h"

enum { HF__SMALL_NAME = 40 };

/* How a lost hold was acquired, for hf_reacquire(). */
struct hf__acquired {
    int32_t mode;
    int32_t slots;
    uint32_t flags;
    int64_t ttl_ms;
    int64_t max_hold_ms; /* HF_FOREVER: no cap */
    uint64_t owner_serial;
    const char *owner; /* in texts, as the note */
    const char *note;
    char texts[];
};

struct hf_hold {
    _Atomic uint32_t refs;
    _Atomic int32_t state;       /* HF_HELD … HF_WAITING */
    _Atomic int64_t deadline_ns; /* HF_NEVER: no lease */
    _Atomic uint64_t token;
    _Atomic uint32_t beat; /* hf_beat() was called */
    uint32_t fork_generation;
    int32_t moved; /* the state the core has given it last */
    int32_t told;  /* the state that on_event gets */
    hf_client *client;
    struct hf__ticket *ticket;    /* NULL once released or lost, and WAITING */
    struct hf_request *wait;      /* WAITING: on a condition; else NULL */
    struct hf__acquired *lost;    /* of a LOST one; NULL without memory, or
                                     while it is acquired again */
    struct hf__list link;         /* ticket->holds, or the spare list */
    struct hf__callback callback; /* for on_event */
    hf_event_cb *on_event;
    void *ctx;
    const char *name;         /* small_name, or its own memory */
    struct hf_hold **members; /* a multi-lock's, in the caller's order */
    struct hf_hold *whole;    /* the multi-lock this is a member of */
    uint32_t members_n;
    char small_name[HF__SMALL_NAME];
};

/* A new hold, with one reference, in no ticket; NULL without memory. With the
 * monitor. */
hf_hold *hf__hold_new(hf_client *client, const char *name, size_t name_len);
/* With the monitor: give back a hold that nobody has a reference to. */
void hf__hold_free(hf_hold *hold);
/* With the monitor: make @hold a hold of the granted @ticket. */
void hf__hold_bind(hf_hold *hold, struct hf__ticket *ticket);
/* With the monitor: a new state, reported to the owner if it has a callback. */
void hf__hold_move(hf_hold *hold, int state);
/* Has a check seen it LOST, though the core has not moved it yet? */
bool hf__hold_seen_lost(const hf_hold *hold);
/* Why it has no ticket: HF_ELOST, or HF_EINVAL while it waits. */
int hf__hold_none(const hf_hold *hold, hf_error *err);
/* Part from the ticket: RELEASED, LOST or WAITING. */
void hf__hold_part(hf_hold *hold, int state);
/* Make @hold, which is LOST, a hold of the ticket of @fresh, which is freed. */
void hf__hold_revive(hf_hold *hold, hf_hold *fresh);
/* The worst state and the earliest deadline of a hold and its members. */
int hf__hold_check(const hf_hold *hold, int64_t now_ns);
int64_t hf__hold_deadline(const hf_hold *hold);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * ticket.h - one request at the engine, from asking to being gone.
 *
 *            ┌─────────── busy, unavailable ──────────┐
 *            ▼                                        │
 *   NEW ─▶ ASKING ──▶ QUEUED ──▶ HELD ──▶ LEAVING ──▶ GONE
 *            │  ▲        │         │ ▲        ▲
 *            │  └RESTING◀┘(gone)   └─┘renewed │
 *            └── unknown, not wanted ─────────┘
 *
 * A ticket belongs to a gate: it is the gate's place in line or one of its
 * seats. Requests of callers come and go behind it. LEAVING tickets belong to
 * the reaper until the engine has confirmed that they are gone.
 */
#ifndef HF_TICKET_H
#define HF_TICKET_H

#include "base/list.h"
#include "base/loop.h"

struct hf__gate;

enum hf__ticket_state {
    HF__TICKET_NEW,     /* nothing was asked */
    HF__TICKET_ASKING,  /* acquire() is under way */
    HF__TICKET_RESTING, /* will be asked again when the timer fires, or when
                           the engine is connected */
    HF__TICKET_QUEUED,  /* in line at the engine */
    HF__TICKET_HELD,
    HF__TICKET_LEAVING, /* withdraw() or release(), until confirmed */
    HF__TICKET_GONE
};

/* Why a lock was lost: a label of the metrics, and the word in the log. */
enum hf__lost_reason {
    HF__LOST_EXPIRED,  /* no renewal was confirmed in time */
    HF__LOST_TAKEN,    /* the engine says that it is not ours any more */
    HF__LOST_SESSION,  /* the session or connection that carried it ended */
    HF__LOST_BROKEN,   /* somebody broke it */
    HF__LOST_MAX_HOLD, /* max_hold ended the renewals */
    HF__LOST_NO_BEAT,  /* renew=beat, and no beat came */
    HF__LOST_REASONS
};

struct hf__ticket {
    /* For the engine to read. */
    uint64_t id;          /* never used twice by this client */
    const char *name;     /* terminated; lives as long as the ticket */
    uint32_t name_len;
    uint32_t reserve;     /* how many tokens are wanted, at least 1 */
    int32_t mode;         /* HF_EXCLUSIVE, HF_SHARED, HF_SLOT */
    int32_t slots;
    int64_t ttl_ms;       /* the lease asked for */
    const char *owner;    /* text for records; never NULL */
    const char *note;     /* "" for none */
    bool nowait;          /* answer busy instead of queueing */

    /* The core's own. */
    uint8_t state;        /* enum hf__ticket_state */
    bool unsure;          /* an earlier acquire ended unknown */
    bool answered;        /* the engine has ever said queued or busy */
    bool renewing;        /* a renew() is under way */
    bool releasing;       /* LEAVING by release(), not by withdraw() */
    uint8_t attempts;     /* of the retry policy, since the last answer */
    struct hf__gate *gate;
    struct hf__list link; /* gate->seats, or client->leaving */
    struct hf__list holds; /* of callers: one, or more by re-entry */
    struct hf__timer timer; /* HELD: keeper; RESTING: retry; LEAVING: reaper */
    uint64_t token;
    uint64_t token_end;   /* tokens up to here, exclusive, are ours */
    uint64_t owner_serial; /* 0: owner is the caller's text */
    int64_t lease_ms;     /* as granted; 0: none */
    int64_t sent_ns;      /* when the last acquire or renew was sent */
    int64_t confirmed_ns; /* when the last answered one was sent */
    int64_t deadline_ns;  /* our claim ends here */
    int64_t until_ns;     /* renew no longer than this (max_hold) */
    int64_t granted_ns;
    struct hf__waiter *waiter; /* of the blocking release or verify */
    int rc;               /* what the release came to */
    char *texts;          /* owner and note, if they had to be copied */
    /* The engine's bytes follow. */
};

#endif

/* SPDX-License-Identifier: MIT */
/*
 * ticket.h - one request at the engine, from asking to being gone.
 *
 *   NEW ──▶ ASKING ──▶ QUEUED ──▶ HELD ──▶ LEAVING ──▶ GONE
 *            │  ▲ │       │ ▲      │  ▲                   ▲
 *            ▼  │ │       │ │      ▼  │ not parked        │
 *           RESTING ◀─────┘ │    PARTING ─────────────────┘
 *                 │ lost its│ place
 *                 └▶ PARKED ┘ signalled, or the wait is over
 *
 * All moves, which ticket.c asserts:
 *
 *   NEW      -> ASKING GONE
 *   ASKING   -> QUEUED RESTING PARKED HELD LEAVING GONE
 *   RESTING  -> ASKING HELD LEAVING GONE
 *   QUEUED   -> RESTING HELD LEAVING GONE
 *   PARKED   -> QUEUED HELD LEAVING GONE
 *   HELD     -> PARTING LEAVING GONE
 *   PARTING  -> HELD LEAVING GONE
 *   LEAVING  -> GONE
 *
 * A ticket belongs to a gate: it is the gate's place in line, one of its seats,
 * or stands for one caller that waits on a condition (parked.c). Requests of
 * callers come and go behind it. LEAVING tickets belong to leaving.c until the
 * engine has confirmed that they are gone.
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
    HF__TICKET_PARKED,  /* waits there for a signal, not in line */
    HF__TICKET_HELD,
    HF__TICKET_PARTING, /* held until the park() of another ticket, which is
                           under way, gives it up */
    HF__TICKET_LEAVING, /* withdraw() or release(), until confirmed */
    HF__TICKET_GONE
};

/* How a LEAVING ticket leaves. A withdrawal is right whatever the engine has of
 * the ticket, but says only that nothing is left. */
enum hf__leaving_by {
    HF__BY_WITHDRAWAL,
    HF__BY_RELEASE,          /* release() is still to be sent */
    HF__BY_SENT_RELEASE,     /* release() was sent, no answer yet */
    HF__BY_DOUBTFUL_RELEASE, /* its answer was lost; withdraw() goes on */
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
    /* For the engine to read; tests/build/layers.sh refuses the rest. */
    uint64_t id;      /* never used twice by this client */
    const char *name; /* terminated; lives as long as the ticket */
    uint32_t name_len;
    uint32_t reserve; /* how many tokens are wanted, at least 1 */
    int32_t mode;     /* HF_EXCLUSIVE, HF_SHARED, HF_SLOT */
    int32_t slots;
    int64_t ttl_ms;    /* the lease asked for */
    const char *owner; /* text for records; never NULL */
    const char *note;  /* "" for none */
    const char *cond;  /* the condition for which it parks, is in line, or
                          holds; it may bear a wake-up. NULL: none */
    uint64_t token;    /* HELD */
    int64_t sent_ns;   /* when the last acquire or renew was sent */
    uint64_t rival;    /* the grant that is in the way: hf__up_rival() */
    int64_t rival_ns;  /* since when it has been the same */
    bool nowait;       /* answer busy instead of queueing */
    bool parked;       /* the engine has said parked, and nothing else since */

    /* The core's own. */
    uint8_t state;        /* enum hf__ticket_state */
    bool unsure;          /* an earlier acquire or park ended unknown */
    bool in_line;         /* asked again in QUEUED: its place may be there */
    bool unparking;       /* PARKED: the wait is over, unpark() not answered */
    bool answered;        /* the engine has ever said queued or busy */
    bool renewing;        /* a renew() is under way */
    uint8_t leaving_by;   /* enum hf__leaving_by */
    bool downgrading;     /* it may be shared at the engine already */
    bool unwanted;        /* renewals ended: max_hold, or no beat came */
    uint8_t lost_reason;  /* what to say if the lease runs out now */
    bool reason_names;    /* reason is who holds it */
    uint32_t flags;       /* HF_NO_RENEW, HF_NON_REENTRANT, as asked for */
    uint32_t attempts;    /* of the retry policy, since the last answer */
    uint32_t places_lost; /* in a row, each soon after it was asked for */
    struct hf__gate *gate;
    struct hf_request *wait; /* on a condition, that it stands for, or whose
                                park() gives it up; NULL: none */
    struct hf__ticket *old;  /* what its park() gives up, until that is certain;
                                NULL: none */
    struct hf__list link;    /* gate->seats, gate->parked, or client->leaving */
    struct hf__list holds;   /* of callers: one, or more by re-entry */
    struct hf__timer timer;  /* HELD: keeper; RESTING: retry; LEAVING: retry */
    uint64_t token_end;      /* tokens up to here, exclusive, are ours */
    uint64_t owner_serial;   /* 0: owner is the caller's text */
    int64_t lease_ms;        /* as granted; 0: none */
    int64_t asked_ns;        /* when the last acquire was sent */
    int64_t confirmed_ns;    /* when the last answered one was sent */
    int64_t deadline_ns;     /* our claim ends here */
    int64_t until_ns;        /* renew no longer than this (max_hold) */
    int64_t granted_ns;
    int64_t closed_until_ns; /* LEAVING, lost: lock_delay ends here */
    struct hf__list waiters; /* of a blocking release, verify or downgrade */
    char *texts;             /* owner and note, if they do not fit here */
    char *reason;            /* why it is not granted yet; NULL: not known */
    char owner_text[24];
    /* The engine's bytes follow. */
};

struct hf_request;
struct hf__engine_up;

/* A ticket for @request at @gate, NEW; NULL without memory. */
struct hf__ticket *hf__ticket_new(struct hf__gate *gate,
                                  const struct hf_request *request);
/* Another ticket of the same owner, for the same, NEW; NULL without memory. */
struct hf__ticket *hf__ticket_like(const struct hf__ticket *ticket);
/* Remember why @ticket is not granted, or, with @names, who holds it. Without
 * memory it stays unknown. */
void hf__ticket_reason(struct hf__ticket *ticket, const char *text, bool names);
/* Give back a ticket that the engine does not know (any more). */
void hf__ticket_free(struct hf__ticket *ticket);
void hf__ticket_move(struct hf__ticket *ticket, int state);
/* Ask the engine, now; the outcome may be there when this returns. */
void hf__ticket_ask(struct hf__ticket *ticket);
/* Nobody stands behind the ticket any more: it leaves, by leaving.c if the
 * engine may know of it. */
void hf__ticket_drop(struct hf__ticket *ticket);
/* The engine knows nothing of the ticket (any more): GONE, and freed. */
void hf__ticket_end(struct hf__ticket *ticket);
/* Could @ticket serve @request as well: the same mode, lease and note? */
bool hf__ticket_suits(const struct hf__ticket *ticket,
                      const struct hf_request *request);
/* Make @request's owner the ticket's owner. 0 or HF_ENOMEM. */
int hf__ticket_set_owner(struct hf__ticket *ticket,
                         const struct hf_request *request);
bool hf__ticket_owned_by(const struct hf__ticket *ticket,
                         const struct hf_request *request);
/* The lock is gone: tell every hold, and take back what may be left. @certain:
 * the engine says that nothing is. */
void hf__ticket_lose(struct hf__ticket *ticket, int reason, bool certain);
/* Tell everybody who waits for this ticket. */
void hf__ticket_tell(struct hf__ticket *ticket, int rc);

extern const struct hf__engine_up hf__ticket_reports;

#endif

/* SPDX-License-Identifier: MIT */
/*
 * tickets.h - where a ticket stands, and its moves.
 */
#ifndef HF_ETCD_TICKETS_H
#define HF_ETCD_TICKETS_H

#include "engines/common/ticket_table.h"
#include "engines/engine.h"
#include "engines/etcd/condition.h"
#include "engines/etcd/connection.h"

struct hf__etcd;
struct hf__etcd_call;
struct hf__etcd_lease;

/*
 * Where a ticket stands. tickets.c asserts these moves:
 *
 *   IDLE      -> ASKING PARKING
 *   ASKING    -> ASKING WAITING HELD UNKNOWN RELEASING IDLE
 *   CALLED    -> ASKING WAITING HELD UNKNOWN RELEASING IDLE
 *   WAITING   -> ASKING WAITING HELD RELEASING IDLE
 *   HELD      -> ASKING YIELDING RELEASING IDLE
 *   UNKNOWN   -> ASKING CALLED PARKING UNPARKING RELEASING IDLE
 *   PARKING   -> PARKING PARKED UNKNOWN RELEASING IDLE
 *   PARKED    -> PARKED CALLED UNPARKING RELEASING IDLE
 *   UNPARKING -> UNPARKING ASKING UNKNOWN RELEASING IDLE
 *   YIELDING  -> HELD RELEASING IDLE
 *   RELEASING -> RELEASING IDLE
 *
 * The core asks again for one that is UNKNOWN or WAITING, or HELD where the
 * report was lost; not for one with a condition, which goes on when it is
 * renewed.
 */
enum hf__etcd_state {
    HF__ETCD_IDLE,    /* not in the table: the server has nothing of it */
    HF__ETCD_ASKING,  /* an acquire or unpark() has not been reported yet */
    HF__ETCD_CALLED,  /* asks because it was called; no report is owed */
    HF__ETCD_WAITING, /* in line */
    HF__ETCD_HELD,
    HF__ETCD_UNKNOWN,   /* an acquire was reported as unknown */
    HF__ETCD_PARKING,   /* a park() has not been reported yet */
    HF__ETCD_PARKED,    /* waits for its condition */
    HF__ETCD_UNPARKING, /* an unpark() has not been reported yet */
    HF__ETCD_YIELDING,  /* was held, and a park() gives it up */
    HF__ETCD_RELEASING, /* withdraw() or release() was called */
    HF__ETCD_STATES
};

/* What the server may have of a ticket. */
enum hf__etcd_key {
    HF__ETCD_NO_KEY,
    HF__ETCD_SENT,   /* the key */
    HF__ETCD_DOUBTED /* and an acquire may still be on its way to it */
};

/* Our bytes of every ticket. */
struct hf__etcd_ticket {
    struct hf__ticket_entry entry; /* in etcd->tickets */
    struct hf__etcd_lease *lease;
    int64_t lease_id;  /* of the key: the lease may be another by now */
    uint64_t revision; /* our key's create revision; 0: not known */
    int64_t asked_ns;  /* when the last request about its place was sent */
    int64_t look_ns;   /* look again then; 0: not planned */
    struct hf__etcd_call *watch;
    uint8_t state;     /* enum hf__etcd_state */
    uint8_t key;       /* enum hf__etcd_key */
    uint8_t look;      /* enum hf__etcd_look: at its place */
    uint8_t late;      /* watches in a row that were refused, or may be late */
    bool awaits_lease; /* an acquire or a renewal goes on when that has come */

    /* Of a ticket with a condition. */
    struct hf__etcd_condition *condition; /* where it may have a record */
    struct hf__list parked_link;          /* condition->tickets */
    uint64_t old;   /* PARKING: the one that is given up */
    uint64_t made;  /* its record's create revision, where that is KNOWN */
    uint32_t round; /* condition.c's */
    uint32_t steps; /* of this park(); bounded */
    uint8_t record; /* enum hf__etcd_record */
    bool under_way; /* a step of parking, unparking or leaving */
};

/* It asks for the lock. */
static inline bool hf__etcd_tickets_asks(const struct hf__etcd_ticket *mine)
{
    return mine->state == HF__ETCD_ASKING || mine->state == HF__ETCD_CALLED;
}
/* Checked against the table of moves. */
void hf__etcd_tickets_move(struct hf__etcd_ticket *mine,
                           enum hf__etcd_state state);
/* @call is about the key that @ticket has now, or asks for. */
void hf__etcd_tickets_about(struct hf__etcd_call *call,
                            struct hf__ticket *ticket);
/* Adds the message of a transaction about @ticket. */
typedef void hf__etcd_tickets_add_fn(struct hf__etcd *etcd, struct hf__buf *to,
                                     struct hf__ticket *ticket);
/* Send a transaction about the ticket's place. */
int hf__etcd_tickets_ask(struct hf__etcd *etcd, struct hf__ticket *ticket,
                         hf__etcd_tickets_add_fn *add, hf__etcd_reply_fn *done,
                         hf_error *err);
/* The ticket of @call; NULL also if its lease has ended since, and with it the
 * key that the answer is about: it may have been asked for again. */
struct hf__ticket *hf__etcd_tickets_of(const struct hf__etcd_call *call);
/* The first known ticket for which @wanted; NULL: none. */
struct hf__ticket *hf__etcd_tickets_seek(const struct hf__etcd *etcd,
                                         hf__ticket_wanted_fn *wanted,
                                         const void *what);
static inline const struct hf__etcd_ticket *hf__etcd_tickets_at(
    struct hf__ticket_entry *entry)
{
    return HF_CONTAINER_OF(entry, struct hf__etcd_ticket, entry);
}
/* Its hold, if it is one, does not keep the lease busy any more. */
void hf__etcd_tickets_free_lease(struct hf__etcd *etcd,
                                 struct hf__etcd_ticket *mine);
/* Before the report that ends it. */
void hf__etcd_tickets_forget(struct hf__etcd *etcd, struct hf__ticket *ticket);
/* Nothing of it is left on the server: it is lost. */
void hf__etcd_tickets_gone(struct hf__etcd *etcd, struct hf__ticket *ticket,
                           int reason);

#endif

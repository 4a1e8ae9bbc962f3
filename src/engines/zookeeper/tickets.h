/* SPDX-License-Identifier: MIT */
/*
 * tickets.h - where a ticket stands, and outcomes that any step may have.
 */
#ifndef HF_ZOOKEEPER_TICKETS_H
#define HF_ZOOKEEPER_TICKETS_H

#include "engines/common/ticket_table.h"
#include "engines/engine.h"
#include "engines/zookeeper/calls.h"
#include "engines/zookeeper/condition.h"
#include "engines/zookeeper/nodes.h"

struct hf__zk;

/*
 * Where a ticket stands. tickets.c asserts these moves:
 *
 *   IDLE        -> ASKING PARKING
 *   ASKING      -> ASKING WAITING HELD UNKNOWN RELEASING WITHDRAWING IDLE
 *   CALLED      -> ASKING WAITING HELD UNKNOWN RELEASING WITHDRAWING IDLE
 *   WAITING     -> ASKING WAITING HELD UNKNOWN RELEASING WITHDRAWING IDLE
 *   HELD        -> ASKING YIELDING RELEASING WITHDRAWING IDLE
 *   UNKNOWN     -> ASKING CALLED WAITING HELD PARKING UNPARKING RELEASING WITHDRAWING IDLE
 *   PARKING     -> PARKING PARKED UNKNOWN RELEASING WITHDRAWING IDLE
 *   PARKED      -> PARKED CALLED UNPARKING RELEASING WITHDRAWING IDLE
 *   UNPARKING   -> UNPARKING ASKING UNKNOWN RELEASING WITHDRAWING IDLE
 *   YIELDING    -> HELD RELEASING WITHDRAWING IDLE
 *   RELEASING   -> UNKNOWN RELEASING WITHDRAWING IDLE
 *   WITHDRAWING -> UNKNOWN RELEASING WITHDRAWING IDLE
 *
 * The core asks again for a ticket that is UNKNOWN. The answer to an earlier
 * step may come first, and decide.
 */
enum hf__zk_state {
    HF__ZK_IDLE,    /* not in the table: the server has nothing of it */
    HF__ZK_ASKING,  /* an acquire or unpark() has not been reported yet */
    HF__ZK_CALLED,  /* asks because it was called; no report is owed */
    HF__ZK_WAITING, /* in line */
    HF__ZK_HELD,
    HF__ZK_UNKNOWN,   /* reported as unknown, or as a place that was lost */
    HF__ZK_PARKING,   /* a park() has not been reported yet */
    HF__ZK_PARKED,    /* waits for its condition */
    HF__ZK_UNPARKING, /* an unpark() has not been reported yet */
    HF__ZK_YIELDING,  /* was held, and a park() gives it up */
    HF__ZK_RELEASING, /* release() was called */
    HF__ZK_WITHDRAWING,
    HF__ZK_STATES
};

/* The line that a ticket stands in. */
enum hf__zk_line_of {
    HF__ZK_LINE_LOCK,  /* of the lock */
    HF__ZK_LINE_MUTEX, /* of Curator's semaphore: for its mutex … */
    HF__ZK_LINE_LEASES /* … and for a slot */
};

/* Our bytes of every ticket. */
struct hf__zk_ticket {
    struct hf__ticket_entry entry; /* in zk->tickets */
    char *path;                    /* of our node; NULL: not known here */
    uint32_t dir_len;              /* the part that is the lock's node */
    uint32_t id_len;               /* the part that no other node begins with */
    uint32_t base_len;             /* the part without the number */
    uint32_t path_len;             /* the whole path; 0 unless NODE_KNOWN */
    uint32_t path_size;
    uint32_t name_len; /* the part that is the name's node */
    char *mutex;       /* our node in the first line */
    uint64_t czxid;
    int32_t renamed;    /* how often our node got another name */
    uint64_t watched;   /* hash of the path that we wait for; 0: none */
    uint32_t steps;     /* of this ask; bounded, should the store play tricks */
    uint8_t state;      /* enum hf__zk_state */
    uint8_t node;       /* enum hf__zk_node */
    uint8_t line;       /* enum hf__zk_line_of */
    bool under_way;     /* a step of asking or releasing is at the server */
    bool waited;        /* was in line: it marks its slot when it is granted */
    int32_t number;     /* NODE_FOUND */
    int32_t seek_error; /* a child that could not be read */
    uint32_t seeking;   /* answers that are still to come */
    hf_error refused;   /* why the create failed; code 0: it did not */

    /* Of a ticket with a condition. */
    struct hf__zk_condition *condition; /* where it may have a record */
    struct hf__list parked_link;        /* condition->tickets */
    uint64_t old;                       /* PARKING: the one that is given up */
    int32_t record_number;              /* of its record, where it is KNOWN */
    uint32_t round;                     /* condition.c's */
    uint8_t record;                     /* enum hf__zk_record */
};

/* It asks for the lock. */
static inline bool hf__zk_tickets_asks(const struct hf__zk_ticket *mine)
{
    return mine->state == HF__ZK_ASKING || mine->state == HF__ZK_CALLED;
}
/* release() or withdraw() was called. */
static inline bool hf__zk_tickets_leaves(const struct hf__zk_ticket *mine)
{
    return mine->state == HF__ZK_RELEASING || mine->state == HF__ZK_WITHDRAWING;
}
/* Checked against the table of moves. */
void hf__zk_tickets_move(struct hf__zk *zk, struct hf__zk_ticket *mine,
                         enum hf__zk_state state);
/* Know @ticket from now on, and the path of its node up to the number. */
int hf__zk_tickets_know(struct hf__zk *zk, struct hf__ticket *ticket,
                        hf_error *err);
void hf__zk_tickets_forget(struct hf__zk *zk, struct hf__ticket *ticket);
void hf__zk_tickets_forget_all(struct hf__zk *zk);
/* A call whose answer @step gets: if the ticket is still there, when nothing of
 * it is under way any more, and unless the answer was lost. */
struct hf__zk_call hf__zk_tickets_step(const struct hf__ticket *ticket,
                                       hf__zk_step_fn *step);
/* The step under way has no outcome: report that, if one is to be reported. */
void hf__zk_tickets_unknown(struct hf__zk *zk, struct hf__ticket *ticket,
                            const hf_error *err);
void hf__zk_tickets_answer_lost(struct hf__zk *zk, struct hf__ticket *ticket);
/* The lock is lost. */
void hf__zk_tickets_gone(struct hf__zk *zk, struct hf__ticket *ticket,
                         int reason);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * tickets.h - where a ticket stands, and outcomes that any step may have.
 */
#ifndef HF_MYSQL_TICKETS_H
#define HF_MYSQL_TICKETS_H

#include "engines/common/ticket_table.h"
#include "engines/engine.h"
#include "engines/sql/pool.h"

struct hf__mysql;
struct hf__mysql_connection;
struct hf__mysql_reply;

/*
 * Where a ticket stands. tickets.c asserts these moves:
 *
 *   IDLE        -> ASKING
 *   ASKING      -> ASKING PARKED WAITING HELD UNKNOWN RELEASING WITHDRAWING IDLE
 *   PARKED      -> ASKING WAITING WITHDRAWING
 *   WAITING     -> ASKING WAITING HELD UNKNOWN RELEASING WITHDRAWING IDLE
 *   HELD        -> ASKING RELEASING WITHDRAWING IDLE
 *   UNKNOWN     -> ASKING RELEASING WITHDRAWING IDLE
 *   RELEASING   -> RELEASING WITHDRAWING IDLE
 *   WITHDRAWING -> WITHDRAWING IDLE
 *
 * The core asks again for a ticket that is UNKNOWN. One whose release has no
 * outcome stays RELEASING; the core withdraws it.
 */
enum hf__mysql_state {
    HF__MYSQL_IDLE,    /* not in the table: the server has nothing of it */
    HF__MYSQL_ASKING,  /* an acquire has not been reported yet */
    HF__MYSQL_PARKED,  /* waits for a condition, not in line */
    HF__MYSQL_WAITING, /* in line */
    HF__MYSQL_HELD,
    HF__MYSQL_UNKNOWN,   /* reported as unknown */
    HF__MYSQL_RELEASING, /* release() was called */
    HF__MYSQL_WITHDRAWING,
    HF__MYSQL_STATES
};

/* What the server has of a ticket, as far as we know. */
enum hf__mysql_stored {
    HF__MYSQL_HAS_NOTHING,
    HF__MYSQL_HAS_LINE, /* it has, or may have, a row in holdfast_ticket */
    HF__MYSQL_HAS_LOCK, /* our session, our transaction or a row holds it */
    HF__MYSQL_HAS_TRANSACTION /* the same, and the caller has used it */
};

/* By what the server knows a connection. */
struct hf__mysql_session {
    uint64_t serial; /* which connection of this client; 0: none */
    uint64_t id;     /* the server's number */
    uint16_t port;   /* of our end */
    uint16_t looks;  /* how often we checked that it has ended */
};

/* Our bytes of every ticket. */
struct hf__mysql_ticket {
    struct hf__ticket_entry entry; /* in mysql->tickets */
    uint8_t state;                 /* enum hf__mysql_state */
    uint8_t stored;                /* enum hf__mysql_stored */
    bool under_way;  /* an answer about it is to come: whether it is ours, its
                       place in line, or the end of its orphan */
    bool unsure;     /* an acquire before this one, or a commit of the caller's,
                       has no answer */
    uint32_t polls;  /* since it was parked */
    uint64_t token;  /* of a row, as it was granted; 0: it was not */
    uint64_t old;    /* id of the ticket that its park gives up; 0: none */
    int64_t poll_ns; /* poll its place then; 0: never */
    struct hf__mysql *mysql;
    struct hf__sql_want want;
    struct hf__mysql_connection *on;          /* its session; NULL: none */
    struct hf__mysql_session orphan;          /* lost, and may hold or wait */
    const struct hf__mysql_lock_texts *texts; /* of a session's lock */
};

/* Checked against the table of moves. */
void hf__mysql_tickets_move(struct hf__mysql_ticket *mine,
                            enum hf__mysql_state state);
/* An acquire was called: whether the server may know @ticket already. */
bool hf__mysql_tickets_ask(struct hf__mysql *mysql, struct hf__ticket *ticket);
/* release() or withdraw() was called. */
void hf__mysql_tickets_leave(struct hf__mysql *mysql, struct hf__ticket *ticket,
                             bool releasing);
static inline bool hf__mysql_tickets_leaves(const struct hf__mysql_ticket *mine)
{
    return mine->state == HF__MYSQL_RELEASING ||
           mine->state == HF__MYSQL_WITHDRAWING;
}
void hf__mysql_tickets_forget(struct hf__mysql *mysql,
                              struct hf__ticket *ticket);

/* What became of an acquire of a row. @woken: a signal called it. Not granted: an error of the server, so
 * that it did nothing. */
void hf__mysql_tickets_granted(struct hf__mysql *mysql,
                               struct hf__ticket *ticket, uint64_t token,
                               bool woken, int64_t sent_ns);
void hf__mysql_tickets_busy(struct hf__mysql *mysql, struct hf__ticket *ticket,
                            const char *holder);
void hf__mysql_tickets_failed(struct hf__mysql *mysql,
                              struct hf__ticket *ticket, const hf_error *err);
/* Failed, or unknown if an attempt before has no answer. */
void hf__mysql_tickets_refused(struct hf__mysql *mysql,
                               struct hf__ticket *ticket, const hf_error *err);
void hf__mysql_tickets_not_granted(struct hf__mysql *mysql,
                                   struct hf__ticket *ticket,
                                   const struct hf__mysql_reply *reply);
/* The acquire could not be sent, for @rc. What it returns. */
int hf__mysql_tickets_not_asked(struct hf__mysql *mysql,
                                struct hf__ticket *ticket, bool known, int rc);
/* The answer was lost; or nobody knows because of @err. */
void hf__mysql_tickets_answer_lost(struct hf__mysql *mysql,
                                   struct hf__ticket *ticket);
void hf__mysql_tickets_unknown(struct hf__mysql *mysql,
                               struct hf__ticket *ticket, const hf_error *err);
/* The lock is lost. */
void hf__mysql_tickets_lost(struct hf__mysql *mysql, struct hf__ticket *ticket,
                            int reason);
/* Nothing is left of it. @held: it was ours until now. */
void hf__mysql_tickets_left(struct hf__mysql *mysql, struct hf__ticket *ticket,
                            bool held);
/* Report what an error of a release means; false if there is none. After a
 * deadlock nothing was done: it is sent again. */
bool hf__mysql_tickets_not_left(struct hf__mysql *mysql,
                                struct hf__ticket *ticket,
                                const struct hf__mysql_reply *reply);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * tickets.h - the engine's bytes of a ticket: where it is on the server, and
 * what the core waits to hear.
 *
 * NOWHERE -> ASKING CHECKING WANTING RESTING
 * ASKING -> NOWHERE ASKING WAITING PARKED ACCEPTING HELD RELEASING ORPHAN
 * CHECKING -> NOWHERE WANTING ORPHAN
 * WANTING -> NOWHERE RESTING WAITING
 * RESTING -> NOWHERE
 * WAITING -> NOWHERE ASKING WAITING CANCELLING ACCEPTING HELD RELEASING ORPHAN
 * PARKED -> NOWHERE ASKING WAITING HELD RELEASING
 * CANCELLING -> NOWHERE CANCELLING ACCEPTING HELD RELEASING ORPHAN
 * ACCEPTING -> NOWHERE HELD RELEASING ORPHAN
 * HELD -> NOWHERE ASKING ACCEPTING PARTING RELEASING ORPHAN
 * PARTING -> NOWHERE HELD RELEASING ORPHAN
 * RELEASING -> NOWHERE RELEASING STUCK ORPHAN
 * STUCK -> NOWHERE RELEASING ORPHAN
 * ORPHAN -> NOWHERE
 *
 * A lock that is a row uses NOWHERE, ASKING, WAITING, HELD and RELEASING;
 * mode=table also PARKED and PARTING.
 */
#ifndef HF_POSTGRES_TICKETS_H
#define HF_POSTGRES_TICKETS_H

#include "engines/common/ticket_table.h"
#include "engines/postgres/connection.h"

enum hf__pg_state {
    HF__PG_NOWHERE,
    HF__PG_ASKING,     /* by a statement that does not wait */
    HF__PG_CHECKING,   /* it is taken: under the same name? */
    HF__PG_WANTING,    /* a connection of the pool */
    HF__PG_RESTING,    /* there was none: the core asks again after a pause */
    HF__PG_WAITING,    /* in line, or in a statement that waits */
    HF__PG_PARKED,     /* table: waits for a signal, not in line */
    HF__PG_CANCELLING, /* … which was told to stop */
    HF__PG_ACCEPTING,  /* granted long after it was asked for */
    HF__PG_HELD,
    HF__PG_PARTING, /* to be unlocked when a wait of ours for it has ended;
                       table: until the park that gives it up is answered */
    HF__PG_RELEASING,
    HF__PG_STUCK,  /* the server refused to unlock: to be asked again */
    HF__PG_ORPHAN, /* its connection was lost */
    HF__PG_STATES
};

/* What the core waits to hear. */
enum hf__pg_owed {
    HF__PG_OWES_NOTHING,
    HF__PG_OWES_ANSWER, /* to acquire() */
    HF__PG_OWES_GRANT,  /* it was told that the ticket is in line */
    HF__PG_OWES_WITHDRAWAL,
    HF__PG_OWES_RELEASE,
    HF__PG_OWES_COMMIT /* a release with the caller's statements */
};

/* What else we know of it; each belongs to one mode. */
enum hf__pg_known {
    HF__PG_KNOWN_NOTHING,
    HF__PG_KNOWN_TAKEN, /* advisory: another has it */
    HF__PG_KNOWN_ALONE, /* table: its row is the only one, or was */
    HF__PG_KNOWN_WOKEN, /* table: it bears a wake-up, or did */
    HF__PG_KNOWN_ROW    /* dialect=row: we have made the row */
};

struct hf__pg_ticket {
    struct hf__ticket_entry entry;
    struct hf__sql_want want; /* a connection of the pool */
    struct hf__list link;     /* on the main connection, by its key */
    struct hf__pg *engine;
    struct hf__pg_conn *conn; /* where it waits or is held; NULL: nowhere */
    int64_t key;
    int64_t second_key; /* advisory: tells it from other names with the key */
    uint64_t token;
    int64_t confirmed_ns; /* when the last answered request was sent */
    int64_t watch_ns;     /* look again then; 0: never */
    uint64_t beat;        /* the renewal that is under way; 0: none */
    uint64_t old; /* table: the ticket that its park gives up; 0: none */
    uint8_t state;
    uint8_t owed;
    uint8_t known;     /* enum hf__pg_known */
    bool unsure;       /* something of an earlier attempt may be there */
    char timeline[12]; /* table: of the server's log, where it parked */
    /* for_update: the transaction that the caller was given; "": none was. */
    char transaction[24];
    struct hf__query *borrower;  /* … and first asked for it just now */
    struct hf__pg_orphan orphan; /* a backend that may still have it */
    hf_error *why;               /* what is reported when it is undone */
};

static inline bool hf__pg_tickets_asks(const struct hf__pg_ticket *mine)
{
    return mine->owed == HF__PG_OWES_ANSWER;
}
static inline bool hf__pg_tickets_leaves(const struct hf__pg_ticket *mine)
{
    return mine->owed >= HF__PG_OWES_WITHDRAWAL;
}
static inline bool hf__pg_tickets_releases(const struct hf__pg_ticket *mine)
{
    return mine->owed >= HF__PG_OWES_RELEASE;
}

void hf__pg_tickets_move(struct hf__pg_ticket *mine, enum hf__pg_state state);
void hf__pg_tickets_know(struct hf__pg *postgres, struct hf__ticket *ticket);
void hf__pg_tickets_forget(struct hf__pg_ticket *mine);
/* NULL: it is gone. */
struct hf__pg_ticket *hf__pg_tickets_find(const struct hf__pg *postgres,
                                          uint64_t id);
/* Call @each for every ticket; returns the least of what it returns. */
typedef int64_t hf__pg_each_fn(struct hf__pg_ticket *mine, int64_t now_ns);
int64_t hf__pg_tickets_due(struct hf__pg *postgres, hf__pg_each_fn *each,
                           int64_t now_ns);

/* Reports that also tidy up. */
void hf__pg_tickets_failed(struct hf__pg_ticket *mine, const hf_error *err);
void hf__pg_tickets_unknown(struct hf__pg_ticket *mine, const hf_error *err);
/* … because an answer on @conn did not come. */
void hf__pg_tickets_lost_answer(struct hf__pg_ticket *mine,
                                const struct hf__pg_conn *conn);
void hf__pg_tickets_busy(struct hf__pg_ticket *mine, const char *holder);
void hf__pg_tickets_left(struct hf__pg_ticket *mine, int rc);
void hf__pg_tickets_lost(struct hf__pg_ticket *mine, int reason);

#endif

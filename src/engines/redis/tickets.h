/* SPDX-License-Identifier: MIT */
/*
 * tickets.h - where a ticket is; tickets by number, their records, and what is
 * known of names.
 */
#ifndef HF_REDIS_TICKETS_H
#define HF_REDIS_TICKETS_H

#include "engines/redis/redis.h"

/*
 * Where a ticket is. tickets.c asserts the moves:
 *   IDLE        -> IDLE ASKING
 *   ASKING      -> IDLE ASKING TRIED SYNCING WAITING PARKED HELD UNKNOWN
 *   ASKING      -> RETURNING WITHDRAWING RELEASING
 *   TRIED       -> IDLE ASKING TRIED SYNCING WAITING HELD UNKNOWN
 *   TRIED       -> RETURNING WITHDRAWING RELEASING
 *   SYNCING     -> IDLE ASKING SYNCING WAITING PARKED HELD UNKNOWN
 *   SYNCING     -> RETURNING WITHDRAWING RELEASING
 *   WAITING     -> IDLE ASKING LOOKING CALLED UNPARKING HELD WITHDRAWING
 *   LOOKING     -> IDLE ASKING LOOKING WAITING CALLED HELD WITHDRAWING
 *   PARKED      -> IDLE ASKING WAITING UNPARKING CALLED STALE HELD WITHDRAWING
 *   STALE       -> IDLE ASKING WAITING CALLED HELD DROPPING WITHDRAWING
 *   UNPARKING   -> IDLE UNPARKING WAITING CALLED HELD UNKNOWN
 *   UNPARKING   -> DROPPING WITHDRAWING
 *   CALLED      -> IDLE ASKING CALLED WAITING UNPARKING HELD UNKNOWN DROPPING
 *   CALLED      -> WITHDRAWING RELEASING
 *   HELD        -> IDLE ASKING UNPARKING YIELDING WITHDRAWING RELEASING
 *   YIELDING    -> IDLE YIELDING HELD WITHDRAWING RELEASING
 *   UNKNOWN     -> IDLE ASKING UNPARKING WITHDRAWING RELEASING
 *   RETURNING   -> IDLE UNKNOWN
 *   DROPPING    -> IDLE WAITING STALE
 *   WITHDRAWING -> IDLE WITHDRAWING RELEASING
 *   RELEASING   -> IDLE WITHDRAWING RELEASING
 */
enum hf__redis_state {
    HF__REDIS_IDLE,    /* the server knows nothing of it */
    HF__REDIS_ASKING,  /* an acquire has not been reported yet */
    HF__REDIS_TRIED,   /* … and a fast attempt of it failed */
    HF__REDIS_SYNCING, /* … granted, but replicas have to have it first */
    HF__REDIS_WAITING, /* in line */
    HF__REDIS_LOOKING, /* … and a try is under way (redisson) */
    HF__REDIS_PARKED,  /* on a condition, or in line by now */
    HF__REDIS_STALE, /* … and may have missed a signal: gives its place up */
    HF__REDIS_UNPARKING,   /* … and unpark() has not been reported yet */
    HF__REDIS_CALLED,      /* it was one of these, and is SYNCING */
    HF__REDIS_HELD,        /* … as far as we know */
    HF__REDIS_YIELDING,    /* … unless the park of another has ended it */
    HF__REDIS_UNKNOWN,     /* reported unknown */
    HF__REDIS_RETURNING,   /* a grant is given back: acquire() has failed */
    HF__REDIS_DROPPING,    /* … of one that was in line, or its place: lost */
    HF__REDIS_WITHDRAWING, /* withdraw() was called */
    HF__REDIS_RELEASING,   /* release() was called */
    HF__REDIS_STATES
};

/* Our bytes of every ticket. */
struct hf__redis_ticket {
    struct hf__ticket_entry entry; /* in redis->tickets */
    char *record; /* and the key behind it; NULL: not known here */
    uint32_t record_len;
    uint32_t key_len;
    uint64_t name_hash;   /* under redis->hash_key; 0: not computed */
    int64_t confirmed_ns; /* when the last answered request was sent */
    int64_t watch_ns;     /* in line, and first: look again then */
    struct hf__redis_channel *channel; /* where a wake-up would come, or NULL */
    struct hf__list hearing;           /* in channel->waiters */
    uint8_t state;                     /* enum hf__redis_state */
    bool again;             /* an earlier acquire may have left something */
    bool importing;         /* the slot is on its way to this node */
    struct hf__ticket *old; /* park() gives this one up; NULL: it is done */
    uint64_t sync;          /* awaits the WAIT with this mark; 0: none */
    struct hf__grant grant; /* … and is reported then */
    hf_error *why;          /* given back for this reason */
};

static inline struct hf__redis_ticket *hf__redis_ticket(
    const struct hf__redis *redis, struct hf__ticket *ticket)
{
    return hf__engine_ticket(&redis->base, ticket);
}
static inline struct hf__ticket *hf__redis_ticket_of(
    const struct hf__redis *redis, struct hf__redis_ticket *mine)
{
    return (struct hf__ticket *)((char *)mine - redis->base.ticket_offset);
}
/* Move to @state; asserts that the table of moves has it. */
void hf__redis_ticket_to(struct hf__redis_ticket *mine,
                         enum hf__redis_state state);
#define HF__REDIS_IS(mine, states) (((states) >> (mine)->state & 1u) != 0)
#define HF__REDIS_BIT(state) (1u << HF__REDIS_##state)
static inline bool hf__redis_ticket_asks(const struct hf__redis_ticket *mine)
{
    return HF__REDIS_IS(mine, HF__REDIS_BIT(ASKING) | HF__REDIS_BIT(TRIED) |
                                  HF__REDIS_BIT(SYNCING) |
                                  HF__REDIS_BIT(CALLED) |
                                  HF__REDIS_BIT(UNPARKING));
}
static inline bool hf__redis_ticket_waits(const struct hf__redis_ticket *mine)
{
    return mine->state == HF__REDIS_WAITING || mine->state == HF__REDIS_LOOKING;
}
static inline bool hf__redis_ticket_parks(const struct hf__redis_ticket *mine)
{
    return mine->state == HF__REDIS_PARKED || mine->state == HF__REDIS_STALE;
}
/* May a grant be pushed to it? */
static inline bool hf__redis_ticket_hears(const struct hf__redis_ticket *mine)
{
    return hf__redis_ticket_waits(mine) || hf__redis_ticket_parks(mine) ||
           mine->state == HF__REDIS_UNPARKING;
}
/* In line or parked, for all that the core knows? */
static inline bool hf__redis_ticket_in_line(const struct hf__redis_ticket *mine)
{
    return hf__redis_ticket_hears(mine) || mine->state == HF__REDIS_CALLED;
}
static inline bool hf__redis_ticket_leaves(const struct hf__redis_ticket *mine)
{
    return mine->state >= HF__REDIS_RETURNING;
}
/* Once. 0, or HF_EINTERNAL without random numbers. */
int hf__redis_tickets_init(struct hf__redis *redis);
/* @ticket is ASKING. Know it from now on, with record and key; mine->again tells
 * whether it was known. The record never changes, since the line is searched for
 * it. @token: the last one of its name; 0: none. */
int hf__redis_tickets_ask(struct hf__redis *redis, struct hf__ticket *ticket,
                          uint64_t token, hf_error *err);
/* An acquire could not be sent; what acquire() returns then. A ticket that the
 * server may know of an earlier attempt must not be given up silently. */
int hf__redis_tickets_not_asked(struct hf__redis *redis,
                                struct hf__ticket *ticket, const hf_error *err);
/* The ticket with @id; NULL if it is not known (any more). */
static inline struct hf__ticket *hf__redis_tickets_find(
    const struct hf__redis *redis, uint64_t id)
{
    return hf__ticket_table_find(&redis->tickets, id);
}
/* Our bytes of it; or NULL. */
static inline struct hf__redis_ticket *hf__redis_tickets_mine(
    const struct hf__redis *redis, uint64_t id)
{
    struct hf__ticket *ticket = hf__redis_tickets_find(redis, id);

    return ticket ? hf__redis_ticket(redis, ticket) : NULL;
}
/* It is at another server now, with the same record. */
void hf__redis_tickets_move(struct hf__redis *from, struct hf__redis *to,
                            struct hf__ticket *ticket);
/* The server may not know what was changed before: what is parked there may
 * have missed a signal. */
void hf__redis_tickets_other_data(struct hf__redis *redis);
/* It may be gone after the next report. */
void hf__redis_tickets_forget(struct hf__redis *redis,
                              struct hf__ticket *ticket);
void hf__redis_tickets_forget_all(struct hf__redis *redis);
static inline const char *hf__redis_ticket_key(
    const struct hf__redis_ticket *mine)
{
    return mine->record + mine->record_len;
}
/* Client and number of the ticket with @id, as records have them. */
void hf__redis_tickets_text(const struct hf__redis *redis, uint64_t id,
                            char to[HF__RECORD_TICKET_WIDTH]);
/* What the texts of a record say; @info's pointers go into @copy. */
enum { HF__REDIS_TEXTS = 1024 };
void hf__redis_tickets_record_read(const char *record, size_t len,
                                   char copy[HF__REDIS_TEXTS],
                                   hf_lock_info *info);
/* "db1:4211, \"vacuum\"" for error texts. */
void hf__redis_tickets_record_holder(const char *record, size_t len, char *to,
                                     size_t size);
/* 16 digits at @text. */
uint64_t hf__redis_tickets_digits(const char *text, size_t len);
/* Write @number, or its last digits, over @width zeroes. */
void hf__redis_tickets_put_digits(char *to, uint64_t number, size_t width);
/* 32 random digits as a UUID, which costs six bits for version and variant. */
void hf__redis_tickets_put_uuid(const char *hex, char to[37]);

/* The one place for a name's memory, cleared if it was another name's. */
struct hf__redis_name *hf__redis_ticket_name(struct hf__redis *redis,
                                             struct hf__ticket *ticket);
void hf__redis_tickets_names_forget(struct hf__redis *redis);
void hf__redis_tickets_names_release(struct hf__redis *redis);

#endif

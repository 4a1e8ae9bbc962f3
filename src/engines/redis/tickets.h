/* SPDX-License-Identifier: MIT */
/* tickets.h - tickets by number, their records, and what is known of names. */
#ifndef HF_REDIS_TICKETS_H
#define HF_REDIS_TICKETS_H

#include "engines/redis/redis.h"

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
static inline bool hf__redis_ticket_asks(const struct hf__redis_ticket *mine)
{
    return mine->state == HF__REDIS_ASKING || mine->state == HF__REDIS_TRIED ||
           mine->state == HF__REDIS_SYNCING ||
           mine->state == HF__REDIS_UNPARKING;
}
static inline bool hf__redis_ticket_waits(const struct hf__redis_ticket *mine)
{
    return mine->state == HF__REDIS_WAITING || mine->state == HF__REDIS_LOOKING;
}
/* May a grant be pushed to it? */
static inline bool hf__redis_ticket_hears(const struct hf__redis_ticket *mine)
{
    return hf__redis_ticket_waits(mine) || mine->state == HF__REDIS_PARKED ||
           mine->state == HF__REDIS_UNPARKING;
}
static inline bool hf__redis_ticket_leaves(const struct hf__redis_ticket *mine)
{
    return mine->state == HF__REDIS_WITHDRAWING ||
           mine->state == HF__REDIS_RELEASING;
}
/* An acquire is about to be reported unknown; other states stay. */
static inline void hf__redis_ticket_doubt(struct hf__redis_ticket *mine)
{
    if (hf__redis_ticket_asks(mine))
        hf__redis_ticket_to(mine, HF__REDIS_UNKNOWN);
}
/* Once. 0, or HF_EINTERNAL without random numbers. */
int hf__redis_tickets_init(struct hf__redis *redis);
/* Know @ticket from now on, with record and key. The record never changes, since
 * the line is searched for it. @token: the last one of its name; 0: none. */
int hf__redis_tickets_know(struct hf__redis *redis, struct hf__ticket *ticket,
                           uint64_t token, hf_error *err);
/* An acquire could not be sent; what acquire() returns then. A ticket that the
 * server may know of an earlier attempt must not be given up silently. */
int hf__redis_tickets_not_asked(struct hf__redis *redis,
                                struct hf__ticket *ticket, bool known,
                                const hf_error *err);
/* The ticket with @id; NULL if it is not known (any more). */
static inline struct hf__ticket *hf__redis_tickets_find(
    const struct hf__redis *redis, uint64_t id)
{
    return hf__ticket_table_find(&redis->tickets, id);
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

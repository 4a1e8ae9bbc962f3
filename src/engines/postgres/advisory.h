/* SPDX-License-Identifier: MIT */
/*
 * advisory.h - the parts of locks that live in a session to each other:
 * mode=advisory, and mode=for_update, where it is a session's transaction.
 *
 *   advisory.c  asking and waiting        unlock.c    leaving
 *   marks.c     names that share a key    keep.c      renewing, listening
 *   ghosts.c    sessions that come and go
 *   lend.c      mode=for_update: hf_sql_connection()
 */
#ifndef HF_POSTGRES_ADVISORY_H
#define HF_POSTGRES_ADVISORY_H

#include "engines/postgres/postgres.h"

/* hf__postgres_ticket.state */
enum {
    HF__PG_NOWHERE,
    HF__PG_TRYING,    /* on the main session */
    HF__PG_CHECKING,  /* it is taken: under the same name? */
    HF__PG_WANTING,   /* a session of the pool */
    HF__PG_RESTING,   /* there was none: the core asks again after a pause */
    HF__PG_WAITING,   /* on it */
    HF__PG_ACCEPTING, /* granted long after it was asked for */
    HF__PG_HOLDING,
    HF__PG_PARTING, /* to be unlocked when a wait of ours for it has ended */
    HF__PG_UNLOCKING,
    HF__PG_STUCK,  /* the server refused to unlock: to be asked again */
    HF__PG_GHOSTLY /* its session was lost */
};

/* No other name was seen with a key: that counts for so long. */
#define HF__PG_CHECKED_NS (3 * HF_SECOND)
/* Who holds a lock for so long wants to hear when its session ends. */
#define HF__PG_LISTEN_NS (20 * HF_MS)

static inline struct hf__session *hf__advisory_main(
    struct hf__postgres_ticket *mine)
{
    return &mine->engine->main;
}

static inline bool hf__advisory_transacts(const struct hf__postgres *postgres)
{
    return postgres->mode == &hf__postgres_for_update;
}

static inline int64_t hf__advisory_lease(const struct hf__ticket *ticket)
{
    return ticket->ttl_ms < INT32_MAX ? ticket->ttl_ms : INT32_MAX;
}

/* advisory.c */
int hf__advisory_acquire(struct hf__postgres *postgres,
                         struct hf__ticket *ticket, hf_error *err);
/* The key is the name's, as far as can be seen: say that it is held, or wait. */
void hf__advisory_checked(struct hf__postgres_ticket *mine);
/* On a session of the pool. @refused: it was tried, and somebody has it. */
void hf__advisory_want_session(struct hf__postgres_ticket *mine, bool refused);
/* Certain: it waits in the server's queue. */
void hf__advisory_queued(struct hf__postgres_ticket *mine);
/* Who counts as queued is not failed any more, but asked for again. */
void hf__advisory_rest(struct hf__postgres_ticket *mine);

/* marks.c */
/* Add to the call for @mine that its session is marked with the name. */
int hf__advisory_mark(struct hf__postgres_ticket *mine, hf_error *err);
/* … that it is not any more, if it is not kept for the next time. */
int hf__advisory_unmark(struct hf__postgres_ticket *mine, hf_error *err);
/* The ticket leaves its session otherwise than by an unlock. */
void hf__advisory_drop_mark(struct hf__postgres_ticket *mine);
/* Somebody has the key: under our name? Then the ticket goes on. */
void hf__advisory_check(struct hf__postgres_ticket *mine);
void hf__advisory_collide(struct hf__postgres_ticket *mine, const char *by);
bool hf__advisory_is_checked(struct hf__postgres_ticket *mine);
/* Add the question to a call of the main session; its answer: a row if somebody
 * else has it. Who waits and hears so gives up, and will be told by whom. */
int hf__advisory_add_check(struct hf__postgres_ticket *mine, hf_error *err);
void hf__advisory_add_checked(struct hf__postgres_ticket *mine,
                              const struct hf__pg_result *answer,
                              int64_t sent_ns);
/* When the next session without locks is tidied up; what is due is done. */
int64_t hf__advisory_relax(struct hf__postgres *postgres, int64_t now_ns);

/* unlock.c */
int hf__advisory_unlock(struct hf__postgres_ticket *mine, hf_error *err);
/* The statement failed; the lock may be had all the same. */
void hf__advisory_undo(struct hf__postgres_ticket *mine,
                       const struct hf__pg_error *error);
/* Stop a wait. */
int hf__advisory_cancel(struct hf__postgres_ticket *mine, hf_error *err);
/* The wait of @mine is over: what was put off until then is done. */
void hf__advisory_stopped(struct hf__postgres_ticket *mine);
int hf__advisory_leave(struct hf__postgres *postgres, struct hf__ticket *ticket,
                       bool releasing, hf_error *err);

/* keep.c */
/* A wait is looked at after a pause. */
void hf__advisory_watch(struct hf__postgres_ticket *mine, int64_t pause_ns);
int hf__advisory_renew(struct hf__postgres *postgres,
                       struct hf__ticket **tickets, size_t n, hf_error *err);
int hf__advisory_downgrade(struct hf__postgres *postgres,
                           struct hf__ticket *ticket, hf_error *err);
int64_t hf__advisory_tick(struct hf__postgres *postgres, int64_t now_ns);

/* lend.c: is it lent? Then it needs no renewal, and that is told. */
bool hf__advisory_renews_lent(struct hf__postgres_ticket *mine);

/* ghosts.c */
/* On the main session, by its key. */
void hf__advisory_on_main(struct hf__postgres_ticket *mine);
/* Its session is free for others. */
void hf__advisory_leave_session(struct hf__postgres_ticket *mine);
/* Its lock or its place in line went with its session. The engine forgets it
 * first: the core may free a ticket that it has to ask for anew. */
void hf__advisory_lose(struct hf__postgres_ticket *mine);
/* A connection was lost with a request of ours on it. */
void hf__advisory_cut(struct hf__postgres_ticket *mine);
/* One of the statements about another backend. */
int hf__advisory_about(struct hf__session *main,
                       enum hf__pg_statement statement,
                       const struct hf__ghost *ghost, uint64_t ticket,
                       hf__session_done_fn *done, hf_error *err);
void hf__advisory_up(struct hf__session *session);
void hf__advisory_down(struct hf__session *session, const hf_error *err);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * advisory.h - locks that live in a session: mode=advisory, and
 * mode=for_update, where it is a session's transaction.
 *
 *   advisory_acquire.c    advisory_release.c    advisory_renew.c
 *   advisory_wait.c       waiters and holders that listen
 *   advisory_names.c      names that share a key
 *   advisory_session.c    sessions that come and go; orphans
 *   for_update.c          transactions; hf_sql_connection()
 */
#ifndef HF_POSTGRES_ADVISORY_H
#define HF_POSTGRES_ADVISORY_H

#include "engines/postgres/postgres.h"

/* No other name was seen with a key: that counts for so long. */
#define HF__PG_CHECKED_NS (3 * HF_SECOND)

static inline struct hf__pg_conn *hf__pg_main(struct hf__pg_ticket *mine)
{
    return &mine->engine->main;
}
static inline bool hf__advisory_transacts(const struct hf__pg *postgres)
{
    return postgres->mode == &hf__pg_mode_for_update;
}
static inline int64_t hf__advisory_lease(const struct hf__pg_ticket *mine)
{
    int64_t ttl_ms = mine->entry.ticket->ttl_ms;

    return ttl_ms < INT32_MAX ? ttl_ms : INT32_MAX;
}

/* advisory_acquire.c */
int hf__advisory_acquire(struct hf__pg *postgres, struct hf__ticket *ticket,
                         hf_error *err);
/* The key is the name's, as far as can be seen: say that it is held, or wait. */
void hf__advisory_acquire_checked(struct hf__pg_ticket *mine);
/* Certain: it waits in the server's queue. */
void hf__advisory_acquire_queued(struct hf__pg_ticket *mine);
/* A ticket that counts as queued does not fail: it is asked for again. */
void hf__advisory_acquire_rest(struct hf__pg_ticket *mine);

/* advisory_names.c: add to the call for @mine that its session has the second
 * key of the name. */
void hf__advisory_names_lock(struct hf__pg_ticket *mine);
/* … that it has it no more, if it does not stay for the next time. */
void hf__advisory_names_unlock(struct hf__pg_ticket *mine);
/* The ticket leaves its session otherwise than by an unlock. */
void hf__advisory_names_drop(struct hf__pg_ticket *mine);
/* Another client has the key: under our name? Then the ticket goes on. */
void hf__advisory_names_check(struct hf__pg_ticket *mine);
void hf__advisory_names_collide(struct hf__pg_ticket *mine, const char *by);
bool hf__advisory_names_is_checked(struct hf__pg_ticket *mine);
/* Add the question to a call of the main connection; its answer: a row if
 * another name has the key. A waiter that hears so gives up. */
void hf__advisory_names_add_check(struct hf__pg_ticket *mine);
void hf__advisory_names_add_checked(struct hf__pg_ticket *mine,
                                    const struct hf__pg_result *answer,
                                    int64_t sent_ns);
/* When the next session without locks is tidied up; what is due is done. */
int64_t hf__advisory_names_relax(struct hf__pg *postgres, int64_t now_ns);

/* advisory_release.c */
int hf__advisory_release(struct hf__pg *postgres, struct hf__ticket *ticket,
                         enum hf__pg_owed owed, hf_error *err);
int hf__advisory_release_unlock(struct hf__pg_ticket *mine, hf_error *err);
/* The same for a ticket whose connection may have been lost. */
void hf__advisory_release_or_cut(struct hf__pg_ticket *mine);
/* The statement failed; the lock may be had all the same. */
void hf__advisory_release_undo(struct hf__pg_ticket *mine,
                               const struct hf__pg_error *error);
/* Stop a wait. */
int hf__advisory_release_cancel(struct hf__pg_ticket *mine, hf_error *err);
/* A wait for @key is over: what was put off until then is done. */
void hf__advisory_release_stopped(struct hf__pg *postgres, int64_t key);

/* advisory_wait.c: look at a wait after a pause. */
void hf__advisory_wait_watch(struct hf__pg_ticket *mine, int64_t pause_ns);
int64_t hf__advisory_wait_tick(struct hf__pg *postgres, int64_t now_ns);

/* advisory_renew.c */
int hf__advisory_renew(struct hf__pg *postgres, struct hf__ticket **tickets,
                       size_t n, hf_error *err);
int hf__advisory_renew_downgrade(struct hf__pg *postgres,
                                 struct hf__ticket *ticket, hf_error *err);

/* advisory_session.c: on the main connection, by its key. */
void hf__advisory_session_join_main(struct hf__pg_ticket *mine);
/* Its connection is free for others. */
void hf__advisory_session_leave(struct hf__pg_ticket *mine);
/* Its lock or its place in line went with its session. The engine forgets it
 * first: the core may free a ticket that it has to ask for anew. */
void hf__advisory_session_lose(struct hf__pg_ticket *mine);
/* A connection was lost with a request of ours on it. */
void hf__advisory_session_cut(struct hf__pg_ticket *mine);
/* One of the statements about another backend. */
int hf__advisory_session_about(struct hf__pg_conn *main,
                               enum hf__pg_statement statement,
                               const struct hf__pg_orphan *orphan,
                               struct hf__pg_call *call, hf_error *err);
void hf__advisory_session_up(struct hf__pg_conn *conn);
void hf__advisory_session_down(struct hf__pg_conn *conn, const hf_error *err);

/* for_update.c: add to a call: begin, and lock the row. */
void hf__pg_for_update_add_lock(struct hf__pg_ticket *mine, bool wait);
/* … commit or roll back. */
void hf__pg_for_update_add_end(struct hf__pg_ticket *mine);
/* Does the caller have its connection? Then it needs no renewal: that is told. */
bool hf__pg_for_update_renew(struct hf__pg_ticket *mine);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * session.h - locks of a session or a transaction: mode=get_lock and
 * mode=for_update.
 */
#ifndef HF_MYSQL_SESSION_H
#define HF_MYSQL_SESSION_H

#include "engines/mysql/connection.h"

/* session.c: @connection is the session of @ticket; it has none any more. */
void hf__mysql_session_bind(struct hf__mysql_ticket *mine,
                            struct hf__mysql_connection *connection);
void hf__mysql_session_unbind(struct hf__mysql_ticket *mine);
/* The server has this for @mine from now on. */
void hf__mysql_session_stored(struct hf__mysql_ticket *mine,
                              enum hf__mysql_stored stored);
/* The ticket goes, and its session is for the next one; unless it is @clean,
 * there may be a transaction. */
void hf__mysql_session_forget(struct hf__mysql *mysql,
                              struct hf__ticket *ticket, bool clean);
void hf__mysql_session_left(struct hf__mysql *mysql, struct hf__ticket *ticket,
                            bool held);
/* @connection of the pool is closed: returns the ticket that had it, or NULL;
 * call _tell() with that when the connection is freed. */
struct hf__ticket *hf__mysql_session_gone(
    struct hf__mysql_connection *connection);
void hf__mysql_session_tell(struct hf__mysql *mysql, struct hf__ticket *ticket);
/* The main connection was lost. */
void hf__mysql_session_main_lost(struct hf__mysql *mysql);

/* session_acquire.c; _ask() once more, when the orphan of @ticket has ended. */
int hf__mysql_session_acquire(struct hf__mysql *mysql,
                              struct hf__ticket *ticket, hf_error *err);
void hf__mysql_session_acquire_ask(struct hf__mysql *mysql,
                                   struct hf__ticket *ticket);
/* It cannot be had, because of @err. */
void hf__mysql_session_acquire_refused(struct hf__mysql *mysql,
                                       struct hf__ticket *ticket,
                                       const hf_error *err);
/* The first question about it is answered. */
hf__mysql_answered_fn hf__mysql_session_acquire_tried;

/* session_release.c. _send(): free what the session holds. */
int hf__mysql_session_release(struct hf__mysql *mysql,
                              struct hf__ticket *ticket, hf_error *err);
int hf__mysql_session_release_send(struct hf__mysql *mysql,
                                   struct hf__ticket *ticket, hf_error *err);

/* orphans.c: put the text that ends a lost session, or finds that it has
 * ended. */
void hf__mysql_orphans_put_end(const struct hf__mysql *mysql,
                               struct hf__mysql_session *session,
                               struct hf__buf *to);
/* Read the answer: the session has ended; or it is ending, ask again soon. */
bool hf__mysql_orphans_is_ended(const struct hf__mysql_reply *reply);
bool hf__mysql_orphans_is_ending(const struct hf__mysql_session *session,
                                 const struct hf__mysql_reply *reply);
/* End the orphan of @ticket; then what the ticket was asked for continues. */
int hf__mysql_orphans_end(struct hf__mysql *mysql, struct hf__ticket *ticket,
                          hf_error *err);
/* Remember one that no ticket waits for; end all of these. */
void hf__mysql_orphans_add(struct hf__mysql *mysql,
                           const struct hf__mysql_session *session);
void hf__mysql_orphans_end_all(struct hf__mysql *mysql);

/* get_lock.c: does the main session have the name, or will it, for another
 * ticket of ours? */
bool hf__mysql_get_lock_has_name(const struct hf__mysql *mysql,
                                 const struct hf__ticket *than);
/* for_update.c: the answer to a statement that locks the row: is it locked? If
 * not, what follows is under way. */
bool hf__mysql_for_update_locked(struct hf__mysql *mysql,
                                 struct hf__ticket *ticket,
                                 const struct hf__mysql_reply *reply);
hf__engine_query_fn hf__mysql_for_update_connection;

/* lease.c: a session that will hold @ticket is ended if it is silent for its
 * lease. */
int hf__mysql_lease_need(struct hf__mysql_connection *connection,
                         const struct hf__ticket *ticket, hf_error *err);
/* It holds nothing any more. */
void hf__mysql_lease_rest(struct hf__mysql_connection *connection);
/* The timer's part for all leases; returns when to run again. */
int64_t hf__mysql_lease_attend(struct hf__mysql *mysql, int64_t now_ns);

/* pool.c */
static inline struct hf__mysql_connection *hf__mysql_pool_connection(
    struct hf__sql_link *link)
{
    return HF_CONTAINER_OF(link, struct hf__mysql_connection, link);
}
void hf__mysql_pool_open(struct hf__mysql *mysql);
void hf__mysql_pool_close(struct hf__mysql *mysql, bool forked);
/* What the timer does for all of them. */
void hf__mysql_pool_attend(struct hf__mysql *mysql, int64_t now_ns);
/* Close one that a ticket had, and free it. */
void hf__mysql_pool_drop(struct hf__mysql_connection *connection);

/* What a mode is made of whose locks live in sessions. */
#define HF__MYSQL_OF_A_SESSION                                                 \
    .acquire = hf__mysql_session_acquire,                                      \
    .release = hf__mysql_session_release, .renew = hf__mysql_renew_sessions,   \
    .attend = hf__mysql_lease_attend, .lost = hf__mysql_session_main_lost,     \
    .regained = hf__mysql_orphans_end_all

#endif

/* SPDX-License-Identifier: MIT */
/* verbs.h - release, renew, wait and sync: what all dialects share. */
#ifndef HF_REDIS_VERBS_H
#define HF_REDIS_VERBS_H

#include "engines/redis/tickets.h"

/* ---- renew.c ----------------------------------------------------------- */

/* Renew @n tickets by the dialect's script, a hundred in each trip. */
int hf__redis_renew(struct hf__redis *redis, struct hf__ticket **tickets,
                    size_t n, hf_error *err);

/* ---- release.c ----------------------------------------------------------- */

/* Report that it is not known what became of the ticket. */
void hf__redis_release_unknown(struct hf__redis *redis,
                               struct hf__ticket *ticket);
/* The ticket for which @reply answers an acquire, and the first of that. NULL: it
 * does not ask any more, or there is no answer, which is reported. */
struct hf__ticket *hf__redis_release_asking(struct hf__redis *redis,
                                            const struct hf__redis_call *call,
                                            struct hf__resp *reply,
                                            struct hf__resp_value *ret_value);
/* Report that it is neither held nor in line. */
void hf__redis_release_lost(struct hf__redis *redis, struct hf__ticket *ticket,
                            int reason);
/* Release, withdraw or give back, as @state says. */
int hf__redis_release(struct hf__redis *redis, struct hf__ticket *ticket,
                      enum hf__redis_state state, hf_error *err);
/* The server answered an acquire with an error, @value. It is reported when it
 * is certain that neither this attempt nor an earlier one has left anything. */
void hf__redis_release_refused(struct hf__redis *redis,
                               struct hf__ticket *ticket,
                               const struct hf__resp_value *value);
/* The answer to a downgrade. */
hf__redis_reply_fn hf__redis_release_downgraded;

/* ---- sync.c ------------------------------------------------------------ */

/* Report a grant, or the renewal of a holder, when enough replicas have it.
 * @pushed: what was granted was written by another. */
void hf__redis_sync_granted(struct hf__redis *redis, struct hf__ticket *ticket,
                            const struct hf__grant *grant, bool pushed);
void hf__redis_sync_renewed(struct hf__redis *redis, struct hf__ticket *ticket,
                            const struct hf__grant *grant);
/* Report that a ticket is parked, or answer a query that changed something, when
 * enough replicas have it. */
void hf__redis_sync_parked(struct hf__redis *redis, struct hf__ticket *ticket);
void hf__redis_sync_changed(struct hf__redis *redis, struct hf__query *query);
/* Give a place or a grant back at the server. A ticket that was in line, or
 * parked, is then reported lost, any other failed because of @why. */
void hf__redis_sync_give_back(struct hf__redis *redis,
                              struct hf__ticket *ticket, const hf_error *why);
/* The renewal before the WAIT was not carried out, and is sent again: only the
 * next WAIT counts. */
void hf__redis_sync_again(struct hf__redis *redis, struct hf__ticket *ticket);
/* The ticket is gone from the server. Report that, or, for a grant that was
 * given back, why it was. */
void hf__redis_sync_released(struct hf__redis *redis, struct hf__ticket *ticket,
                             int rc);
/* Forget that a grant was being given back. */
void hf__redis_sync_forget(struct hf__redis *redis, struct hf__ticket *ticket);

/* ---- watch.c ----------------------------------------------------------- */

hf__engine_watch_fn hf__redis_watch_start;
hf__engine_watch_fn hf__redis_watch_stop;
/* The engine closes, perhaps in a forked child. */
void hf__redis_watch_close(struct hf__redis *redis, bool forked);

/* ---- wait.c -------------------------------------------------------- */

/* Hear what is said on a channel on behalf of a waiting ticket. */
int hf__redis_wait_join(struct hf__redis *redis, struct hf__redis_ticket *mine,
                        const char *text, size_t len, hf_error *err);
/* Subscribe, unless this connection has. */
int hf__redis_wait_listen(struct hf__redis *redis,
                          const struct hf__redis_ticket *mine, hf_error *err);
/* NULL-safe: a ticket that hears nothing. */
void hf__redis_wait_part(struct hf__redis *redis,
                         struct hf__redis_ticket *mine);
/* The server has ended a subscription by itself: waiters look again. */
void hf__redis_wait_ended(struct hf__redis *redis, const char *text,
                          size_t len);
/* It is not certain that any channel is heard on this connection. */
void hf__redis_wait_unheard(struct hf__redis *redis);
/* The tickets on a channel, as a list of hf__redis_ticket.hearing; or NULL. */
struct hf__list *hf__redis_wait_waiters(struct hf__redis *redis,
                                        const char *text, size_t len);

#endif

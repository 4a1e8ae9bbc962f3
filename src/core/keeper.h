/* SPDX-License-Identifier: MIT */
/* keeper.h - leases kept, or their end told in time. */
#ifndef HF_KEEPER_H
#define HF_KEEPER_H

#include "engines/engine.h"

/* The ticket was granted: compute its deadline and begin to keep it. False if
 * the claim had ended before the answer was read. */
bool hf__keeper_start(struct hf__ticket *ticket, const struct hf__grant *grant);
/* A renewal was confirmed. */
void hf__keeper_renewed(struct hf__ticket *ticket,
                        const struct hf__grant *grant);
/* It is held as before the last hf__keeper_stop(): keep it again. */
void hf__keeper_resume(struct hf__ticket *ticket);
/* No more renewals: it is released, or lost. */
void hf__keeper_stop(struct hf__ticket *ticket);
/* Renew now, out of turn: a new connection, or hf_verify(). */
void hf__keeper_hurry(struct hf__ticket *ticket);
/* Another request stands behind the ticket now: its cap counts from here. */
void hf__keeper_cap(struct hf__ticket *ticket, int64_t max_hold_ms,
                    uint32_t flags);
/* How many milliseconds of max_hold it was granted with; 0: no cap. */
int64_t hf__keeper_max_hold(const struct hf__ticket *ticket);
/* Send the renewals that were gathered in this turn, in one trip. */
void hf__keeper_send(hf_client *client);
/* A queued or parked ticket that must prove its life (HF__BEATS_*). */
void hf__keeper_beat(struct hf__ticket *ticket);
/* The session is in doubt: every hold is in JEOPARDY. */
void hf__keeper_alarm(struct hf__ticket *ticket);

#endif

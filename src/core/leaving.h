/* SPDX-License-Identifier: MIT */
/* leaving.h - tickets on their way out. */
#ifndef HF_LEAVING_H
#define HF_LEAVING_H

#include "core/ticket.h"

/* The ticket leaves: release it (@releasing: it is held)
 * or withdraw it, until the engine has confirmed. May be gone on return. */
void hf__leaving_take(struct hf__ticket *ticket, bool releasing);
/* The same for one that was lost: withdraw it when its lock_delay is over. */
void hf__leaving_take_lost(struct hf__ticket *ticket);
/* The engine confirmed, or does not know. */
void hf__leaving_confirmed(struct hf__ticket *ticket, int rc);
void hf__leaving_unknown(struct hf__ticket *ticket);
/* A new connection: try everything that waits. */
void hf__leaving_hurry(hf_client *client);

#endif

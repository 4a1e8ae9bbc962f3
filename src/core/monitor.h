/* SPDX-License-Identifier: MIT */
/* monitor.h - the parts of the monitor that only client.c and callbacks.c use;
 * the others need only client.h. */
#ifndef HF_MONITOR_H
#define HF_MONITOR_H

#include "core/client.h"

/* With the monitor: read the clock and do what is due. */
void hf__monitor_turn(hf_client *client);
/* With the monitor: handle what is there, without waiting. */
void hf__monitor_look(hf_client *client);
/* With the monitor: sleep until @waiter is done; others drive. */
void hf__monitor_sleep(hf_client *client, struct hf__waiter *waiter);
/* Leave and re-enter in the middle of a call that stays a user. */
void hf__monitor_unlock(hf_client *client);
void hf__monitor_lock(hf_client *client);
/* Without the monitor: end the background thread. */
void hf__monitor_stop_background(hf_client *client);
/* The last one out of a closed client. */
void hf__client_free(hf_client *client);

#endif

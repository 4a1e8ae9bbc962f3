/* SPDX-License-Identifier: MIT */
/* detector.h - deadlocks that a client's requests are part of. */
#ifndef HF_CORE_DETECTOR_H
#define HF_CORE_DETECTOR_H

#include "core/client.h"

struct hf__detector;

/* With the monitor: a request of @client has to wait. Costs a branch when
 * others wait already, and starts a timer otherwise. */
void hf__detector_expect(hf_client *client);
/* Without the monitor, when the client is about to close: end the thread, and
 * take the notice down. */
void hf__detector_stop(hf_client *client);
/* When nobody else is inside: give back the memory. */
void hf__detector_free(hf_client *client);

#endif

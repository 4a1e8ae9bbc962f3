/* SPDX-License-Identifier: MIT */
/* multi.h - several names as one hold. */
#ifndef HF_MULTI_H
#define HF_MULTI_H

#include "core/hold.h"

/* With the monitor, which it leaves while it waits: release all of @hold, whose
 * reference stays. HF_ELOST if a member was lost. */
int hf__multi_release(hf_hold *hold);
/* With the monitor: the last reference goes; let go of every member. */
void hf__multi_let_go(hf_hold *hold);

#endif

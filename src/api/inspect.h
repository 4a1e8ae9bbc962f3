/* SPDX-License-Identifier: MIT */
/* inspect.h - what other files need of inspect.c. */
#ifndef HF_INSPECT_H
#define HF_INSPECT_H

#include "core/query.h"

/* Without the monitor: give the rows of an answered list to @each, in order. 0,
 * or what @each returned to stop. */
int hf__inspect_rows(struct hf__query *query, hf_list_cb *each, void *ctx);

#endif

/* SPDX-License-Identifier: MIT */
/* doctor.h - findings that several engines have. */
#ifndef HF_ENGINES_DOCTOR_H
#define HF_ENGINES_DOCTOR_H

#include "engines/engine.h"

/* The clock of @whose, "the server's", is so many seconds ahead of ours. More
 * than a minute, either way, is a warning, with @fix. */
int hf__doctor_add_clock(struct hf__query *query, const char *whose,
                         int64_t ahead_s, const char *fix);

#endif

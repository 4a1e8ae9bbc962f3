/* SPDX-License-Identifier: MIT */
/* log.h - lines for the host's log hook. */
#ifndef HF_LOG_H
#define HF_LOG_H

#include "base/base.h"

/* True if a line of @level would be heard; costs one load. */
bool hf__log_on(int level);
/* Never with a monitor held: use hf__monitor_log() there. */
void hf__log(int level, const char *format, ...) HF_PRINTF(2, 3);

#endif

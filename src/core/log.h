/* SPDX-License-Identifier: MIT */
/* log.h - lines for the host's log hook. */
#ifndef HF_LOG_H
#define HF_LOG_H

#include "config/config.h"

/* True if a line of @level would be heard by the process's hook; costs one
 * load. */
bool hf__log_on(int level);
/* The same for a client with its @own hook, or without. */
bool hf__log_wanted(const struct hf__log_hook *own, int level);
/* A line of that client. Never with a monitor held: use hf__monitor_log()
 * there. */
void hf__log_line(const struct hf__log_hook *own, int level, const char *text);

#endif

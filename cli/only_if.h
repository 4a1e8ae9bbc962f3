/* SPDX-License-Identifier: MIT */
/* only_if.h - a health check before a lock is taken. */
#ifndef CLI_ONLY_IF_H
#define CLI_ONLY_IF_H

#include <stdbool.h>

#include "holdfast.h"

/* Run @line with /bin/sh and see whether it exits with 0. Meanwhile the locks
 * of @client, which may be NULL, are renewed. A signal that asks us to end ends
 * the check too. */
bool only_if(const char *line, hf_client *client);

#endif

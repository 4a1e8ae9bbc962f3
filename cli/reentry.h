/* SPDX-License-Identifier: MIT */
/* reentry.h - holdfast run --reentrant: go on under a lock that is held. */
#ifndef CLI_REENTRY_H
#define CLI_REENTRY_H

#include <stdbool.h>

#include "holdfast.h"

/* Before the configuration is read: note the environment as it is. */
void reentry_prepare(void);
/* Is the name of `lock` held around this process? An exit code, said, if it
 * was, or if nobody can say. */
int reentry_look(hf_client *client, bool *ret_held);
/* It is: become @argv. Returns only with an exit code, said. */
int reentry_become(char **argv);

#endif

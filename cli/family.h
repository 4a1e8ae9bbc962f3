/* SPDX-License-Identifier: MIT */
/* family.h - all processes that descend from this one. */
#ifndef CLI_FAMILY_H
#define CLI_FAMILY_H

#include <stdbool.h>
#include <sys/types.h>

/* Send @signo to every descendant but @except. */
void family_kill(int signo, pid_t except);
/* True if there is a descendant but @except that is not a zombie. */
bool family_lives(pid_t except);

#endif

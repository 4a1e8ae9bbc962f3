/* SPDX-License-Identifier: MIT */
/* task.h - a command, and the environment that it gets under a lock. */
#ifndef CLI_TASK_H
#define CLI_TASK_H

#include "watch.h"

/* Start @argv under @watch->hold. 0 or an exit code, said. */
int task_start(struct watch *watch, char **argv);
/* What the terminal did to the child it would have done to our group too, had
 * the child been in it: pass Ctrl-C and Ctrl-\ on. */
void task_echo_interrupt(const struct watch *watch);
/* The command of "-c STRING": the user's shell and the string. */
void task_shell(const char *string, char *argv[4]);

#endif

/* SPDX-License-Identifier: MIT */
/* task.h - a command, and the environment that it gets under a lock. */
#ifndef CLI_TASK_H
#define CLI_TASK_H

#include "watch.h"

enum { TASK_FACTS = 10 };

/* Variables for what runs under a lock; a value NULL removes one. */
struct task_facts {
    const char *pairs[TASK_FACTS][2];
    size_t n;
    char token[24];
    char ttl[24];
    char *held; /* the caller frees it */
};

/* The facts about @hold; @key is that of its keeper, or "". 0 or an exit code,
 * said. */
int task_facts(hf_client *client, const hf_hold *hold, const char *key,
               struct task_facts *facts);
/* Add how to reach the engine; valid until the next call. */
int task_engine(struct task_facts *facts);
/* From here on nobody reaches the engine by that. */
void task_forget_engine(void);
/* Start @argv under @watch->hold. 0 or an exit code, said. */
int task_start(struct watch *watch, char **argv);
/* What the terminal did to the child it would have done to our group too, had
 * the child been in it: pass Ctrl-C and Ctrl-\ on. */
void task_echo_interrupt(const struct watch *watch);
/* The command of "-c STRING": the user's shell and the string. */
void task_shell(const char *string, char *argv[4]);

#endif

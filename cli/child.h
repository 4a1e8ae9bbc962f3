/* SPDX-License-Identifier: MIT */
/* child.h - one child process: its group, its terminal, its end. */
#ifndef CLI_CHILD_H
#define CLI_CHILD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "holdfast.h"

struct guard;

struct child {
    pid_t pid; /* and its process group */
    bool ended;
    int status;         /* of waitpid(), once it ended */
    int tty;            /* the controlling terminal, or -1 */
    bool has_tty;       /* its group is the terminal's foreground */
    bool had_tty;       /* … and was so when it ended */
    bool asked_to_stop; /* we passed SIGTSTP on */
    bool stopped;       /* it stopped, we stopped, and we were continued */
    pid_t guard_pid;    /* 0: none yet */
    struct guard *guard;
    void (*on_stop)(void *ctx); /* before we stop with it; NULL: nobody asks */
    void *ctx;
};

/* Start @argv with @envp. 0, or CLI_NOT_FOUND, CLI_NOT_EXECUTABLE,
 * CLI_INTERNAL, said. */
int child_start(struct child *child, char **argv, char **envp);
/* Say why @command cannot be run; CLI_NOT_FOUND or CLI_NOT_EXECUTABLE. */
int child_explain(const char *command, int error);
/* Send @signo to the whole group; also to what left it, if @everybody. */
void child_signal(struct child *child, int signo, bool everybody);
/* Look what became of it and of the orphans we adopted. */
void child_reap(struct child *child);
/* Let it go on after a stop, now that its lock was looked at. */
void child_continue(struct child *child);
/* True while the group has a member. */
bool child_group_lives(const struct child *child);
/* True while anything that descends from the child lives. */
bool child_family_lives(const struct child *child);
/* Watch over the group from outside, should we be killed or stopped. */
void child_guard(struct child *child);
/* The guard kills the group when CLOCK_BOOTTIME says @deadline_ms; -1: not. */
void child_guard_until(struct child *child, int64_t deadline_ms);
/* True if the guard killed it, which it does only when the lock is lost. */
bool child_guard_fired(const struct child *child);
/* Take the terminal back, end the guard. The child has ended. */
void child_finish(struct child *child);

/* Our environment without secrets, plus @n pairs of name and value; a
 * value NULL removes the name. NULL without memory; freed with child_environment_free(). */
char **child_environment(const char *const pairs[][2], size_t n);
void child_environment_free(char **envp);

#endif

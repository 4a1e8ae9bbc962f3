/* SPDX-License-Identifier: MIT */
/*
 * proc.h - child processes that run a function and tell what happens.
 *
 *     static void holder(struct proc *self, void *arg)
 *     {
 *         hf_hold *hold = …;
 *         proc_tell(self, "holding %llu", hf_token(hold));
 *         proc_hear(self);                     until the parent says something
 *     }
 *
 *     struct proc *child = proc_start(holder, dir);
 *     proc_expect(child, "holding");
 *     proc_kill(child);
 *
 * Start children before any client is opened. Whatever happens, a child is
 * killed and reaped when the test is over, and dies with its parent.
 */
#ifndef HF_TESTS_PROC_H
#define HF_TESTS_PROC_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { PROC_PATIENCE_MS = 60000 };

struct proc;
typedef void proc_fn(struct proc *self, void *arg);

struct proc *proc_start(proc_fn *run, void *arg);
pid_t proc_pid(const struct proc *proc);

/* In the child: one line to the parent. */
void proc_tell(struct proc *self, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* In the child: wait for a line of the parent; NULL when it is gone. */
const char *proc_hear(struct proc *self);

/* In the child: become the program @argv, which ends with NULL. What it writes
 * is told to the parent, line by line, and it reads what the parent says. */
__attribute__((noreturn)) void proc_become(struct proc *self,
                                           const char *const *argv);

/* In the parent: one line to the child. */
void proc_say(struct proc *proc, const char *line);
/* The next line of the child, valid until the next call; NULL when it has
 * ended, or after @wait_ms with nothing. */
const char *proc_next(struct proc *proc, int64_t wait_ms);
/* The next line of the child has to begin with @text; returns the line. */
const char *proc_expect(struct proc *proc, const char *text);
/* True if the child says nothing for @wait_ms. */
bool proc_is_silent(struct proc *proc, int64_t wait_ms);

/* SIGSTOP, and wait until it has stopped. */
void proc_stop(struct proc *proc);
void proc_continue(struct proc *proc);
/* SIGKILL, and wait until it is gone. */
void proc_kill(struct proc *proc);
/* Wait for its end; it has to end well. */
void proc_join(struct proc *proc);

#endif

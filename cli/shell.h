/* SPDX-License-Identifier: MIT */
/* shell.h - the shell that evaluates what holdfast acquire prints. */
#ifndef CLI_SHELL_H
#define CLI_SHELL_H

#include <stdio.h>
#include <sys/types.h>

enum shell_kind { SHELL_SH, SHELL_FISH };

/* The nearest ancestor that reads our standard output; 0: none does. */
pid_t shell_that_reads(void);
/* A descriptor that is readable when @pid ends; -1 with errno. */
int shell_watch(pid_t pid);
/* Send @signo to the process that shell_watch() watches. */
int shell_signal(int fd, int signo);
/* Write a line that exports the variable; a value NULL unsets it. */
void shell_export(FILE *to, enum shell_kind kind, const char *name,
                  const char *value);
/* Write a line that ends with this exit code. */
void shell_fail(FILE *to, enum shell_kind kind, int code);

#endif

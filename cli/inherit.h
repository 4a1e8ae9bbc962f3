/* SPDX-License-Identifier: MIT */
/* inherit.h - the engine of the run that a command is inside of. */
#ifndef CLI_INHERIT_H
#define CLI_INHERIT_H

#include "cli.h"
#include "secret.h"

/* What the child of run and elect is told about the engine. */
struct inherit {
    char *url;     /* HOLDFAST_URL, without secrets; NULL: the file has it */
    char *config;  /* HOLDFAST_CONFIG; NULL: none */
    char *profile; /* HOLDFAST_PROFILE; NULL: none */
    char *mark;    /* HOLDFAST_INHERIT */
    int fd;        /* the private file; -1: nothing is secret */
    char key[SECRET_KEY + 1]; /* its first entry */
};

/* For run: what to tell. 0 or an exit code, said. */
int inherit_give(struct inherit *inherit);
void inherit_release(struct inherit *inherit);
/* Inside of a run, before the configuration is read: take what the command
 * line does not say. 0 or an exit code, said. */
int inherit_take(void);
/* True if the engine is local:, in any directory. */
bool inherit_is_local(void);
/* True if the engine is local:, and nothing says in which directory. */
bool inherit_is_default(void);
/* Inside of a run on another engine, with nothing that says which: refuse.
 * 0 or an exit code, said. */
int inherit_check(void);

#endif

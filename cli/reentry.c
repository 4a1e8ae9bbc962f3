/* SPDX-License-Identifier: MIT */
/*
 * reentry.c - holdfast run --reentrant: go on under a lock that is held.
 *
 * The variable HOLDFAST_HELD says what is held around this process; the engine,
 * or the keeper of a shell, says whether it still is. If so we become the
 * command: it stays in the process group of the outer run, which ends it when
 * the lock is lost and releases the lock when all is done.
 *
 * The command gets the environment that we got. What we read since, from the
 * private file of the outer run, is secret.
 *
 * Failure: a lock that was held around us and is not any more is CLI_LOST, and
 * one of which nobody can say is CLI_UNAVAILABLE. Neither becomes a new lock.
 */
#include "reentry.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ancestor.h"
#include "child.h"
#include "cli.h"
#include "lock.h"
#include "signals.h"
#include "talk.h"
#include "text.h"

static char **original;
static struct ancestor outer;

void reentry_prepare(void)
{
    size_t n = 0;

    while (environ[n])
        n++;
    original = calloc(n + 1, sizeof(*original));
    if (original)
        memcpy(original, environ, n * sizeof(*original));
}

int reentry_become(char **argv)
{
    char token[24];
    const char *const pairs[][2] = {{"HOLDFAST_NAME", lock.name},
                                    {"HOLDFAST_TOKEN", token}};

    snprintf(token, sizeof(token), "%" PRIu64, outer.token);
    if (original)
        environ = original;

    char **envp = original ? child_environment(pairs, 2) : NULL;
    if (!envp) {
        fprintf(stderr, "holdfast: out of memory\n");
        return CLI_INTERNAL;
    }
    signals_restore();
    execvpe(argv[0], argv, envp);

    int error = errno;
    child_environment_free(envp);
    return child_explain(argv[0], error);
}

/* A reader's lock does not admit a writer. */
static bool is_enough(void)
{
    return outer.mode == HF_EXCLUSIVE || outer.mode == lock_mode();
}

int reentry_look(hf_client *client, bool *ret_held)
{
    enum ancestor_state state = ancestor_find(client, lock.name, &outer);
    const char *name = text_safe(lock.name);

    if (state == ANCESTOR_NONE)
        return 0;
    if (state == ANCESTOR_GONE) {
        fprintf(stderr,
                "holdfast: \"%s\" was held around this command, and is lost\n",
                name);
        return CLI_LOST;
    }
    if (state == ANCESTOR_UNKNOWN) {
        fprintf(stderr,
                "holdfast: nobody can say whether \"%s\" is still held around "
                "this command\n",
                name);
        return CLI_UNAVAILABLE;
    }
    if (!is_enough())
        return cli_usage("\"%s\" is held around this command in another mode",
                         lock.name);
    if (cli.verbose > 0)
        talk_say("going on under \"%s\"", name);
    *ret_held = true;
    return 0;
}

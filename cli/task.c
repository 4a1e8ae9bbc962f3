/* SPDX-License-Identifier: MIT */
/*
 * task.c - a command, and the environment that it gets under a lock.
 *
 * The child learns what it runs under from variables, and how to reach the
 * engine from inherit.c: passwords are taken out of its environment, and all our
 * descriptors close when it starts.
 */
#include "task.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ancestor.h"
#include "cli.h"
#include "inherit.h"
#include "lock.h"

/* Of the command under way. */
static struct inherit inherit = {.fd = -1};

int task_start(struct watch *watch, char **argv)
{
    char token[24];
    char ttl[24];
    char *held = ancestor_list(watch->client, watch->hold);
    int rc;

    inherit_release(&inherit);
    rc = inherit_give(&inherit);
    if (rc != 0) {
        free(held);
        return rc;
    }

    const char *const pairs[][2] = {
        {"HOLDFAST_NAME", hf_hold_name(watch->hold)},
        {"HOLDFAST_TOKEN", token},
        {"HOLDFAST_OWNER", lock.owner},
        {"HOLDFAST_ENGINE", hf_engine_name(watch->client)},
        {"HOLDFAST_TTL_MS", ttl},
        {ANCESTOR_VARIABLE, held},
        {"HOLDFAST_URL", inherit.url},
        {"HOLDFAST_INHERIT", inherit.mark},
        {"HOLDFAST_CONFIG", inherit.config},
        {"HOLDFAST_PROFILE", inherit.profile},
    };

    snprintf(token, sizeof(token), "%" PRIu64, hf_token(watch->hold));
    snprintf(ttl, sizeof(ttl), "%" PRId64, hf_ttl_ms(watch->hold));

    char **envp = held ? child_environment(pairs, 10) : NULL;
    rc = envp ? child_start(&watch->child, argv, envp) : CLI_INTERNAL;

    if (!envp)
        fprintf(stderr, "holdfast: out of memory\n");
    child_environment_free(envp);
    free(held);
    return rc;
}

void task_echo_interrupt(const struct watch *watch)
{
    int status = watch->child.status;
    int signo = WIFSIGNALED(status) ? WTERMSIG(status) : 0;

    if (!watch->child.had_tty || (signo != SIGINT && signo != SIGQUIT))
        return;
    signal(signo, SIG_IGN);
    kill(0, signo);
}

void task_shell(const char *string, char *argv[4])
{
    const char *shell = secure_getenv("SHELL");

    argv[0] = (char *)(uintptr_t)(shell && *shell ? shell : "/bin/sh");
    argv[1] = (char *)(uintptr_t) "-c";
    argv[2] = (char *)(uintptr_t)string;
    argv[3] = NULL;
}

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
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ancestor.h"
#include "cli.h"
#include "inherit.h"
#include "lock.h"

/* Of the command under way. */
static struct inherit inherit = {.fd = -1};

int task_facts(hf_client *client, const hf_hold *hold, const char *key,
               struct task_facts *facts)
{
    const char *const pairs[TASK_FACTS][2] = {
        {"HOLDFAST_NAME", hf_hold_name(hold)},
        {"HOLDFAST_TOKEN", facts->token},
        {"HOLDFAST_OWNER", lock.owner},
        {"HOLDFAST_ENGINE", hf_engine_name(client)},
        {"HOLDFAST_TTL_MS", facts->ttl},
        {ANCESTOR_VARIABLE, ancestor_list(client, hold, lock_mode(), key)},
    };

    snprintf(facts->token, sizeof(facts->token), "%" PRIu64, hf_token(hold));
    snprintf(facts->ttl, sizeof(facts->ttl), "%" PRId64, hf_ttl_ms(hold));
    memcpy(facts->pairs, pairs, sizeof(pairs));
    facts->n = 6;
    facts->held = (char *)(uintptr_t)pairs[5][1];
    if (facts->held)
        return 0;
    fprintf(stderr, "holdfast: out of memory\n");
    return CLI_INTERNAL;
}

static void add_fact(struct task_facts *facts, const char *name,
                     const char *value)
{
    facts->pairs[facts->n][0] = name;
    facts->pairs[facts->n++][1] = value;
}

int task_engine(struct task_facts *facts)
{
    int rc;

    inherit_release(&inherit);
    rc = inherit_give(&inherit);
    if (rc != 0)
        return rc;
    add_fact(facts, "HOLDFAST_URL", inherit.url);
    add_fact(facts, "HOLDFAST_INHERIT", inherit.mark);
    add_fact(facts, "HOLDFAST_CONFIG", inherit.config);
    add_fact(facts, "HOLDFAST_PROFILE", inherit.profile);
    return 0;
}

void task_forget_engine(void)
{
    inherit_release(&inherit);
}

int task_start(struct watch *watch, char **argv)
{
    struct task_facts facts;
    char **envp = NULL;
    int rc = task_facts(watch->client, watch->hold, /* key= */ "", &facts);

    if (rc == 0)
        rc = task_engine(&facts);
    if (rc == 0) {
        envp = child_environment(facts.pairs, facts.n);
        rc = envp ? child_start(&watch->child, argv, envp) : CLI_INTERNAL;
        if (!envp)
            fprintf(stderr, "holdfast: out of memory\n");
    }
    child_environment_free(envp);
    free(facts.held);
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

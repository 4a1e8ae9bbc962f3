/* SPDX-License-Identifier: MIT */
/*
 * completion_test.c - the completion scripts, tried in the shells themselves.
 *
 * The lock that is completed has a name that a shell would execute: everybody
 * who may wait for a lock chooses such a name.
 */
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "test.h"

static const char *const verbs[] = {
    "run",   "hold",    "test",    "ls",     "show",  "break",  "check",
    "elect", "version", "engines", "doctor", "bench", "config", "completion"};

/* Put the command into the path; true if @shell is there, too. */
static bool have(const char *shell)
{
    char path[4096];
    char command[] = HOLDFAST_COMMAND;
    struct command *which;

    command_dir();
    snprintf(path, sizeof(path), "%s:%s", dirname(command), getenv("PATH"));
    command_variable("PATH", path);
    which = PROGRAM("sh", "-c", "command -v \"$0\"", shell);
    if (command_wait(which) == 0)
        return true;
    test_not_tested("there is no %s", shell);
    return false;
}

/* Somebody holds a lock whose name has a command that makes @path. */
static struct command *bait(const char *before, const char *path,
                            const char *after)
{
    char name[400];
    struct command *run;

    snprintf(name, sizeof(name), "%s%s%s", before, path, after);
    run = COMMAND("run", name, "--", "sh", "-c", "echo in; cat >/dev/null");
    command_expect(run, "in\n");
    return run;
}

/* A shell on a terminal that has read its completion script. */
static struct command *interactive(const char *const *arguments,
                                   const char *setup)
{
    struct command *shell;

    command_variable("PS1", "ready> ");
    command_variable("COLUMNS", "400");
    shell = terminal_start(arguments);
    command_expect(shell, "ready> ");
    command_forget(shell);
    command_type(shell, setup);
    command_type(shell, "; echo set-''up\n");
    command_expect(shell, "set-up");
    command_forget(shell);
    return shell;
}

/* TAB completes the name of the bait, and Enter shows that very lock. */
static void complete_bait(const char *const *arguments, const char *setup)
{
    static const char *const names[][2] = {{"$(touch ", ")"},
                                           {"`touch ", "`"},
                                           {"a;touch ", ""},
                                           {"it's $HOME <", ">"}};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const char *pwned = command_path("pwned");
        struct command *run = bait(names[i][0], pwned, names[i][1]);
        struct command *shell = interactive(arguments, setup);

        command_type(shell, "holdfast show \t");
        command_type(shell, "\n");
        command_expect(shell, "holder");
        ASSERT_NULL(strstr(command_out(shell), "is free"));
        ASSERT_NE(access(pwned, F_OK), 0);
        command_type(shell, "exit\n");
        (void)command_wait(shell);
        command_close_input(run);
        ASSERT_EQ(command_wait(run), 0);
    }
}

TEST(completion, of_a_hostile_name_runs_nothing_in_bash)
{
    static const char *const bash[] = {"bash", "--norc", "--noprofile", "-i",
                                       NULL};

    if (!have("bash"))
        return;
    complete_bait(bash, ". <(holdfast completion bash)");
}

TEST(completion, of_a_hostile_name_runs_nothing_in_zsh)
{
    static const char *const zsh[] = {"zsh", "-f", "-i", NULL};

    if (!have("zsh"))
        return;
    complete_bait(zsh, "autoload -U compinit; compinit -u -D; "
                       ". <(holdfast completion zsh)");
}

TEST(completion, of_a_hostile_name_runs_nothing_in_fish)
{
    const char *pwned = command_path("pwned");
    char script[600];
    struct command *run;
    struct command *fish;

    if (!have("fish"))
        return;
    run = bait("(touch ", pwned, ")$HOME");
    snprintf(script, sizeof(script),
             "holdfast completion fish | source; complete -C 'holdfast show '; "
             "complete -C 'holdfast r'");
    fish = PROGRAM("fish", "--no-config", "-c", script);
    ASSERT_EQ(command_wait(fish), 0);
    snprintf(script, sizeof(script), "(touch %s)$HOME\n", pwned);
    ASSERT_HAS(command_out(fish), script);
    ASSERT_HAS(command_out(fish), "run\t");
    ASSERT_NE(access(pwned, F_OK), 0);
    command_close_input(run);
    ASSERT_EQ(command_wait(run), 0);
}

TEST(completion, in_bash_offers_verbs_options_and_names)
{
    struct command *run;
    struct command *shell;

    if (!have("bash"))
        return;
    run = bait("one *", "", " two");
    shell = PROGRAM(
        "bash", "-c",
        ". <(holdfast completion bash); "
        "try() { COMP_WORDS=(holdfast \"$@\"); COMP_CWORD=$#; _holdfast; "
        "printf '<%s>' \"${COMPREPLY[@]}\"; echo; }; "
        "try ru; try run --no; try show on; try show 'one\\ '; try show x");
    ASSERT_EQ(command_wait(shell), 0);
    ASSERT_STREQ(command_out(shell),
                 "<run>\n<--no-fork><--nonblock><--note><--no-color>\n"
                 "<one\\ \\*\\ two>\n<one\\ \\*\\ two>\n"
                 "<>\n");
    command_close_input(run);
    ASSERT_EQ(command_wait(run), 0);
}

TEST(completion, names_every_verb_in_all_shells)
{
    static const char *const shells[] = {"bash", "zsh", "fish"};

    for (size_t i = 0; i < sizeof(shells) / sizeof(shells[0]); i++) {
        struct command *script = FINISH(0, "completion", shells[i]);

        for (size_t j = 0; j < sizeof(verbs) / sizeof(verbs[0]); j++)
            ASSERT_HAS(command_out(script), verbs[j]);
    }
    FINISH(64, "completion", "csh");
}

/* SPDX-License-Identifier: MIT */
/*
 * script_test.c - holdfast acquire and holdfast release, in the shells that
 * people write scripts for.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "test.h"

#define SECRET "hunter2"
#define ACQUIRE(arguments) "eval \"$($H acquire " arguments ")\""
/* The process that holds the lock. */
#define KEEPER "${HOLDFAST_OWNER##*:}"

static const char *const shells[] = {"/bin/bash", "/bin/dash", "/bin/zsh"};

/* Each shell of this machine in turn, as @shell. */
#define EACH_SHELL(shell)                                                      \
    for (size_t i = 0; i < sizeof(shells) / sizeof(shells[0]); i++)            \
        for (const char *shell = next_shell(shells[i]); shell; shell = NULL)

static const char *next_shell(const char *path)
{
    command_dir();
    command_variable("H", HOLDFAST_COMMAND);
    return access(path, X_OK) == 0 ? path : NULL;
}

static struct command *finish(const char *shell, const char *script)
{
    struct command *command = PROGRAM(shell, "-c", script);
    int code = command_wait(command);

    if (code != 0)
        FAIL("%s exits with %d: %s%s", shell, code, command_out(command),
             command_err(command));
    return command;
}

TEST(script, lock_is_held_until_it_is_released)
{
    EACH_SHELL(shell)
    {
        struct command *script =
            finish(shell, ACQUIRE("x") " || exit\n"
                                       "$H ls --names; $H check; echo c=$?\n"
                                       "$H test x; echo t=$?\n"
                                       "echo n=$HOLDFAST_NAME\n"
                                       "$H release; echo r=$?; $H ls --names\n"
                                       "$H check; echo c=$?");

        ASSERT_STREQ(command_out(script), "x\nc=0\nt=75\nn=x\nr=0\nc=1\n");
        ASSERT_STREQ(command_err(script), "");
    }
}

TEST(script, token_is_exported)
{
    EACH_SHELL(shell)
    {
        struct command *script =
            finish(shell, ACQUIRE("x") " || exit; $H show x --json; "
                                       "sh -c 'echo t=$HOLDFAST_TOKEN.'");
        char token[64];

        ASSERT_EQ(
            sscanf(strstr(command_out(script), "t=") + 2, "%40[0-9]", token),
            1);
        ASSERT_HAS(strstr(command_out(script), "\"token\":\"") + 9, token);
    }
}

TEST(script, lock_ends_with_the_shell_even_if_that_is_killed)
{
    static const int signals[] = {SIGKILL, SIGTERM, 0};

    EACH_SHELL(shell)
    {
        for (size_t s = 0; s < 3; s++) {
            struct command *script = PROGRAM(
                shell, "-c", ACQUIRE("x --ttl 10m") "; echo in; read line");

            command_expect(script, "in\n");
            FINISH(75, "run", "-n", "x", "--", "true");
            if (signals[s])
                command_signal(script, signals[s]);
            else
                command_close_input(script);
            command_wait(script);
            /* Long before the lease ends. */
            FINISH(0, "run", "x", "--", "true");
        }
    }
}

TEST(script, lock_stays_with_what_the_shell_becomes)
{
    EACH_SHELL(shell)
    {
        struct command *script =
            PROGRAM(shell, "-c", ACQUIRE("x") "; echo in; exec cat");

        command_expect(script, "in\n");
        FINISH(75, "run", "-n", "x", "--", "true");
        command_close_input(script);
        ASSERT_EQ(command_wait(script), 0);
        FINISH(0, "run", "x", "--", "true");
    }
}

TEST(script, hostile_names_are_quoted)
{
    static const char name[] = "it''s $(touch bad) `touch bad` \"x\" \\ * ;é";

    EACH_SHELL(shell)
    {
        struct command *script;
        char wanted[256];

        command_variable("NAME", name);
        script = finish(shell, "cd \"$HOME\"; " ACQUIRE(
                                   "\"$NAME\"") " || exit\n"
                                                "printf '%s\\n' "
                                                "\"$HOLDFAST_NAME\"; ls\n"
                                                "$H release \"$NAME\"");
        snprintf(wanted, sizeof(wanted), "%s\n", name);
        ASSERT_TRUE(strncmp(command_out(script), wanted, strlen(wanted)) == 0);
        ASSERT_NULL(strstr(command_out(script), "\nbad"));
    }
}

TEST(script, failure_is_the_exit_code_of_eval)
{
    struct command *other = COMMAND("hold", "x");

    command_expect(other, "held");
    EACH_SHELL(shell)
    {
        struct command
            *script =
                finish(
                    shell,
                    ACQUIRE("-n x") "; echo a=$?\n" ACQUIRE("-w 0.01 -E 7 x") "; echo b=$?\n" ACQUIRE(
                        "--nope "
                        "x") "; echo "
                             "c=$?\n" ACQUIRE(
                                 "x -u nope://") "; echo "
                                                 "d=$?\n" ACQUIRE(
                                                     "x -u "
                                                     "redis://"
                                                     "127.0.0.1:1/"
                                                     "0 -w 1") "; "
                                                               "ec"
                                                               "ho"
                                                               " e"
                                                               "=$"
                                                               "?");

        ASSERT_STREQ(command_out(script), "a=75\nb=7\nc=64\nd=78\ne=69\n");
        ASSERT_HAS(command_err(script), "is held by");
        script = PROGRAM(shell, "-ec", ACQUIRE("-n x") "; echo went on");
        ASSERT_EQ(command_wait(script), 75);
        ASSERT_STREQ(command_out(script), "");
    }
}

TEST(script, wait_that_is_ended_fails_and_leaves_nothing)
{
    struct command *other = COMMAND("hold", "x");

    command_expect(other, "held");
    EACH_SHELL(shell)
    {
        struct command *script =
            finish(shell, "eval \"$(timeout 0.3 $H acquire x)\"; echo code=$?; "
                          "$H show x --json");

        ASSERT_HAS(command_out(script), "code=143\n");
        ASSERT_HAS(command_out(script), "\"waiters\":0");
    }
}

TEST(script, substitution_does_not_wait_for_the_keeper)
{
    EACH_SHELL(shell)
    {
        struct command *script =
            finish(shell, "text=$($H acquire x 2>&1) && eval \"$text\" && "
                          "echo in && $H release && echo out");

        ASSERT_STREQ(command_out(script), "in\nout\n");
    }
}

TEST(script, lock_of_a_subshell_ends_with_the_subshell)
{
    EACH_SHELL(shell)
    {
        struct command *script = finish(
            shell,
            "(" ACQUIRE("x") " && $H ls --names)\n"
                             "$H run x -- echo free\n"
                             /* Not the shell of $(…) itself, which ends. */
                             "eval \"$(:; $H acquire y; :)\"; $H check; "
                             "echo c=$?");

        ASSERT_STREQ(command_out(script), "x\nfree\nc=0\n");
    }
}

TEST(script, several_locks_are_released_by_name)
{
    EACH_SHELL(shell)
    {
        struct command *script = finish(
            shell,
            ACQUIRE("a") "; " ACQUIRE(
                "'b c'") "; $H ls --names\n"
                         "$H release 2>&1; echo r=$?; $H release a; $H ls "
                         "--names; $H release 'b c'; echo r=$?; $H ls --names\n"
            /* And again, without what is over. */
            ACQUIRE("a") "; $H release a; echo r=$?; $H release d; echo r=$?");

        ASSERT_HAS(command_out(script), "a\nb c\n");
        ASSERT_HAS(command_out(script), "say which");
        ASSERT_HAS(command_out(script), "r=64\nb c\nr=0\nr=0\nr=64\n");
    }
}

TEST(script, lock_that_is_held_already_is_refused)
{
    EACH_SHELL(shell)
    {
        struct command *script =
            finish(shell, ACQUIRE("x") "; " ACQUIRE(
                              "x") "; echo a=$?; $H run x -- true; echo r=$?\n"
                                   "$H run x --reentrant -- echo in\n"
                                   "$H release x; $H run x -- echo free");

        ASSERT_STREQ(command_out(script), "a=64\nr=64\nin\nfree\n");
    }
}

TEST(script, loss_is_told)
{
    EACH_SHELL(shell)
    {
        char text[900];
        struct command *script;

        snprintf(text, sizeof(text), ACQUIRE("x") "%s",
                 "; echo token=$HOLDFAST_TOKEN.; $H check; echo c=$?; "
                 "read line; $H check; echo c=$?; $H release; echo r=$?");
        script = PROGRAM(shell, "-c", text);
        command_expect(script, "c=0\n");
        command_break(script, "x");
        command_expect_err(script, "lost the lock \"x\"");
        command_type(script, "\n");
        ASSERT_EQ(command_wait(script), 0);
        ASSERT_HAS(command_out(script), "\nc=0\nc=1\nr=79\n");
        ASSERT_HAS(command_err(script), "was lost");

        snprintf(text, sizeof(text),
                 "trap 'echo told; exit 3' TERM; " ACQUIRE(
                     "x --signal TERM -u "
                     "\"fault+$HOLDFAST_URL?fault=hold:expire=300ms\"") "; %s",
                 "while :; do sleep 0.01; done");
        script = PROGRAM(shell, "-c", text);
        ASSERT_EQ(command_wait(script), 3);
        ASSERT_STREQ(command_out(script), "told\n");
    }
}

TEST(script, keeper_that_is_killed_is_a_lost_lock)
{
    EACH_SHELL(shell)
    {
        struct command *script =
            finish(shell, ACQUIRE("x") "; kill -9 " KEEPER "\n"
                                       "$H run x -- echo free\n"
                                       "$H release; echo r=$?");

        ASSERT_STREQ(command_out(script), "free\nr=79\n");
    }
}

TEST(script, keeper_ends_with_the_shell_and_not_by_a_signal)
{
    EACH_SHELL(shell)
    {
        struct command *script =
            PROGRAM(shell, "-c",
                    ACQUIRE("x") "; kill " KEEPER "; kill -HUP " KEEPER
                                 "; $H check; echo c=$?; echo pid=" KEEPER
                                 "; read line");
        pid_t keeper;

        command_expect(script, "c=0\n");
        keeper = (pid_t)command_number(script, "pid=");
        command_close_input(script);
        command_wait(script);
        ASSERT_TRUE(process_ends(keeper, COMMAND_PATIENCE_MS));
    }
}

/* A lock of flock(1) lasts as long as any process has the file open. */
TEST(script, keeper_has_none_of_the_shells_files)
{
    EACH_SHELL(shell)
    {
        struct command *script =
            finish(shell, "cd \"$HOME\"; exec 9>file; flock 9; " ACQUIRE(
                              "x") "; exec 9>&-; flock -n file echo free\n"
                                   "readlink /proc/" KEEPER
                                   "/fd/0 /proc/" KEEPER "/fd/1");

        ASSERT_STREQ(command_out(script), "free\n/dev/null\n/dev/null\n");
    }
}

TEST(script, engine_and_secrets_go_by_a_private_file)
{
    EACH_SHELL(shell)
    {
        struct command *script;

        command_variable("STORE", command_url());
        command_variable("HOLDFAST_URL", NULL);
        script = finish(shell,
                        ACQUIRE("x -u \"$STORE?password=" SECRET
                                "\" -o prefix=p/") "\n"
                                                   "$H ls --names; env; "
                                                   "tr '\\0' ' ' </proc/" KEEPER
                                                   "/cmdline; "
                                                   "tr '\\0' ' ' </proc/" KEEPER
                                                   "/environ; $H release\n"
                                                   "$H ls 2>&1; echo l=$?\n"
                                                   "$H ls -u \"$STORE\"");
        ASSERT_TRUE(strncmp(command_out(script), "x\n", 2) == 0);
        ASSERT_NULL(strstr(command_out(script), SECRET));
        /* Never another engine by mistake. */
        ASSERT_HAS(command_out(script), "has ended");
        ASSERT_HAS(command_out(script), "l=78\n");
        command_variable("HOLDFAST_URL", command_url());
    }
}

/* Where this user may become another one that may run us. */
TEST(script, keeper_talks_to_its_own_user_alone)
{
    EACH_SHELL(shell)
    {
        struct command *script = finish(
            shell, ACQUIRE("x") "; O='setpriv --reuid 65534 --clear-groups'\n"
                                "if sh -c \"$O $H --version\" >/dev/null 2>&1; "
                                "then sh -c \"$O $H release\"; echo r=$?; "
                                "else echo r=79; fi; $H check; echo c=$?");

        ASSERT_STREQ(command_out(script), "r=79\nc=0\n");
    }
}

TEST(script, process_can_be_named)
{
    EACH_SHELL(shell)
    {
        struct command *script = finish(
            shell, "cd \"$HOME\"; $H acquire x --pid $$ >text && . ./text\n"
                   "$H check; echo c=$?");

        ASSERT_STREQ(command_out(script), "c=0\n");
        /* The subshell of $(…) becomes the last process of a pipeline in zsh,
         * and can look like a shell that evaluates until it has. */
        if (strstr(shell, "zsh"))
            continue;
        script = finish(shell, "eval \"$($H acquire x | cat)\"; echo a=$?");
        ASSERT_STREQ(command_out(script), "a=64\n");
        ASSERT_HAS(command_err(script), "--pid $$");
    }
}

TEST(script, terminal_is_told_to_evaluate)
{
    struct command *command = TERMINAL(HOLDFAST_COMMAND, "acquire", "x");

    ASSERT_EQ(command_wait(command), 64);
    ASSERT_HAS(command_out(command), "eval \"$(holdfast acquire x)\"");
}

TEST(script, fish_has_a_language_of_its_own)
{
    struct command *script;

    if (!next_shell("/usr/bin/fish"))
        return;
    command_variable("NAME", "it's \\ $HOME \"x\"");
    script = finish("/usr/bin/fish",
                    "$H acquire $NAME --shell fish | source\n"
                    "echo s=$status; echo $HOLDFAST_NAME; $H check; echo "
                    "c=$status; $H acquire $NAME --shell fish | source\n"
                    "echo s=$status; $H release; echo r=$status");
    ASSERT_STREQ(command_out(script),
                 "s=0\nit's \\ $HOME \"x\"\nc=0\ns=64\nr=0\n");
}

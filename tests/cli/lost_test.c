/* SPDX-License-Identifier: MIT */
/*
 * lost_test.c - holdfast run when the lock is lost, or holdfast itself is.
 *
 * The faults are ordered from the fault engine, which takes the lock away for
 * real, so that a second run can have it.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "event.h"
#include "test.h"

/* Ends only by KILL, and so does its background process. */
static const char stubborn[] = "trap '' TERM HUP INT; "
                               "(trap '' TERM; while :; do sleep 1; done) & "
                               "echo bg=$!; echo pid=$$; "
                               "echo token=$HOLDFAST_TOKEN.; "
                               "while :; do sleep 1; done";

TEST(lost, ends_the_command_and_says_79)
{
    struct command *run =
        FINISH(79, "-u", command_faulty_url("hold:expire=100ms"), "run", "x",
               "--", "sh", "-c", "sleep 100 & sleep 100");

    ASSERT_HAS(command_err(run), "lost the lock \"x\"");
}

TEST(lost, takes_grandchildren_along)
{
    struct command *run = COMMAND("run", "x", "--", "sh", "-c", stubborn);
    pid_t other = (pid_t)command_number(run, "bg=");
    pid_t child = (pid_t)command_number(run, "pid=");

    command_break(run, "x");
    ASSERT_EQ(command_wait(run), 79);
    ASSERT_FALSE(process_lives(child));
    ASSERT_FALSE(process_lives(other));
}

TEST(lost, takes_along_what_left_the_process_group)
{
    struct command *run = COMMAND("run", "x", "--", "sh", "-c",
                                  "setsid sleep 100 & echo bg=$!; "
                                  "echo token=$HOLDFAST_TOKEN.; sleep 100");
    pid_t other = (pid_t)command_number(run, "bg=");

    command_break(run, "x");
    ASSERT_EQ(command_wait(run), 79);
    ASSERT_FALSE(process_lives(other));
}

TEST(lost, asks_with_term_before_the_lease_ends)
{
    struct command *run =
        COMMAND("-u", command_faulty_url("renew:cut@1+"), "run", "x", "--ttl",
                "900ms", "--", "sh", "-c",
                "trap 'echo asked; exit 0' TERM; echo ready; "
                "while :; do sleep 0.01; done");

    command_expect(run, "ready\n");
    command_expect(run, "asked\n");
    ASSERT_EQ(command_wait(run), 79);
    ASSERT_HAS(command_err(run), "about to lose the lock \"x\"");
}

TEST(lost, kills_at_once_if_told_to)
{
    struct command *run = COMMAND(
        "-u", command_faulty_url("renew:cut@1+"), "run", "x", "--ttl", "600ms",
        "--on-lost", "kill", "--", "sh", "-c",
        "trap 'echo asked' TERM; echo ready; while :; do sleep 0.01; done");

    command_expect(run, "ready\n");
    ASSERT_EQ(command_wait(run), 79);
    ASSERT_STREQ(command_out(run), "ready\n");
}

TEST(lost, only_warns_if_told_to)
{
    struct command *run = COMMAND("-u", command_faulty_url("hold:expire=50ms"),
                                  "run", "x", "--on-lost", "warn", "--", "sh",
                                  "-c", "read line; echo got $line");

    command_expect_err(run, "lost the lock");
    command_type(run, "it\n");
    ASSERT_EQ(command_wait(run), 79);
    ASSERT_STREQ(command_out(run), "got it\n");
}

/* What the second holder finds of the first one's command. */
static struct command *look_for(pid_t pid)
{
    char script[256];

    snprintf(script, sizeof(script),
             "case $(sed -n 's/^State:[^A-Z]*\\(.\\).*/\\1/p' /proc/%ld/status "
             "2>/dev/null) in ''|Z) echo alone;; *) echo overlap;; esac",
             (long)pid);
    return COMMAND("run", "x", "--", "sh", "-c", script);
}

TEST(lost, command_is_gone_before_a_second_holder_starts)
{
    struct command *first =
        COMMAND("-u", command_faulty_url("renew:cut@1+"), "run", "x", "--ttl",
                "600ms", "--", "sh", "-c", stubborn);
    pid_t child = (pid_t)command_number(first, "pid=");
    struct command *second = look_for(child);

    ASSERT_EQ(command_wait(second), 0);
    ASSERT_STREQ(command_out(second), "alone\n");
    ASSERT_EQ(command_wait(first), 79);
}

/* How many processes @command has started that nobody has waited for yet. */
static int children_of(const struct command *command)
{
    char *path =
        test_text("/proc/%ld/task/%ld/children", (long)command_pid(command),
                  (long)command_pid(command));
    FILE *file = fopen(path, "re");
    int n = 0;

    ASSERT_NOT_NULL(file);
    while (fscanf(file, "%*d ") != EOF)
        n++;
    (void)fclose(file);
    return n;
}

/* It comes when the command has lived for a moment. */
static void await_guard(const struct command *command)
{
    EVENTUALLY(children_of(command) == 2);
}

TEST(lost, command_is_gone_even_if_holdfast_is_stopped)
{
    struct command *first =
        COMMAND("run", "x", "--ttl", "600ms", "--", "sh", "-c", stubborn);
    pid_t other = (pid_t)command_number(first, "bg=");
    pid_t child = (pid_t)command_number(first, "pid=");
    struct command *second = look_for(child);

    await_guard(first);
    command_signal(first, SIGSTOP);
    ASSERT_EQ(command_wait(second), 0);
    ASSERT_STREQ(command_out(second), "alone\n");
    ASSERT_FALSE(process_lives(other));
    command_signal(first, SIGCONT);
    ASSERT_EQ(command_wait(first), 79);
}

TEST(lost, kill_9_of_holdfast_ends_the_command)
{
    struct command *first = COMMAND("run", "x", "--", "sh", "-c", stubborn);
    pid_t other = (pid_t)command_number(first, "bg=");
    pid_t child = (pid_t)command_number(first, "pid=");

    await_guard(first);
    command_signal(first, SIGKILL);
    ASSERT_TRUE(process_ends(child, 5000));
    ASSERT_TRUE(process_ends(other, 5000));
    ASSERT_EQ(command_wait(first), 1000 + SIGKILL);
    FINISH(0, "run", "-w", "10", "x", "--", "true");
}

/* Prints the state of process %d, or nothing; a zombie runs no more. */
#define STATE_OF "sed -n 's/^State:.\\([^ZX]\\).*/\\1/p' /proc/%d/status 2>&-"

TEST(lost, kill_9_keeps_the_name_closed_for_a_moment)
{
    struct command *first = COMMAND("run", "x", "--", "sleep", "100");
    struct command *second;
    long killed_ms;

    while (command_wait(COMMAND("test", "x")) == 0)
        continue;
    second = COMMAND("run", "x", "--", "echo", "in");
    killed_ms = now_ms();
    command_signal(first, SIGKILL);
    ASSERT_EQ(command_wait(second), 0);
    ASSERT_GE(now_ms() - killed_ms, 50);
}

/* The moment is longer here: on a busy machine a dead process waits for a
 * processor to be taken off it. */
TEST(lost, kill_9_leaves_no_command_beside_the_next_holder)
{
    for (int i = 0; i < 5; i++) {
        struct command *first =
            COMMAND("run", "x", "-o", "lock_delay=500ms", "--", "sh", "-c",
                    "echo pid=$$; exec sleep 100");
        pid_t child = (pid_t)command_number(first, "pid=");
        struct command *second;
        char look[128];

        snprintf(look, sizeof(look), "echo in; " STATE_OF "; true", child);
        second = COMMAND("run", "x", "--", "sh", "-c", look);
        command_signal(first, SIGKILL);
        ASSERT_EQ(command_wait(second), 0);
        ASSERT_STREQ(command_out(second), "in\n");
    }
}

TEST(lost, kill_9_at_once_ends_the_command_itself)
{
    struct command *first =
        COMMAND("run", "x", "--", "sh", "-c", "echo pid=$$; exec sleep 100");
    pid_t child = (pid_t)command_number(first, "pid=");

    command_signal(first, SIGKILL);
    ASSERT_TRUE(process_ends(child, 5000));
}

TEST(lost, break_ends_the_command_too)
{
    struct command *first =
        COMMAND("run", "x", "--ttl", "900ms", "--", "sh", "-c",
                "echo token=$HOLDFAST_TOKEN; "
                "exec sleep 100");
    char token[32];

    snprintf(token, sizeof(token), "%ld", command_number(first, "token="));
    FINISH(0, "break", "x", "--token", token, "--confirm=x");
    ASSERT_EQ(command_wait(first), 79);
}

TEST(lost, reports_it)
{
    char *path = strdup(command_path("report"));

    FINISH(79, "-u", command_faulty_url("hold:expire=50ms"), "run", "x",
           "--report", path, "--", "sleep", "100");
    ASSERT_HAS(file_text(path), "\"outcome\":\"lost\"");
    ASSERT_HAS(file_text(path), "\"exit_code\":79");
    free(path);
}

TEST(lost, is_seen_at_the_release_at_the_latest)
{
    struct command *run =
        FINISH(79, "-u", command_faulty_url("hold:expire=1ms"), "run", "x",
               "--on-lost", "warn", "--hold-at-least", "200ms", "--", "true");

    ASSERT_HAS(command_err(run), "lost the lock");
}

TEST(lost, unreachable_is_not_busy)
{
    struct command *run =
        FINISH(69, "-u", command_faulty_url("acquire:fail=EUNAVAILABLE"), "run",
               "-n", "x", "--", "true");

    ASSERT_NULL(strstr(command_err(run), "held by"));
    FINISH(77, "-u", command_faulty_url("acquire:fail=EAUTH"), "run", "x", "--",
           "true");
}

TEST(lost, jeopardy_is_told_before)
{
    struct command *run =
        COMMAND("-u", command_faulty_url("renew:cut@1+"), "run", "x", "--ttl",
                "3s", "--kill-after", "200ms", "--", "sh", "-c", "sleep 100");

    command_expect_err(run, "\"x\" is in jeopardy: ");
    command_expect_err(run, "about to lose");
    ASSERT_EQ(command_wait(run), 79);
    /* The hint is about the same engine. */
    ASSERT_HAS(command_err(run), "then: holdfast -u 'fault+local:");
}

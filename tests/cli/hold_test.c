/* SPDX-License-Identifier: MIT */
/*
 * hold_test.c - holdfast hold and elect: a lock, or leadership, for as long as
 * somebody wants it.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "test.h"

TEST(hold, holds_until_stdin_is_closed)
{
    struct command *hold = COMMAND("hold", "x", "--json");

    command_expect(hold, "{\"event\":\"held\",\"name\":\"x\",\"token\":\"");
    command_expect(hold, "\"remaining_ms\":");
    FINISH(75, "test", "x");
    command_type(hold, "what we write is not read as anything\n");
    command_close_input(hold);
    ASSERT_EQ(command_wait(hold), 0);
    ASSERT_HAS(command_out(hold), "{\"event\":\"released\",\"name\":\"x\"");
    FINISH(0, "test", "x");
}

TEST(hold, releases_on_term)
{
    struct command *hold = COMMAND("hold", "x");

    command_expect(hold, "\"held\"");
    command_signal(hold, SIGTERM);
    ASSERT_EQ(command_wait(hold), 0);
    ASSERT_HAS(command_out(hold), "\"released\"");
    FINISH(0, "test", "x");
}

TEST(hold, releases_on_term_while_its_input_never_pauses)
{
    struct command *shell = PROGRAM(
        "sh", "-c", HOLDFAST_COMMAND " hold x </dev/zero & echo pid=$!; wait");
    pid_t pid = (pid_t)command_number(shell, "pid=");

    command_expect(shell, "held");
    ASSERT_EQ(kill(pid, SIGTERM), 0);
    command_expect(shell, "released");
    ASSERT_EQ(command_wait(shell), 0);
}

TEST(hold, says_nothing_on_stdout_when_busy)
{
    struct command *first = COMMAND("hold", "x");
    struct command *second;

    command_expect(first, "\"held\"");
    second = FINISH(75, "hold", "x", "-n");
    ASSERT_STREQ(command_out(second), "");
    ASSERT_HAS(command_err(second), "is held by");
    second = COMMAND("hold", "x");
    while (
        !strstr(command_out(FINISH(0, "show", "x", "--json")), "\"waiters\":1"))
        continue;
    command_signal(second, SIGTERM);
    ASSERT_EQ(command_wait(second), 143);
}

TEST(hold, tells_that_it_is_lost)
{
    char url[512];
    struct command *hold;

    snprintf(url, sizeof(url), "fault+%s?fault=hold:expire=100ms",
             command_url());
    hold = COMMAND("hold", "x", "-u", url);
    command_expect(hold, "{\"event\":\"lost\",\"name\":\"x\"");
    command_expect(hold, "\"remaining_ms\":0}");
    ASSERT_EQ(command_wait(hold), 79);
    ASSERT_NULL(strstr(command_out(hold), "released"));
}

TEST(hold, tells_jeopardy_before_it_is_lost)
{
    char url[512];
    struct command *hold;

    snprintf(url, sizeof(url), "fault+%s?fault=renew:cut@1%%2b", command_url());
    hold = COMMAND("hold", "x", "--ttl", "600ms", "-u", url);
    command_expect(hold, "\"jeopardy\"");
    command_expect(hold, "\"lost\"");
    ASSERT_EQ(command_wait(hold), 79);
}

TEST(hold, ends_with_whoever_started_it)
{
    struct command *shell = PROGRAM("sh", "-c",
                                    HOLDFAST_COMMAND " hold x & "
                                                     "echo pid=$!; cat");
    pid_t hold = (pid_t)command_number(shell, "pid=");

    /* In the background of a shell stdin is /dev/null: it ends by itself. */
    ASSERT_TRUE(process_ends(hold, 5000));
    FINISH(0, "test", "x");
}

TEST(elect, runs_the_command_while_leading)
{
    struct command *leader = COMMAND("elect", "boss", "--", "sh", "-c",
                                     "echo term=$HOLDFAST_TOKEN; cat");
    struct command *other;
    long term = command_number(leader, "term=");

    other =
        COMMAND("elect", "boss", "--", "sh", "-c", "echo term=$HOLDFAST_TOKEN");
    while (!strstr(command_out(FINISH(0, "show", "boss", "--json")),
                   "\"waiters\":1"))
        continue;
    ASSERT_STREQ(command_out(other), "");
    command_close_input(leader);
    ASSERT_EQ(command_wait(leader), 0);
    ASSERT_GT(command_number(other, "term="), term);
    ASSERT_EQ(command_wait(other), 0);
}

TEST(elect, passes_the_exit_code_on)
{
    FINISH(7, "elect", "boss", "--", "sh", "-c", "exit 7");
    FINISH(127, "elect", "boss", "--", "/no/such/program");
    FINISH(64, "elect", "boss");
}

TEST(elect, campaigns_again_when_leadership_is_lost)
{
    struct command *leader = COMMAND("elect", "boss", "--", "sh", "-c",
                                     "echo term=$HOLDFAST_TOKEN.; exec cat");
    char token[32];

    for (int i = 0; i < 3; i++) {
        long term = command_number(leader, "term=");

        command_forget(leader);
        snprintf(token, sizeof(token), "%ld", term);
        FINISH(0, "break", "boss", "--token", token, "--confirm=boss");
        ASSERT_GT(command_number(leader, "term="), term);
    }
    command_signal(leader, SIGTERM);
    ASSERT_EQ(command_wait(leader), 143);
    FINISH(0, "test", "boss");
}

TEST(elect, ends_when_interrupted_as_a_candidate)
{
    struct command *leader =
        COMMAND("elect", "boss", "--", "sh", "-c", "echo in; cat");
    struct command *other;

    command_expect(leader, "in\n");
    other = COMMAND("elect", "boss", "--", "true");
    while (!strstr(command_out(FINISH(0, "show", "boss", "--json")),
                   "\"waiters\":1"))
        continue;
    command_signal(other, SIGTERM);
    ASSERT_EQ(command_wait(other), 143);
    ASSERT_HAS(command_out(FINISH(0, "show", "boss", "--json")),
               "\"waiters\":0");
}

/* A change that the observer is not told of costs it 30 s. */
static void observe_changes(struct command *observer)
{
    struct command *leader;

    command_expect(observer, "boss: nobody leads\n");
    leader = COMMAND("elect", "boss", "--", "sh", "-c", "echo in; cat");
    command_expect(leader, "in\n");
    command_expect(observer, "boss: led by ");
    command_forget(observer);
    command_close_input(leader);
    ASSERT_EQ(command_wait(leader), 0);
    command_expect(observer, "boss: nobody leads\n");
    command_signal(observer, SIGINT);
    ASSERT_EQ(command_wait(observer), 130);
}

TEST(elect, observe_is_told_of_each_change)
{
    struct command *observer;

    observe_changes(COMMAND("elect", "boss", "--observe"));
    observer = COMMAND("elect", "boss", "--observe", "--json");
    command_expect(observer, "{\"event\":\"vacant\",\"name\":\"boss\"");
}

TEST(elect, observe_looks_at_a_pace_for_each_change)
{
    observe_changes(
        COMMAND("elect", "boss", "--observe", "--interval", "20ms"));
}

/* SPDX-License-Identifier: MIT */
/*
 * terminal_test.c - the command on a terminal: who reads the keys, Ctrl-C,
 * Ctrl-Z and fg, and what is said while somebody watches.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "test.h"

#define CTRL_C "\003"
#define CTRL_Z "\032"

/* An interactive shell on a terminal, with the command in its path as $H. */
static struct command *shell(void)
{
    struct command *bash;

    command_variable("H", HOLDFAST_COMMAND);
    command_variable("PS1", "ready> ");
    bash = TERMINAL("bash", "--norc", "--noprofile", "-i");
    command_expect(bash, "ready> ");
    return bash;
}

/* Type one line at the shell's prompt. */
static void type(struct command *bash, const char *line)
{
    command_forget(bash);
    command_type(bash, line);
    command_type(bash, "\n");
}

static void expect_code(struct command *bash, const char *code)
{
    command_expect(bash, "ready> ");
    command_forget(bash);
    /* The echo of the line has no number in it. */
    command_type(bash, "echo code=$?.\n");
    command_expect(bash, code);
}

TEST(terminal, command_reads_the_keys)
{
    struct command *run = TERMINAL(
        HOLDFAST_COMMAND, "run", "x", "--", "sh", "-c",
        "echo ask; read a </dev/tty; echo got $a; read b; echo and $b");

    command_expect(run, "ask");
    command_type(run, "this\n");
    command_expect(run, "got this");
    command_type(run, "that\n");
    command_expect(run, "and that");
    ASSERT_EQ(command_wait(run), 0);
}

TEST(terminal, command_is_the_foreground)
{
    struct command *bash = shell();

    type(bash, "$H run x -- sh -c 'read -r l </proc/$$/stat; set -- $l; "
               "echo same=$(( $5 == $8 )) own=$(( $5 == $$ )).'");
    command_expect(bash, "same=1 own=1.");
    expect_code(bash, "code=0.");
}

TEST(terminal, ctrl_c_ends_the_command_and_the_shell_goes_on)
{
    struct command *bash = shell();

    type(bash, "$H run x -- sh -c 'echo in''side; exec sleep 100'");
    command_expect(bash, "inside");
    command_type(bash, CTRL_C);
    expect_code(bash, "code=130.");
    FINISH(0, "test", "x");
}

TEST(terminal, command_that_catches_ctrl_c_goes_on)
{
    struct command *bash = shell();

    type(bash, "$H run x -- sh -c 'trap \"echo cau\"\"ght\" INT; "
               "echo in''side; while ! read a; do :; done; echo got $a; "
               "exit 5'");
    command_expect(bash, "inside");
    command_type(bash, CTRL_C);
    command_expect(bash, "caught");
    command_type(bash, "more\n");
    command_expect(bash, "got more");
    expect_code(bash, "code=5.");
}

TEST(terminal, ctrl_z_stops_and_fg_continues)
{
    struct command *bash = shell();

    type(bash,
         "$H run x -- sh -c 'echo in''side; read a; echo got $a; exit 3'");
    command_expect(bash, "inside");
    command_type(bash, CTRL_Z);
    command_expect(bash, "stopped: the lock \"x\" is lost in ");
    command_expect(bash, "Stopped");
    command_expect(bash, "ready> ");
    FINISH(75, "test", "x");
    type(bash, "fg");
    command_expect(bash, "run x -- sh");
    command_type(bash, "keys\n");
    command_expect(bash, "got keys");
    expect_code(bash, "code=3.");
}

TEST(terminal, ctrl_z_where_nobody_could_continue_us_is_no_trap)
{
    struct command *run = TERMINAL(HOLDFAST_COMMAND, "run", "x", "--", "sh",
                                   "-c", "echo inside; read a; echo got $a");

    command_expect(run, "inside");
    command_type(run, CTRL_Z);
    command_type(run, "keys\n");
    command_expect(run, "got keys");
    ASSERT_EQ(command_wait(run), 0);
}

TEST(terminal, a_lock_that_ended_meanwhile_is_lost_when_continued)
{
    struct command *bash = shell();

    type(bash, "$H run x --ttl 500ms -- sh -c 'echo in''side; read a; "
               "echo ne''ver'");
    command_expect(bash, "inside");
    command_type(bash, CTRL_Z);
    command_expect(bash, "Stopped");
    FINISH(0, "run", "-w", "10", "x", "--", "true");
    type(bash, "fg");
    expect_code(bash, "code=79.");
    ASSERT_NULL(strstr(command_out(bash), "never"));
}

TEST(terminal, background_command_that_reads_stops_until_fg)
{
    struct command *bash = shell();

    type(bash, "$H run x -- sh -c 'read a; echo got $a' &");
    command_expect(bash, "ready> ");
    command_forget(bash);
    /* The shell tells of jobs before its prompt. */
    while (!strstr(command_out(bash), "Stopped")) {
        type(bash, "jobs");
        command_expect(bash, "ready> ");
    }
    type(bash, "fg");
    command_expect(bash, "run x -- sh");
    command_type(bash, "keys\n");
    command_expect(bash, "got keys");
    expect_code(bash, "code=0.");
}

TEST(terminal, command_may_be_a_shell_with_jobs_of_its_own)
{
    struct command *bash = shell();

    type(bash, "PS1='inner> ' $H run x -- bash --norc --noprofile -i");
    command_expect(bash, "\033[?2004hinner> ");
    type(bash, "sh -c 'echo wor''king; read a; echo got $a'");
    command_expect(bash, "working");
    command_type(bash, CTRL_Z);
    command_expect(bash, "Stopped");
    command_expect(bash, "inner> ");
    type(bash, "fg");
    command_expect(bash, "read a");
    command_type(bash, "keys\n");
    command_expect(bash, "got keys");
    command_expect(bash, "inner> ");
    FINISH(75, "test", "x");
    type(bash, "exit 4");
    expect_code(bash, "code=4.");
    FINISH(0, "test", "x");
}

TEST(terminal, script_around_the_command_stops_and_continues_with_it)
{
    struct command *bash = shell();

    type(bash, "sh -c '$H run x -- sh -c \"echo in\"\"side; read a; "
               "echo got \\$a\"; echo script we''nt on'");
    command_expect(bash, "inside");
    command_type(bash, CTRL_Z);
    command_expect(bash, "Stopped");
    command_expect(bash, "ready> ");
    type(bash, "fg");
    command_expect(bash, "run x -- sh");
    command_type(bash, "keys\n");
    command_expect(bash, "got keys");
    command_expect(bash, "script went on");
    expect_code(bash, "code=0.");
}

TEST(terminal, pager_behind_the_command_keeps_the_terminal)
{
    struct command *bash = shell();

    type(bash, "$H run x -- echo da''ta | (cat; read a </dev/tty; "
               "echo pager $a)");
    command_expect(bash, "data");
    command_type(bash, "keys\n");
    command_expect(bash, "pager keys");
    expect_code(bash, "code=0.");
}

TEST(terminal, command_in_a_pipeline_gets_the_terminal_when_it_asks)
{
    struct command *bash = shell();

    type(bash, "$H run x -- sh -c 'echo as''k; read a </dev/tty; "
               "echo child $a' | cat");
    command_expect(bash, "ask");
    command_type(bash, "keys\n");
    command_expect(bash, "child keys");
    expect_code(bash, "code=0.");
}

TEST(terminal, says_who_holds_it_while_waiting)
{
    struct command *first = COMMAND("run", "x", "--note", "vacuum", "--", "sh",
                                    "-c", "echo in; cat");
    struct command *second;

    command_expect(first, "in\n");
    second = TERMINAL(HOLDFAST_COMMAND, "run", "x", "--", "echo", "done");
    command_expect(second, "waiting for \"x\", held by ");
    command_expect(second, "(tester) for ");
    command_expect(second, ": \"vacuum\"");
    command_expect(second, "[1st in line]");
    command_close_input(first);
    ASSERT_EQ(command_wait(first), 0);
    command_expect(second, "\r\033[K");
    command_expect(second, "done");
    ASSERT_EQ(command_wait(second), 0);
}

TEST(terminal, ctrl_c_ends_the_wait)
{
    struct command *first =
        COMMAND("run", "x", "--", "sh", "-c", "echo in; cat");
    struct command *bash = shell();

    command_expect(first, "in\n");
    type(bash, "$H run x -- echo ne''ver");
    command_expect(bash, "waiting for \"x\"");
    command_type(bash, CTRL_C);
    command_expect(bash, "gave up");
    expect_code(bash, "code=130.");
}

TEST(terminal, break_asks_for_the_name)
{
    struct command *first = COMMAND("run", "x", "--ttl", "1s", "--", "sh", "-c",
                                    "echo t=$HOLDFAST_TOKEN; cat");
    char token[32];
    struct command *breaking;

    snprintf(token, sizeof(token), "%ld", command_number(first, "t="));
    breaking = TERMINAL(HOLDFAST_COMMAND, "break", "x", "--token", token);
    command_expect(breaking, "ALIVE");
    command_expect(breaking, "Type the name");
    command_type(breaking, "y\n");
    ASSERT_EQ(command_wait(breaking), 64);
    FINISH(75, "test", "x");

    breaking = TERMINAL(HOLDFAST_COMMAND, "break", "x", "--token", token);
    command_expect(breaking, "Type the name");
    command_type(breaking, "x\n");
    command_expect(breaking, "broke \"x\"");
    ASSERT_EQ(command_wait(breaking), 0);
}

TEST(terminal, colours_can_be_switched_off)
{
    struct command *ls;

    command_holder("x", "");
    ls = TERMINAL(HOLDFAST_COMMAND, "ls");
    ASSERT_EQ(command_wait(ls), 0);
    ASSERT_HAS(command_out(ls), "\033[1m");
    ls = TERMINAL(HOLDFAST_COMMAND, "ls", "--no-color");
    ASSERT_EQ(command_wait(ls), 0);
    ASSERT_NULL(strchr(command_out(ls), '\033'));
    command_variable("NO_COLOR", "1");
    ls = TERMINAL(HOLDFAST_COMMAND, "ls");
    ASSERT_EQ(command_wait(ls), 0);
    ASSERT_NULL(strchr(command_out(ls), '\033'));
    command_variable("NO_COLOR", NULL);
    command_variable("TERM", "dumb");
    ls = TERMINAL(HOLDFAST_COMMAND, "ls");
    ASSERT_EQ(command_wait(ls), 0);
    ASSERT_NULL(strchr(command_out(ls), '\033'));
}

TEST(terminal, terminal_is_given_back_after_a_command_that_was_killed)
{
    struct command *bash = shell();

    type(bash, "$H run x --max-hold 100ms -- sleep 100");
    expect_code(bash, "code=124.");
    type(bash, "read a; echo got $a.");
    command_type(bash, "keys\n");
    command_expect(bash, "got keys.");
}

/* SPDX-License-Identifier: MIT */
/*
 * nested_test.c - holdfast run --reentrant and --only-if.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "test.h"

#define RUN HOLDFAST_COMMAND " run "

TEST(reentrant, goes_on_under_the_lock_that_is_held)
{
    struct command *run = FINISH(
        5, "run", "x", "--", "sh", "-c",
        "T=$HOLDFAST_TOKEN; " RUN "x --reentrant -- sh -c "
        "'echo $HOLDFAST_NAME; test $HOLDFAST_TOKEN = '$T'; echo $?; exit 5'");

    ASSERT_STREQ(command_out(run), "x\n0\n");
    /* Through another lock, too, and with the facts of this one. */
    run = FINISH(0, "run", "x", "--", "sh", "-c",
                 "T=$HOLDFAST_TOKEN; " RUN "y -- " RUN "x --reentrant -- sh -c "
                 "'echo $HOLDFAST_NAME; test $HOLDFAST_TOKEN = '$T");
    ASSERT_STREQ(command_out(run), "x\n");
    FINISH(127, "run", "x", "--", HOLDFAST_COMMAND, "run", "x", "--reentrant",
           "--", "/no/such");
}

TEST(reentrant, takes_the_lock_where_nothing_holds_it)
{
    struct command *run = FINISH(0, "run", "x", "--reentrant", "--",
                                 HOLDFAST_COMMAND, "ls", "--names");

    ASSERT_STREQ(command_out(run), "x\n");
    /* Another's is another's. */
    run = COMMAND("hold", "y");
    command_expect(run, "held");
    FINISH(75, "run", "-n", "y", "--reentrant", "--", "true");
}

TEST(reentrant, lock_that_is_lost_is_an_error)
{
    struct command *run;

    command_bereave("x");
    run = FINISH(79, "run", "x", "--reentrant", "--", "echo", "ran");
    ASSERT_STREQ(command_out(run), "");
    ASSERT_HAS(command_err(run), "is lost");
}

TEST(reentrant, readers_lock_admits_no_writer)
{
    struct command *run =
        FINISH(64, "run", "-s", "x", "--", HOLDFAST_COMMAND, "run", "x",
               "--reentrant", "--", "echo", "ran");

    ASSERT_STREQ(command_out(run), "");
    ASSERT_HAS(command_err(run), "another mode");
    FINISH(0, "run", "-s", "x", "--", HOLDFAST_COMMAND, "run", "-s", "x",
           "--reentrant", "--", "true");
    FINISH(0, "run", "x", "--", HOLDFAST_COMMAND, "run", "-s", "x",
           "--reentrant", "--", "true");
    FINISH(64, "run", "x", "--reentrant", "--report", "-", "--", "true");
}

TEST(reentrant, secrets_stay_in_the_private_file)
{
    char url[600];
    struct command *run;

    snprintf(url, sizeof(url), "%s?password=hunter2", command_url());
    command_variable("HOLDFAST_URL", NULL);
    run = FINISH(0, "run", "x", "-u", url, "--", "sh", "-c",
                 RUN "x --reentrant -- sh -c 'env; " HOLDFAST_COMMAND
                     " check && echo checked'");
    ASSERT_NULL(strstr(command_out(run), "hunter2"));
    ASSERT_HAS(command_out(run), "checked\n");
}

TEST(only_if, unhealthy_machine_takes_no_lock)
{
    struct command *run = FINISH(75, "run", "x", "--only-if", "exit 3",
                                 "--report", "-", "--", "echo", "ran");

    ASSERT_NULL(strstr(command_out(run), "ran"));
    ASSERT_HAS(command_out(run), "\"outcome\":\"unfit\"");
    ASSERT_HAS(command_err(run), "--only-if failed");
    FINISH(7, "run", "x", "--only-if", "false", "-E", "7", "--", "true");
    run = FINISH(0, "run", "x", "--only-if", "false", "--skip-ok", "--", "echo",
                 "ran");
    ASSERT_STREQ(command_out(run), "");
    ASSERT_STREQ(command_err(run), "");
    FINISH(5, "run", "x", "--only-if", "true", "--", "sh", "-c", "exit 5");
}

/* It gets neither the input nor the output of the command, and no secret. */
TEST(only_if, check_stays_out_of_the_way)
{
    struct command *run;

    command_variable("HOLDFAST_PASSWORD", "hunter2");
    run = COMMAND("run", "x", "--only-if",
                  "cat; echo $HOLDFAST_NAME; env | grep -c hunter2; exit 0",
                  "--", "cat");
    command_type(run, "line\n");
    command_close_input(run);
    ASSERT_EQ(command_wait(run), 0);
    ASSERT_STREQ(command_out(run), "line\n");
    ASSERT_STREQ(command_err(run), "x\n0\n");
}

TEST(only_if, machine_is_checked_again_after_a_long_wait)
{
    struct command *first = COMMAND("hold", "x");
    struct command *second;

    command_expect(first, "held");
    file_write(command_path("well"), "");
    second =
        COMMAND("run", "x", "--only-if",
                "test -e \"$HOME/well\" && echo checked", "--", "echo", "ran");
    command_expect_err(second, "checked\n");
    /* More than the second after which it is checked again. */
    command_read(second, 1200);
    ASSERT_EQ(remove(command_path("well")), 0);
    command_close_input(first);
    ASSERT_EQ(command_wait(second), 75);
    ASSERT_STREQ(command_out(second), "");
    FINISH(0, "run", "-n", "x", "--", "true");
}

TEST(only_if, check_can_be_interrupted)
{
    struct command *run =
        COMMAND("run", "x", "--only-if", "echo pid=$$ >&2; exec sleep 1000",
                "--", "true");
    int pid = 0;

    command_expect_err(run, "pid=");
    command_expect_err(run, "\n");
    ASSERT_EQ(sscanf(strstr(command_err(run), "pid="), "pid=%d", &pid), 1);
    command_signal(run, SIGTERM);
    ASSERT_EQ(command_wait(run), 143);
    ASSERT_TRUE(process_ends(pid, COMMAND_PATIENCE_MS));
}

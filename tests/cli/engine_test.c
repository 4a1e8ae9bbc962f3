/* SPDX-License-Identifier: MIT */
/*
 * engine_test.c - the command on the engine at HOLDFAST_TEST_URL, which a
 * script with_ENGINE.sh has started: what a user tries first.
 *
 * What a lock means there is the contract's subject, not ours.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "holdfast.h"
#include "test.h"

static void use_engine(void)
{
    const char *url = getenv("HOLDFAST_TEST_URL");

    ASSERT_NOT_NULL(url);
    command_variable("HOLDFAST_URL", url);
}

static uint64_t capabilities(void)
{
    hf_client *client;
    hf_error err;
    uint64_t caps;

    ASSERT_OK(hf_open(getenv("HOLDFAST_TEST_URL"), NULL, &client, &err), &err);
    caps = hf_capabilities(client);
    hf_close(client);
    return caps;
}

/* A run of @name that holds until its input is closed. */
static struct command *holder(const char *name)
{
    struct command *run = COMMAND("run", name, "--note", "why not", "--", "sh",
                                  "-c", "echo in; cat >/dev/null");

    command_expect(run, "in\n");
    return run;
}

static void end(struct command *run)
{
    command_close_input(run);
    ASSERT_EQ(command_wait(run), 0);
}

TEST(engine, runs_one_command_at_a_time)
{
    struct command *first;
    struct command *second;

    use_engine();
    first = holder("cli/one");
    FINISH(75, "run", "-n", "cli/one", "--", "true");
    FINISH(0, "run", "-n", "cli/other", "--", "true");
    second = COMMAND("run", "cli/one", "--", "echo", "next");
    end(first);
    ASSERT_EQ(command_wait(second), 0);
    ASSERT_HAS(command_out(second), "next\n");
    FINISH(3, "run", "-n", "cli/one", "--", "sh", "-c", "exit 3");
}

/* Some see the holders alone. The name is one also where keys are UUIDs. */
static void tells_a_part(void)
{
    static const char name[] = "0b6e1d2c-9f3a-4c5d-8e7f-001122334455";
    struct command *run = holder(name);
    struct command *ls = COMMAND("ls");

    if (command_wait(ls) == 0)
        ASSERT_HAS(command_out(ls), name);
    else
        ASSERT_HAS(command_err(ls), "holdfast engines");
    end(run);
    ls = COMMAND("ls");
    if (command_wait(ls) == 0)
        ASSERT_NULL(strstr(command_out(ls), name));
}

/* holdfast(1) says which engines know when a lease was renewed. */
static void tells_of_its_life(const char *json)
{
    const char *url = getenv("HOLDFAST_TEST_URL");
    bool knows = strncmp(url, "redis", 5) == 0 ||
                 strncmp(url, "redlock", 7) == 0 ||
                 strstr(url, "mode=table") != NULL;

    ASSERT_TRUE(strstr(json, "\"life\":\"alive\"") ||
                strstr(json, "\"life\":\"leased\""));
    ASSERT_HAS(json, "\"queue\":[]");
    if (knows && strncmp(url, "mysql", 5) != 0 && !strstr(url, "dialect="))
        ASSERT_HAS(json, "\"renewed_ms\":");
}

TEST(engine, tells_who_holds_it)
{
    struct command *run;

    use_engine();
    if (!(capabilities() & HF_CAP_LIST)) {
        tells_a_part();
        return;
    }
    run = holder("cli/seen");
    FINISH(75, "test", "cli/seen");
    ASSERT_HAS(command_out(FINISH(0, "ls", "cli/")), "cli/seen");
    ASSERT_HAS(command_out(FINISH(0, "show", "cli/seen")), "why not");
    tells_of_its_life(command_out(FINISH(0, "show", "cli/seen", "--json")));
    end(run);
    FINISH(0, "test", "cli/seen");
    ASSERT_NULL(strstr(command_out(FINISH(0, "ls", "cli/")), "cli/seen"));
}

TEST(engine, is_watched_on_a_terminal)
{
    struct command *run;
    struct command *top;

    use_engine();
    run = holder("0b6e1d2c-9f3a-4c5d-8e7f-001122334456");
    top = TERMINAL(HOLDFAST_COMMAND, "top");
    if (command_wait(COMMAND("ls")) == 0) {
        command_expect(top, "0b6e1d2c-9f3a");
        command_expect(top, "q quit");
        command_type(top, "q");
        ASSERT_EQ(command_wait(top), 0);
    } else {
        ASSERT_EQ(command_wait(top), 78);
        ASSERT_HAS(command_out(top), "holdfast engines");
        ASSERT_NULL(strstr(command_out(top), "\033[?1049h"));
    }
    end(run);
}

TEST(engine, keeps_versions)
{
    struct command *commit;
    char version[32];

    use_engine();
    if (!(capabilities() & HF_CAP_VERSIONS)) {
        commit = COMMAND("version", "cli/doc");
        ASSERT_NE(command_wait(commit), 0);
        ASSERT_HAS(command_err(commit), "holdfast engines");
        return;
    }
    ASSERT_STREQ(command_out(FINISH(0, "version", "cli/doc")), "0\n");
    commit = FINISH(0, "version", "cli/doc", "--commit", "0");
    (void)snprintf(version, sizeof(version), "%s", command_out(commit));
    ASSERT_STREQ(command_out(FINISH(0, "version", "cli/doc")), version);
    FINISH(1, "version", "cli/doc", "--commit", "0");
}

TEST(engine, is_examined)
{
    struct command *doctor;
    int code;

    use_engine();
    doctor = COMMAND("doctor");
    code = command_wait(doctor);
    if (code != 0)
        ASSERT_EQ(code, 1); /* warnings: it is a server for tests */
    ASSERT_HAS(command_out(doctor), "✔");
}

TEST(engine, is_measured)
{
    struct command *bench;

    use_engine();
    bench = FINISH(0, "bench", "--scenario", "pair", "--seconds", "0.2");
    ASSERT_HAS(command_out(bench), "pair");
}

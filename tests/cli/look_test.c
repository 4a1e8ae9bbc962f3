/* SPDX-License-Identifier: MIT */
/*
 * look_test.c - the verbs that look: test, ls, show, check, version, engines,
 * doctor; and the one that acts on what was seen: break.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "test.h"
#include "test_client.h"

static struct command *holder(const char *name)
{
    return command_holder(name, "why not");
}

TEST(look, test_says_free_and_held)
{
    struct command *run;

    FINISH(0, "test", "x");
    run = holder("x");
    FINISH(75, "test", "x");
    FINISH(0, "test", "y");
    ASSERT_STREQ(command_out(FINISH(75, "test", "x")), "");
    command_close_input(run);
    ASSERT_EQ(command_wait(run), 0);
    FINISH(0, "test", "x");
}

TEST(look, test_says_free_while_a_slot_is)
{
    struct command *one =
        COMMAND("run", "--slots", "2", "s", "--", "sh", "-c", "echo in; cat");
    struct command *two;

    command_expect(one, "in\n");
    FINISH(0, "test", "s");
    two = COMMAND("run", "--slots", "2", "s", "--", "sh", "-c", "echo in; cat");
    command_expect(two, "in\n");
    FINISH(75, "test", "s");
}

TEST(look, ls_lists_holders_in_columns)
{
    struct command *first = holder("deploy/web");
    struct command *second = holder("nightly");
    struct command *ls = FINISH(0, "ls");

    ASSERT_HAS(command_out(ls), "NAME");
    ASSERT_HAS(command_out(ls), "deploy/web  exclusive");
    ASSERT_HAS(command_out(ls), "nightly     exclusive");
    ASSERT_HAS(command_out(ls), "(tester)");
    ASSERT_HAS(command_out(ls), "why not");
    ASSERT_NULL(strchr(command_out(ls), '\033'));
    ls = FINISH(0, "ls", "nig");
    ASSERT_HAS(command_out(ls), "nightly");
    ASSERT_NULL(strstr(command_out(ls), "deploy"));
    ls = FINISH(0, "ls", "--names");
    ASSERT_HAS(command_out(ls), "nightly\n");
    command_close_input(first);
    command_close_input(second);
    ASSERT_EQ(command_wait(first), 0);
    ASSERT_EQ(command_wait(second), 0);
    ASSERT_STREQ(command_out(FINISH(0, "ls")), "");
}

TEST(look, ls_json_has_the_fields_that_are_promised)
{
    struct command *run = holder("x");
    struct command *ls = FINISH(0, "ls", "--json");
    char token[64];
    char pid[64];

    ASSERT_HAS(command_out(ls), "{\"name\":\"x\",\"mode\":\"exclusive\",");
    snprintf(token, sizeof(token), "\"token\":\"%s\",", command_token(run));
    ASSERT_HAS(command_out(ls), token);
    ASSERT_HAS(command_out(ls), "\"holders\":[{\"owner\":\"tester@");
    ASSERT_HAS(command_out(ls), "\"host\":\"");
    snprintf(pid, sizeof(pid), "\"pid\":%d,", (int)command_pid(run));
    ASSERT_HAS(command_out(ls), pid);
    ASSERT_HAS(command_out(ls), "\"note\":\"why not\"");
    ASSERT_HAS(command_out(ls), "\"held_ms\":");
    ASSERT_HAS(command_out(ls), "\"lease_ms\":");
    ASSERT_HAS(command_out(ls), "\"waiters\":0,\"slots\":0}\n");
    ASSERT_STREQ(command_err(ls), "");
}

TEST(look, show_lists_the_queue_in_order)
{
    struct command *run = holder("x");
    struct command *waiter = COMMAND("run", "x", "--", "true");
    struct command *show;
    const char *at;

    do
        show = FINISH(0, "show", "x");
    while (!strstr(command_out(show), "1. in line"));
    at = strstr(command_out(show), "holder");
    ASSERT_NOT_NULL(at);
    ASSERT_HAS(at, "1. in line");
    ASSERT_HAS(at, "alive");
    command_close_input(run);
    ASSERT_EQ(command_wait(run), 0);
    ASSERT_EQ(command_wait(waiter), 0);
    show = FINISH(0, "show", "x");
    ASSERT_STREQ(command_out(show), "x is free\n");
}

TEST(look, show_json_has_queue_life_and_command)
{
    struct command *run = holder("x");
    struct command *waiter =
        COMMAND("run", "x", "--note", "next", "--", "true");
    struct command *show;
    char text[128];

    do
        show = FINISH(0, "show", "x", "--json");
    while (!strstr(command_out(show), "\"waiters\":1"));
    ASSERT_HAS(command_out(show), "\"life\":\"alive\"");
    snprintf(text, sizeof(text), " run x --note why not -- sh -c ");
    ASSERT_HAS(command_out(show), "\"command\":\"");
    ASSERT_HAS(command_out(show), text);
    snprintf(text, sizeof(text), "\"pid\":%d,\"note\":\"next\",\"waited_ms\":",
             (int)command_pid(waiter));
    ASSERT_HAS(strstr(command_out(show), "\"queue\":[{"), text);
    ASSERT_HAS(command_out(show),
               "\"place\":1,\"mode\":\"exclusive\",\"life\":\"alive\"");
    ASSERT_HAS(command_out(FINISH(0, "show", "x")), " run x --note why not");
    command_close_input(run);
    ASSERT_EQ(command_wait(run), 0);
    ASSERT_EQ(command_wait(waiter), 0);
    show = FINISH(0, "show", "x", "--json");
    ASSERT_STREQ(command_out(show),
                 "{\"name\":\"x\",\"mode\":\"free\",\"token\":\"0\","
                 "\"holders\":[],\"waiters\":0,\"queue\":[],\"slots\":0}\n");
}

TEST(look, odd_names_are_shown_escaped)
{
    struct command *run = holder("caf\xc3\xa9 \xe2\x80\xae \"q\"");
    struct command *ls = FINISH(0, "ls");

    ASSERT_HAS(command_out(ls), "caf\xc3\xa9 \\u{202e} \"q\"");
    ASSERT_NULL(strstr(command_out(ls), "\xe2\x80\xae"));
    ls = FINISH(0, "ls", "--json");
    ASSERT_HAS(command_out(ls), "\\\"q\\\"");
    command_close_input(run);
    ASSERT_EQ(command_wait(run), 0);
}

TEST(look, check_tells_a_current_token_from_an_old_one)
{
    struct command *run = holder("x");
    char *token = strdup(command_token(run));

    FINISH(0, "check", "x", token);
    FINISH(1, "check", "x", "1");
    FINISH(1, "check", "y", token);
    FINISH(64, "check", "x", "one");
    ASSERT_HAS(command_out(FINISH(0, "check", "x", token, "--json")),
               "\"current\":true");
    command_close_input(run);
    ASSERT_EQ(command_wait(run), 0);
    FINISH(1, "check", "x", token);
    free(token);
}

TEST(look, break_takes_the_lock_from_the_holder_with_that_token)
{
    struct command *run = holder("x");
    struct command *breaking;

    FINISH(64, "break", "x");
    FINISH(64, "break", "x", "--token", command_token(run));
    FINISH(64, "break", "x", "--token", command_token(run), "--confirm=y");
    breaking = FINISH(1, "break", "x", "--token", "1", "--confirm=x");
    ASSERT_HAS(command_err(breaking), "another token");
    FINISH(75, "test", "x");
    breaking = FINISH(0, "break", "x", "--token", command_token(run),
                      "--confirm=x", "--json");
    ASSERT_HAS(command_out(breaking),
               "{\"event\":\"broken\",\"name\":\"x\",\"token\":\"");
    ASSERT_HAS(command_err(breaking), "ALIVE");
    ASSERT_HAS(command_err(breaking), "why not");
    FINISH(0, "run", "-w", "10", "x", "--", "true");
    breaking =
        FINISH(1, "break", "x", "--token", command_token(run), "--confirm=x");
    ASSERT_HAS(command_err(breaking), "nobody holds");
}

TEST(look, break_never_takes_the_lock_from_a_new_holder)
{
    struct command *old = holder("x");
    char *token = strdup(command_token(old));
    struct command *new;

    command_close_input(old);
    ASSERT_EQ(command_wait(old), 0);
    new = holder("x");
    FINISH(1, "break", "x", "--token", token, "--confirm=x");
    FINISH(0, "check", "x", command_token(new));
    free(token);
}

TEST(look, version_is_compared_and_bumped)
{
    struct command *read = FINISH(0, "version", "doc");
    struct command *commit;
    char first[32];

    ASSERT_STREQ(command_out(read), "0\n");
    commit = FINISH(0, "version", "doc", "--commit", "0");
    snprintf(first, sizeof(first), "%s", command_out(commit));
    ASSERT_GT(atoll(first), 0);
    ASSERT_STREQ(command_out(FINISH(0, "version", "doc")), first);
    commit = FINISH(1, "version", "doc", "--commit", "0");
    ASSERT_STREQ(command_out(commit), "");
    first[strcspn(first, "\n")] = '\0';
    FINISH(0, "version", "doc", "--commit", first);
    ASSERT_HAS(command_out(FINISH(0, "version", "doc", "--json")),
               "{\"name\":\"doc\",\"version\":\"");
}

TEST(look, engines_says_what_each_promises)
{
    struct command *engines = FINISH(0, "engines");

    ASSERT_HAS(command_out(engines), "local");
    ASSERT_HAS(command_out(engines), "fenced");
    engines = FINISH(0, "engines", "--json");
    ASSERT_HAS(command_out(engines), "{\"engine\":\"local\",\"schemes\":[");
    ASSERT_HAS(command_out(engines), "\"dialects\":[");
    ASSERT_HAS(command_out(engines), "\"capabilities\":[\"fenced\"");
}

TEST(look, doctor_finds_nothing_wrong_here)
{
    struct command *doctor = FINISH(0, "doctor", "--json");

    ASSERT_HAS(command_out(doctor),
               "{\"check\":\"reachable\",\"status\":\"ok\",\"detail\":\"");
    ASSERT_HAS(command_out(doctor), "{\"check\":\"lock\",\"status\":\"ok\"");
    ASSERT_HAS(command_out(doctor), "\"fix\":\"\"}");
    ASSERT_HAS(command_out(doctor), "{\"check\":\"directory\"");
    doctor = FINISH(0, "doctor", command_url());
    ASSERT_HAS(command_out(doctor), "✔ reachable");
}

TEST(look, doctor_says_how_to_fix_what_is_wrong)
{
    struct command *doctor = FINISH(2, "doctor", "local:///proc/nowhere");

    ASSERT_HAS(command_out(doctor), "✖ reachable");
    ASSERT_HAS(command_out(doctor), "  fix: ");
    doctor = FINISH(2, "doctor", "nosuch:", "--json");
    ASSERT_HAS(command_out(doctor), "\"status\":\"fail\"");
}

/* What a terminal obeys: control characters, and marks of text direction. */
static void assert_harmless(const char *text)
{
    for (const char *at = text; *at; at++)
        ASSERT_TRUE((unsigned char)*at >= 0x20 || *at == '\n');
    ASSERT_NULL(strstr(text, "\xc2\x9b"));
    ASSERT_NULL(strstr(text, "\xe2\x80\xae"));
    ASSERT_NULL(strstr(text, "\xe2\x80\xa8"));
    ASSERT_NULL(strstr(text, "\xf3\xa0\x80\x81"));
    ASSERT_NULL(strchr(text, '\xff'));
}

TEST(look, doctor_blames_rights_only_for_what_rights_are)
{
    static const char *const faults[][2] = {
        {"EAUTH", "rights of this user"},
        {"EUNAVAILABLE", "which server does not take part"},
        {"ENOSPACE", "more room"}};

    for (size_t i = 0; i < 3; i++) {
        char url[512];
        struct command *doctor;

        snprintf(url, sizeof(url), "fault+%s?fault=acquire:fail=%s",
                 command_url(), faults[i][0]);
        doctor = FINISH(2, "doctor", url);
        ASSERT_HAS(command_out(doctor), faults[i][1]);
        if (i > 0)
            ASSERT_NULL(strstr(command_out(doctor), faults[0][1]));
    }
}

TEST(look, escapes_of_a_hostile_store_do_not_reach_the_terminal)
{
    static const char *const lines[][4] = {{"ls"},
                                           {"ls", "--json"},
                                           {"ls", "--names"},
                                           {"show", "k"},
                                           {"show", "k", "--json"}};
    struct command *server =
        PROGRAM("python3", HOLDFAST_SOURCE "/tests/cli/hostile_redis.py");
    char url[64];

    snprintf(url, sizeof(url), "redis://127.0.0.1:%ld",
             command_number(server, "port="));
    command_variable("HOLDFAST_URL", url);
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        struct command *look = command_finish(lines[i], 0);

        ASSERT_HAS(command_out(look), "\\"); /* something is escaped */
        assert_harmless(command_out(look));
        assert_harmless(command_err(look));
    }
}

TEST(look, escapes_of_a_command_line_do_not_reach_the_terminal)
{
    struct command *run = COMMAND("run", "x", "--", "sh", "-c", "echo in; cat",
                                  "\033]0;evil\007\xe2\x80\xae\xff");
    struct command *show;

    command_expect(run, "in\n");
    show = FINISH(0, "show", "x");
    ASSERT_HAS(command_out(show), "\\x1b]0;evil\\x07\\u{202e}\\xff");
    assert_harmless(command_out(show));
    show = FINISH(0, "show", "x", "--json");
    ASSERT_HAS(command_out(show), "]0;evil");
    assert_harmless(command_out(show));
    command_close_input(run);
    ASSERT_EQ(command_wait(run), 0);
}

/* A change that @watch is not told of costs it 30 s. */
static void show_changes(struct command *watch)
{
    struct command *other;
    struct command *hold = COMMAND("hold", "seen-later");

    command_expect(hold, "held");
    command_expect(watch, "seen-later  held by ");
    command_expect(watch, "(tester), token ");
    other = COMMAND("hold", "another");
    command_expect(watch, "another  held by ");
    command_close_input(hold);
    ASSERT_EQ(command_wait(hold), 0);
    command_expect(watch, "seen-later  free\n");
    command_close_input(other);
    ASSERT_EQ(command_wait(other), 0);
    command_expect(watch, "another  free\n");
    /* Each change is one line, and nothing else is. */
    ASSERT_EQ(lines_in(command_out(watch)), 4);
    command_signal(watch, SIGTERM);
    ASSERT_EQ(command_wait(watch), 128 + SIGTERM);
    ASSERT_STREQ(command_err(watch), "");
}

TEST(look, ls_is_told_what_changes)
{
    show_changes(COMMAND("ls", "--watch"));
}

TEST(look, ls_looks_at_a_pace_for_what_changes)
{
    show_changes(COMMAND("ls", "--watch", "--interval", "10ms"));
    FINISH(64, "ls", "--watch", "--interval", "0");
}

TEST(look, ls_that_nobody_reads_ends)
{
    struct command *run = holder("x");
    struct command *shell =
        PROGRAM("sh", "-c", "\"$0\" ls --watch | head -n 1", HOLDFAST_COMMAND);

    ASSERT_EQ(command_wait(shell), 0); /* nothing has changed meanwhile */
    ASSERT_HAS(command_out(shell), "x  held by ");
    command_close_input(run);
    ASSERT_EQ(command_wait(run), 0);
}

TEST(look, ls_watches_in_json_and_by_names)
{
    struct command *json =
        COMMAND("ls", "--watch", "--interval", "10ms", "--json");
    struct command *names =
        COMMAND("ls", "--watch", "--interval", "10ms", "--names");
    struct command *hold = COMMAND("hold", "x");

    command_expect(hold, "held");
    command_expect(json, "{\"name\":\"x\",\"mode\":\"exclusive\",");
    command_expect(names, "x\n");
    command_close_input(hold);
    ASSERT_EQ(command_wait(hold), 0);
    command_expect(json, "{\"name\":\"x\",\"mode\":\"free\",");
    command_expect(names, "x\nx\n");
    command_signal(json, SIGINT);
    ASSERT_EQ(command_wait(json), 128 + SIGINT);
}

TEST(look, ls_on_a_terminal_shows_no_more_than_fits)
{
    char name[] = "lock-00";
    struct command *last = NULL;
    struct command *watch;

    for (int i = 0; i < 30; i++) {
        snprintf(name, sizeof(name), "lock-%02d", i);
        last = COMMAND("hold", name);
        command_expect(last, "held");
    }
    watch = TERMINAL("sh", "-c", "stty rows 10 cols 80; exec \"$0\" ls --watch",
                     HOLDFAST_COMMAND);
    command_expect(watch, "30 on ");
    ASSERT_HAS(command_out(watch), "lock-06");
    ASSERT_NULL(strstr(command_out(watch), "lock-07"));
    command_type(watch, "\003");
    ASSERT_EQ(command_wait(watch), 128 + SIGINT);
}

/* In a mount namespace of its own; skipped where there is none to have. */
TEST(look, read_only_directory_gets_a_true_sentence)
{
    struct command *shell;
    char line[1024];

    command_dir();
    snprintf(line, sizeof(line),
             "mkdir $HOME/ro && mount -t tmpfs -o ro none $HOME/ro || exit 0; "
             "exec %s run x -u local://$HOME/ro/a -- true",
             HOLDFAST_COMMAND);
    shell = PROGRAM("unshare", "-rm", "sh", "-c", line);
    if (command_wait(shell) != 77 && !strstr(command_err(shell), "holdfast:"))
        return;
    ASSERT_HAS(command_err(shell), "ro/a: Read-only file system");
    ASSERT_NULL(strstr(command_err(shell), "password_file"));
}

/* As another user, where this one may become it and that one may run us. */
TEST(look, foreign_directory_gets_a_true_sentence)
{
    struct command *shell;
    char line[1024];

    command_dir();
    snprintf(line, sizeof(line),
             "D=$(mktemp -d) && trap 'rmdir $D' EXIT && chmod $MODE $D && "
             "setpriv --reuid 65534 --clear-groups %s --version >/dev/null && "
             "setpriv --reuid 65534 --clear-groups %s run x -u local://$D -- "
             "true; echo code=$?",
             HOLDFAST_COMMAND, HOLDFAST_COMMAND);
    command_variable("MODE", "0755");
    shell = PROGRAM("sh", "-c", line);
    command_wait(shell);
    if (!strstr(command_err(shell), "holdfast: "))
        return;
    ASSERT_HAS(command_err(shell), "Permission denied; name a directory that");
    ASSERT_NULL(strstr(command_err(shell), "password"));
    ASSERT_HAS(command_out(shell), "code=77\n");

    command_variable("MODE", "0777");
    shell = PROGRAM("sh", "-c", line);
    command_wait(shell);
    ASSERT_HAS(command_err(shell), "has mode 0777: others could break");
    ASSERT_HAS(command_out(shell), "code=78\n");
}

/* ---- deadlocks ------------------------------------------------------------ */

static bool doctor_warns(void)
{
    struct command *doctor = COMMAND("doctor");

    return command_wait(doctor) == 1 &&
           strstr(command_out(doctor), "deadlock") != NULL;
}

TEST(look, show_and_doctor_name_a_deadlock)
{
    hf_client *client = client_open(command_url());
    hf_opts one = HF_OPTS_INIT;
    hf_opts two = HF_OPTS_INIT;
    hf_request *requests[2];
    struct command *show;
    hf_hold *holds[2];
    hf_error err;

    one.owner_id = hf_owner_new();
    two.owner_id = hf_owner_new();
    ASSERT_OK(hf_acquire(client, "alice", &one, &holds[0], &err), &err);
    ASSERT_OK(hf_acquire(client, "bob", &two, &holds[1], &err), &err);
    ASSERT_OK(
        hf_acquire_start(client, "bob", &one, NULL, NULL, &requests[0], &err),
        &err);
    ASSERT_OK(
        hf_acquire_start(client, "alice", &two, NULL, NULL, &requests[1], &err),
        &err);
    EVENTUALLY(doctor_warns());
    show = FINISH(0, "show", "alice");
    ASSERT_HAS(command_out(show), "deadlock: ");
    ASSERT_HAS(command_out(show), " waits for alice");
    hf_request_free(requests[0]);
    hf_request_free(requests[1]);
    client_release(holds[0]);
    client_release(holds[1]);
    show = FINISH(0, "show", "alice");
    ASSERT_NULL(strstr(command_out(show), "deadlock"));
}

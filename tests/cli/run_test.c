/* SPDX-License-Identifier: MIT */
/*
 * run_test.c - holdfast run: what the child gets, and what its end means.
 */
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "command.h"
#include "test.h"

TEST(run, prints_what_the_command_prints_and_nothing_else)
{
    struct command *run = FINISH(0, "run", "x", "--", "echo", "I hold it");

    ASSERT_STREQ(command_out(run), "I hold it\n");
    ASSERT_STREQ(command_err(run), "");
}

TEST(run, passes_exit_codes_through)
{
    FINISH(0, "run", "x", "--", "true");
    FINISH(1, "run", "x", "--", "false");
    FINISH(75, "run", "x", "--", "sh", "-c", "exit 75");
    FINISH(79, "run", "x", "--", "sh", "-c", "exit 79");
    FINISH(255, "run", "x", "--", "sh", "-c", "exit 255");
}

TEST(run, says_128_plus_n_when_a_signal_ended_the_command)
{
    FINISH(128 + SIGKILL, "run", "x", "--", "sh", "-c", "kill -KILL $$");
    FINISH(128 + SIGTERM, "run", "x", "--", "sh", "-c", "kill -TERM $$");
    FINISH(128 + SIGSEGV, "run", "x", "--", "sh", "-c", "kill -SEGV $$");
}

TEST(run, tells_a_missing_command_from_one_that_cannot_run)
{
    struct command *run = FINISH(127, "run", "x", "--", "/no/such/program");

    ASSERT_HAS(command_err(run), "not found");
    FINISH(127, "run", "x", "--", "no-such-program");
    FINISH(126, "run", "x", "--", "/");
    file_write(command_path("plain"), "not a program");
    FINISH(126, "run", "x", "--", command_path("plain"));
    FINISH(0, "test", "x");
}

TEST(run, takes_a_line_of_shell)
{
    struct command *run =
        FINISH(3, "run", "x", "-c", "echo $HOLDFAST_NAME; exit 3");

    ASSERT_STREQ(command_out(run), "x\n");
}

TEST(run, needs_no_dashes_before_the_command)
{
    struct command *run = FINISH(0, "run", "x", "echo", "-n", "--", "hi");

    ASSERT_STREQ(command_out(run), "-- hi");
}

TEST(run, accepts_options_before_and_behind_the_verb_and_the_name)
{
    FINISH(0, "-u", command_url(), "run", "x", "--", "true");
    FINISH(0, "run", "-u", command_url(), "x", "--", "true");
    FINISH(0, "run", "x", "-u", command_url(), "-n", "--", "true");
    FINISH(0, "run", "x", "-nxq", "--ttl=5s", "--wait", "0", "--", "true");
    FINISH(0, "run", "x", "-w1.5", "--", "true");
}

TEST(run, gives_stdin_to_the_command)
{
    struct command *run = COMMAND("run", "x", "--", "cat");

    command_type(run, "through the pipe");
    command_close_input(run);
    ASSERT_EQ(command_wait(run), 0);
    ASSERT_STREQ(command_out(run), "through the pipe");
}

TEST(run, tells_the_command_what_it_holds)
{
    struct command *run = FINISH(0, "run", "jobs/1", "--ttl", "7s", "--", "sh",
                                 "-c", "env | grep ^HOLDFAST_");
    const char *out = command_out(run);

    ASSERT_HAS(out, "HOLDFAST_NAME=jobs/1\n");
    ASSERT_HAS(out, "HOLDFAST_TOKEN=");
    ASSERT_HAS(out, "HOLDFAST_OWNER=tester@");
    ASSERT_HAS(out, "HOLDFAST_ENGINE=local\n");
    ASSERT_HAS(out, "HOLDFAST_TTL_MS=7000\n");
    run = FINISH(0, "run", "x", "--", "sh", "-c", "echo $HOLDFAST_TTL_MS");
    ASSERT_STREQ(command_out(run), "30000\n");
}

TEST(run, gives_a_larger_token_each_time)
{
    struct command *first =
        FINISH(0, "run", "x", "--", "sh", "-c", "echo $HOLDFAST_TOKEN");
    struct command *second =
        FINISH(0, "run", "x", "--", "sh", "-c", "echo $HOLDFAST_TOKEN");

    ASSERT_GT(atoll(command_out(second)), atoll(command_out(first)));
}

TEST(run, leaves_no_descriptor_to_the_command)
{
    static const char script[] = "ls /proc/$$/fd; true";
    struct command *bare = PROGRAM("sh", "-c", script);
    struct command *run = FINISH(0, "run", "x", "--", "sh", "-c", script);

    ASSERT_EQ(command_wait(bare), 0);
    ASSERT_STREQ(command_out(run), command_out(bare));
}

TEST(run, excludes_another_run)
{
    struct command *first =
        COMMAND("run", "x", "--", "sh", "-c", "echo in; cat");

    command_expect(first, "in\n");
    FINISH(75, "run", "-n", "x", "--", "true");
    FINISH(75, "run", "-w", "0.05", "x", "--", "true");
    FINISH(42, "run", "-n", "-E", "42", "x", "--", "true");
    FINISH(0, "run", "-n", "y", "--", "true");
    command_close_input(first);
    ASSERT_EQ(command_wait(first), 0);
    FINISH(0, "run", "-n", "x", "--", "true");
}

TEST(run, waits_for_its_turn)
{
    struct command *first =
        COMMAND("run", "x", "--", "sh", "-c", "echo in; cat");
    struct command *second;

    command_expect(first, "in\n");
    second = COMMAND("run", "x", "--", "echo", "second");
    while (atoi(strstr(command_out(FINISH(0, "show", "x", "--json")),
                       "\"waiters\":") +
                10) == 0)
        continue;
    ASSERT_STREQ(command_out(second), "");
    command_close_input(first);
    ASSERT_EQ(command_wait(first), 0);
    ASSERT_EQ(command_wait(second), 0);
    ASSERT_STREQ(command_out(second), "second\n");
    ASSERT_STREQ(command_err(second), "");
}

TEST(run, says_who_holds_it_and_what_to_try_when_busy)
{
    struct command *first = COMMAND("run", "x", "--note", "vacuum", "--", "sh",
                                    "-c", "echo in; cat");
    struct command *second;

    command_expect(first, "in\n");
    second = FINISH(75, "run", "-n", "x", "--", "true");
    ASSERT_STREQ(command_out(second), "");
    ASSERT_HAS(command_err(second), "\"x\" is held by");
    ASSERT_HAS(command_err(second), "(tester)");
    ASSERT_HAS(command_err(second), "vacuum");
    ASSERT_HAS(command_err(second), "holdfast show x");
    ASSERT_HAS(command_err(second), "holdfast break x --token");
    ASSERT_NULL(strchr(command_err(second), '\033'));
    second = FINISH(75, "run", "-n", "-q", "x", "--", "true");
    ASSERT_STREQ(command_err(second), "");
}

TEST(run, with_skip_ok_is_silent_and_successful_when_busy)
{
    struct command *first =
        COMMAND("run", "x", "--", "sh", "-c", "echo in; cat");
    struct command *second;

    command_expect(first, "in\n");
    second = FINISH(0, "run", "-n", "--skip-ok", "x", "--", "echo", "no");
    ASSERT_STREQ(command_out(second), "");
    ASSERT_STREQ(command_err(second), "");
}

TEST(run, lets_readers_in_together_and_slots_up_to_their_number)
{
    struct command *one =
        COMMAND("run", "-s", "r", "--", "sh", "-c", "echo in; cat");
    struct command *two;

    command_expect(one, "in\n");
    FINISH(0, "run", "-s", "-n", "r", "--", "true");
    FINISH(75, "run", "-x", "-n", "r", "--", "true");

    two = COMMAND("run", "--slots", "2", "s", "--", "sh", "-c", "echo in; cat");
    command_expect(two, "in\n");
    FINISH(0, "run", "--slots", "2", "-n", "s", "--", "true");
    two = COMMAND("run", "--slots", "2", "s", "--", "sh", "-c", "echo in; cat");
    command_expect(two, "in\n");
    FINISH(75, "run", "--slots", "2", "-n", "s", "--", "true");
}

TEST(run, keeps_the_lock_for_hold_at_least)
{
    long start = now_ms();

    FINISH(0, "run", "x", "--hold-at-least", "300ms", "--", "true");
    ASSERT_GE(now_ms() - start, 300);
}

TEST(run, stops_the_command_at_max_hold)
{
    long start = now_ms();
    struct command *run =
        FINISH(124, "run", "x", "--max-hold", "200ms", "--", "sleep", "100");

    ASSERT_LT(now_ms() - start, 5000);
    ASSERT_HAS(command_err(run), "raise --max-hold");
    FINISH(0, "test", "x");
}

TEST(run, kills_what_ignores_the_end_of_max_hold)
{
    FINISH(124, "run", "x", "--max-hold", "200ms", "--kill-after", "200ms",
           "--", "sh", "-c", "trap '' TERM; while :; do sleep 1; done");
}

TEST(run, refuses_a_name_that_an_ancestor_holds)
{
    struct command *run = FINISH(64, "run", "x", "--", HOLDFAST_COMMAND, "run",
                                 "x", "--", "true");

    ASSERT_HAS(command_err(run), "already held by an ancestor");
    FINISH(0, "run", "x", "--", HOLDFAST_COMMAND, "run", "y", "--", "true");
}

TEST(run, forgets_an_ancestor_whose_lock_is_gone)
{
    command_bereave("x");
    FINISH(0, "run", "x", "--", "true");
}

static void assert_report(const char *outcome, const char *rest)
{
    const char *report = file_text(command_path("report"));

    ASSERT_HAS(report, outcome);
    ASSERT_HAS(report, rest);
    ASSERT_HAS(report, "\"waited_ms\":");
    ASSERT_HAS(report, "\"held_ms\":");
    ASSERT_HAS(report, "\"token\":\"");
}

TEST(run, reports_how_it_went)
{
    const char *path = strdup(command_path("report"));
    struct command *first;

    FINISH(75, "run", "x", "--report", path, "--", "sh", "-c", "exit 75");
    assert_report("\"outcome\":\"done\"", "\"exit_code\":75,\"signal\":0");
    FINISH(137, "run", "x", "--report", path, "--", "sh", "-c", "kill -9 $$");
    assert_report("\"outcome\":\"done\"", "\"signal\":9");
    first = COMMAND("run", "x", "--", "sh", "-c", "echo in; cat");
    command_expect(first, "in\n");
    FINISH(75, "run", "-n", "x", "--report", path, "--", "true");
    assert_report("\"outcome\":\"busy\"", "\"exit_code\":75");
    FINISH(124, "run", "y", "--max-hold", "50ms", "--report", path, "--",
           "sleep", "100");
    assert_report("\"outcome\":\"max_hold\"", "\"exit_code\":124");
    free((void *)(uintptr_t)path);
}

static void end_by_signal_while_running(int signo)
{
    struct command *run = COMMAND("run", "x", "--", "sh", "-c",
                                  "echo pid=$$; sleep 100 & echo bg=$!; "
                                  "exec sleep 100");
    pid_t child = (pid_t)command_number(run, "pid=");
    pid_t other = (pid_t)command_number(run, "bg=");

    command_signal(run, signo);
    ASSERT_EQ(command_wait(run), 128 + signo);
    ASSERT_FALSE(process_lives(child));
    ASSERT_FALSE(process_lives(other));
    FINISH(0, "test", "x");
}

TEST(run, forwards_signals_and_leaves_nothing_behind)
{
    end_by_signal_while_running(SIGTERM);
    end_by_signal_while_running(SIGHUP);
    end_by_signal_while_running(SIGINT);
    end_by_signal_while_running(SIGQUIT);
}

TEST(run, forwards_usr1_and_goes_on)
{
    struct command *run = COMMAND("run", "x", "--", "sh", "-c",
                                  "trap 'echo got' USR1; echo ready; "
                                  "while ! read line; do :; done; echo $line");

    command_expect(run, "ready\n");
    command_signal(run, SIGUSR1);
    command_expect(run, "got\n");
    command_type(run, "more\n");
    command_expect(run, "more\n");
    ASSERT_EQ(command_wait(run), 0);
}

static void end_by_signal_while_waiting(int signo)
{
    struct command *first =
        COMMAND("run", "x", "--", "sh", "-c", "echo in; cat");
    struct command *second;

    command_expect(first, "in\n");
    second = COMMAND("run", "x", "--", "echo", "never");
    while (
        !strstr(command_out(FINISH(0, "show", "x", "--json")), "\"waiters\":1"))
        continue;
    command_signal(second, signo);
    ASSERT_EQ(command_wait(second), 128 + signo);
    ASSERT_STREQ(command_out(second), "");
    ASSERT_HAS(command_out(FINISH(0, "show", "x", "--json")), "\"waiters\":0");
    command_close_input(first);
    ASSERT_EQ(command_wait(first), 0);
}

TEST(run, ends_at_once_when_interrupted_while_waiting)
{
    end_by_signal_while_waiting(SIGTERM);
    end_by_signal_while_waiting(SIGINT);
    end_by_signal_while_waiting(SIGHUP);
    end_by_signal_while_waiting(SIGQUIT);
}

TEST(run, second_interrupt_does_not_wait_for_the_release)
{
    struct command *run = COMMAND("-u", command_faulty_url("release:delay=1h"),
                                  "-o", "io_timeout=1h", "run", "x", "--", "sh",
                                  "-c", "echo pid=$$; exec sleep 100");
    pid_t child = (pid_t)command_number(run, "pid=");

    command_signal(run, SIGINT);
    ASSERT_TRUE(process_ends(child, 5000));
    /* It has to be seen as ended before we ask again. */
    while (process_exists(child))
        continue;
    command_signal(run, SIGINT);
    ASSERT_EQ(command_wait(run), 130);
}

TEST(run, second_interrupt_does_not_wait_for_the_withdrawal)
{
    struct command *second;

    command_holder("x", "");
    second = COMMAND("-u", command_faulty_url("withdraw:delay=1h"), "-o",
                     "io_timeout=1h", "run", "x", "--", "true");
    while (
        !strstr(command_out(FINISH(0, "show", "x", "--json")), "\"waiters\":1"))
        continue;
    /* Two at once may arrive as one. */
    do
        command_signal(second, SIGINT);
    while (!process_ends(command_pid(second), 20));
    ASSERT_EQ(command_wait(second), 130);
}

TEST(run, leaves_background_work_of_a_good_command_alone)
{
    struct command *run = COMMAND("run", "x", "--", "sh", "-c",
                                  "sleep 100 >&- 2>&- & echo bg=$!");
    pid_t other = (pid_t)command_number(run, "bg=");

    ASSERT_EQ(command_wait(run), 0);
    ASSERT_TRUE(process_lives(other));
    kill(other, SIGKILL);
}

TEST(run, keeps_ignored_what_nohup_ignores)
{
    struct command *run =
        PROGRAM("nohup", HOLDFAST_COMMAND, "run", "x", "--", "sh", "-c",
                "kill -HUP $$; echo alive; echo pid=$$; cat");

    command_expect(run, "alive\n");
    command_signal(run, SIGHUP);
    command_close_input(run);
    ASSERT_EQ(command_wait(run), 0);
}

TEST(run, shows_no_secret_of_a_url)
{
    static const char script[] =
        "env; tr '\\0' '\\n' </proc/$$/cmdline; "
        "tr '\\0' '\\n' </proc/$PPID/cmdline; echo end";
    char with_secret[512];
    struct command *run;

    snprintf(with_secret, sizeof(with_secret), "%s?password=hunter2",
             command_url());
    run = FINISH(0, "run", "x", "-vv", "-u", with_secret, "--", "sh", "-c",
                 script);
    ASSERT_HAS(command_out(run), "end\n");
    ASSERT_NULL(strstr(command_out(run), "hunter2"));
    ASSERT_NULL(strstr(command_err(run), "hunter2"));

    command_variable("HOLDFAST_URL", with_secret);
    run = FINISH(0, "run", "x", "-vv", "--", "sh", "-c", script);
    ASSERT_HAS(command_out(run), "end\n");
    ASSERT_NULL(strstr(command_out(run), "hunter2"));
    ASSERT_NULL(strstr(command_err(run), "hunter2"));

    run =
        FINISH(78, "run", "x", "-u", "nosuch://me:hunter2@host/", "--", "true");
    ASSERT_NULL(strstr(command_err(run), "hunter2"));
}

TEST(run, a_holdfast_inside_does_not_fall_back_to_another_engine)
{
    char with_secret[512];

    snprintf(with_secret, sizeof(with_secret), "%s?password=hunter2",
             command_url());
    command_variable("HOLDFAST_URL", with_secret);
    FINISH(75, "run", "x", "--", HOLDFAST_COMMAND, "test", "x");
}

TEST(run, keeps_a_url_without_secret_in_the_environment)
{
    struct command *run =
        FINISH(0, "run", "x", "--", "sh", "-c", "echo $HOLDFAST_URL");

    ASSERT_HAS(command_out(run), command_url());
}

TEST(run, a_mute_server_does_not_outlast_the_wait)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t len = sizeof(address);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct command *run;
    char url[64];

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ASSERT_EQ(bind(listener, (struct sockaddr *)&address, len), 0);
    ASSERT_EQ(listen(listener, 8), 0);
    ASSERT_EQ(getsockname(listener, (struct sockaddr *)&address, &len), 0);
    snprintf(url, sizeof(url), "redis://127.0.0.1:%d", ntohs(address.sin_port));
    run = FINISH(69, "run", "-w", "300ms", "-u", url, "x", "--", "true");
    ASSERT_HAS(command_err(run), "within 300 ms");
    /* What the user says about connecting wins. */
    run = FINISH(69, "run", "-w", "300ms", "-o", "connect_timeout=400ms", "-u",
                 url, "x", "--", "true");
    ASSERT_HAS(command_err(run), "within 400 ms");
    close(listener);
}

/* Asking who holds the lock does not take as long again. */
TEST(run, a_server_that_falls_silent_is_told)
{
    struct command *server;
    struct command *first;
    struct command *run;
    char path[256];
    char url[300];

    if (access("/usr/bin/redis-server", X_OK) != 0)
        return;
    snprintf(path, sizeof(path), "%s", command_path("redis"));
    snprintf(url, sizeof(url), "redis+unix://%s?io_timeout=3s", path);
    server = PROGRAM("/usr/bin/redis-server", "--port", "0", "--unixsocket",
                     path, "--save", "", "--dir", command_dir());
    command_expect(server, "eady to accept connections");
    first = COMMAND("hold", "x", "-u", url);
    command_expect(first, "held");
    run = COMMAND("run", "x", "-w", "3", "-u", url, "--", "true");
    while (!strstr(command_out(FINISH(0, "show", "x", "-u", url)), "in line"))
        continue;
    command_signal(server, SIGSTOP);
    ASSERT_EQ(command_wait(run), 75);
    ASSERT_HAS(command_err(run), "the engine does not answer");
    command_signal(server, SIGKILL);
}

TEST(run, tells_usage_configuration_and_unreachable_apart)
{
    FINISH(64, "run");
    FINISH(64, "run", "x");
    FINISH(64, "run", "x", "--no-such-option", "--", "true");
    FINISH(64, "run", "x", "-w", "soon", "--", "true");
    FINISH(64, "run", "", "--", "true");
    FINISH(64, "run", "a\nb", "--", "true");
    FINISH(64, "run", "-s", "-x", "x", "--", "true");
    FINISH(64, "run", "--slots", "0", "x", "--", "true");
    FINISH(78, "run", "x", "-o", "tttl=5s", "--", "true");
    FINISH(78, "run", "x", "-o", "ttl=5", "--", "true");
    FINISH(78, "run", "x", "-u", "nosuch:", "--", "true");
    FINISH(78, "run", "x", "--require", "distributed", "--", "true");
    FINISH(78, "run", "x", "-u", "local:///proc/nowhere", "--", "true");
}

TEST(run, says_what_to_do_next)
{
    struct command *run = FINISH(64, "run", "x", "--non-block", "--", "true");

    ASSERT_HAS(command_err(run), "did you mean --nonblock?");
    ASSERT_HAS(command_err(run), "holdfast run --help");
    run = FINISH(64, "rum", "x");
    ASSERT_HAS(command_err(run), "did you mean: holdfast run?");
    run = FINISH(78, "run", "x", "-o", "tttl=5s", "--", "true");
    ASSERT_HAS(command_err(run), "did you mean ttl?");
}

TEST(run, tells_of_a_long_wait_off_a_terminal)
{
    struct command *hold = COMMAND("hold", "x", "--note", "a long one");
    struct command *quiet;
    struct command *run;

    command_expect(hold, "held");
    quiet = COMMAND("-q", "run", "x", "--", "true");
    run = COMMAND("run", "x", "--", "true");
    command_expect_err(run, "waiting for \"x\", held by ");
    command_expect_err(run, "a long one");
    command_close_input(hold);
    ASSERT_EQ(command_wait(run), 0);
    ASSERT_EQ(command_wait(quiet), 0);
    ASSERT_STREQ(command_err(quiet), "");
}

TEST(run, hints_are_about_the_same_engine)
{
    char text[700];
    char path[512];
    struct command *hold;
    struct command *run;

    snprintf(path, sizeof(path), "%s", command_path("my.conf"));
    snprintf(text, sizeof(text), "[prod]\nurl = %s\n", command_url());
    file_write(path, text);
    hold = COMMAND("hold", "x");
    command_expect(hold, "held");
    command_variable("HOLDFAST_URL", NULL);
    run = FINISH(75, "run", "-n", "x", "--config", path, "--profile", "prod",
                 "--", "true");
    snprintf(text, sizeof(text), "holdfast --config %s --profile prod show x\n",
             path);
    ASSERT_HAS(command_err(run), text);
    run = FINISH(78, "run", "x", "-u", "local:///no/such", "--", "true");
    ASSERT_HAS(command_err(run), "holdfast -u local:///no/such config show");
    command_close_input(hold);
    ASSERT_EQ(command_wait(hold), 0);
}

TEST(run, takes_the_letters_of_flock)
{
    struct command *hold = COMMAND("hold", "x");

    command_expect(hold, "held");
    FINISH(75, "run", "-e", "--nb", "x", "--", "true");
    FINISH(75, "run", "-e", "--timeout", "0.1", "x", "--", "true");
    FINISH(0, "run", "-F", "y", "--", "true");
    command_close_input(hold);
    ASSERT_EQ(command_wait(hold), 0);
}

TEST(run, shows_each_step_if_asked_twice)
{
    static const char *const steps[] = {
        "opening the engine", "using local:",     "asked for \"x\"",
        "got \"x\" after",    "started process ", "the command ended: 3",
        "releasing \"x\"",    "released \"x\"\n"};
    struct command *run =
        FINISH(3, "-vv", "run", "x", "--", "sh", "-c", "exit 3");
    const char *at = command_err(run);

    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        ASSERT_HAS(at, steps[i]);
        at = strstr(at, steps[i]);
    }
    run = FINISH(3, "-v", "run", "x", "--", "sh", "-c", "exit 3");
    ASSERT_NULL(strstr(command_err(run), "asked for"));
}

TEST(run, reports_to_its_output)
{
    struct command *run =
        FINISH(3, "run", "x", "--report", "-", "--", "sh", "-c", "exit 3");

    ASSERT_HAS(command_out(run), "{\"outcome\":\"done\"");
    ASSERT_HAS(command_out(run), "\"exit_code\":3");
}

TEST(run, refuses_another_number_of_slots)
{
    struct command *hold = COMMAND("hold", "x", "--slots", "2");
    struct command *run;

    command_expect(hold, "held");
    run = FINISH(64, "run", "x", "--slots", "3", "--", "true");
    ASSERT_HAS(command_err(run), "\"x\" has 2 slots");
    ASSERT_HAS(command_err(run), "not 3");
    FINISH(0, "run", "x", "--slots", "2", "--", "true");
    command_close_input(hold);
    ASSERT_EQ(command_wait(hold), 0);
    FINISH(0, "run", "x", "--slots", "3", "--", "true");
}

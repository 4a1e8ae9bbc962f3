/* SPDX-License-Identifier: MIT */
/*
 * top_test.c - holdfast top, on terminals whose screens we read.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "command.h"
#include "test.h"
#include "test_client.h"
#include "tmux.h"

static void end(struct command *run)
{
    command_close_input(run);
    ASSERT_EQ(command_wait(run), 0);
}

/* A shell that runs top, says how it ended and what the terminal is like, and
 * after Enter again. */
static void start_top(int columns, int lines)
{
    command_dir();
    command_variable("H", HOLDFAST_COMMAND);
    tmux_start(columns, lines,
               "trap : INT; while :; do \\$H top --interval 100ms; "
               "echo code=\\$?; stty -a; read a; clear; done");
    tmux_expect("q quit");
}

/* Break the lock under the cursor, which @holder has. */
static void break_it(struct command *holder, const char *answer)
{
    tmux_keys("b");
    tmux_expect("y/n");
    tmux_keys("y");
    tmux_type(command_token(holder));
    tmux_keys("Enter");
    tmux_expect(answer);
    ASSERT_EQ(command_wait(holder), 79);
}

TEST(top, shows_locks_holders_and_queues)
{
    struct command *run;
    struct command *waiter;
    const char *screen;
    char text[64];

    NEEDS_TMUX();
    run = command_holder("nightly", "vacuum of orders");
    waiter = COMMAND("run", "nightly", "--", "true");
    start_top(80, 24);
    screen = tmux_expect("waiters 1");
    ASSERT_EQ(lines_in(screen), 24);
    ASSERT_HAS(screen, "holdfast top  ");
    ASSERT_HAS(screen, command_url());
    ASSERT_HAS(screen, "locks 1, holders 1, waiters 1; every 100ms; by name");
    ASSERT_HAS(screen, "\n *NAME");
    ASSERT_HAS(screen, "\n>nightly");
    snprintf(text, sizeof(text), ":%d", (int)command_pid(run));
    ASSERT_HAS(screen, text);
    ASSERT_HAS(screen, "note: vacuum of orders; command: ");
    snprintf(text, sizeof(text), "(tester), token %s, alive",
             command_token(run));
    ASSERT_HAS(screen, text);

    tmux_keys("Enter");
    screen = tmux_expect("WHO");
    ASSERT_HAS(screen, "\n>holder");
    ASSERT_HAS(screen, "\n 1. in line");
    tmux_keys("Down");
    tmux_expect("\n>1. in line");
    tmux_keys("Escape");
    tmux_expect("HAND/S");
    end(run);
    ASSERT_EQ(command_wait(waiter), 0);
    tmux_expect("no locks here");
    tmux_keys("q");
    tmux_expect("code=0");
}

TEST(top, follows_the_size_of_the_terminal)
{
    const char *screen;
    struct command *run;

    NEEDS_TMUX();
    run = command_holder("nightly", "the reason");
    start_top(80, 24);
    ASSERT_NULL(strstr(tmux_screen(), "NOTE"));
    tmux_resize(130, 12);
    screen = tmux_expect("NOTE");
    ASSERT_HAS(screen, "the reason\n");
    tmux_expect("\nq quit");
    tmux_resize(30, 10);
    tmux_expect_no("NOTE");
    tmux_expect("\nq quit");
    tmux_resize(30, 4);
    tmux_expect("too small");
    tmux_resize(80, 24);
    tmux_expect("\nq quit");
    end(run);
}

TEST(top, sorts_and_filters)
{
    struct command *one;
    struct command *two;
    struct command *waiter;
    const char *screen;

    NEEDS_TMUX();
    one = command_holder("alpha", "first");
    two = command_holder("beta", "second");
    waiter = COMMAND("run", "beta", "--", "true");
    start_top(80, 24);
    screen = tmux_expect("waiters 1");
    ASSERT_HAS(strstr(screen, ">alpha"), "\n beta");
    for (int i = 0; i < 4; i++)
        tmux_keys("s");
    screen = tmux_expect("by waiters");
    ASSERT_HAS(screen, "*WAIT");
    /* The mark stays with its lock. */
    ASSERT_HAS(strstr(screen, "\n beta"), "\n>alpha");
    tmux_keys("r");
    screen = tmux_expect("reversed");
    ASSERT_HAS(strstr(screen, "\n>alpha"), "\n beta");
    tmux_keys("/");
    tmux_expect("Show only: _");
    tmux_type("SECOX");
    tmux_expect("no locks here");
    tmux_keys("BSpace");
    tmux_expect_no("alpha");
    tmux_keys("Enter");
    tmux_expect("; only SECO");
    tmux_keys("/");
    tmux_keys("Escape");
    tmux_expect("\n alpha");
    tmux_keys("h");
    tmux_expect("any key goes back");
    tmux_keys("h");
    tmux_expect("\n>beta");
    end(one);
    end(two);
    ASSERT_EQ(command_wait(waiter), 0);
}

TEST(top, breaks_with_the_token_and_asks_twice)
{
    struct command *run;
    struct command *next;

    NEEDS_TMUX();
    run = command_holder("nightly", "");
    start_top(80, 24);
    tmux_keys("b");
    tmux_expect("Break? y/n  \"nightly\" of ");
    tmux_expect("(tester), token ");
    tmux_keys("n");
    tmux_expect("nothing was changed");
    tmux_keys("b");
    tmux_expect("y/n");
    tmux_keys("y");
    tmux_expect("to break it: _");
    tmux_type("1");
    tmux_keys("Enter");
    tmux_expect("that is not it; nothing was changed");
    FINISH(75, "test", "nightly");

    /* What was on the screen is not what is held now. */
    tmux_keys("b");
    tmux_expect("y/n");
    tmux_keys("y");
    tmux_type(command_token(run));
    end(run);
    next = command_holder("nightly", "");
    tmux_keys("Enter");
    tmux_expect("another grant by now; nothing was changed");
    FINISH(0, "check", "nightly", command_token(next));

    break_it(next, "broke \"nightly\"");
    tmux_expect("no locks here");
    tmux_keys("b");
    tmux_expect("nobody holds it");
}

TEST(top, breaks_one_holder_of_several_by_choosing_it)
{
    struct command *one;
    struct command *two;

    NEEDS_TMUX();
    one = COMMAND("run", "--slots", "2", "pool", "--", "sh", "-c",
                  "echo token=$HOLDFAST_TOKEN; cat");
    command_number(one, "token=");
    two = COMMAND("run", "--slots", "2", "pool", "--", "sh", "-c",
                  "echo token=$HOLDFAST_TOKEN; cat");
    command_number(two, "token=");
    start_top(80, 24);
    tmux_expect("2 of 2");
    tmux_keys("b");
    tmux_expect("several holders");
    tmux_keys("Enter");
    tmux_expect("WHO");
    tmux_keys("Down");
    break_it(two, "broke \"pool\"");
    command_close_input(one);
    ASSERT_EQ(command_wait(one), 0);
}

/* The first screen, the cursor, and a terminal that reads lines and echoes. */
static void expect_restored(const char *code)
{
    const char *screen = tmux_expect(code);

    screen = tmux_expect(" icanon");
    ASSERT_NULL(strstr(screen, "-icanon"));
    ASSERT_NULL(strstr(screen, "-echo "));
    ASSERT_NULL(strstr(screen, "HAND/S"));
    ASSERT_STREQ(tmux_ask("#{alternate_on} #{cursor_flag}"), "0 1\n");
}

/* The process that top is. */
static pid_t top_pid(void)
{
    char line[128];
    FILE *from;
    long pid = 0;

    snprintf(line, sizeof(line), "pgrep -P %s", tmux_ask("#{pane_pid}"));
    from = popen(line, "r");
    ASSERT_EQ(fscanf(from, "%ld", &pid), 1);
    pclose(from);
    return (pid_t)pid;
}

TEST(top, gives_the_terminal_back_whatever_ends_it)
{
    static const struct {
        int signo;
        const char *code;
    } ends[] = {{SIGTERM, "code=143"}, {SIGHUP, "code=129"},
                {SIGQUIT, "code=131"}, {SIGSEGV, "code=139"},
                {SIGABRT, "code=134"}, {SIGUSR1, "code=138"}};

    NEEDS_TMUX();
    command_dir();
    /* Sanitizers would tell of the crash in their own way. */
    command_variable("ASAN_OPTIONS", "handle_segv=0");
    start_top(80, 24);
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        ASSERT_STREQ(tmux_ask("#{alternate_on} #{cursor_flag}"), "1 0\n");
        ASSERT_EQ(kill(top_pid(), ends[i].signo), 0);
        expect_restored(ends[i].code);
        tmux_keys("Enter");
        tmux_expect("q quit");
    }
    tmux_keys("C-c");
    expect_restored("code=130");
}

TEST(top, stops_and_goes_on_with_the_terminal)
{
    pid_t pid;

    NEEDS_TMUX();
    command_dir();
    command_variable("H", HOLDFAST_COMMAND);
    tmux_start(80, 24, "PS1='ready ' bash --norc --noprofile -i");
    tmux_expect("ready");
    tmux_type("$H top");
    tmux_keys("Enter");
    tmux_expect("q quit");
    pid = top_pid();
    tmux_keys("C-z");
    tmux_expect("Stopped");
    tmux_type("stty -a");
    tmux_keys("Enter");
    expect_restored("speed");
    tmux_type("fg");
    tmux_keys("Enter");
    tmux_expect("q quit");
    ASSERT_STREQ(tmux_ask("#{alternate_on} #{cursor_flag}"), "1 0\n");

    /* Nobody can catch this one; afterwards top takes the terminal again. */
    ASSERT_EQ(kill(pid, SIGSTOP), 0);
    tmux_type("clear; fg");
    tmux_keys("Enter");
    tmux_expect("q quit");
    tmux_keys("h");
    tmux_expect("any key goes back");
    tmux_keys("q");
    tmux_expect("q quit");
    tmux_keys("q");
    tmux_expect("ready");
    ASSERT_STREQ(tmux_ask("#{alternate_on} #{cursor_flag}"), "0 1\n");
}

TEST(top, ends_with_its_terminal)
{
    struct command *top;

    command_dir();
    top = TERMINAL(HOLDFAST_COMMAND, "top");
    command_expect(top, "q quit");
    command_close_input(top); /* the other end of the terminal */
    ASSERT_EQ(command_wait(top), 128 + SIGHUP);
}

TEST(top, off_a_terminal_names_what_to_use)
{
    struct command *top = FINISH(64, "top");

    ASSERT_HAS(command_err(top), "holdfast ls --watch, holdfast metrics");
    ASSERT_STREQ(command_out(top), "");
    command_variable("TERM", "dumb");
    top = TERMINAL(HOLDFAST_COMMAND, "top");
    ASSERT_EQ(command_wait(top), 64);
    ASSERT_HAS(command_out(top), "holdfast ls --watch, holdfast metrics");
    FINISH(64, "top", "--interval", "1ms");
    FINISH(64, "top", "--json");
}

TEST(top, engine_that_fails_is_told_before_the_screen_is_taken)
{
    struct command *top =
        TERMINAL(HOLDFAST_COMMAND, "top", "-u", "local:///proc/nowhere/here");

    ASSERT_NE(command_wait(top), 0);
    ASSERT_HAS(command_out(top), "holdfast: ");
    ASSERT_NULL(strstr(command_out(top), "\033[?1049h"));
}

/* ---- docs/guide/operating.md ----------------------------------------------- */

/* Numbers, ages and spaces vary; what is left is the picture. */
static char *normal(const char *text, size_t len)
{
    char *to = calloc(1, len + 1);
    size_t n = 0;

    ASSERT_NOT_NULL(to);
    for (size_t i = 0; i < len;) {
        size_t digits = strspn(text + i, "0123456789");

        if (digits > 0) {
            to[n++] = '#';
            i += digits;
            i += strspn(text + i, "0123456789.dhms");
        } else if (text[i] == ' ') {
            to[n++] = ' ';
            i += strspn(text + i, " ");
        } else {
            to[n++] = text[i++];
        }
    }
    return to;
}

/* The screen on the page, up to the end of its block. */
static char *page_screen(void)
{
    const char *text = file_text(HOLDFAST_SOURCE "/docs/guide/operating.md");
    const char *at = strstr(text, "\nholdfast top  ");
    const char *end = at ? strstr(at, "```") : NULL;

    ASSERT_NOT_NULL(end);
    return normal(at + 1, (size_t)(end - at - 1));
}

/* Run @line of a shell on a machine that is called db1. */
static struct command *on_db1(const char *line)
{
    char script[1024];

    snprintf(script, sizeof(script), "hostname db1 || exit 3; %s", line);
    return PROGRAM("unshare", geteuid() == 0 ? "-u" : "-ru", "sh", "-c",
                   script);
}

static void expect_in(struct command *command)
{
    command_expect(command, "in\n");
}

/* The locks of the page, taken one after the other; then those who wait. */
static void make_picture(void)
{
    file_write(command_path("deploy.sh"), "#!/bin/sh\necho in\nread a\n");
    file_write(command_path("vacuum"), "#!/bin/sh\necho in\nread a\n");
    ASSERT_EQ(chmod(command_path("deploy.sh"), 0700), 0);
    ASSERT_EQ(chmod(command_path("vacuum"), 0700), 0);
    expect_in(on_db1("exec holdfast run deploy/web --note v4.2 -- deploy.sh"));
    expect_in(on_db1("exec holdfast run nightly -- vacuum"));
    expect_in(on_db1("exec holdfast run --slots 3 pool -- vacuum"));
    expect_in(on_db1("exec holdfast run --slots 3 pool -- vacuum"));
    expect_in(on_db1("exec holdfast run -s report -- vacuum"));
    expect_in(on_db1("exec holdfast run -s report -- vacuum"));
    (void)on_db1("exec holdfast run deploy/web -- deploy.sh");
    (void)on_db1("exec holdfast run deploy/web -- deploy.sh");
}

static void replace(char *text, const char *what, const char *by)
{
    char *at = strstr(text, what);

    if (!at || strlen(by) > strlen(what))
        return;
    memmove(at + strlen(by), at + strlen(what), strlen(at + strlen(what)) + 1);
    memcpy(at, by, strlen(by));
}

TEST(top, looks_as_the_guide_shows_it)
{
    long until = now_ms() + COMMAND_PATIENCE_MS;
    struct command *can;
    char path[1024];
    char *wanted;
    char *seen = NULL;

    NEEDS_TMUX();
    can = on_db1("true");
    if (command_wait(can) != 0) {
        test_not_tested("a machine of another name: %s", command_err(can));
        return;
    }
    snprintf(path, sizeof(path), "%s:%s", command_dir(), getenv("PATH"));
    command_variable("PATH", path);
    command_variable("LOGNAME", "ann");
    ASSERT_EQ(symlink(HOLDFAST_COMMAND, command_path("holdfast")), 0);
    make_picture();
    wanted = page_screen();
    snprintf(path, sizeof(path),
             "exec unshare %s sh -c 'hostname db1; exec %s top'",
             geteuid() == 0 ? "-u" : "-ru", HOLDFAST_COMMAND);
    tmux_start(80, 14, path);
    do {
        char *screen = strdup(tmux_expect("q quit"));

        replace(screen, command_url(), "local:///run/holdfast");
        free(seen);
        seen = normal(screen, strlen(screen));
        if (strcmp(seen, wanted) != 0 && now_ms() > until)
            FAIL("docs/guide/operating.md shows another screen than this; "
                 "copy it:\n%s",
                 screen);
        free(screen);
    } while (strcmp(seen, wanted) != 0);
    free(seen);
    free(wanted);
}

/* ---- what it costs ------------------------------------------------------------ */

/* Nanoseconds of processor time that all threads of @pid have used. */
static long long processor_ns(pid_t pid)
{
    char line[128];
    FILE *from;
    long long sum = 0;
    long long ns;

    snprintf(line, sizeof(line), "cut -d' ' -f1 /proc/%ld/task/*/schedstat",
             (long)pid);
    from = popen(line, "r");
    while (fscanf(from, "%lld", &ns) == 1)
        sum += ns;
    pclose(from);
    return sum;
}

TEST(top, a_thousand_locks_take_little_of_a_processor)
{
    enum { SECONDS = 4 };
    long long used;
    long begin;
    double percent;
    struct command *held = COMMAND("bench", "--scenario", "held", "--locks",
                                   "1000", "--seconds", "60");
    struct command *top = TERMINAL(HOLDFAST_COMMAND, "top");

    command_expect(top, "locks 1000, holders 1000");
    used = processor_ns(command_pid(top));
    begin = now_ms();
    while (now_ms() < begin + SECONDS * 1000)
        command_read(top, 100);
    used = processor_ns(command_pid(top)) - used;
    percent = (double)used / 1e4 / (double)(now_ms() - begin);
    test_note("%.2f %% of a processor at one look a second", percent);
    /* 1 is the aim; sanitizers and a loaded machine take their share. */
    ASSERT_LT(percent, 5);
    command_type(top, "q");
    ASSERT_EQ(command_wait(top), 0);
    command_signal(held, SIGKILL);
}

/* ---- servers ------------------------------------------------------------------- */

/* A fake server, and top of it in a window. */
static struct command *watch_server(void)
{
    struct command *server =
        PROGRAM("python3", HOLDFAST_SOURCE "/tests/cli/hostile_redis.py");
    char line[512];

    snprintf(
        line, sizeof(line),
        "%s top --interval 100ms -u 'redis://127.0.0.1:%ld?io_timeout=60s'; "
        "echo code=\\$?; stty -a; read a",
        HOLDFAST_COMMAND, command_number(server, "port="));
    tmux_start(80, 24, line);
    tmux_expect("q quit");
    return server;
}

TEST(top, engine_that_goes_is_told_above_what_was_seen)
{
    const char *screen;

    NEEDS_TMUX();
    command_signal(watch_server(), SIGKILL);
    screen = tmux_expect("no answer for ");
    ASSERT_HAS(screen, "\n>k\\x1b\\x0a ");
    tmux_keys("q");
    expect_restored("code=0");
}

TEST(top, signal_ends_it_at_once_while_the_engine_is_mute)
{
    struct command *server;
    char state[8192];
    pid_t pid;

    NEEDS_TMUX();
    server = watch_server();
    command_signal(server, SIGSTOP);
    pid = top_pid();
    /* It waits for the answer once a key is not read any more. */
    snprintf(state, sizeof(state), "%s", tmux_screen());
    for (;;) {
        tmux_keys("s");
        command_read(server, 300);
        if (strcmp(state, tmux_screen()) == 0)
            break;
        snprintf(state, sizeof(state), "%s", tmux_screen());
    }
    ASSERT_EQ(kill(pid, SIGTERM), 0);
    expect_restored("code=143");
    command_signal(server, SIGCONT);
}

/* ---- hostile rows -------------------------------------------------------------- */

TEST(top, rows_of_a_hostile_server_reach_the_terminal_escaped)
{
    struct command *server =
        PROGRAM("python3", HOLDFAST_SOURCE "/tests/cli/hostile_redis.py");
    struct command *top;
    char url[128];

    snprintf(url, sizeof(url), "redis://127.0.0.1:%ld",
             command_number(server, "port="));
    top = TERMINAL(HOLDFAST_COMMAND, "top", "-u", url);
    command_expect(top, "q quit");
    command_type(top, "\r"); /* the queue too */
    command_expect(top, "WHO");
    command_type(top, "b");
    command_expect(top, "y/n");
    ASSERT_HAS(command_out(top), ">k\\x1b\\x0a ");
    ASSERT_NULL(strstr(command_out(top), "\033[31m"));
    ASSERT_NULL(strstr(command_out(top), "\033]"));
    ASSERT_NULL(strchr(command_out(top), '\007'));
    ASSERT_NULL(strchr(command_out(top), '\xff'));
    ASSERT_NULL(strstr(command_out(top), "\xc2\x9b"));
    ASSERT_NULL(strstr(command_out(top), "\xe2\x80\xae"));
    ASSERT_NULL(strstr(command_out(top), "\xe2\x80\xa8"));
    command_type(top, "nq");
    ASSERT_EQ(command_wait(top), 0);
}

TEST(top, names_a_deadlock)
{
    hf_opts one = HF_OPTS_INIT;
    hf_opts two = HF_OPTS_INIT;
    hf_client *client;
    hf_hold *holds[2];
    hf_request *first;
    hf_request *second;
    hf_error err;

    NEEDS_TMUX();
    command_dir();
    client = client_open(command_url());
    one.owner_id = hf_owner_new();
    two.owner_id = hf_owner_new();
    ASSERT_OK(hf_acquire(client, "alice", &one, &holds[0], &err), &err);
    ASSERT_OK(hf_acquire(client, "bob", &two, &holds[1], &err), &err);
    ASSERT_OK(hf_acquire_start(client, "bob", &one, NULL, NULL, &first, &err),
              &err);
    ASSERT_OK(
        hf_acquire_start(client, "alice", &two, NULL, NULL, &second, &err),
        &err);
    start_top(120, 24);
    (void)tmux_expect("deadlock: ");
    hf_request_free(first);
    (void)tmux_expect("waiters 1");
    hf_request_free(second);
    tmux_keys("q");
    client_release(holds[0]);
    client_release(holds[1]);
}

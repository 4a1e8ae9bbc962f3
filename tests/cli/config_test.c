/* SPDX-License-Identifier: MIT */
/*
 * config_test.c - configuration files, profiles, and the helpful verbs.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "command.h"
#include "test.h"

/* A configuration file of this test. */
static const char *config(const char *text)
{
    static char path[512];

    snprintf(path, sizeof(path), "%s", command_path("holdfast.conf"));
    file_write(path, text);
    return path;
}

static void make_dir(const char *name)
{
    ASSERT_EQ(mkdir(command_path(name), 0700), 0);
}

TEST(config, file_of_the_user_is_read)
{
    struct command *run;

    make_dir(".config");
    make_dir(".config/holdfast");
    file_write(command_path(".config/holdfast/holdfast.conf"), "ttl = 9s\n");
    run = FINISH(0, "run", "x", "--", "sh", "-c", "echo $HOLDFAST_TTL_MS");
    ASSERT_STREQ(command_out(run), "9000\n");

    make_dir("xdg");
    make_dir("xdg/holdfast");
    file_write(command_path("xdg/holdfast/holdfast.conf"), "ttl = 8s\n");
    command_variable("XDG_CONFIG_HOME", command_path("xdg"));
    run = FINISH(0, "run", "x", "--", "sh", "-c", "echo $HOLDFAST_TTL_MS");
    ASSERT_STREQ(command_out(run), "8000\n");
}

TEST(config, flags_win_over_environment_and_file)
{
    const char *path = config("ttl = 9s\n");
    struct command *run;

    command_variable("HOLDFAST_TTL", "8s");
    run = FINISH(0, "--config", path, "run", "x", "--", "sh", "-c",
                 "echo $HOLDFAST_TTL_MS");
    ASSERT_STREQ(command_out(run), "8000\n");
    run = FINISH(0, "--config", path, "run", "x", "--ttl", "7s", "--", "sh",
                 "-c", "echo $HOLDFAST_TTL_MS");
    ASSERT_STREQ(command_out(run), "7000\n");
    run = FINISH(0, "--config", path, "run", "x", "-o", "ttl=6s", "--", "sh",
                 "-c", "echo $HOLDFAST_TTL_MS");
    ASSERT_STREQ(command_out(run), "6000\n");
}

TEST(config, profile_says_where_and_how)
{
    char text[512];
    const char *path;
    struct command *run;

    snprintf(text, sizeof(text), "[prod]\nurl = local://%s\nttl = 9s\n",
             command_path("prod"));
    path = config(text);
    command_variable("HOLDFAST_URL", NULL);
    run = FINISH(0, "-c", path, "--profile", "prod", "run", "x", "--", "sh",
                 "-c", "echo $HOLDFAST_TTL_MS");
    ASSERT_STREQ(command_out(run), "9000\n");
    run = FINISH(78, "-c", path, "--profile", "test", "ls");
    ASSERT_HAS(command_err(run), "no profile [test]");
    FINISH(78, "-c", "/no/such/file", "ls");
}

TEST(config, wait_comes_from_option_url_environment_or_file)
{
    const char *path = config("wait = 10ms\n");
    struct command *first =
        COMMAND("run", "x", "--", "sh", "-c", "echo in; cat");
    char url[512];

    command_expect(first, "in\n");
    FINISH(75, "-c", path, "run", "x", "--", "true");
    FINISH(75, "run", "x", "-o", "wait=10ms", "--", "true");
    snprintf(url, sizeof(url), "%s?ttl=9s&wait=10ms", command_url());
    FINISH(75, "run", "x", "-u", url, "--", "true");
    command_variable("HOLDFAST_WAIT", "10ms");
    FINISH(75, "run", "x", "--", "true");
}

TEST(config, lock_section_is_for_matching_names)
{
    const char *path = config("[lock nightly-*]\nttl = 5s\nnote = by night\n");
    struct command *run = FINISH(0, "-c", path, "run", "nightly-1", "--", "sh",
                                 "-c", "echo $HOLDFAST_TTL_MS");

    ASSERT_STREQ(command_out(run), "5000\n");
    run = FINISH(0, "-c", path, "run", "daily-1", "--", "sh", "-c",
                 "echo $HOLDFAST_TTL_MS");
    ASSERT_STREQ(command_out(run), "30000\n");
}

TEST(config, lock_section_is_weaker_than_environment_and_options)
{
    const char *path = config("[lock *]\nttl = 5s\nnote = by night\n");
    struct command *run = FINISH(0, "-c", path, "run", "x", "-o", "ttl=7s",
                                 "--", "sh", "-c", "echo $HOLDFAST_TTL_MS");

    ASSERT_STREQ(command_out(run), "7000\n");
    command_variable("HOLDFAST_TTL", "8s");
    run = FINISH(0, "-c", path, "run", "x", "--", "sh", "-c",
                 "echo $HOLDFAST_TTL_MS");
    ASSERT_STREQ(command_out(run), "8000\n");
}

TEST(config, lock_section_says_how_long_to_wait_and_to_hold)
{
    const char *path = config("[lock night*]\nwait = 10ms\nmax_hold = 100ms\n");
    struct command *first =
        COMMAND("run", "nightly", "--", "sh", "-c", "echo in; cat");

    command_expect(first, "in\n");
    FINISH(75, "-c", path, "run", "nightly", "--", "true");
    FINISH(124, "-c", path, "run", "night-2", "--", "sleep", "100");
}

TEST(config, file_in_the_current_directory_is_not_read)
{
    char script[512];

    file_write(command_path("holdfast.conf"), "nonsense\n");
    snprintf(script, sizeof(script), "cd %s && %s run x -- true", command_dir(),
             HOLDFAST_COMMAND);
    ASSERT_EQ(command_wait(PROGRAM("sh", "-c", script)), 0);
}

TEST(config, check_reports_every_mistake)
{
    const char *path = config("ttl = 30\n"
                              "connection-timeout: 1500000000\n"
                              "session_timeout = 60 * 100\n"
                              "[prod]\n"
                              "prefx = x\n"
                              "[lock jobs-*]\n"
                              "prefix = x\n");
    struct command *check = FINISH(78, "config", "check", path);
    const char *out = command_out(check);

    ASSERT_HAS(out, ":1: error: ");
    ASSERT_HAS(out, ":2: error: there is no key 'connection-timeout'; did you "
                    "mean connect_timeout?");
    ASSERT_HAS(out, "1500000000");
    ASSERT_HAS(out, ":3: error: ");
    ASSERT_HAS(out, "60 * 100");
    ASSERT_HAS(out, ":5: error: there is no key 'prefx'; did you mean prefix?");
    ASSERT_HAS(out, ":7: error: in [lock ...]");
    check = FINISH(78, "config", "check", path, "--json");
    ASSERT_HAS(command_out(check), "\"line\":1,\"severity\":\"error\"");
}

TEST(config, check_is_silent_about_a_good_file)
{
    const char *path = config("# all of us\nttl = 30s\n\n[prod]\nwait = 1m\n"
                              "[lock nightly-*]\nmax_hold = 2h\n");
    struct command *check = FINISH(0, "config", "check", path);

    ASSERT_STREQ(command_out(check), "");
    ASSERT_STREQ(command_err(check), "");
}

TEST(config, check_warns_of_secrets_without_showing_them)
{
    const char *path = config("[prod]\npassword = hunter2\n");
    struct command *check;

    ASSERT_EQ(chmod(path, 0600), 0);
    check = FINISH(0, "config", "check", path);
    ASSERT_HAS(command_out(check), "warning");
    ASSERT_HAS(command_out(check), "password_file");
    ASSERT_NULL(strstr(command_out(check), "hunter2"));
}

TEST(config, show_says_what_is_in_force_and_why)
{
    const char *path = config("ttl = 9s\n");
    struct command *show =
        FINISH(0, "config", "show", path, "--json", "-o", "wait=4s");

    ASSERT_HAS(command_out(show),
               "{\"key\":\"ttl\",\"value\":\"9s\",\"from\":\"file\"");
    ASSERT_HAS(command_out(show),
               "{\"key\":\"wait\",\"value\":\"4s\",\"from\":\"option\"");
    ASSERT_HAS(command_out(show), "{\"key\":\"url\",\"value\":\"local://");
    ASSERT_HAS(command_out(show), "\"from\":\"environment\"");
    command_variable("HOLDFAST_PASSWORD", "hunter2");
    show = FINISH(0, "config", "show", "-u", "redis://me:hunter2@host/");
    ASSERT_NULL(strstr(command_out(show), "hunter2"));
    ASSERT_HAS(command_out(show), "redis://me:***@host/");
}

static const char *const verbs[] = {
    "run",     "hold",   "test",       "ls",      "show",   "break",
    "check",   "elect",  "version",    "engines", "doctor", "bench",
    "metrics", "config", "completion", "acquire", "release"};
enum { N_VERBS = sizeof(verbs) / sizeof(verbs[0]) };

/* The widest line and the number of lines of @text. */
static void measure(const char *text, size_t *ret_width, size_t *ret_lines)
{
    *ret_width = *ret_lines = 0;
    while (*text) {
        size_t len = strcspn(text, "\n");

        if (len > *ret_width)
            *ret_width = len;
        ++*ret_lines;
        text += len + (text[len] == '\n');
    }
}

TEST(config, is_named_by_the_environment)
{
    const char *path = config("ttl = 9s\n[prod]\nttl = 11s\n");
    struct command *show;

    command_variable("HOLDFAST_CONFIG", path);
    show = FINISH(0, "config", "show", "--json");
    ASSERT_HAS(command_out(show), "{\"key\":\"ttl\",\"value\":\"9s\"");
    command_variable("HOLDFAST_PROFILE", "prod");
    show = FINISH(0, "config", "show", "--json");
    ASSERT_HAS(command_out(show), "{\"key\":\"ttl\",\"value\":\"11s\"");
    command_variable("HOLDFAST_PROFILE", "nosuch");
    FINISH(78, "run", "x", "--", "true");
    command_variable("HOLDFAST_PROFILE", NULL);
    command_variable("HOLDFAST_CONFIG", "/nowhere");
    FINISH(78, "run", "x", "--", "true");
}

TEST(help, names_the_verb_that_was_meant)
{
    static const char *const pairs[][2] = {
        {"list", "holdfast ls"},        {"status", "holdfast show"},
        {"lock", "holdfast run"},       {"lock", "holdfast acquire"},
        {"unlock", "holdfast release"}, {"unlock", "holdfast break"},
        {"shwo", "holdfast show"}};

    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
        ASSERT_HAS(command_err(FINISH(64, pairs[i][0])), pairs[i][1]);
}

TEST(help, of_each_verb_fits_a_screen)
{
    size_t width;
    size_t lines;

    for (size_t i = 0; i < N_VERBS; i++) {
        struct command *help = FINISH(0, verbs[i], "--help");

        measure(command_out(help), &width, &lines);
        test_note("%s: %zu columns, %zu lines", verbs[i], width, lines);
        ASSERT_LE(width, 80);
        ASSERT_LE(lines, 24);
        ASSERT_STREQ(command_out(FINISH(0, "help", verbs[i])),
                     command_out(help));
    }
    measure(command_out(FINISH(0, "--help")), &width, &lines);
    ASSERT_LE(width, 80);
    ASSERT_LE(lines, 24);
}

TEST(help, is_shown_when_nothing_was_asked)
{
    struct command *nothing = COMMAND("-q");

    ASSERT_EQ(command_wait(nothing), 64);
    ASSERT_HAS(command_err(nothing), "holdfast run hello");
    ASSERT_HAS(command_out(FINISH(0, "--version")), "holdfast 0.");
}

TEST(bench, prints_the_figures_that_are_promised)
{
    static const char *const figures[][3] = {
        {"pair", "\"pairs_per_s\":", "\"p99_us\":"},
        {"shared-name", "\"pairs_per_s\":", "\"fairness\":"},
        {"handover", "\"handovers_per_s\":", "\"fairness\":"},
        {"try", "\"tries_per_s\":", "\"p99_us\":"},
        {"async", "\"pairs_per_s\":", "\"p99_us\":"},
        {"held", "\"bytes_per_lock\":", "\"renewals_per_s\":"},
    };

    for (size_t i = 0; i < 6; i++) {
        struct command *bench =
            FINISH(0, "bench", "--scenario", figures[i][0], "--seconds", "0.2",
                   "--locks", "100", "--json", command_url());

        ASSERT_HAS(command_out(bench), "{\"scenario\":\"");
        ASSERT_HAS(command_out(bench), figures[i][0]);
        ASSERT_HAS(command_out(bench), "\"engine\":\"local\",\"url\":\"local:");
        ASSERT_HAS(command_out(bench), "\"threads\":");
        ASSERT_HAS(command_out(bench), "\"processes\":");
        ASSERT_HAS(command_out(bench), "\"seconds\":0.");
        ASSERT_HAS(command_out(bench), figures[i][1]);
        ASSERT_HAS(command_out(bench), figures[i][2]);
        ASSERT_HAS(command_out(bench), "\"errors\":0}\n");
    }
    FINISH(64, "bench", "--scenario", "nothing");
    FINISH(78, "bench", "--scenario", "handover", "local:///proc/nowhere");
}

TEST(config, check_without_a_file_says_so)
{
    struct command *check = FINISH(0, "config", "check");

    ASSERT_HAS(command_err(check), "no configuration file to check");
}

TEST(config, url_of_java_is_told_to_drop_jdbc)
{
    struct command *run = FINISH(78, "run", "x", "-u",
                                 "jdbc:mysql://me:hunter2@db/x", "--", "true");

    ASSERT_HAS(command_err(run), "drop \"jdbc:\"");
    ASSERT_NULL(strstr(command_err(run), "hunter2"));
}

TEST(config, engines_tells_what_one_url_promises)
{
    char url[512];
    struct command *engines;

    snprintf(url, sizeof(url), "%s?lease=process", command_url());
    engines = FINISH(0, "engines", "--json", "-u", url);
    ASSERT_HAS(command_out(engines), "{\"engine\":\"local\",\"url\":");
    ASSERT_NULL(strstr(command_out(engines), "\"leased\""));
    engines = FINISH(0, "engines", "-u", command_url());
    ASSERT_HAS(command_out(engines), " leased");
}

TEST(config, version_is_told)
{
    struct command *version = FINISH(0, "--version");

    ASSERT_EQ(strncmp(command_out(version), "holdfast 0.", 11), 0);
    version = FINISH(0, "-q", "-V");
    ASSERT_EQ(strncmp(command_out(version), "holdfast 0.", 11), 0);
}

/* SPDX-License-Identifier: MIT */
/*
 * secret_test.c - no password or access list is seen: in the argument vector,
 * the environment of a child, messages and listings.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "command.h"
#include "test.h"

#define SECRET "hunter2"

static void assert_hidden(const struct command *command)
{
    ASSERT_NULL(strstr(command_out(command), SECRET));
    ASSERT_NULL(strstr(command_err(command), SECRET));
}

/* Queries that hide a secret in the ways people write one. */
static const char *const queries[] = {
    "password=" SECRET,   "password=a;" SECRET,   "password=a?" SECRET,
    "p%61ssword=" SECRET, "acl=digest:a:" SECRET, "%61cl=" SECRET,
    "ttl=5s&acl=" SECRET,
};
enum { QUERIES = sizeof(queries) / sizeof(queries[0]) };

static const char *with_query(const char *query)
{
    static char text[512];

    snprintf(text, sizeof(text), "%s?%s", command_url(), query);
    return text;
}

/* Its own command line, its parent's, and its environment. */
#define LOOK                                                                   \
    "env; tr '\\0' '\\n' </proc/$$/cmdline; "                                  \
    "tr '\\0' '\\n' </proc/$PPID/cmdline; echo end"

TEST(secret, of_a_url_is_not_in_argv_nor_in_the_environment_of_a_child)
{
    command_dir();
    for (size_t i = 0; i < QUERIES; i++) {
        char *url = strdup(with_query(queries[i]));
        struct command *run =
            FINISH(0, "run", "x", "-vv", "-u", url, "--", "sh", "-c", LOOK);

        ASSERT_HAS(command_out(run), "end\n");
        assert_hidden(run);
        command_variable("HOLDFAST_URL", url);
        run = FINISH(0, "run", "x", "-vv", "--", "sh", "-c", LOOK);
        ASSERT_HAS(command_out(run), "end\n");
        assert_hidden(run);
        command_variable("HOLDFAST_URL", command_url());
        free(url);
    }
}

TEST(secret, of_an_option_is_not_in_argv)
{
    struct command *run;

    command_dir();
    run = FINISH(0, "run", "x", "-o", "acl=digest:a:" SECRET, "--", "sh", "-c",
                 LOOK);
    assert_hidden(run);
    run = FINISH(0, "run", "x", "-opassword=" SECRET, "--", "sh", "-c", LOOK);
    assert_hidden(run);
    run = FINISH(0, "run", "x", "--option=password=" SECRET, "--", "sh", "-c",
                 LOOK);
    assert_hidden(run);
}

TEST(secret, is_not_shown_by_config_show)
{
    char url[2048];
    struct command *show;

    command_dir();
    for (size_t i = 0; i < QUERIES; i++) {
        snprintf(url, sizeof(url), "zk://h/l?%s", queries[i]);
        assert_hidden(FINISH(0, "config", "show", "-u", url));
        command_variable("HOLDFAST_URL", url);
        assert_hidden(FINISH(0, "config", "show"));
    }
    memset(url, 'S', sizeof(url));
    snprintf(url + 1500, sizeof(url) - 1500, SECRET "@h/0");
    memcpy(url, "redis://u:", 10);
    command_variable("HOLDFAST_URL", url);
    command_variable("HOLDFAST_ACL", SECRET);
    show = FINISH(0, "config", "show");
    assert_hidden(show);
    ASSERT_HAS(command_out(show), "redis://u:***@h/0");
    ASSERT_NULL(strstr(command_out(show), "SS"));
}

TEST(secret, of_a_url_in_the_wrong_place_is_not_echoed)
{
    static const char url[] = "redis://u:" SECRET "@h/0";

    assert_hidden(FINISH(64, url));
    assert_hidden(FINISH(64, "help", url));
    assert_hidden(FINISH(64, "ls", "a", url));
    assert_hidden(FINISH(64, "ls", "-o", SECRET));
    assert_hidden(FINISH(64, "run", "x", "-w", url, "--", "true"));
    assert_hidden(FINISH(64, "run", "x", "--slots", url, "--", "true"));
    assert_hidden(FINISH(64, "config", url));
    assert_hidden(FINISH(64, "completion", url));
    assert_hidden(FINISH(78, "ls", "-c", url));
    assert_hidden(FINISH(78, "ls", "--profile", url));
    assert_hidden(FINISH(78, "config", "check", url));
    assert_hidden(FINISH(78, "ls", "-o", "ttl=redis://u:" SECRET "@h/0"));
    assert_hidden(FINISH(78, "ls", "-o", "redis://u:" SECRET "@h/0?ttl=5s"));
    assert_hidden(FINISH(78, "ls", "-u", "redis://u:" SECRET "/x@h/0"));
}

TEST(secret, of_what_is_no_url_is_not_echoed)
{
    assert_hidden(FINISH(78, "ls", "-u", "foo?password=" SECRET));
    assert_hidden(FINISH(78, "ls", "-u", "foo?ttl=1s&password=" SECRET));
    assert_hidden(FINISH(78, "ls", "-u", "h:6379?p%61sswd=" SECRET));
    assert_hidden(FINISH(78, "ls", "-u", "host=h password=" SECRET));
    assert_hidden(FINISH(78, "ls", "-o", "ttl=1s&token=" SECRET));
}

TEST(secret, in_a_file_that_others_may_read_is_refused)
{
    static const char *const texts[] = {
        "password = " SECRET "\n", "acl = digest:a:" SECRET "\n",
        "url = redis://u:" SECRET "@h/0\n",
        "url = redis://h/0?password=" SECRET "\n",
        "[other]\nurl = redis://h/0?p%61ssword=" SECRET "\n"};

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        const char *path = command_path("open.conf");
        struct command *refused;

        file_write(path, texts[i]);
        ASSERT_EQ(chmod(path, 0644), 0);
        refused = FINISH(78, "config", "show", "-c", path);
        assert_hidden(refused);
        ASSERT_HAS(command_err(refused), "others may read");
        ASSERT_EQ(chmod(path, 0600), 0);
        assert_hidden(FINISH(0, "config", "show", "-c", path));
    }
}

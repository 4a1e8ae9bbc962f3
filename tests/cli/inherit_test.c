/* SPDX-License-Identifier: MIT */
/*
 * inherit_test.c - the command inside of a run reaches the engine of that run,
 * and never another one by mistake.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "command.h"
#include "test.h"

#define SECRET "hunter2"
/* What is held in the store that a holdfast in here takes. */
#define LOOK HOLDFAST_COMMAND " ls --names"

static const char *store(const char *name)
{
    static char urls[2][600];
    static size_t next;
    char *url = urls[next++ % 2];

    snprintf(url, sizeof(urls[0]), "local://%s", command_path(name));
    (void)mkdir(command_path(name), 0700);
    return url;
}

/* Nothing but the command line and what run tells may say where. */
static void forget_url(void)
{
    command_dir();
    command_variable("HOLDFAST_URL", NULL);
}

TEST(inherit, child_reaches_the_engine_of_an_option)
{
    struct command *run;

    forget_url();
    run = FINISH(0, "run", "x", "-u", store("a"), "--", "sh", "-c", LOOK);
    ASSERT_STREQ(command_out(run), "x\n");
    run = FINISH(0, "elect", "y", "-u", store("a"), "--", "sh", "-c", LOOK);
    ASSERT_STREQ(command_out(run), "y\n");
    /* -u wins over the variable, for the child too. */
    command_variable("HOLDFAST_URL", store("b"));
    run = FINISH(0, "run", "x", "-u", store("a"), "--", "sh", "-c", LOOK);
    ASSERT_STREQ(command_out(run), "x\n");
}

TEST(inherit, child_reaches_the_engine_of_a_file_and_profile)
{
    char text[1500];
    char path[512];
    struct command *run;

    forget_url();
    snprintf(path, sizeof(path), "%s", command_path("my.conf"));
    snprintf(text, sizeof(text), "url = %s\n[prod]\nurl = %s\n", store("a"),
             store("b"));
    file_write(path, text);
    run = FINISH(0, "-c", path, "run", "x", "--", "sh", "-c", LOOK);
    ASSERT_STREQ(command_out(run), "x\n");
    run = FINISH(0, "-c", path, "--profile", "prod", "run", "x", "--", "sh",
                 "-c", LOOK "; " HOLDFAST_COMMAND " -v ls 2>&1");
    ASSERT_HAS(command_out(run), "x\n");
    ASSERT_HAS(command_out(run), "/b\n");
    /* A password in the file's URL: the child reads the file. */
    snprintf(text, sizeof(text), "url = %s?password=" SECRET "\n", store("a"));
    file_write(path, text);
    ASSERT_EQ(chmod(path, 0600), 0);
    run = FINISH(0, "-c", path, "run", "x", "--", "sh", "-c", LOOK "; env");
    ASSERT_EQ(strncmp(command_out(run), "x\n", 2), 0);
    ASSERT_NULL(strstr(command_out(run), SECRET));
}

TEST(inherit, secrets_and_options_go_by_a_private_file)
{
    char url[700];
    struct command *run;

    forget_url();
    snprintf(url, sizeof(url), "%s?password=" SECRET, store("a"));
    run = FINISH(0, "run", "x", "-u", url, "-o", "prefix=p/", "-o", "ttl=9s",
                 "--", "sh", "-c",
                 LOOK "; env; "
                      "stat -Lc %a ${HOLDFAST_INHERIT##*:}");
    ASSERT_EQ(strncmp(command_out(run), "x\n", 2), 0);
    ASSERT_HAS(command_out(run), "\n600\n");
    ASSERT_NULL(strstr(command_out(run), SECRET));
    /* From the inner one to its own child, too. */
    run = FINISH(0, "run", "x", "-u", url, "-o", "prefix=p/", "--",
                 HOLDFAST_COMMAND, "run", "y", "--", "sh", "-c", LOOK);
    ASSERT_STREQ(command_out(run), "x\ny\n");
    command_variable("HOLDFAST_PASSWORD", SECRET);
    run = FINISH(0, "run", "x", "-u", store("a"), "--", "sh", "-c",
                 LOOK "; env; grep -c " SECRET " ${HOLDFAST_INHERIT##*:}");
    ASSERT_HAS(command_out(run), "\n1\n");
    ASSERT_NULL(strstr(command_out(run), SECRET));
}

TEST(inherit, newline_in_a_value_does_not_begin_an_option)
{
    struct command *run;

    forget_url();
    command_variable("HOLDFAST_PASSWORD", "x\n-oprefix=q/");
    run = FINISH(0, "run", "x", "-u", store("a"), "--", "sh", "-c", LOOK);
    ASSERT_STREQ(command_out(run), "x\n");
}

/* A shell script that puts another file in the place of the private one: F is
 * that one, G the other, K the key. */
#define WITH_FILE(make)                                                        \
    "F=${HOLDFAST_INHERIT##*:}; K=${HOLDFAST_INHERIT%%:/*}; K=${K##*:}; "      \
    "umask 077; " make " >G; "                                                 \
    "HOLDFAST_INHERIT=${HOLDFAST_INHERIT%%/*}$PWD/G " LOOK

static void assert_file(int wanted, const char *script, const char *said)
{
    char line[800];
    struct command *run;

    snprintf(line, sizeof(line), "cd %s; %s", command_dir(), script);
    run = FINISH(wanted, "run", "x", "-u", store("a"), "-o", "prefix=p/", "--",
                 "sh", "-c", line);
    ASSERT_HAS(command_err(run), said);
    ASSERT_STREQ(command_out(run), wanted == 0 ? "x\n" : "");
}

TEST(inherit, file_that_is_not_whole_or_not_of_the_run_is_refused)
{
    forget_url();
    assert_file(0, WITH_FILE("cat $F"), "");
    assert_file(0, WITH_FILE("printf '%s\\0-oprefix=p/\\0end\\0' $K"), "");
    /* As another run has it that got the process number. */
    assert_file(78, WITH_FILE("printf '%032d\\0-oprefix=p/\\0end\\0' 0"),
                "Stale");
    assert_file(78, WITH_FILE("printf '%s\\0-oprefix=p/\\0' $K"), "Stale");
    assert_file(78, WITH_FILE("printf '%s\\0-oprefix=p/\\0end' $K"), "Stale");
    assert_file(78, WITH_FILE("printf '%s\\0prefix\\0end\\0' $K"),
                "Bad message");
    assert_file(78, WITH_FILE("printf ''"), "Stale");
    assert_file(78, WITH_FILE("{ cat $F; head -c 65536 /dev/zero; }"),
                "too large");
    assert_file(78, "HOLDFAST_INHERIT=${HOLDFAST_INHERIT%%:/*} " LOOK,
                "Bad message");
}

TEST(inherit, file_that_would_be_too_long_is_refused)
{
    enum { OPTIONS = 20 };
    static const char *arguments[6 + 2 * OPTIONS + 1] = {"run", "x", "-u"};
    char pair[4000];
    size_t n = 3;

    forget_url();
    memset(pair, 'x', sizeof(pair) - 1);
    pair[sizeof(pair) - 1] = '\0';
    memcpy(pair, "password=", 9);
    arguments[n++] = store("a");
    for (size_t i = 0; i < OPTIONS; i++) {
        arguments[n++] = "-o";
        arguments[n++] = pair;
    }
    arguments[n++] = "--";
    arguments[n++] = "true";
    ASSERT_HAS(command_err(command_finish(arguments, 70)), "too large");
}

TEST(inherit, script_inside_may_choose_another_engine)
{
    char line[1200];
    char path[512];
    struct command *run;

    forget_url();
    snprintf(path, sizeof(path), "%s", command_path("b.conf"));
    snprintf(line, sizeof(line), "url = %s\n", store("b"));
    file_write(path, line);
    snprintf(line, sizeof(line),
             "H=%s; $H -u %s ls --names; $H -c %s ls --names; "
             "HOLDFAST_CONFIG=%s $H ls --names; HOLDFAST_URL=%s $H ls --names; "
             "echo end",
             HOLDFAST_COMMAND, store("b"), path, path, store("b"));
    run = FINISH(0, "run", "x", "-u", store("a"), "--", "sh", "-c", line);
    ASSERT_STREQ(command_out(run), "end\n");
}

TEST(inherit, command_that_cannot_know_the_engine_refuses)
{
    char url[700];
    struct command *run;

    forget_url();
    command_variable("HOLDFAST_ENGINE", "redis");
    run = FINISH(78, "run", "x", "--", "true");
    ASSERT_HAS(command_err(run), "under a lock on redis");
    FINISH(78, "doctor");
    FINISH(0, "run", "x", "-u", store("a"), "--", "true");

    /* The run around it is gone, and with it what is secret. */
    command_variable("HOLDFAST_ENGINE", NULL);
    snprintf(url, sizeof(url), "%s?password=" SECRET, store("a"));
    run = FINISH(0, "run", "x", "-u", url, "--", "sh", "-c",
                 "echo $HOLDFAST_URL; echo $HOLDFAST_INHERIT");
    char *text = strdup(command_out(run));
    char *mark = strchr(text, '\n');
    *mark++ = '\0';
    mark[strcspn(mark, "\n")] = '\0';
    command_variable("HOLDFAST_URL", text);
    command_variable("HOLDFAST_INHERIT", mark);
    run = FINISH(78, "ls");
    ASSERT_HAS(command_err(run), "cannot read what the run around");
    free(text);
}

TEST(inherit, new_store_is_made_below_what_exists_and_said)
{
    char url[600];
    struct command *run;

    command_dir();
    snprintf(url, sizeof(url), "local://%s", command_path("no/such"));
    run = FINISH(78, "run", "x", "-u", url, "--", "true");
    ASSERT_HAS(command_err(run), "parent directory is not there");
    snprintf(url, sizeof(url), "local://%s", command_path("fresh"));
    run = FINISH(0, "run", "x", "-u", url, "--", "true");
    ASSERT_HAS(command_err(run), "made the directory");
    ASSERT_HAS(command_err(run), "fresh");
    run = FINISH(0, "run", "x", "-u", url, "--", "true");
    ASSERT_STREQ(command_err(run), "");
}

TEST(inherit, default_store_is_named_and_others_are_told)
{
    char name[64];
    char url[600];
    struct command *other;
    struct command *run;

    forget_url();
    snprintf(name, sizeof(name), "inherit-test-%ld", (long)getpid());
    command_variable("XDG_RUNTIME_DIR", command_dir());
    snprintf(url, sizeof(url), "%s", store("holdfast"));
    run = FINISH(0, "-v", "run", name, "--", "true");
    ASSERT_HAS(command_err(run), "using local:///");
    run = FINISH(0, "run", name, "--", "true");
    ASSERT_NULL(strstr(command_err(run), "does not see"));

    other = COMMAND("hold", name, "-u", url);
    command_expect(other, "held");
    run = FINISH(0, "run", name, "--", "true");
    ASSERT_HAS(command_err(run), "has 1 holder that local:///");
    run = FINISH(1, "doctor");
    ASSERT_HAS(command_out(run), "reachable      local:///");
    ASSERT_HAS(command_out(run), "other holders");
    run = FINISH(0, "-q", "run", name, "--", "true");
    ASSERT_STREQ(command_err(run), "");
    command_close_input(other);
    ASSERT_EQ(command_wait(other), 0);
}

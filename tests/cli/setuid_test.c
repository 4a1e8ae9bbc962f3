/* SPDX-License-Identifier: MIT */
/*
 * setuid_test.c - a real set-user-id program: the environment of the one who
 * starts it changes nothing.
 */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "command.h"
#include "test.h"

/* Start the copy of the program as nobody, who sets every variable that we or
 * a client library know. */
static struct command *start(const char *program)
{
    static const char *const variables[] = {
        "HOLDFAST_URL=nosuch://attacker",
        "HOLDFAST_TTL=nonsense",
        "HOLDFAST_NONSENSE=1",
        "HOLDFAST_PASSWORD_FILE=/etc/shadow",
        "XDG_RUNTIME_DIR=/tmp",
        "XDG_STATE_HOME=/tmp",
        "MARIADB_PLUGIN_DIR=/tmp",
        "PGOPTIONS=-c search_path=evil"};

    for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
        char name[32];
        size_t len = strcspn(variables[i], "=");

        snprintf(name, sizeof(name), "%.*s", (int)len, variables[i]);
        command_variable(name, variables[i] + len + 1);
    }
    return PROGRAM("setpriv", "--reuid=65534", "--regid=65534",
                   "--clear-groups", program, command_dir());
}

static const char *install(const char *name, mode_t mode)
{
    const char *path = command_path(name);
    struct command *copy = PROGRAM("cp", HOLDFAST_SETUID_PROGRAM, path);

    ASSERT_EQ(command_wait(copy), 0);
    ASSERT_EQ(chmod(path, mode), 0);
    return path;
}

/* What it says when another user starts it; NULL: nobody can. */
static const char *output_of(const char *name, mode_t mode)
{
    struct command *run;

    if (geteuid() != 0) {
        test_not_tested("only root makes a set-user-id program");
        return NULL;
    }
    ASSERT_EQ(chmod(command_dir(), 0777), 0);
    run = start(install(name, mode));
    ASSERT_EQ(command_wait(run), 0);
    return command_out(run);
}

TEST(setuid, the_environment_of_the_caller_is_not_read)
{
    const char *out = output_of("setuid", 04755);

    if (!out)
        return;
    if (strstr(out, "secure=0")) {
        test_not_tested("the file system ignores set-user-id");
        return;
    }
    ASSERT_HAS(out, "secure=1\nconfigured=local://");
    ASSERT_HAS(out, "mysql=HF_ECONFIG");
    ASSERT_HAS(out, "MARIADB_");
    ASSERT_HAS(out, "PGOPTIONS");
    ASSERT_NULL(strstr(out, "nosuch"));
}

/* The same without set-user-id, so that the test above says something. */
TEST(setuid, without_it_the_environment_is_read)
{
    const char *out = output_of("plain", 0755);

    if (!out)
        return;
    ASSERT_HAS(out, "secure=0\nconfigured=HF_E");
    ASSERT_HAS(out, "HOLDFAST_TTL");
    ASSERT_NULL(strstr(out, "MARIADB_"));
}

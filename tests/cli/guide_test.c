/* SPDX-License-Identifier: MIT */
/*
 * guide_test.c - the examples of docs/guide/ are shell, and do what they say.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "command.h"
#include "test.h"

static const char *const pages[] = {"cron",      "deploy",      "failover",
                                    "fencing",   "first-steps", "leader",
                                    "operating", "scripts",     "workers"};

/* The text of all ```sh blocks of a page, into the file PAGE.sh. */
static const char *extract(const char *page)
{
    static char path[512];
    char source[512];
    char *text;
    char *code = calloc(1, 65536);
    bool inside = false;

    snprintf(source, sizeof(source), HOLDFAST_SOURCE "/docs/guide/%s.md", page);
    snprintf(path, sizeof(path), "%s/%s.sh", command_dir(), page);
    text = strdup(file_text(source));
    ASSERT_TRUE(code && text);
    for (char *line = text; line;) {
        char *next = strchr(line, '\n');

        if (next)
            *next++ = '\0';
        if (strncmp(line, "```", 3) == 0)
            inside = strcmp(line, "```sh") == 0;
        else if (inside)
            strcat(strcat(code, line), "\n");
        line = next;
    }
    file_write(path, code);
    free(code);
    free(text);
    return path;
}

/* The lines of the crontabs in cron.md; each job is one line. */
TEST(guide, crontabs_run)
{
    char *text = strdup(file_text(HOLDFAST_SOURCE "/docs/guide/cron.md"));
    bool inside = false;
    int jobs = 0;

    ASSERT_NOT_NULL(text);
    command_variable("PATH", command_dir());
    file_write(command_path("sync-files"), "#!/bin/sh\necho ran\n");
    file_write(command_path("nightly"), "#!/bin/sh\necho ran\n");
    ASSERT_EQ(chmod(command_path("sync-files"), 0700), 0);
    ASSERT_EQ(chmod(command_path("nightly"), 0700), 0);
    ASSERT_EQ(symlink(HOLDFAST_COMMAND, command_path("holdfast")), 0);
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        char job[1024] = "";
        int at = 0;

        if (strncmp(line, "```", 3) == 0)
            inside = strcmp(line, "```crontab") == 0;
        if (!inside || strncmp(line, "```", 3) == 0 ||
            strncmp(line, "PATH=", 5) == 0)
            continue;
        /* Five fields, then the job, on one line. */
        ASSERT_EQ(sscanf(line, "%*s %*s %*s %*s %*s %n", &at), 0);
        ASSERT_TRUE(at > 0 && line[strlen(line) - 1] != '\\');
        snprintf(job, sizeof(job), "%s", line + at);
        char *server = strstr(job, "-u redis://lock.example/0 ");
        if (server)
            memset(server, ' ', strlen("-u redis://lock.example/0 "));
        char *least = strstr(job, "40s");
        if (least)
            memcpy(least, ".1s", 3);

        struct command *shell = PROGRAM("/bin/sh", "-c", job);
        ASSERT_EQ(command_wait(shell), 0);
        ASSERT_STREQ(command_out(shell), "ran\n");
        jobs++;
    }
    ASSERT_EQ(jobs, 2);
    free(text);
}

TEST(guide, examples_are_shell)
{
    for (size_t i = 0; i < sizeof(pages) / sizeof(pages[0]); i++) {
        struct command *shell = PROGRAM("sh", "-n", extract(pages[i]));

        if (command_wait(shell) != 0)
            FAIL("%s.md: %s", pages[i], command_err(shell));
    }
}

TEST(guide, fenced_file_refuses_an_older_token)
{
    char script[1024];
    struct command *shell;

    snprintf(script, sizeof(script),
             ". %s; cd %s\n"
             "say() { echo \"$2\" | HOLDFAST_TOKEN=$1 fenced_write data; "
             "echo $?; }\n"
             "say 5 five; say 4 four; cat data; say 5 again; say 6 six; "
             "cat data",
             extract("fencing"), command_dir());
    shell = PROGRAM("sh", "-c", script);
    ASSERT_EQ(command_wait(shell), 0);
    ASSERT_STREQ(command_out(shell), "0\n79\nfive\n0\n0\nsix\n");
}

TEST(guide, links_lead_somewhere)
{
    char text[65536];

    snprintf(text, sizeof(text), "%s",
             file_text(HOLDFAST_SOURCE "/docs/guide/first-steps.md"));
    for (char *at = strstr(text, "]("); at; at = strstr(at + 1, "](")) {
        char path[512];

        snprintf(path, sizeof(path), HOLDFAST_SOURCE "/docs/guide/%.*s",
                 (int)strcspn(at + 2, ")"), at + 2);
        file_text(path);
    }
}

TEST(guide, scripts_run_in_every_shell)
{
    static const char *const shells[] = {"bash", "dash", "zsh"};

    command_variable("PATH", "/usr/bin:/bin");
    ASSERT_EQ(symlink(HOLDFAST_COMMAND, command_path("holdfast")), 0);
    for (size_t i = 0; i < 3; i++) {
        char line[1024];
        struct command *script;

        snprintf(line, sizeof(line),
                 "command -v %s >/dev/null || exit 0; PATH=$HOME:$PATH; "
                 "exec %s %s",
                 shells[i], shells[i], extract("scripts"));
        script = PROGRAM("/bin/sh", "-c", line);
        if (command_wait(script) != 0)
            FAIL("%s: %s", shells[i], command_err(script));
        ASSERT_STREQ(command_err(script), "");
        ASSERT_HAS(command_out(script), "step two");
        ASSERT_HAS(command_out(script), "goes on under the lock");
    }
}

/* deploy.md, with an engine that only the command line names. */
TEST(guide, deploy_checks_its_turn_on_the_same_engine)
{
    char url[512];
    struct command *run;

    snprintf(url, sizeof(url), "%s", command_url());
    command_variable("HOLDFAST_URL", NULL);
    command_variable("PATH", "/usr/bin:/bin");
    ASSERT_EQ(symlink(HOLDFAST_COMMAND, command_path("holdfast")), 0);
    file_write(command_path("deploy.sh"),
               "cd \"$HOME\"; PATH=$PATH:.\n"
               "holdfast check \"$HOLDFAST_NAME\" \"$HOLDFAST_TOKEN\" && "
               "echo switched\n"
               "holdfast run deploy/web -- true || echo code=$?\n");
    run = FINISH(0, "run", "deploy/web", "-u", url, "-w", "10m", "--", "sh",
                 command_path("deploy.sh"));
    ASSERT_STREQ(command_out(run), "switched\ncode=64\n");
    ASSERT_HAS(command_err(run), "held by an ancestor");
}

/* Wherever the page has a token or a file of node_exporter, ours. */
static void fill_in(char *line, size_t size, const char *token)
{
    static const char of_page[] = "1794938116134040";
    static const char directory[] = "/var/lib/prometheus/node-exporter/";
    char rest[1024];
    char *at = strstr(line, of_page);

    if (at) {
        snprintf(rest, sizeof(rest), "%s", at + strlen(of_page));
        snprintf(at, size - (size_t)(at - line), "%s%s", token, rest);
    }
    at = strstr(line, directory);
    if (at) {
        snprintf(rest, sizeof(rest), "%s", at + strlen(directory));
        snprintf(at, size - (size_t)(at - line), "%s/%s", command_dir(), rest);
    }
}

/* The command of @line that goes on until somebody ends it; NULL: any other. */
static const char *first_words(const char *line)
{
    if (strncmp(line, "holdfast ls --watch", 19) == 0)
        return "nightly  held by ";
    if (strncmp(line, "holdfast elect scheduler --observe", 34) == 0)
        return "nobody leads";
    if (strncmp(line, "holdfast metrics --listen", 25) == 0)
        return "listening on ";
    return NULL;
}

static void run_line(const char *line)
{
    const char *words = first_words(line);
    char shell_line[1100];
    struct command *command;

    snprintf(shell_line, sizeof(shell_line), "exec 2>&1; %s%s",
             words ? "exec " : "", line);
    if (strcmp(line, "holdfast top") == 0) {
        command = TERMINAL("sh", "-c", line);
        command_expect(command, "q quit");
        command_type(command, "q");
    } else {
        command = PROGRAM("sh", "-c", shell_line);
    }
    if (words) {
        command_expect(command, words);
        command_signal(command, SIGTERM);
        (void)command_wait(command);
    } else if (command_wait(command) != 0) {
        FAIL("%s: %s", line, command_out(command));
    }
}

TEST(guide, operating_runs_line_by_line)
{
    char path[1024];
    char token[32];
    char *text;
    struct command *run;
    int lines = 0;

    snprintf(path, sizeof(path), "%s:/usr/bin:/bin", command_dir());
    command_variable("PATH", path);
    ASSERT_EQ(symlink(HOLDFAST_COMMAND, command_path("holdfast")), 0);
    file_write(command_path("nightly"), "#!/bin/sh\n");
    ASSERT_EQ(chmod(command_path("nightly"), 0700), 0);
    run = COMMAND("run", "nightly", "--", "sh", "-c",
                  "echo token=$HOLDFAST_TOKEN; cat");
    snprintf(token, sizeof(token), "%ld", command_number(run, "token="));

    /* Blocks inside of a list have spaces before them. */
    text = strdup(file_text(HOLDFAST_SOURCE "/docs/guide/operating.md"));
    ASSERT_NOT_NULL(text);
    bool inside = false;
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        char filled[1024];

        line += strspn(line, " ");
        if (strncmp(line, "```", 3) == 0) {
            inside = strcmp(line, "```sh") == 0;
            continue;
        }
        if (!inside)
            continue;
        snprintf(filled, sizeof(filled), "%s", line);
        fill_in(filled, sizeof(filled), token);
        run_line(filled);
        lines++;
        if (strstr(line, "holdfast break"))
            ASSERT_EQ(command_wait(run), 79);
    }
    ASSERT_EQ(lines, 14);
    free(text);
}

/* SPDX-License-Identifier: MIT */
/*
 * first_steps_test.c - docs/guide/first-steps.md is true.
 *
 * The page is the script. In its ```console blocks a line "one$ command" is
 * typed into the terminal of that name, an interactive shell; the lines below
 * it have to appear there, in order. "^C" is a key, "^…" is nothing: only wait.
 * A question is answered with what stands behind it on the page.
 *
 * Times, tokens and process ids differ from run to run, so numbers and spaces
 * are compared by kind. The host is called db1, the user alice. A token in a
 * command is replaced by the last one that a terminal showed.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "command.h"
#include "test.h"

enum { TERMINALS = 3, TEXT = 32768, TOKEN_DIGITS = 12 };

static const char *const names[TERMINALS] = {"one", "two", "three"};
static const char question[] = "Type the name of the lock to break it: ";

struct terminal {
    struct command *shell; /* NULL: not opened yet */
    bool busy;             /* something was typed since the last prompt */
};

static struct terminal terminals[TERMINALS];
static char token[32];

/* Skip an escape sequence at @at; NULL if there is none. */
static const char *skip_escape(const char *at)
{
    if (at[0] != '\033' || at[1] != '[')
        return NULL;
    at += 2;
    while (*at && !isalpha((unsigned char)*at))
        at++;
    return *at ? at + 1 : at;
}

/* "3m12s", "29s", "4211" and "1763245012345678" are all "#". */
static const char *skip_number(const char *at)
{
    if (!isdigit((unsigned char)*at))
        return NULL;
    while (isdigit((unsigned char)*at) ||
           (*at == '.' && isdigit((unsigned char)at[1]))) {
        at++;
        if (!isalnum((unsigned char)at[0]) || isdigit((unsigned char)at[0]))
            continue;
        at += strncmp(at, "ms", 2) == 0 ? 2 : strchr("smhd", *at) ? 1 : 0;
    }
    return at;
}

/* What is compared: no escapes, one space for many, # for numbers. */
static void simplify(const char *from, char *to, size_t size)
{
    char host[256] = "";
    size_t used = 0;

    (void)gethostname(host, sizeof(host) - 1);
    while (*from && used + 4 < size) {
        const char *next = skip_escape(from);
        size_t len = strlen(host);

        if (next) {
            from = next;
        } else if (len > 0 && strncmp(from, host, len) == 0) {
            memcpy(to + used, "db#", 3);
            used += 3;
            from += len;
        } else if (skip_number(from)) {
            to[used++] = '#';
            from = skip_number(from);
        } else if (isspace((unsigned char)*from)) {
            if (used > 0 && to[used - 1] != ' ')
                to[used++] = ' ';
            from++;
        } else {
            to[used++] = *from++;
        }
    }
    to[used] = '\0';
    while (used > 0 && to[used - 1] == ' ')
        to[--used] = '\0';
}

static void remember_token(const char *text)
{
    for (; *text; text++) {
        size_t digits = strspn(text, "0123456789");

        if (digits >= TOKEN_DIGITS && digits < sizeof(token))
            snprintf(token, sizeof(token), "%.*s", (int)digits, text);
        if (digits > 0)
            text += digits - 1;
    }
}

/* Read until @line appears on the screen. */
static void expect_line(struct terminal *terminal, const char *line)
{
    static char seen[TEXT];
    char wanted[1024];
    long until = now_ms() + COMMAND_PATIENCE_MS;

    simplify(line, wanted, sizeof(wanted));
    for (;;) {
        simplify(command_out(terminal->shell), seen, sizeof(seen));
        if (strstr(seen, wanted))
            break;
        if (now_ms() > until)
            FAIL("the page says \"%s\"; the screen says \"%s\"", wanted, seen);
        command_read(terminal->shell, 100);
    }
    remember_token(command_out(terminal->shell));
}

static struct terminal *open_terminal(size_t i)
{
    char prompt[32];

    if (terminals[i].shell)
        return &terminals[i];
    snprintf(prompt, sizeof(prompt), "%s$ ", names[i]);
    command_variable("PS1", prompt);
    terminals[i].shell = TERMINAL("bash", "--norc", "--noprofile", "-i");
    terminals[i].busy = true;
    return &terminals[i];
}

static void type_command(struct terminal *terminal, const char *prompt,
                         const char *line)
{
    char text[1024];
    size_t at = 0;

    if (terminal->busy)
        command_expect(terminal->shell, prompt);
    command_forget(terminal->shell);
    terminal->busy = true;
    for (; *line && at < sizeof(text) - 40; line++) {
        size_t digits = strspn(line, "0123456789");

        if (digits >= TOKEN_DIGITS) {
            at += (size_t)snprintf(text + at, sizeof(text) - at, "%s", token);
            line += digits - 1;
        } else {
            text[at++] = *line;
        }
    }
    text[at] = '\0';
    command_type(terminal->shell, text);
    command_type(terminal->shell, "\n");
}

/* The page has no line for what a reader sees without one: that the first
 * terminal is silent, and holds the lock. */
static void await_holder(const char *line)
{
    char name[64];

    if (!strstr(line, "-- sleep") ||
        sscanf(line, "holdfast run %63s", name) != 1)
        return;
    while (command_wait(COMMAND("test", name)) == 0)
        continue;
}

static void perform(struct terminal *terminal, const char *prompt,
                    const char *line)
{
    if (strcmp(line, "^C") == 0)
        command_type(terminal->shell, "\003");
    else if (line[0] != '^')
        type_command(terminal, prompt, line);
    await_holder(line);
}

/* One line of a console block; returns the terminal it speaks of. */
static struct terminal *play(struct terminal *terminal, const char *line)
{
    for (size_t i = 0; i < TERMINALS; i++) {
        char prompt[32];
        size_t len = (size_t)snprintf(prompt, sizeof(prompt), "%s$ ", names[i]);

        if (strncmp(line, prompt, len) == 0) {
            terminal = open_terminal(i);
            perform(terminal, prompt, line + len);
            return terminal;
        }
    }
    ASSERT_NOT_NULL(terminal);
    if (strncmp(line, question, strlen(question)) == 0) {
        expect_line(terminal, question);
        command_type(terminal->shell, line + strlen(question));
        command_type(terminal->shell, "\n");
    } else {
        expect_line(terminal, line);
    }
    return terminal;
}

static void play_page(char *page)
{
    struct terminal *terminal = NULL;
    bool inside = false;
    int played = 0;

    for (char *line = strtok(page, "\n"); line; line = strtok(NULL, "\n")) {
        if (strncmp(line, "```", 3) == 0) {
            inside = strcmp(line, "```console") == 0;
        } else if (inside) {
            terminal = play(terminal, line);
            played++;
        }
    }
    ASSERT_GT(played, 30);
}

TEST(first_steps, page_is_what_happens)
{
    char path[512];

    memset(terminals, 0, sizeof(terminals));
    snprintf(path, sizeof(path), "%s:%s", command_path("bin"), getenv("PATH"));
    ASSERT_EQ(mkdir(command_path("bin"), 0700), 0);
    ASSERT_EQ(symlink(HOLDFAST_COMMAND, command_path("bin/holdfast")), 0);
    command_variable("PATH", path);
    command_variable("LOGNAME", "alice");

    char *page =
        strdup(file_text(HOLDFAST_SOURCE "/docs/guide/first-steps.md"));
    play_page(page);
    free(page);
}

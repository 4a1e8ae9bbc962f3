/* SPDX-License-Identifier: MIT */
/*
 * tmux.c - a terminal whose screen a test can read.
 *
 * Failure: what does not come within COMMAND_PATIENCE_MS fails the test, with
 * the screen as it was.
 */
#include "tmux.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "test.h"

enum { SCREEN_MAX = 65536, LOOK_MS = 20 };

static char *text_of(const char *line, int *ret_status)
{
    static char text[SCREEN_MAX];
    FILE *from = popen(line, "r");
    size_t len;

    ASSERT_NOT_NULL(from);
    len = fread(text, 1, sizeof(text) - 1, from);
    text[len] = '\0';
    *ret_status = pclose(from);
    return text;
}

bool tmux_exists(void)
{
    int status;

    (void)text_of("tmux -V 2>&1", &status);
    return status == 0;
}

/* Run "tmux ARGUMENTS" on the server of this test. */
static char *ask(const char *arguments, int *ret_status)
{
    char line[2048];

    snprintf(line, sizeof(line), "tmux -N -u -S '%s' %s 2>&1",
             command_path("tmux"), arguments);
    return text_of(line, ret_status);
}

static char *tell(const char *arguments)
{
    int status;
    char *text = ask(arguments, &status);

    if (status != 0)
        FAIL("tmux %s: %s", arguments, text);
    return text;
}

void tmux_start(int columns, int lines, const char *line)
{
    long until = now_ms() + COMMAND_PATIENCE_MS;
    char arguments[1024];
    int status;

    (void)PROGRAM("tmux", "-u", "-D", "-f", "/dev/null", "-S",
                  command_path("tmux"));
    snprintf(arguments, sizeof(arguments), "new-session -d -x %d -y %d \"%s\"",
             columns, lines, line);
    for (;;) { /* until the server listens */
        const char *text = ask(arguments, &status);

        if (status == 0)
            return;
        if (now_ms() > until)
            FAIL("tmux does not start: %s", text);
    }
}

const char *tmux_screen(void)
{
    return tell("capture-pane -p");
}

static const char *expect(const char *text, bool wanted)
{
    long until = now_ms() + COMMAND_PATIENCE_MS;

    for (;;) {
        const char *screen = tmux_screen();

        if ((strstr(screen, text) != NULL) == wanted)
            return screen;
        if (now_ms() > until)
            FAIL("\"%s\" %s; the screen:\n%s", text,
                 wanted ? "does not come" : "does not go", screen);
        poll(NULL, 0, LOOK_MS); /* tmux is asked, it does not tell */
    }
}

const char *tmux_expect(const char *text)
{
    return expect(text, true);
}

void tmux_expect_no(const char *text)
{
    (void)expect(text, false);
}

void tmux_keys(const char *keys)
{
    char arguments[256];

    snprintf(arguments, sizeof(arguments), "send-keys %s", keys);
    (void)tell(arguments);
}

void tmux_type(const char *text)
{
    char arguments[1024];

    snprintf(arguments, sizeof(arguments), "send-keys -l -- '%s'", text);
    (void)tell(arguments);
}

void tmux_resize(int columns, int lines)
{
    char arguments[128];

    snprintf(arguments, sizeof(arguments), "resize-window -x %d -y %d", columns,
             lines);
    (void)tell(arguments);
}

const char *tmux_ask(const char *format)
{
    char arguments[256];

    snprintf(arguments, sizeof(arguments), "display-message -p '%s'", format);
    return tell(arguments);
}

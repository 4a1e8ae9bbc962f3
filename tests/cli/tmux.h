/* SPDX-License-Identifier: MIT */
/*
 * tmux.h - a terminal whose screen a test can read, by tmux.
 *
 * The server runs in the foreground as a command of the test, so that it ends
 * with it, and everything in it.
 */
#ifndef HF_TESTS_CLI_TMUX_H
#define HF_TESTS_CLI_TMUX_H

#include <stdbool.h>

#include "test.h"

/* Where there is no tmux, the test is over, and says so. */
#define NEEDS_TMUX()                                                           \
    do {                                                                       \
        if (!tmux_exists()) {                                                  \
            test_not_tested("no tmux here");                                   \
            return;                                                            \
        }                                                                      \
    } while (0)

bool tmux_exists(void);
/* A window of this size that runs @line in a shell. */
void tmux_start(int columns, int lines, const char *line);
/* What the screen shows now; valid until the next call. */
const char *tmux_screen(void);
/* Wait until the screen has @text; what it shows then. */
const char *tmux_expect(const char *text);
/* Wait until it has it no more. */
void tmux_expect_no(const char *text);
/* Keys by their names in tmux: "q", "Enter", "Escape", "C-c". */
void tmux_keys(const char *keys);
/* Text as it is. */
void tmux_type(const char *text);
void tmux_resize(int columns, int lines);
/* A format of tmux, such as "#{alternate_on}", for this window. */
const char *tmux_ask(const char *format);

#endif

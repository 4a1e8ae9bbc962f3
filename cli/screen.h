/* SPDX-License-Identifier: MIT */
/* screen.h - the whole terminal, for as long as we need it. */
#ifndef CLI_SCREEN_H
#define CLI_SCREEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Keys; what is printable is its own code, one byte at a time. */
enum {
    SCREEN_NO_KEY = 0,
    SCREEN_BACKSPACE = 8,
    SCREEN_ENTER = 13,
    SCREEN_ESCAPE = 27,
    SCREEN_UP = 256,
    SCREEN_DOWN,
    SCREEN_LEFT,
    SCREEN_RIGHT,
    SCREEN_HOME,
    SCREEN_END,
    SCREEN_PAGE_UP,
    SCREEN_PAGE_DOWN,
    SCREEN_GONE /* the terminal is */
};

/* True if stdin and stdout are a terminal that we can draw on. */
bool screen_possible(void);
/* Take the terminal, after signals_begin_screen(); in the background we stop
 * first, until "fg". False: it is not ours. */
bool screen_enter(void);
/* Give the terminal back as it was. Safe in a handler, and when it is ours no
 * more. */
void screen_leave(void);
/* What a signal asks for: stop, go on, a new size. True: draw again. */
bool screen_follow_signals(void);
/* The next key, within @timeout_ms, or until @other (-1: none) is readable. */
int screen_key(int other, int64_t timeout_ms);
/* Show @frame, as many lines as the screen has, each ended by "\n". Ends early if
 * a signal asks us to end. */
void screen_show(const char *frame);
/* One key out of the bytes of a terminal: how many of @n bytes it takes, 0 if
 * more must come. */
size_t screen_parse(const char *bytes, size_t n, int *ret_key);

#endif

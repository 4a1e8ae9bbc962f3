/* SPDX-License-Identifier: MIT */
/*
 * screen.c - the whole terminal: the alternate screen, keys without Enter.
 *
 * The sequences are those that every terminal of today understands; a library
 * of terminal descriptions would be a dependency for nine of them. Whatever
 * ends the process gives the terminal back: the caller does on its way out,
 * atexit() if somebody calls exit(), handlers for the signals of a crash. KILL
 * leaves it as it is; "reset" helps.
 *
 * Failure: a terminal that takes no output (Ctrl-S) delays us until it does or
 * a signal asks us to end; one that is gone is SCREEN_GONE.
 */
#include "screen.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "signals.h"

enum { KEYS = 64, ESCAPE_MS = 50, CHUNK = 1024, ROOM_MS = 200 };

#define ENTER "\033[?1049h\033[?25l"
#define LEAVE "\033[0m\033[?25h\033[?1049l"

static struct termios before;
static volatile sig_atomic_t taken;
static char pending[KEYS];
static size_t n_pending;

bool screen_possible(void)
{
    const char *term = secure_getenv("TERM");

    return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) && term && *term &&
           strcmp(term, "dumb") != 0;
}

void screen_leave(void)
{
    int error = errno;

    if (!taken)
        return;
    taken = 0;
    (void)!write(STDOUT_FILENO, LEAVE, sizeof(LEAVE) - 1);
    (void)tcsetattr(STDIN_FILENO, TCSANOW, &before);
    errno = error;
}

/* The handler was reset: this time the signal does what it does. */
static void crash(int signo)
{
    screen_leave();
    raise(signo);
}

static void prepare_for_the_worst(void)
{
    static const int signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};
    struct sigaction action = {.sa_handler = crash, .sa_flags = SA_RESETHAND};

    (void)atexit(screen_leave);
    for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
        struct sigaction old;

        if (sigaction(signals[i], NULL, &old) == 0 && old.sa_handler == SIG_DFL)
            sigaction(signals[i], &action, NULL);
    }
}

static bool set_modes(void)
{
    struct termios modes = before;

    modes.c_iflag &= ~(tcflag_t)(ICRNL | INLCR);
    modes.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    modes.c_cc[VMIN] = 1;
    modes.c_cc[VTIME] = 0;
    return tcsetattr(STDIN_FILENO, TCSADRAIN, &modes) == 0 &&
           write(STDOUT_FILENO, ENTER, sizeof(ENTER) - 1) > 0;
}

bool screen_enter(void)
{
    static bool prepared;

    if (tcgetpgrp(STDIN_FILENO) != getpgrp())
        signals_stop(/* whole_group= */ false); /* until "fg" */
    if (tcgetpgrp(STDIN_FILENO) != getpgrp() ||
        (!taken && tcgetattr(STDIN_FILENO, &before) != 0))
        return false;
    if (!prepared)
        prepare_for_the_worst();
    prepared = true;
    taken = 1;
    return set_modes();
}

bool screen_follow_signals(void)
{
    bool again = false;

    for (int signo = signals_take(); signo != 0; signo = signals_take()) {
        if (signo == SIGTSTP) {
            screen_leave();
            signals_stop(/* whole_group= */ false);
        }
        if (signo == SIGTSTP || signo == SIGCONT)
            (void)screen_enter(); /* if not, the next key is SCREEN_GONE */
        again = true;
    }
    return again;
}

/* ---- keys ------------------------------------------------------------------ */

/* Behind "ESC [" or "ESC O": parameters, then one letter. */
static size_t parse_sequence(const char *bytes, size_t n, int *ret_key)
{
    static const struct {
        const char *end;
        int key;
    } keys[] = {
        {"A", SCREEN_UP},    {"B", SCREEN_DOWN},     {"C", SCREEN_RIGHT},
        {"D", SCREEN_LEFT},  {"H", SCREEN_HOME},     {"F", SCREEN_END},
        {"1~", SCREEN_HOME}, {"4~", SCREEN_END},     {"7~", SCREEN_HOME},
        {"8~", SCREEN_END},  {"5~", SCREEN_PAGE_UP}, {"6~", SCREEN_PAGE_DOWN}};
    size_t i = 2;

    while (i < n && bytes[i] >= 0x20 && bytes[i] < 0x40)
        i++;
    if (i == n)
        return 0;
    for (size_t k = 0; k < sizeof(keys) / sizeof(keys[0]); k++)
        if (strlen(keys[k].end) == i - 1 &&
            memcmp(bytes + 2, keys[k].end, i - 1) == 0)
            *ret_key = keys[k].key;
    return i + 1;
}

size_t screen_parse(const char *bytes, size_t n, int *ret_key)
{
    *ret_key = SCREEN_NO_KEY;
    if (n == 0)
        return 0;
    if (bytes[0] == SCREEN_ESCAPE && n == 1)
        return 0;
    if (bytes[0] == SCREEN_ESCAPE && (bytes[1] == '[' || bytes[1] == 'O'))
        return parse_sequence(bytes, n, ret_key);
    *ret_key = (unsigned char)bytes[0];
    if (bytes[0] == 127)
        *ret_key = SCREEN_BACKSPACE;
    if (bytes[0] == '\n')
        *ret_key = SCREEN_ENTER;
    return 1;
}

static int take_key(void)
{
    int key;
    size_t used = screen_parse(pending, n_pending, &key);

    /* Nothing that we know is as long as that. */
    if (used == 0 && n_pending == KEYS)
        used = KEYS;
    n_pending -= used;
    memmove(pending, pending + used, n_pending);
    return key;
}

int screen_key(int other, int64_t timeout_ms)
{
    int key = take_key();
    bool half = n_pending > 0; /* an escape, or what begins with one */
    ssize_t n;

    if (key != SCREEN_NO_KEY)
        return key;
    if (!(signals_wait_two(STDIN_FILENO, half ? -1 : other,
                           half ? ESCAPE_MS : timeout_ms) &
          1)) {
        if (!half || n_pending == 0)
            return SCREEN_NO_KEY;
        n_pending = 0;
        return SCREEN_ESCAPE;
    }
    n = read(STDIN_FILENO, pending + n_pending, KEYS - n_pending);
    if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN))
        return SCREEN_GONE;
    n_pending += n > 0 ? (size_t)n : 0;
    return take_key();
}

/* ---- drawing ---------------------------------------------------------------- */

static void put(const char *text, size_t len)
{
    while (len > 0 && signals_first() == 0) {
        ssize_t n;

        if (!signals_wait_room(STDOUT_FILENO, ROOM_MS))
            continue;
        n = write(STDOUT_FILENO, text, len < CHUNK ? len : CHUNK);
        if (n < 0 && errno != EINTR && errno != EAGAIN)
            return; /* reading will tell that it is gone */
        text += n > 0 ? n : 0;
        len -= n > 0 ? (size_t)n : 0;
    }
}

/* A line is wiped before it is written: behind one that fills its row, the
 * cursor of many terminals still stands on the last letter. */
void screen_show(const char *frame)
{
    char *text = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);

    if (!to)
        return;
    fputs("\033[H", to);
    while (*frame) {
        size_t len = strcspn(frame, "\n");
        bool last = frame[len] == '\0' || frame[len + 1] == '\0';

        fprintf(to, "\033[K%.*s\033[0m%s", (int)len, frame, last ? "" : "\r\n");
        frame += len + (frame[len] == '\n');
    }
    if (fclose(to) == 0 && taken)
        put(text, size);
    free(text);
}

/* SPDX-License-Identifier: MIT */
/* signals.h - signals as something to look at, not something that happens. */
#ifndef CLI_SIGNALS_H
#define CLI_SIGNALS_H

#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "holdfast.h"

/* Catch what we forward. From here on signals arrive only inside
 * signals_wait(), or while a request is being waited for. */
void signals_begin(void);
/* Before the first child: catch SIGCHLD and SIGTSTP too. */
void signals_begin_child(void);
/* The same for who draws on a terminal: SIGTSTP, SIGCONT and SIGWINCH. */
void signals_begin_screen(void);
/* Let signals in: what asks us to end does so at once, after @restore, which
 * must be safe in a handler. NULL ends that. */
void signals_at_once(void (*restore)(void));
/* Let signals in and make them cancel @request; NULL ends that. */
void signals_cancel(hf_request *request);
/* From here on the first further INT, TERM, HUP or QUIT ends us at once. */
void signals_leave(void);
/* Wait until @fd (-1: none) is readable, a signal came, or @timeout_ms (-1:
 * no end) is over. True if @fd is readable. */
bool signals_wait(int fd, int64_t timeout_ms);
/* The same for two descriptors; bit 0 and 1 say which are readable. */
int signals_wait_two(int fd, int other, int64_t timeout_ms);
/* The same for @n descriptors with what they wait for; true if one is ready. */
bool signals_poll(struct pollfd *polled, size_t n, int64_t timeout_ms);
/* Wait in the same way until @fd takes what we write. */
bool signals_wait_room(int fd, int64_t timeout_ms);
/* The next signal that came and was not taken yet; 0 if none. */
int signals_take(void);
/* The first signal of those that ask us to end; 0 if none came. */
int signals_first(void);
/* In a new process: everything as it was before signals_begin(). */
void signals_restore(void);
/* Stop ourselves as Ctrl-Z would; returns when we are continued. */
void signals_stop(bool whole_group);

#endif

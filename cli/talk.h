/* SPDX-License-Identifier: MIT */
/* talk.h - say who holds a lock, on stderr. */
#ifndef CLI_TALK_H
#define CLI_TALK_H

#include <stdbool.h>
#include <stddef.h>

#include "holdfast.h"

/* True if somebody watches: stderr is a terminal and -q was not given. */
bool talk_wanted(void);
/* One line, redrawn each time: who holds @name, and our place in the queue. */
void talk_waiting(hf_client *client, const char *name, const char *owner);
/* The same for a log: a line of its own, unless -q. */
void talk_still_waiting(hf_client *client, const char *name, const char *owner);
/* The engine has been silent, or answers again; for events of a hold. */
void talk_jeopardy(const hf_hold *hold, int state);
/* Wipe that line, if there is one. */
void talk_clear(void);
/* Why we did not get @name, and what to try next. */
void talk_busy(hf_client *client, const char *name, int rc,
               const hf_error *err);
/* What we do next, for -vv. */
void talk_step(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* A short message, as "holdfast: …", unless -q. */
void talk_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif

/* SPDX-License-Identifier: MIT */
/* follow.h - wait until something happens to locks, for who shows them. */
#ifndef CLI_FOLLOW_H
#define CLI_FOLLOW_H

#include <stdbool.h>
#include <stdint.h>

#include "holdfast.h"

/* What --interval says, with a standard and a least. */
struct follow_pace {
    int64_t ms; /* -1 before follow_pace_check() */
    int64_t least_ms;
    bool given;
};
/* 0, or the status of a wrong use. */
int follow_pace_check(struct follow_pace *pace);

/* { 0 } begins. */
struct follow {
    hf_client *client;
    hf_watch *watch; /* NULL: nobody tells us, we look at a pace */
    int fd;          /* readable when it has something to tell */
    bool changed;
};

/* Follow the locks whose names begin with @name, or, with HF_EXACT, that one.
 * Where the engine cannot be watched, nothing is told. */
void follow_start(struct follow *follow, hf_client *client, const char *name,
                  uint32_t flags);
void follow_stop(struct follow *follow);
/* Has something happened since the last time? Does not wait. */
bool follow_take(struct follow *follow);
/* Wait until something has happened, @fd (-1: none) is readable, a signal came,
 * or @timeout_ms (-1: no end) is over. True if @fd is readable. */
bool follow_wait(struct follow *follow, int fd, int64_t timeout_ms);

#endif

/* SPDX-License-Identifier: MIT */
/* look.h - what the store shows of locks: for ls, show, test, top, metrics. */
#ifndef CLI_LOOK_H
#define CLI_LOOK_H

#include <stdbool.h>
#include <stddef.h>

#include "holdfast.h"

enum { LOOK_COMMAND = 256 };

/* One name. Times are -1 where the store does not know them. */
struct look_lock {
    const char *name;
    const hf_lock_info *rows; /* holders first, then waiters in order, then
                                 those that wait on a condition */
    size_t n;
    int holders;
    int waiters;
    int parked; /* on conditions */
    int slots;
    int64_t held_ms;  /* of the oldest holder */
    int64_t wait_ms;  /* of the oldest waiter */
    int64_t lease_ms; /* the shortest that is left */
};

/* { 0 } begins. Names are in order. */
struct look {
    struct look_lock *locks;
    size_t n;
    hf_lock_info *rows;
    size_t n_rows;
    size_t room;
};

/* The locks whose names begin with @prefix (NULL: all). 0 or HF_E*; what @look
 * had before is forgotten in any case. */
int look_list(struct look *look, hf_client *client, const char *prefix,
              hf_error *err);
/* The same for one name. */
int look_show(struct look *look, hf_client *client, const char *name,
              hf_error *err);
void look_forget(struct look *look);
/* Does somebody wait for long enough to be part of one? */
bool look_has_long_wait(const struct look_lock *lock);
/* The deadlocks that the store knows of, one after the other; with @name only
 * those that it is part of. What cannot be told is none. */
void look_deadlocks(hf_client *client, const char *name,
                    void (*each)(const char *text, void *ctx), void *ctx);

/* "exclusive", "shared", "slot". */
const char *look_mode(int mode);
/* "alive", "dead"; "leased" where the store knows no more than a lease that has
 * not run out; "-". */
const char *look_life(const hf_lock_info *info);
/* "db1:4211 (alice)". */
char *look_holder(const hf_lock_info *info, char *to, size_t size);
/* The one holder, "2 readers", "3 of 5" slots, or "-". */
char *look_holders(const struct look_lock *lock, char *to, size_t size);
/* How long ago the lease was renewed; -1 where the store does not know. */
int64_t look_renewed_ms(const hf_lock_info *info);
/* The command line of a holder on this host, "" if it cannot be known. */
const char *look_command(const hf_lock_info *info, char to[LOOK_COMMAND]);

#endif

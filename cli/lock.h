/* SPDX-License-Identifier: MIT */
/* lock.h - the options and the wait that run, hold and elect share. */
#ifndef CLI_LOCK_H
#define CLI_LOCK_H

#include "cli.h"
#include "options.h"

enum { LOCK_UNSET = -2 };

/* What the options said about the lock. */
struct lock {
    const char *name;
    bool nonblock;
    int64_t wait_ms; /* LOCK_UNSET: not given */
    bool shared;
    bool exclusive;
    int64_t slots;
    int64_t ttl_ms;
    int64_t max_hold_ms;
    const char *note;
    const char *metrics; /* --metrics-textfile */
    int64_t conflict_code;
    bool silent;                  /* say nothing when it is busy */
    char owner[HF_OWNER_MAX + 1]; /* user@host:pid */
};
extern struct lock lock;
extern const struct option lock_options[];

/* Check the options, name the owner, and fill @opts. 0 or an exit code. */
int lock_prepare(hf_opts *opts);
/* HF_EXCLUSIVE, HF_SHARED or HF_SLOT, as the options said. */
int lock_mode(void);
/* Acquire, talking about it on a terminal; signals end the wait. 0, or an
 * exit code; what happened is in *ret_rc (HF_E*), and said. */
int lock_acquire(hf_client *client, const hf_opts *opts, hf_hold **ret_hold,
                 int *ret_rc);
/* Milliseconds on a clock that does not stop while the machine sleeps. */
int64_t lock_now_ms(void);

#endif

/* SPDX-License-Identifier: MIT */
/* watch.h - a child and the hold that it runs under. */
#ifndef CLI_WATCH_H
#define CLI_WATCH_H

#include "child.h"
#include "options.h"

enum watch_policy { WATCH_TERM, WATCH_KILL, WATCH_WARN };
enum watch_outcome { WATCH_DONE, WATCH_LOST, WATCH_MAX_HOLD };

/* How a child is stopped, as the options say. */
struct watch_options {
    enum watch_policy on_lost;
    int64_t kill_after_ms;
};
extern struct watch_options watch_settings;
extern const struct option watch_options[];

struct watch {
    hf_client *client;
    hf_hold *hold;
    int event_fd;        /* of the client, or -1 */
    int64_t max_hold_ms; /* 0: no limit */
    int64_t held_since;  /* lock_now_ms() */
    struct child child;
    enum watch_outcome outcome;
    /* private */
    int stage;
    int64_t started;
    int64_t kill_at;
    int64_t kill_after_ms;
    int64_t reserve_ms;
    bool told; /* a signal was passed on that should end it */
};

/* Watch until the child's family has ended as it should. The result is in
 * @watch->outcome and @watch->child.status. */
void watch_child(struct watch *watch);
/* The exit code that @watch's child stands for. */
int watch_exit_code(const struct watch *watch);

#endif

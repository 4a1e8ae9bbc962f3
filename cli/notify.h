/* SPDX-License-Identifier: MIT */
/* notify.h - what systemd is told of hold and elect. */
#ifndef CLI_NOTIFY_H
#define CLI_NOTIFY_H

#include <stdint.h>

/* Send "READY=1" and the like, if a service manager listens. */
void notify_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Once: the lock is ours; then STATUS alone. */
void notify_ready(const char *name);
/* Tell the watchdog that we live, if it is time. Returns after how long it is
 * time again, in milliseconds; -1: nobody watches. */
int64_t notify_alive(void);

#endif

/* SPDX-License-Identifier: MIT */
/* guard.h - a process that ends the child's group when we cannot. */
#ifndef CLI_GUARD_H
#define CLI_GUARD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct guard;

/* Start a guard over @group; 0 if there is none. */
pid_t guard_start(pid_t group, struct guard **ret_guard);
/* Kill the group when CLOCK_BOOTTIME says @deadline_ms; -1: never. */
void guard_until(struct guard *guard, int64_t deadline_ms);
/* True if it killed the group. */
bool guard_fired(const struct guard *guard);
/* End it. @guard may be NULL. */
void guard_stop(struct guard *guard, pid_t pid);

#endif

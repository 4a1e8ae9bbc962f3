/* SPDX-License-Identifier: MIT */
/* ancestor.h - the locks that our ancestors hold. */
#ifndef CLI_ANCESTOR_H
#define CLI_ANCESTOR_H

#include <stdbool.h>
#include <stdint.h>

#include "holdfast.h"

#define ANCESTOR_VARIABLE "HOLDFAST_HELD"

/* The same in every process, and nothing secret in it. */
uint64_t ancestor_hash(const char *text);
/* True if a process above us holds @name on this engine right now. */
bool ancestor_holds(hf_client *client, const char *name);
/* The variable's value for a child that runs under @hold: what we inherited,
 * and this. NULL without memory; the caller frees it. */
char *ancestor_list(hf_client *client, const hf_hold *hold);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * holder.h - the record of a holder or waiter, as engines store it: host, process, owner and
 * note, each a line. None of them can contain a newline.
 */
#ifndef HF_WHO_H
#define HF_WHO_H

#include "base/base.h"

/* Read up to a newline, and step over it. */
char *hf__holder_line(char **at);
/* Copy a text of @len bytes to @to, or as much as fits; returns @to. */
char *hf__holder_copy(const char *text, size_t len, char *to, size_t size);
/* Read the four lines into @info, whose pointers go into the text at *at. */
void hf__holder_read(char **at, hf_lock_info *info);
/* How long ago @wall_ms was, by this machine's clock: 0 if that is still to
 * come, -1 if no clock can have said it. */
int64_t hf__holder_age_ms(int64_t wall_ms);
/* "db1:4211 (worker), \"vacuum\"" for error texts. */
void hf__holder_name(const hf_lock_info *info, char *to, size_t size);
/* For hf__up_rival(), of a lock's @value, in which each grant is different. */
uint64_t hf__holder_rival(const void *value, size_t len);

#endif

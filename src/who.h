/* SPDX-License-Identifier: MIT */
/*
 * who.h - who holds or waits, as engines keep it: host, process, owner and
 * note, each a line. None of them can contain a newline.
 */
#ifndef HF_WHO_H
#define HF_WHO_H

#include "base/base.h"

/* Read up to a newline, and step over it. */
char *hf__who_line(char **at);
/* Read the four lines into @info, whose pointers go into the text at *at. */
void hf__who_read(char **at, hf_lock_info *info);
/* "db1:4211 (worker), \"vacuum\"" for error texts. */
void hf__who_name(const hf_lock_info *info, char *to, size_t size);

#endif

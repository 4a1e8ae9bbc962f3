/* SPDX-License-Identifier: MIT */
/*
 * who.c - who holds or waits, as engines keep it.
 *
 * A record may have been written by anybody: whatever is missing is empty.
 */
#include "who.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

char *hf__who_line(char **at)
{
    char *line = *at;
    char *end = strchr(line, '\n');

    *at = end ? end + 1 : line + strlen(line);
    if (end)
        *end = '\0';
    return line;
}

void hf__who_read(char **at, hf_lock_info *info)
{
    info->host = hf__who_line(at);
    info->pid = strtoll(hf__who_line(at), NULL, 10);
    info->owner = hf__who_line(at);
    info->note = hf__who_line(at);
}

void hf__who_name(const hf_lock_info *info, char *to, size_t size)
{
    const char *quote = info->note[0] ? "\"" : "";

    (void)snprintf(to, size, "%s:%" PRId64 " (%s)%s%s%s%s", info->host,
                   info->pid, info->owner, info->note[0] ? ", " : "", quote,
                   info->note, quote);
}

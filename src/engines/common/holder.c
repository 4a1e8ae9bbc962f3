/* SPDX-License-Identifier: MIT */
/*
 * holder.c - the record of a holder or waiter, as engines store it.
 *
 * A record may have been written by anybody: whatever is missing is empty.
 */
#include "engines/common/holder.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/world.h"
#include "config/name.h"

/* Nobody's random part is behind that. */
enum { MOST_HASHED = 64 };

char *hf__holder_line(char **at)
{
    char *line = *at;
    char *end = strchr(line, '\n');

    *at = end ? end + 1 : line + strlen(line);
    if (end)
        *end = '\0';
    return line;
}

char *hf__holder_copy(const char *text, size_t len, char *to, size_t size)
{
    size_t n = len < size ? len : size - 1;

    if (n > 0)
        memcpy(to, text, n);
    to[n] = '\0';
    return to;
}

void hf__holder_read(char **at, hf_lock_info *info)
{
    info->host = hf__holder_line(at);
    info->pid = strtoll(hf__holder_line(at), NULL, 10);
    info->owner = hf__holder_line(at);
    info->note = hf__holder_line(at);
}

void hf__holder_name(const hf_lock_info *info, char *to, size_t size)
{
    const char *quote = info->note[0] ? "\"" : "";

    (void)snprintf(to, size, "%s:%" PRId64 " (%s)%s%s%s%s", info->host,
                   info->pid, info->owner, info->note[0] ? ", " : "", quote,
                   info->note, quote);
}

int64_t hf__holder_age_ms(int64_t wall_ms)
{
    int64_t now_ms = hf__world->wall_us() / 1000;

    if (wall_ms < 0)
        return -1;
    return wall_ms < now_ms ? now_ms - wall_ms : 0;
}

uint64_t hf__holder_rival(const void *value, size_t len)
{
    static const uint64_t key[2] = {0};

    return hf__name_hash(value, len < MOST_HASHED ? len : MOST_HASHED, key) | 1;
}

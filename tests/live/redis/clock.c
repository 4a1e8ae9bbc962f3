/* SPDX-License-Identifier: MIT */
/* clock.c - a Redis server whose clock a test sets, by clock_shim.c. */
#include "clock.h"

#include <stdlib.h>
#include <time.h>

#include "event.h"

struct server *clock_start_server(const char *durable)
{
    static const char preload[] = "LD_PRELOAD=" CLOCK_SHIM;
    static const char *const prefix[] = {"env", preload,
                                         "CLOCK_SHIM={dir}/clock", NULL};
    const char *const more[] = {"--appendonly", durable, "--appendfsync",
                                "always", NULL};

    return redis_start_under(prefix, more);
}

static int64_t server_s(struct server *server)
{
    const char *answer = redis_do(server, "TIME");
    const char *seconds = strchr(answer + 1, '\n'); /* "*2", "$10", … */

    seconds = seconds ? strchr(seconds + 1, '\n') : NULL;
    ASSERT_NOT_NULL(seconds);
    return strtoll(seconds + 1, NULL, 10);
}

void clock_set_ahead(struct server *server, int64_t ahead_s)
{
    int64_t ahead_ns = ahead_s * 1000000000;
    char path[512];
    FILE *file;

    (void)snprintf(path, sizeof(path), "%s/clock", server_dir(server));
    file = fopen(path, "r+");
    ASSERT_NOT_NULL(file);
    ASSERT_EQ(fwrite(&ahead_ns, sizeof(ahead_ns), 1, file), 1);
    ASSERT_EQ(fclose(file), 0);
    EVENTUALLY(llabs(server_s(server) - (time(NULL) + ahead_s)) < 60);
}

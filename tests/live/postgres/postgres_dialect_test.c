/* SPDX-License-Identifier: MIT */
/* postgres_dialect_test.c - the tables of others on PostgreSQL. */
#include <stdarg.h>

#include "live/sql/dialect.h"
#include "postgres.h"

static struct server *server;
static bool is_poor;

const char database_utc[] = "timezone('utc', clock_timestamp())";

void database_fresh(void)
{
    server = postgres_start();
    is_poor = false;
}

const char *database_do(const char *format, ...)
{
    char statements[2048];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(statements, sizeof(statements), format, args);
    va_end(args);
    return postgres_do(server, "%s", statements);
}

const char *database_url(const char *query)
{
    static char url[256];

    if (!is_poor)
        return postgres_url(server ? server_port(server) : 1, query);
    (void)snprintf(url, sizeof(url),
                   "postgresql://poor@127.0.0.1:%d/postgres?%s",
                   server_port(server), query);
    return url;
}

void database_forbid_tables(void)
{
    (void)postgres_do(server,
                      "DROP ROLE IF EXISTS poor; CREATE ROLE poor LOGIN");
    is_poor = true;
}

/* Leases are of the server's clock in UTC, whatever the zone of the session. */
TEST(shedlock, the_zone_of_the_session_does_not_matter)
{
    hf_client *client;
    hf_hold *hold;
    hf_error err;

    database_fresh();
    (void)database_do("ALTER DATABASE postgres SET timezone = 'Asia/Tokyo'");
    client = client_open(database_url("dialect=shedlock&ttl=60s"));
    hold = client_acquire(client, "jobs");
    ASSERT_STREQ(database_do("SELECT count(*) FROM shedlock WHERE lock_until "
                             "BETWEEN %s + interval '30 seconds' AND %s + "
                             "interval '62 seconds'",
                             database_utc, database_utc),
                 "1\n");
    ASSERT_OK(hf_release(hold, &err), &err);
}

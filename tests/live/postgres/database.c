/* SPDX-License-Identifier: MIT */
/* database.c - PostgreSQL, for the tests of either database. */
#include "live/sql/database.h"

#include <stdarg.h>

#include "postgres.h"

static struct server *server;
static bool is_poor;

const char database_utc[] = "timezone('utc', clock_timestamp())";
const char database_instant[] = "TIMESTAMP";

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

const char *database_jdbc(void)
{
    static char url[128];

    (void)snprintf(url, sizeof(url),
                   "jdbc:postgresql://127.0.0.1:%d/postgres?user=postgres",
                   server_port(server));
    return url;
}

/* SPDX-License-Identifier: MIT */
/* database.c - MariaDB, for the tests of either database. */
#include "live/sql/database.h"

#include <stdarg.h>

#include "mysql.h"

static int port;

const char database_utc[] = "UTC_TIMESTAMP(3)";
const char database_instant[] = "DATETIME(6)";

void database_fresh(void)
{
    port = mysql_fresh();
}

const char *database_do(const char *format, ...)
{
    char statements[2048];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(statements, sizeof(statements), format, args);
    va_end(args);
    return mysql_do(port, "%s", statements);
}

const char *database_url(const char *query)
{
    return mysql_url(port, query);
}

void database_forbid_tables(void)
{
    (void)mysql_do(port, "REVOKE CREATE ON locks.* FROM locker@127.0.0.1");
}

const char *database_jdbc(void)
{
    static char url[128];

    (void)snprintf(url, sizeof(url),
                   "jdbc:mariadb://127.0.0.1:%d/locks?user=locker&"
                   "password=s3cret",
                   port);
    return url;
}

/* SPDX-License-Identifier: MIT */
/* common.c - what the tests of either database do in the same way. */
#include <stdarg.h>

#include "base/dynlib.h"
#include "database.h"

const char *database_do(const char *format, ...)
{
    char statements[2048];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(statements, sizeof(statements), format, args);
    va_end(args);
    return database_run(statements);
}

static void write_again(void *ctx)
{
    (void)ctx;
    database_read_only(false);
}

void database_read_only_for_now(void)
{
    test_defer(write_again, NULL);
    database_read_only(true);
}

hf_hold *database_shedlock_after(const char *statement)
{
    database_fresh();
    (void)database_run(statement);
    return client_acquire(client_open(database_url("dialect=shedlock&ttl=60s")),
                          "jobs");
}

void *database_lend(hf_hold *hold, const char *library,
                    const char *const *names, size_t n, void *functions)
{
    void *connection;
    hf_error err;

    ASSERT_TRUE(hf__dynlib_load(library, names, n, functions));
    ASSERT_OK(hf_sql_connection(hold, &connection, &err), &err);
    return connection;
}

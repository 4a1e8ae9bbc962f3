/* SPDX-License-Identifier: MIT */
/* database.c - PostgreSQL, for the tests of either database. */
#include "live/sql/database.h"

#include <stdlib.h>

#include "postgres.h"

static struct server *server;
static bool is_poor;

const char database_utc[] = "timezone('utc', clock_timestamp())";
const char database_instant[] = "TIMESTAMP";

#define SESSIONS                                                               \
    "FROM pg_stat_activity WHERE backend_type = 'client backend' "             \
    "AND pid <> pg_backend_pid()"
const char database_session[] = "retry.base=1ms&retry.max_interval=20ms";
const char database_sessions[] = "SELECT count(*) " SESSIONS;

const char database_lock_table[] =
    "CREATE TABLE database_lock (id BIGSERIAL PRIMARY KEY, "
    "resource int NOT NULL UNIQUE)";
const char database_described_table[] =
    "CREATE TABLE database_lock (id BIGSERIAL PRIMARY KEY, "
    "resource int NOT NULL UNIQUE, description varchar(1024) NOT NULL)";
const char database_version_table[] =
    "CREATE TABLE optimistic_lock (id BIGSERIAL PRIMARY KEY, "
    "resource int NOT NULL UNIQUE, version int NOT NULL)";
const char database_schema[] = "public";
const char database_lease[] = "lease";
const char database_impatient[] = "SET lock_timeout = '1s'; BEGIN; ";

const char *database_client(void)
{
    return test_text("psql -XAtq -h 127.0.0.1 -p %d -U postgres",
                     server_port(server));
}

void database_fresh(void)
{
    server = postgres_start();
    is_poor = false;
}

const char *database_run(const char *statements)
{
    return postgres_do(server, "%s", statements);
}

const char *database_url(const char *query)
{
    if (!is_poor)
        return postgres_url(server ? server_port(server) : 1, query);
    return test_text("postgresql://poor@127.0.0.1:%d/postgres?%s",
                     server_port(server), query);
}

void database_forbid_tables(void)
{
    (void)postgres_do(server,
                      "DROP ROLE IF EXISTS poor; CREATE ROLE poor LOGIN");
    is_poor = true;
}

void database_end_newest(void)
{
    ASSERT_STREQ(postgres_do(server, "SELECT pg_terminate_backend(pid, 10000) "
                                     "FROM (SELECT pid " SESSIONS
                                     " ORDER BY backend_start DESC LIMIT 1) n"),
                 "t\n");
}

bool database_end_wait(void)
{
    return strcmp(postgres_do(server,
                              "SELECT pg_terminate_backend(pid, 10000) FROM "
                              "(SELECT pid FROM pg_locks WHERE NOT granted "
                              "LIMIT 1) w"),
                  "t\n") == 0;
}

void database_read_only(bool on)
{
    (void)postgres_do(server, on ? "ALTER SYSTEM SET "
                                   "default_transaction_read_only = on"
                                 : "ALTER SYSTEM RESET "
                                   "default_transaction_read_only");
    (void)postgres_do(server, "SELECT pg_reload_conf()");
    EVENTUALLY(strcmp(postgres_do(server, "SHOW default_transaction_read_only"),
                      on ? "on\n" : "off\n") == 0);
}

const char *database_jdbc(void)
{
    return test_text("jdbc:postgresql://127.0.0.1:%d/postgres?user=postgres",
                     server_port(server));
}

/* SPDX-License-Identifier: MIT */
/* postgres.c - a PostgreSQL server for a test, and a word with it. */
#include "postgres.h"

#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>

#include "disk.h"
#include "event.h"
#include "tempdir.h"

/* It does not run as root: there it becomes the user postgres. */
#define SETTING                                                                \
    "set -e; umask 022; bin=${HOLDFAST_TEST_PG_BINDIR-}; [ -n \"$bin\" ] || "  \
    "bin=$(pg_config --bindir 2>/dev/null || :); "                             \
    "[ -x \"$bin/postgres\" ] || "                                             \
    "bin=$(ls -d /usr/lib/postgresql/*/bin | tail -1); as=; "                  \
    "[ \"$(id -u)\" != 0 ] || as='setpriv --reuid=postgres "                   \
    "--regid=postgres --init-groups --pdeathsig SIGKILL'; "

static const char make[] =
    SETTING "cd \"$HF_PG_DIRECTORY\"; chmod 755 .; "
            "[ -z \"$as\" ] || chown postgres .; "
            "$as $bin/initdb -D data -A trust -U postgres --no-sync >log 2>&1; "
            "sed -i '1i hostssl all guarded 127.0.0.1/32 trust\\n"
            "host all guarded 127.0.0.1/32 reject\\n"
            "host all secret 127.0.0.1/32 scram-sha-256' data/pg_hba.conf";

static const char serve[] =
    SETTING "cd {dir}; exec $as $bin/postgres -D {dir}/data -p {port} "
            "-c listen_addresses=127.0.0.1 -c unix_socket_directories={dir} "
            "-c shared_buffers=32MB -c fsync=off";

static char directory[] = "/tmp/holdfast-postgres-XXXXXX";

static void remove_directory(void *arg)
{
    (void)arg;
    tempdir_remove(directory);
}

/* At once, with all its processes: none writes any more after that. */
void postgres_quit(struct server *server)
{
    if (server_pid(server) != 0)
        (void)kill(server_pid(server), SIGQUIT);
    server_stop(server);
}

static void quit(void *server)
{
    postgres_quit(server);
}

/* Making a database takes long on a busy machine: all tests share one. */
static struct server *share(void)
{
    static const char *const words[] = {"sh", "-c", serve, NULL};
    struct server *server;

    if (!mkdtemp(directory))
        FAIL("mkdtemp: %m");
    test_defer_late(remove_directory, NULL);
    (void)setenv("HF_PG_DIRECTORY", directory, 1);
    if (system(make) != 0) /* NOLINT: our own words */
        FAIL("initdb fails");
    disk_prepare();
    server = server_share(words, directory);
    test_defer_late(quit, server);
    return server;
}

struct server *postgres_start(void)
{
    static struct server *server;

    if (!server)
        server = share();
    EVENTUALLY(strcmp(postgres_do(server, "SELECT count(*) FROM "
                                          "pg_stat_activity WHERE backend_type "
                                          "= 'client backend' AND pid <> "
                                          "pg_backend_pid()"),
                      "0\n") == 0);
    (void)postgres_do(server,
                      "SET default_transaction_read_only = off; "
                      "ALTER DATABASE postgres RESET ALL; "
                      "DROP SCHEMA public CASCADE; CREATE SCHEMA public");
    return server;
}

void postgres_crash(struct server *server)
{
    postgres_quit(server);
    server_restart(server);
}

__attribute__((format(printf, 2, 0))) static FILE *psql(struct server *server,
                                                        const char *format,
                                                        va_list args)
{
    char statement[2048];
    char command[4096];
    FILE *answer;

    (void)vsnprintf(statement, sizeof(statement), format, args);
    (void)snprintf(command, sizeof(command),
                   "psql -XAtq -h 127.0.0.1 -p %d -U postgres 2>&1 <<'END'\n"
                   "%s\nEND\n",
                   server_port(server), statement);
    answer = popen(command, "re"); /* NOLINT: our own words */
    if (!answer)
        FAIL("psql cannot be started");
    return answer;
}

const char *postgres_do(struct server *server, const char *format, ...)
{
    static char answer[65536];
    va_list args;
    size_t used;
    FILE *from;

    va_start(args, format);
    from = psql(server, format, args);
    va_end(args);
    used = fread(answer, 1, sizeof(answer) - 1, from);
    answer[used] = '\0';
    (void)pclose(from);
    return answer;
}

FILE *postgres_begin(struct server *server, const char *format, ...)
{
    va_list args;
    FILE *from;

    va_start(args, format);
    from = psql(server, format, args);
    va_end(args);
    EVENTUALLY(strcmp(postgres_do(server, "SELECT count(*) FROM "
                                          "pg_stat_activity WHERE "
                                          "application_name = 'psql' AND "
                                          "wait_event IN "
                                          "('PgSleep', 'advisory')"),
                      "1\n") == 0);
    return from;
}

void postgres_end(struct server *server, FILE *from)
{
    (void)postgres_do(server, "SELECT pg_terminate_backend(pid, 10000) FROM "
                              "pg_stat_activity WHERE wait_event = 'PgSleep'");
    (void)pclose(from);
}

int postgres_leftovers(struct server *server)
{
    return atoi(postgres_do(
        server, "SELECT (SELECT count(*) FROM holdfast_place) + "
                "(SELECT count(*) FROM holdfast_cond) + "
                "(SELECT count(*) FROM pg_locks WHERE locktype = 'advisory')"));
}

const char *postgres_url(int port, const char *query)
{
    return test_text("postgresql://postgres@127.0.0.1:%d/postgres%s%s", port,
                     query ? "?" : "", query ? query : "");
}

hf_client *postgres_open(int port, const char *query)
{
    return client_open(postgres_url(port, query));
}

struct rivals postgres_rivals(const char *query)
{
    struct server *server = postgres_start();

    return client_rivals(server, postgres_url(server_port(server), query));
}

struct rivals postgres_proxied(const char *query, const char *rival_query)
{
    return client_proxied(postgres_start(), postgres_url, query, rival_query);
}

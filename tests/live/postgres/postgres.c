/* SPDX-License-Identifier: MIT */
/* postgres.c - a PostgreSQL server for a test, and a word with it. */
#include "postgres.h"

#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>

#include "event.h"
#include "tempdir.h"

/* It does not run as root: there it becomes the user postgres. */
#define SETTING                                                                \
    "set -e; umask 022; bin=$(pg_config --bindir 2>/dev/null || :); "          \
    "[ -x \"$bin/postgres\" ] || "                                             \
    "bin=$(ls -d /usr/lib/postgresql/*/bin | tail -1); as=; "                  \
    "[ \"$(id -u)\" != 0 ] || as='setpriv --reuid=postgres "                   \
    "--regid=postgres --init-groups --pdeathsig SIGKILL'; "

static const char make[] =
    SETTING "cd \"$HF_PG_TEMPLATE\"; chmod 755 .; "
            "[ -z \"$as\" ] || chown postgres .; "
            "$as $bin/initdb -D data -A trust -U postgres --no-sync >log 2>&1; "
            "sed -i '1i host all secret 127.0.0.1/32 scram-sha-256' "
            "data/pg_hba.conf";

static const char serve[] =
    SETTING "cd {dir}; [ -d data ] || { rm -rf new; "
            "cp -rp \"$HF_PG_TEMPLATE/data\" new; mv new data; }; "
            "[ -z \"$as\" ] || chown postgres . data; "
            "exec $as $bin/postgres -D {dir}/data -p {port} "
            "-c listen_addresses=127.0.0.1 -c unix_socket_directories={dir} "
            "-c shared_buffers=32MB -c fsync=off";

static char template[] = "/tmp/holdfast-postgres-XXXXXX";

static void remove_template(void)
{
    tempdir_remove(template);
}

/* Making a database takes long on a busy machine: once, then it is copied. */
static void make_template(void)
{
    static bool made;

    if (made)
        return;
    made = true;
    if (!mkdtemp(template))
        FAIL("mkdtemp: %m");
    (void)atexit(remove_template);
    (void)setenv("HF_PG_TEMPLATE", template, 1);
    if (system(make) != 0) /* NOLINT: our own words */
        FAIL("initdb fails");
}

struct server *postgres_start(void)
{
    static const char *const words[] = {"sh", "-c", serve, NULL};
    struct server *server;

    make_template();
    server = server_start(words);
    EVENTUALLY(strcmp(postgres_do(server, "SELECT 1"), "1\n") == 0);
    return server;
}

void postgres_crash(struct server *server)
{
    (void)kill(server_pid(server), SIGQUIT);
    server_stop(server);
    server_restart(server);
}

const char *postgres_do(struct server *server, const char *format, ...)
{
    static char answer[65536];
    char statement[2048];
    char command[4096];
    va_list args;
    size_t used;
    FILE *psql;

    va_start(args, format);
    (void)vsnprintf(statement, sizeof(statement), format, args);
    va_end(args);
    (void)snprintf(command, sizeof(command),
                   "psql -XAtq -h 127.0.0.1 -p %d -U postgres 2>&1 <<'END'\n"
                   "%s\nEND\n",
                   server_port(server), statement);
    psql = popen(command, "re"); /* NOLINT: our own words */
    if (!psql)
        FAIL("psql cannot be started");
    used = fread(answer, 1, sizeof(answer) - 1, psql);
    answer[used] = '\0';
    (void)pclose(psql);
    return answer;
}

int postgres_leftovers(struct server *server)
{
    return atoi(postgres_do(
        server, "SELECT (SELECT count(*) FROM holdfast_place) + "
                "(SELECT count(*) FROM pg_locks WHERE locktype = 'advisory')"));
}

const char *postgres_url(int port, const char *query)
{
    static char urls[4][512];
    static int next;
    char *url = urls[next++ % 4];

    (void)snprintf(url, sizeof(urls[0]),
                   "postgresql://postgres@127.0.0.1:%d/postgres%s%s", port,
                   query ? "?" : "", query ? query : "");
    return url;
}

static void close_client(void *arg)
{
    hf_close(arg);
}

hf_client *postgres_open(int port, const char *query)
{
    hf_client *client;
    hf_error err;

    ASSERT_OK(hf_open(postgres_url(port, query), NULL, &client, &err), &err);
    test_defer(close_client, client);
    return client;
}

hf_hold *postgres_acquire(hf_client *client, const char *name)
{
    hf_opts opts = HF_OPTS_INIT;
    hf_hold *hold;
    hf_error err;

    opts.wait_ms = 10000;
    ASSERT_OK(hf_acquire(client, name, &opts, &hold, &err), &err);
    return hold;
}

int postgres_try(hf_client *client, const char *name, hf_error *err)
{
    hf_opts opts = HF_OPTS_INIT;
    hf_hold *hold;
    int rc;

    opts.wait_ms = 0;
    rc = hf_acquire(client, name, &opts, &hold, err);
    if (rc == 0)
        ASSERT_OK(hf_release(hold, err), err);
    return rc;
}

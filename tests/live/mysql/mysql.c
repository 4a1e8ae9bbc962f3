/* SPDX-License-Identifier: MIT */
/* mysql.c - a MariaDB server for a test, and a word with it. */
#include "mysql.h"

#include <stdarg.h>
#include <stdlib.h>

/* It listens before it has read its first statements. */
static void await_user(struct server *server)
{
    hf_client *client;
    hf_error err;
    int rc = -1;

    for (int i = 0; i < 200 && rc != 0; i++) {
        rc = hf_open(mysql_url(server_port(server), "connect_timeout=10s"),
                     NULL, &client, &err);
        if (rc != 0)
            (void)mysql_do(server, "DO SLEEP(0.02)");
    }
    ASSERT_OK(rc, &err);
    hf_close(client);
}

struct server *mysql_start(void)
{
    static const char *const words[] = {MYSQL_SERVER, "{port}", "{dir}", NULL};
    struct server *server = server_start(words);

    await_user(server);
    return server;
}

const char *mysql_do(struct server *server, const char *format, ...)
{
    static char answer[1 << 16];
    char sql[4096];
    char command[5000];
    va_list args;
    size_t n;
    FILE *pipe;

    va_start(args, format);
    (void)vsnprintf(sql, sizeof(sql), format, args);
    va_end(args);
    (void)snprintf(command, sizeof(command),
                   "mariadb --no-defaults -N -B -uroot -h127.0.0.1 -P%d locks "
                   "-e \"%s\" 2>&1",
                   server_port(server), sql);
    pipe = popen(command, "re");
    if (!pipe)
        FAIL("popen");
    n = fread(answer, 1, sizeof(answer) - 1, pipe);
    answer[n] = '\0';
    (void)pclose(pipe);
    return answer;
}

const char *mysql_url(int port, const char *query)
{
    static char urls[4][512];
    static int next;
    char *url = urls[next++ % 4];

    (void)snprintf(url, sizeof(urls[0]),
                   "mysql://locker:s3cret@127.0.0.1:%d/locks%s%s", port,
                   query ? "?" : "", query ? query : "");
    return url;
}

static void close_client(void *arg)
{
    hf_close(arg);
}

hf_client *mysql_open(int port, const char *query)
{
    hf_client *client;
    hf_error err;

    ASSERT_OK(hf_open(mysql_url(port, query), NULL, &client, &err), &err);
    test_defer(close_client, client);
    return client;
}

hf_hold *mysql_acquire(hf_client *client, const char *name)
{
    hf_opts opts = HF_OPTS_INIT;
    hf_hold *hold;
    hf_error err;

    opts.wait_ms = 10000;
    ASSERT_OK(hf_acquire(client, name, &opts, &hold, &err), &err);
    return hold;
}

int mysql_try(hf_client *client, const char *name, hf_error *err)
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

void mysql_kill_all(struct server *server)
{
    (void)mysql_do(server, "KILL USER locker");
}

/* SPDX-License-Identifier: MIT */
/* mysql.c - a MariaDB or MySQL server for a test, and a word with it. */
#include "mysql.h"

#include <stdarg.h>
#include <stdlib.h>

/* It listens before it has read its first statements. */
static void await_user(int port)
{
    hf_client *client;
    hf_error err;
    int rc = -1;

    for (int i = 0; i < 200 && rc != 0; i++) {
        rc = hf_open(mysql_url(port, "connect_timeout=10s"), NULL, &client,
                     &err);
        if (rc != 0)
            (void)mysql_do(port, "DO SLEEP(0.02)");
    }
    ASSERT_OK(rc, &err);
    hf_close(client);
}

struct server *mysql_start(const char *const *options)
{
    static const char *words[16] = {MYSQL_SERVER, "{port}", "{dir}"};
    struct server *server;
    size_t n = 3;

    for (; options && *options; options++)
        words[n++] = *options;
    words[n] = NULL;
    server = server_start(words);
    await_user(server_port(server));
    return server;
}

int mysql_fresh(void)
{
    const char *url = getenv("HOLDFAST_TEST_URL");
    int port = url ? atoi(strrchr(url, ':') + 1) : 0;

    if (port == 0)
        FAIL("run it by with_mysql.sh");
    (void)mysql_do(port, "SET GLOBAL read_only=0");
    mysql_kill_all(port);
    (void)mysql_do(port, "DROP DATABASE IF EXISTS locks;CREATE DATABASE locks;"
                         "REVOKE ALL ON locks.* FROM locker@127.0.0.1;"
                         "GRANT SELECT,INSERT,UPDATE,DELETE,CREATE ON locks.* "
                         "TO locker@127.0.0.1");
    return port;
}

const char *mysql_do(int port, const char *format, ...)
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
                   "mariadb --no-defaults -N -B -uroot -h127.0.0.1 -P%d mysql "
                   "-e \"USE locks;%s\" 2>&1",
                   port, sql);
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
    return test_text("mysql://locker:s3cret@127.0.0.1:%d/locks%s%s", port,
                     query ? "?" : "", query ? query : "");
}

hf_client *mysql_open(int port, const char *query)
{
    return client_open(mysql_url(port, query));
}

bool mysql_is_mariadb(int port)
{
    return strstr(mysql_do(port, "SELECT VERSION()"), "MariaDB") != NULL;
}

int mysql_row_waits(int port)
{
    const char *value = strchr(
        mysql_do(port,
                 "SHOW GLOBAL STATUS LIKE 'Innodb_row_lock_current_waits'"),
        '\t');

    return value ? atoi(value) : -1;
}

void mysql_kill_all(int port)
{
    char ids[4096];

    (void)snprintf(ids, sizeof(ids), "%s",
                   mysql_do(port, "SELECT CONCAT('KILL ',id) FROM "
                                  "information_schema.processlist "
                                  "WHERE user='locker'"));
    for (char *id = strtok(ids, "\n"); id; id = strtok(NULL, "\n"))
        (void)mysql_do(port, "%s", id);
}

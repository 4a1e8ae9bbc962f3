/* SPDX-License-Identifier: MIT */
/* mysql_login_test.c - the ways to log in to MySQL, in clear and by TLS. */
#include <stdlib.h>

#include "base/base.h"
#include "mysql.h"

static void log_in(int port, const char *scheme, const char *user)
{
    hf_client *client;
    char url[160];
    hf_error err;

    (void)snprintf(url, sizeof(url),
                   "%s://%s:p%%40ss@127.0.0.1:%d/locks?tls.verify=off", scheme,
                   user, port);
    if (strcmp(scheme, "mysql") == 0)
        *strchr(url, '?') = '\0';
    ASSERT_OK(hf_open(url, NULL, &client, &err), &err);
    ASSERT_RC(client_try(client, "jobs", &err), 0, &err);
    hf_close(client);
}

/* The first login by caching_sha2_password sends the password, encrypted by TLS
 * or by the server's key; later ones find it in the cache. */
static void log_in_twice(const char *scheme, const char *plugin)
{
    int port = mysql_fresh();

    (void)mysql_do(port,
                   "DROP USER IF EXISTS other@127.0.0.1;"
                   "CREATE USER other@127.0.0.1 IDENTIFIED WITH %s BY 'p@ss';"
                   "GRANT ALL ON locks.* TO other@127.0.0.1",
                   plugin);
    log_in(port, scheme, "other");
    log_in(port, scheme, "other");
    (void)mysql_do(port, "DROP USER other@127.0.0.1");
}

TEST(login, by_caching_sha2_password_in_clear)
{
    log_in_twice("mysql", "caching_sha2_password");
}

TEST(login, by_caching_sha2_password_over_tls)
{
    log_in_twice("mysqls", "caching_sha2_password");
}

TEST(login, by_mysql_native_password_in_clear)
{
    log_in_twice("mysql", "mysql_native_password");
}

TEST(login, by_mysql_native_password_over_tls)
{
    log_in_twice("mysqls", "mysql_native_password");
}

/* SPDX-License-Identifier: MIT */
/*
 * quiet_test.c - the library writes nothing on a terminal, by itself or by a
 * client library, whatever goes wrong. Live suites try the same with servers.
 */
#include "lib/quiet.h"

#include <stdio.h>
#include <stdlib.h>

#include "lib/tempdir.h"
#include "lib/test.h"

/* An encrypted key, as OpenSSL would ask the password of. */
static const char *make_files(void)
{
    const char *dir = tempdir_new();
    char command[512];

    snprintf(command, sizeof(command),
             "cd %s && { openssl req -x509 -newkey ec -pkeyopt "
             "ec_paramgen_curve:P-256 -nodes -keyout me.key -out me.crt "
             "-days 2 -subj /CN=me && openssl pkey -in me.key -aes256 "
             "-passout pass:sesame -out locked.key; } >log 2>&1",
             dir);
    ASSERT_EQ(system(command), 0); /* NOLINT: our own words */
    return dir;
}

TEST(quiet, nothing_is_written_on_a_terminal_without_a_server)
{
    static const char *const schemes[] = {"rediss", "zks",        "etcds",
                                          "mysqls", "postgresql", "memcacheds"};
    static const char *const queries[] = {
        "connect_timeout=100ms&tls.verify=off",
        "connect_timeout=100ms&tls.cert=@/me.crt&tls.key=@/locked.key",
        "connect_timeout=100ms&tls.ca=@/none.crt", "ttl=nonsense"};
    const char *dir = make_files();
    char url[512];

    for (size_t i = 0; i < 6 * 4; i++) {
        int len =
            snprintf(url, sizeof(url), "%s://127.0.0.1:1/0?", schemes[i / 4]);

        quiet_query(url + len, queries[i % 4], dir);
        ASSERT_STREQ(quiet_watch(quiet_open, url), "");
    }
}

TEST(quiet, the_local_engine_writes_nothing_on_a_terminal)
{
    static const char *const urls[] = {"local://@/store?tls.verify=off",
                                       "local://@/store?password=x",
                                       "local://@/log", "local://@/none/store"};
    const char *dir = make_files();
    char url[512];

    for (size_t i = 0; i < 4; i++) {
        quiet_query(url, urls[i], dir);
        ASSERT_STREQ(quiet_watch(quiet_open, url), "");
    }
}

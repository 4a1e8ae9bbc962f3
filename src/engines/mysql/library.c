/* SPDX-License-Identifier: MIT */
/*
 * library.c - libmariadb, loaded when the first mysql:// URL is opened.
 *
 * The library ignores SIGPIPE for the whole process when it starts; we are a
 * guest there, so what the program had chosen is put back.
 *
 * It loads plugins, and takes orders about TLS, as variables of the environment
 * say. Those of a program that has more rights than its caller are the caller's:
 * there the library is not loaded while one of them is set.
 */
#include "engines/mysql/library.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

HF__DYNLIB_NOTE(mariadb, "mysql", "suggested", "\"libmariadb.so.3\"");

struct hf__mysql_library hf__mariadb;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool there;

static void load(void)
{
    static const char *const names[] = {HF__FROM_MARIADB(HF__DYNLIB_NAME)};
    struct sigaction before;
    bool known = sigaction(SIGPIPE, NULL, &before) == 0;

    there = hf__dynlib_load("libmariadb.so.3", names, HF_COUNT_OF(names),
                            &hf__mariadb) &&
            hf__mariadb.mysql_server_init(0, NULL, NULL) == 0;
    if (known)
        (void)sigaction(SIGPIPE, &before, NULL);
}

/* What the caller of a set-user-id program orders of the library; or NULL. */
static const char *find_order(void)
{
    static const char *const orders[] = {"MARIADB_", "MYSQL_", "LIBMYSQL_",
                                         "LIBMARIADB"};

    if (getauxval(AT_SECURE) == 0)
        return NULL;
    for (char **at = environ; at && *at; at++) {
        for (size_t i = 0; i < HF_COUNT_OF(orders); i++) {
            if (strncmp(*at, orders[i], strlen(orders[i])) == 0)
                return orders[i];
        }
    }
    return NULL;
}

int hf__mysql_library_load(hf_error *err)
{
    const char *order = find_order();

    if (order)
        return hf__fail(err, HF_ECONFIG,
                        "mysql:// in a program with more rights than its "
                        "caller: a variable %s… is set, which libmariadb "
                        "obeys; unset it",
                        order);
    (void)pthread_once(&once, load);
    if (there)
        return 0;
    return hf__fail(err, HF_EUNSUPPORTED,
                    "mysql:// needs libmariadb.so.3: apt install libmariadb3");
}

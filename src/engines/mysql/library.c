/* SPDX-License-Identifier: MIT */
/*
 * library.c - libmariadb, loaded when the first mysql:// URL is opened.
 *
 * The library ignores SIGPIPE for the whole process when it starts; we are a
 * guest there, so what the program had chosen is put back.
 */
#include "engines/mysql/library.h"

#include <pthread.h>
#include <signal.h>

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

int hf__mysql_library_load(hf_error *err)
{
    (void)pthread_once(&once, load);
    if (there)
        return 0;
    return hf__fail(err, HF_EUNSUPPORTED,
                    "mysql:// needs libmariadb.so.3: apt install libmariadb3");
}

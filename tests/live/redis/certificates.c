/* SPDX-License-Identifier: MIT */
/* certificates.c - certificates for a test, made by openssl(1). */
#include "certificates.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "tempdir.h"
#include "test.h"

#define NEW_KEY "-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes"

__attribute__((format(printf, 2, 3))) static void run(const char *dir,
                                                      const char *format, ...)
{
    char command[1024];
    char whole[1400];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(command, sizeof(command), format, args);
    va_end(args);
    (void)snprintf(whole, sizeof(whole), "cd %s && { %s; } >>log 2>&1", dir,
                   command);
    if (system(whole) != 0)
        FAIL("this fails: %s", command);
}

void certificates_authority(const char *dir, const char *name)
{
    run(dir,
        "openssl req -x509 " NEW_KEY " -keyout %s.key -out %s.crt -days 2 "
        "-subj '/CN=%s'",
        name, name, name);
}

const char *certificates_new(void)
{
    const char *dir = tempdir_new();

    certificates_authority(dir, "good");
    return dir;
}

void certificates_make(const char *dir, const char *name, const char *authority,
                       const char *san, int days)
{
    run(dir,
        "openssl req " NEW_KEY " -keyout %s.key -out %s.csr -subj '/CN=%s' && "
        "echo subjectAltName=%s >%s.san && "
        "openssl x509 -req -in %s.csr -CA %s.crt -CAkey %s.key "
        "-CAcreateserial -days %d -extfile %s.san -out %s.crt",
        name, name, name, san, name, name, authority, authority, days, name,
        name);
}

void certificates_lock(const char *dir, const char *name)
{
    run(dir,
        "umask 077 && openssl pkey -in %s.key -aes256 -passout pass:sesame "
        "-out locked.key && echo sesame >right.pw && echo other >wrong.pw",
        name);
}

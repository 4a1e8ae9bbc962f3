/* SPDX-License-Identifier: MIT */
/*
 * settings.c - what libpq is told.
 *
 * Keys of the URL's query that libpq knows are passed on as they are, but those
 * that holdfast has itself.
 *
 * libpq also reads the environment (PGOPTIONS, PGSSLMODE, …) and files of the
 * user. For a program that has rights its caller has not (AT_SECURE) these are
 * the caller's words: it is refused where such a variable is set, and the files
 * are not read.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engines/postgres/postgres.h"

enum { WORDS = 96 };

/* There is no such file, and cannot be. */
#define NO_FILE "/dev/null/none"

struct words {
    const char *keys[WORDS];
    const char *values[WORDS];
    int n;
};

static void put(struct words *words, const char *key, const char *value)
{
    if (!value || value[0] == '\0' || words->n == WORDS - 1)
        return;
    words->keys[words->n] = key;
    words->values[words->n++] = value;
}

/* ---- the keys of libpq ---------------------------------------------------- */

/* What we say ourselves, or have a key of our own for. */
static bool is_ours(const char *key)
{
    static const char *const ours[] = {
        "user",           "password",    "connect_timeout",
        "hostaddr",       "replication", "fallback_application_name",
        "client_encoding"};

    for (size_t i = 0; i < HF_COUNT_OF(ours); i++) {
        if (strcmp(key, ours[i]) == 0)
            return true;
    }
    return false;
}

/* Without the library we do not know; opening the client will say so. */
bool hf__pg_settings_takes(const char *key)
{
    PQconninfoOption *options;
    bool takes = false;

    if (hf__pq_load(/* err= */ NULL) != 0)
        return true;
    options = hf__pq.PQconninfoParse("", /* errmsg= */ NULL);
    for (PQconninfoOption *o = options; o && o->keyword; o++)
        takes |= strcmp(o->keyword, key) == 0;
    hf__pq.PQconninfoFree(options);
    return takes && !is_ours(key);
}

static void put_query(struct words *words, const struct hf__pg *postgres)
{
    const struct hf__url_pair *pair = postgres->base.host->url->query;

    for (; pair; pair = pair->next) {
        if (hf__pg_settings_takes(pair->key))
            put(words, pair->key, pair->value);
    }
}

/* The value that libpq is told for @key: the last one counts. NULL: none. */
static const char *told(const struct words *words, const char *key)
{
    for (int i = words->n; i > 0; i--) {
        if (strcmp(words->keys[i - 1], key) == 0)
            return words->values[i - 1];
    }
    return NULL;
}

/* ---- TLS ------------------------------------------------------------------- */

/* The certificates that this system trusts. libpq 16 knows by itself; for
 * an older one they have to be in a file. */
static const char *system_roots(void)
{
    static const char *const files[] = {
        "/etc/ssl/certs/ca-certificates.crt", /* Debian, Arch, Alpine */
        "/etc/pki/tls/certs/ca-bundle.crt",   /* Fedora */
        "/etc/ssl/ca-bundle.pem",             /* SUSE */
        "/etc/ssl/cert.pem"};
    const char *file = secure_getenv("SSL_CERT_FILE"); /* as OpenSSL does */

    if (hf__pq.PQlibVersion() >= 160000)
        return "system";
    if (file && file[0] != '\0')
        return file;
    for (size_t i = 0; i < HF_COUNT_OF(files); i++) {
        if (access(files[i], R_OK) == 0)
            return files[i];
    }
    return files[0]; /* libpq says that it is not there */
}

/* One key of tls.* is enough: then libpq verifies the server, or there is
 * no connection. A key whose password nobody knows is an error: without any
 * password, OpenSSL would ask for it on the terminal. */
static void put_tls(struct words *words, const struct hf__settings *settings)
{
    put(words, "sslpassword",
        settings->tls_key_password[0] != '\0' ? settings->tls_key_password
                                              : "none");
    if (!settings->tls_asked)
        return;
    put(words, "sslmode", settings->tls_verify ? "verify-full" : "require");
    if (settings->tls_ca[0] != '\0')
        put(words, "sslrootcert", settings->tls_ca);
    else if (settings->tls_verify)
        put(words, "sslrootcert", system_roots());
    put(words, "sslcert", settings->tls_cert);
    put(words, "sslkey", settings->tls_key);
}

/* ---- what libpq would read by itself ---------------------------------------- */

/* libpq complains on stderr about a file of passwords that others may read, and
 * does not read it. The same without the noise. */
static void put_passfile(struct words *words, const struct hf__pg *postgres)
{
    const char *file = told(words, "passfile");
    const char *home = secure_getenv("HOME");
    char standard[512] = "";
    struct stat info;

    if (told(words, "password"))
        return;
    if (!file)
        file = secure_getenv("PGPASSFILE");
    if (!file && home) {
        (void)snprintf(standard, sizeof(standard), "%s/.pgpass", home);
        file = standard;
    }
    if (!file || stat(file, &info) != 0)
        return;
    if (S_ISREG(info.st_mode) && (info.st_mode & (S_IRWXG | S_IRWXO)) == 0)
        return;
    hf__engine_log(&postgres->base, HF_LOG_WARNING,
                   "%s: the file of passwords %s is not read: it is not a "
                   "file, or others may read it (chmod 600)",
                   postgres->peer, file);
    put(words, "passfile", NO_FILE);
}

/* 0, or HF_ECONFIG with the variable. */
static int refuse_environment(const struct hf__pg *postgres, hf_error *err)
{
    for (char **at = environ; at && *at; at++) {
        if (strncmp(*at, "PG", 2) == 0)
            return hf__fail(err, HF_ECONFIG,
                            "%s: the environment has %.*s, and this program "
                            "has rights that its caller has not: libpq must "
                            "not read it",
                            postgres->peer, (int)strcspn(*at, "="), *at);
    }
    return 0;
}

/* Of a program with the rights of another: nothing that its caller chose. */
static int put_secure(struct words *words, const struct hf__pg *postgres,
                      hf_error *err)
{
    static const char *const files[] = {"passfile", "sslcert", "sslkey",
                                        "sslrootcert", "sslcrl"};

    for (size_t i = 0; i < HF_COUNT_OF(files); i++) {
        if (!told(words, files[i]))
            put(words, files[i], NO_FILE);
    }
    if (told(words, "service"))
        return hf__fail(err, HF_ECONFIG,
                        "%s: service= names a file of the user, and this "
                        "program has rights that its caller has not",
                        postgres->peer);
    return refuse_environment(postgres, err);
}

static PGconn *start(const struct words *words)
{
    int cancel_state = hf__pq_begin();
    PGconn *conn = hf__pq.PQconnectStartParams(words->keys, words->values,
                                               /* expand_dbname= */ 0);

    hf__pq_end(cancel_state);
    return conn;
}

int hf__pg_settings_connect(struct hf__pg_conn *conn, hf_error *err)
{
    const struct hf__engine_host *host = conn->engine->base.host;
    const struct hf__url *url = host->url;
    struct words words = {.n = 0};
    int rc = 0;

    if (hf__buf_failed(&conn->hosts) || hf__buf_failed(&conn->addresses) ||
        hf__buf_failed(&conn->ports))
        return hf__fail(err, HF_ENOMEM, "out of memory");
    put(&words, "fallback_application_name", "holdfast");
    put_tls(&words, host->settings);
    put(&words, "gssencmode", "disable"); /* it would ask Kerberos, and wait */
    put_query(&words, conn->engine);
    put(&words, "host", hf__buf_text(&conn->hosts));
    put(&words, "hostaddr", hf__buf_text(&conn->addresses));
    put(&words, "port", hf__buf_text(&conn->ports));
    put(&words, "user", url->user ? url->user : host->settings->user);
    put(&words, "password",
        url->password ? url->password : host->settings->password);
    put(&words, "dbname", url->path[0] == '/' ? url->path + 1 : "");
    put(&words, "client_encoding", "UTF8");
    if (getauxval(AT_SECURE) != 0)
        rc = put_secure(&words, conn->engine, err);
    else
        put_passfile(&words, conn->engine);
    if (rc != 0)
        return rc;
    conn->pq = start(&words);
    if (!conn->pq)
        return hf__fail(err, HF_ENOMEM, "out of memory");
    hf__pg_connection_log_notices(conn);
    hf__pg_hosts_forget(conn);
    if (hf__pq.PQstatus(conn->pq) == CONNECTION_BAD) {
        const char *text = hf__pq.PQerrorMessage(conn->pq);

        return hf__fail(err, HF_ECONFIG, "%s: %.*s", conn->engine->peer,
                        (int)strcspn(text, "\n"), text);
    }
    hf__pg_connect_poll(conn);
    return 0;
}

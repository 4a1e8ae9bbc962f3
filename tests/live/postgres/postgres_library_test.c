/* SPDX-License-Identifier: MIT */
/*
 * postgres_library_test.c - libpq as it is meant to be used: its own keys, its
 * notices, and not a byte on stderr.
 */
#include <dlfcn.h>
#include <libpq-fe.h>
#include <netdb.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/dynlib.h"
#include "postgres.h"
#include "tempdir.h"

/* ---- stderr and the log ---------------------------------------------------- */

static char lines[4096];

static void keep_line(int level, const char *text, void *ctx)
{
    (void)level;
    (void)ctx;
    (void)strncat(lines, text, sizeof(lines) - strlen(lines) - 2);
    (void)strcat(lines, "\n"); /* NOLINT: there is room */
}

static int listen_to_stderr(void)
{
    FILE *file = tmpfile();

    ASSERT_TRUE(file != NULL);
    ASSERT_TRUE(dup2(fileno(file), STDERR_FILENO) >= 0);
    hf_set_log(keep_line, HF_LOG_INFO, NULL);
    return fileno(file);
}

static off_t size_of(int fd)
{
    struct stat info;

    ASSERT_EQ(fstat(fd, &info), 0);
    return info.st_size;
}

#define CALLERS(X) X(PQexec) X(PQclear) X(PQconninfoParse)
static struct {
    CALLERS(HF__DYNLIB_FIELD)
} caller;

static void load(void)
{
    static const char *const names[] = {CALLERS(HF__DYNLIB_NAME)};

    ASSERT_TRUE(
        hf__dynlib_load("libpq.so.5", names, HF_COUNT_OF(names), &caller));
}

/* After a COMMIT of the caller's there is no transaction, and the server warns
 * when ours is ended. */
TEST_FORKED(library, its_notices_reach_the_log_and_not_stderr)
{
    struct server *server = postgres_start();
    hf_client *client =
        postgres_open(server_port(server), "mode=for_update&connect=wait");
    hf_hold *hold = client_acquire(client, "jobs");
    int fd = listen_to_stderr();
    void *connection;
    hf_error err;

    load();
    ASSERT_OK(hf_sql_connection(hold, &connection, &err), &err);
    caller.PQclear(caller.PQexec(connection, "COMMIT"));
    ASSERT_RC(hf_release(hold, &err), HF_ELOST, &err);
    ASSERT_HAS(lines, "no transaction in progress");
    ASSERT_EQ(size_of(fd), 0);
}

/* libpq warns on stderr about such a file. */
TEST_FORKED(library, a_file_of_passwords_that_others_read_is_told_by_the_log)
{
    struct server *server = postgres_start();
    const char *home = tempdir_new();
    hf_client *client = NULL;
    char text[512];
    hf_error err;
    int fd;

    (void)postgres_do(server, "DROP ROLE IF EXISTS secret; CREATE ROLE secret "
                              "LOGIN PASSWORD 'right'");
    (void)snprintf(text, sizeof(text),
                   "umask 022; echo '*:*:*:*:right' >%s/.pgpass", home);
    ASSERT_EQ(system(text), 0); /* NOLINT: our own words */
    ASSERT_EQ(setenv("HOME", home, 1), 0);
    (void)snprintf(text, sizeof(text),
                   "postgresql://secret@127.0.0.1:%d/postgres",
                   server_port(server));
    fd = listen_to_stderr();
    ASSERT_RC(hf_open(text, NULL, &client, &err), HF_EAUTH, &err);
    ASSERT_HAS(lines, "others may read it");
    ASSERT_EQ(size_of(fd), 0);
    (void)snprintf(lines, sizeof(lines), "chmod 600 %s/.pgpass", home);
    ASSERT_EQ(system(lines), 0); /* NOLINT: our own words */
    ASSERT_OK(hf_open(text, NULL, &client, &err), &err);
    hf_close(client);
}

/* ---- keys ------------------------------------------------------------------ */

static bool library_has(const char *key)
{
    PQconninfoOption *o = caller.PQconninfoParse("", NULL);

    for (; o && o->keyword; o++) {
        if (strcmp(o->keyword, key) == 0)
            return true;
    }
    return false;
}

TEST_FORKED(library, its_keys_are_those_that_this_version_has)
{
    static const char *const keys[][2] = {
        {"sslmode", "disable"},
        {"target_session_attrs", "read-write"},
        {"gssencmode", "disable"},
        {"require_auth", "none"},        /* 16 */
        {"sslnegotiation", "postgres"},  /* 17 */
        {"max_protocol_version", "3.0"}, /* 18 */
        {"no_such_key", "1"},
        {"replication", "database"}, /* not for callers */
    };
    struct server *server = postgres_start();

    load();
    for (size_t i = 0; i < HF_COUNT_OF(keys); i++) {
        bool ours = strcmp(keys[i][0], "replication") == 0;
        hf_client *client = NULL;
        char query[128];
        hf_error err;
        int rc;

        (void)snprintf(query, sizeof(query), "%s=%s", keys[i][0], keys[i][1]);
        rc = hf_open(postgres_url(server_port(server), query), NULL, &client,
                     &err);
        if (library_has(keys[i][0]) && !ours) {
            ASSERT_OK(rc, &err);
            hf_close(client);
        } else {
            ASSERT_RC(rc, HF_ECONFIG, &err);
            ASSERT_HAS(err.text, keys[i][0]);
        }
    }
}

/* ---- hosts ----------------------------------------------------------------- */

static atomic_int asked;
static atomic_int asked_by_libpq;

static bool is_libpq(void *address)
{
    Dl_info info;

    return dladdr(address, &info) != 0 && strstr(info.dli_fname, "libpq");
}

/* In place of the C library's, for libpq as well: it knows the host db.test. */
int getaddrinfo(const char *node, const char *service,
                const struct addrinfo *hints, struct addrinfo **res)
{
    static int (*real)(const char *, const char *, const struct addrinfo *,
                       struct addrinfo **);

    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "getaddrinfo");
    if (!node || !strstr(node, ".test") ||
        (hints->ai_flags & AI_NUMERICHOST) != 0)
        return real(node, service, hints, res);
    atomic_fetch_add(&asked, 1);
    if (is_libpq(__builtin_return_address(0)))
        atomic_fetch_add(&asked_by_libpq, 1);
    return strcmp(node, "db.test") == 0 ? real("127.0.0.1", service, hints, res)
                                        : EAI_NONAME;
}

/* libpq would block while it asks, with the monitor held. */
static void open_by(const char *query, int names)
{
    char url[256];
    hf_client *client;
    hf_error err;

    atomic_store(&asked, 0);
    (void)snprintf(url, sizeof(url), "postgresql:///postgres?user=postgres%s",
                   query);
    ASSERT_OK(hf_open(url, NULL, &client, &err), &err);
    ASSERT_EQ(atomic_load(&asked), names);
    ASSERT_EQ(atomic_load(&asked_by_libpq), 0);
    hf_close(client);
}

TEST_FORKED(hosts, of_the_query_are_resolved_by_us)
{
    struct server *server = postgres_start();
    int port = server_port(server);
    char query[256];

    (void)snprintf(query, sizeof(query), "&host=db.test&port=%d", port);
    open_by(query, 1);
    (void)snprintf(query, sizeof(query), "&host=no.test,db.test&port=%d", port);
    open_by(query, 2);
    (void)snprintf(query, sizeof(query), "&host=127.0.0.1,db.test&port=1,%d",
                   port);
    open_by(query, 1);
    (void)snprintf(query, sizeof(query), "&host=db.test,%s&port=1,%d",
                   server_dir(server), port);
    open_by(query, 1);
    (void)snprintf(query, sizeof(query), "%d", port);
    ASSERT_EQ(setenv("PGHOST", "db.test", 1), 0);
    ASSERT_EQ(setenv("PGPORT", query, 1), 0);
    open_by("", 1);
}

TEST_FORKED(hosts, that_are_named_twice_or_by_a_file_are_refused)
{
    static const char *const urls[][2] = {
        {"postgresql://db.test/postgres?host=db.test", "one place"},
        {"postgresql:///postgres?service=mine", "service="},
        {"postgresql:///postgres?host=db.test&port=x", "port="},
        {"postgresql:///postgres?host=db.test,,", "host="},
    };
    hf_client *client;
    hf_error err;

    for (size_t i = 0; i < HF_COUNT_OF(urls); i++) {
        ASSERT_RC(hf_open(urls[i][0], NULL, &client, &err), HF_ECONFIG, &err);
        ASSERT_HAS(err.text, urls[i][1]);
    }
    ASSERT_EQ(atomic_load(&asked), 0);
}

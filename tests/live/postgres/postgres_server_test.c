/* SPDX-License-Identifier: MIT */
/*
 * postgres_server_test.c - servers with certificates, several of them, a full
 * one; and a client that stands still.
 */
#include <pty.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "certificates.h"
#include "disk.h"
#include "event.h"
#include "postgres.h"
#include "proc.h"
#include "quiet.h"

#define QUICK "retry.base=1ms&retry.max_interval=20ms"

/* ---- TLS ----------------------------------------------------------------- */

static const char *dir;

static void forget_certificate(void *server)
{
    (void)postgres_do(server, "ALTER SYSTEM RESET ssl");
    (void)postgres_do(server, "SELECT pg_reload_conf()");
}

/* The server gets its certificate, and is told to look. */
static struct server *start_with_certificate(const char *names)
{
    struct server *server = postgres_start();
    char command[1024];

    dir = certificates_new();
    certificates_authority(dir, "bad");
    certificates_make(dir, "server", "good", names, 2);
    (void)snprintf(command, sizeof(command),
                   "cd %s/data && cp %s/server.crt %s/server.key . && "
                   "chmod 600 server.key && "
                   "chown --reference=PG_VERSION server.crt server.key",
                   server_dir(server), dir, dir);
    ASSERT_EQ(system(command), 0); /* NOLINT: our own words */
    (void)postgres_do(server, "DROP ROLE IF EXISTS guarded; "
                              "CREATE ROLE guarded LOGIN SUPERUSER");
    (void)postgres_do(server, "ALTER SYSTEM SET ssl = on");
    test_defer(forget_certificate, server);
    (void)postgres_do(server, "SELECT pg_reload_conf()");
    EVENTUALLY(strcmp(postgres_do(server, "SHOW ssl"), "on\n") == 0);
    return server;
}

static int open_guarded(struct server *server, const char *host,
                        const char *authority, hf_error *err)
{
    hf_client *client;
    char url[512];
    int rc;

    (void)snprintf(url, sizeof(url),
                   "postgresql://guarded@%s:%d/postgres?tls.ca=%s/%s.crt", host,
                   server_port(server), dir, authority);
    rc = hf_open(url, NULL, &client, err);
    if (rc != 0)
        return rc;
    rc = client_try(client, "jobs", err);
    ASSERT_STREQ(postgres_do(server, "SELECT DISTINCT ssl FROM pg_stat_ssl "
                                     "JOIN pg_stat_activity USING (pid) "
                                     "WHERE usename = 'guarded'"),
                 "t\n");
    hf_close(client);
    return rc;
}

TEST(tls, verifies_authority_and_name)
{
    struct server *server = start_with_certificate("DNS:localhost");
    hf_error err;

    ASSERT_OK(open_guarded(server, "localhost", "good", &err), &err);
    ASSERT_RC(open_guarded(server, "localhost", "bad", &err), HF_EAUTH, &err);
    ASSERT_HAS(err.text, "certificate");
    ASSERT_RC(open_guarded(server, "127.0.0.1", "good", &err), HF_EAUTH, &err);
    ASSERT_HAS(err.text, "certificate");
}

static int count_lock(const hf_lock_info *info, void *ctx)
{
    (void)info;
    ++*(int *)ctx;
    return 0;
}

/* More than TLS hands over at a time. */
TEST(tls, carries_long_statements_and_answers)
{
    enum { LOCKS = 150, NOTE = 200 };
    struct server *server = start_with_certificate("IP:127.0.0.1");
    hf_hold *holds[LOCKS];
    char note[NOTE + 1] = "";
    char verified[512];
    hf_client *client;
    hf_error err;
    int found = 0;

    (void)snprintf(verified, sizeof(verified), "mode=table&tls.ca=%s/good.crt",
                   dir);
    client = postgres_open(server_port(server), verified);
    memset(note, 'n', NOTE);
    for (int i = 0; i < LOCKS; i++) {
        char name[16];

        (void)snprintf(name, sizeof(name), "job-%d", i);
        ASSERT_OK(hf_acquire(client, name, OPTS(HF_CONFIGURED, .note = note),
                             &holds[i], &err),
                  &err);
    }
    ASSERT_OK(hf_list(client, NULL, count_lock, &found, &err), &err);
    ASSERT_EQ(found, LOCKS);
    for (int i = 0; i < LOCKS; i++)
        client_release(holds[i]);
    ASSERT_EQ(postgres_leftovers(server), 0);
}

/* What the doctor says about it. */
static int note_encryption(const hf_finding *finding, void *ctx)
{
    if (strcmp(finding->check, "encryption") == 0)
        (void)snprintf(ctx, 100, "%d %s", finding->status, finding->detail);
    return 0;
}

static const char *ask_doctor(struct server *server, const char *query)
{
    static char told[100];
    hf_client *client = postgres_open(server_port(server), query);
    hf_error err;

    told[0] = '\0';
    ASSERT_OK(hf_doctor(client, note_encryption, told, &err), &err);
    return told;
}

/* libpq's own sslmode is prefer: TLS if it is there, and no look at whose. */
TEST(tls, that_nobody_verifies_is_told_by_the_doctor)
{
    struct server *server = start_with_certificate("IP:127.0.0.1");
    char verified[512];

    (void)snprintf(verified, sizeof(verified), "tls.ca=%s/good.crt", dir);
    ASSERT_HAS(ask_doctor(server, verified), "certificate verified");
    ASSERT_HAS(ask_doctor(server, "connect=wait"), "nobody looks");
    ASSERT_EQ(atoi(ask_doctor(server, "connect=wait")), HF_FINDING_WARN);
    ASSERT_HAS(ask_doctor(server, "sslmode=disable"), "on this machine");
}

/* What OpenSSL takes for the system's certificates is told by a variable. */
TEST_FORKED(tls, without_an_authority_verifies_by_those_of_the_system)
{
    struct server *server = start_with_certificate("IP:127.0.0.1");
    const char *url = postgres_url(server_port(server), "tls.verify=on");
    hf_client *client = NULL;
    char file[256];
    hf_error err;

    ASSERT_RC(hf_open(url, NULL, &client, &err), HF_EAUTH, &err);
    ASSERT_HAS(err.text, "certificate");
    (void)snprintf(file, sizeof(file), "%s/good.crt", dir);
    ASSERT_EQ(setenv("SSL_CERT_FILE", file, 1), 0);
    ASSERT_HAS(ask_doctor(server, "tls.verify=on"), "certificate verified");
    ASSERT_HAS(ask_doctor(server, "tls.verify=off"), "nobody looks");
}

static void open_with_key(const char *url)
{
    hf_client *client = NULL;
    hf_error err;
    int rc = hf_open(url, NULL, &client, &err);

    _exit(rc == HF_EAUTH && strstr(err.text, "key") ? 0 : 1);
}

/* Without care OpenSSL asks for its password on the terminal, and waits. */
TEST(tls, a_key_with_a_password_is_an_error_and_no_question)
{
    struct server *server = start_with_certificate("IP:127.0.0.1");
    char text[1024];
    char word[256];
    char byte;
    hf_error err;
    size_t len;
    int status;
    int terminal;
    pid_t child;

    certificates_make(dir, "me", "good", "DNS:me", 2);
    (void)snprintf(text, sizeof(text),
                   "openssl ec -aes128 -passout pass:sesame -in %s/me.key -out "
                   "%s/locked.key 2>/dev/null && chmod 600 %s/locked.key",
                   dir, dir, dir);
    ASSERT_EQ(system(text), 0); /* NOLINT: our own words */
    (void)snprintf(text, sizeof(text),
                   "postgresql://postgres@127.0.0.1:%d/postgres?"
                   "tls.ca=%s/good.crt&tls.cert=%s/me.crt&"
                   "tls.key=%s/locked.key",
                   server_port(server), dir, dir, dir);
    child = forkpty(&terminal, NULL, NULL, NULL);
    ASSERT_TRUE(child >= 0);
    if (child == 0)
        open_with_key(text);
    ASSERT_TRUE(read(terminal, &byte, 1) <= 0);
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_EQ(status, 0);
    (void)close(terminal);
    (void)snprintf(word, sizeof(word), "umask 077; echo sesame >%s/word", dir);
    ASSERT_EQ(system(word), 0); /* NOLINT: our own words */
    len = strlen(text);
    (void)snprintf(text + len, sizeof(text) - len,
                   "&tls.key_password_file=%s/word", dir);
    ASSERT_OK(client_try(client_open(text), "jobs", &err), &err);
}

TEST(tls, writes_nothing_on_a_terminal_and_opens_an_encrypted_key)
{
    static const char *const queries[] = {
        "tls.ca=@/good.crt", "tls.ca=@/none.crt", "tls.verify=off", "",
        "tls.ca=@/good.crt&tls.cert=@/me.crt&tls.key=@/locked.key"};
    struct server *server = start_with_certificate("IP:127.0.0.1");
    hf_client *client;
    hf_error err;
    char text[1024];
    int len;

    certificates_make(dir, "me", "good", "DNS:me", 2);
    certificates_lock(dir, "me");
    for (size_t i = 0; i < 2 * sizeof(queries) / sizeof(queries[0]); i++) {
        len = snprintf(text, sizeof(text),
                       "postgresql://%s:wrong@127.0.0.1:%d/postgres?",
                       i % 2 ? "nobody" : "postgres", server_port(server));
        quiet_query(text + len, queries[i / 2], dir);
        ASSERT_STREQ(quiet_watch(quiet_open, text), "");
    }
    len = snprintf(text, sizeof(text),
                   "postgresql://postgres@127.0.0.1:%d/postgres?",
                   server_port(server));
    quiet_query(text + len,
                "tls.ca=@/good.crt&tls.cert=@/me.crt&tls.key=@/locked.key&"
                "tls.key_password_file=@/right.pw",
                dir);
    ASSERT_OK(hf_open(text, NULL, &client, &err), &err);
    hf_close(client);
}

/* ---- several hosts ------------------------------------------------------- */

TEST(hosts, the_first_that_serves_is_used)
{
    struct server *server = postgres_start();
    hf_client *client;
    char url[256];
    hf_error err;

    (void)snprintf(url, sizeof(url),
                   "postgresql://postgres@127.0.0.1:%d,localhost:%d/postgres"
                   "?target_session_attrs=read-write",
                   server_free_port(), server_port(server));
    ASSERT_OK(hf_open(url, NULL, &client, &err), &err);
    ASSERT_OK(client_try(client, "jobs", &err), &err);
    hf_close(client);
}

/* ---- clients ------------------------------------------------------------- */

struct job {
    int port;
    const char *query;
};

static void hold_and_look(struct proc *self, void *arg)
{
    const struct job *job = arg;
    hf_client *client;
    hf_hold *hold;

    (void)proc_hear(self);
    client = postgres_open(job->port, job->query);
    hold = client_acquire(client, "jobs");
    proc_tell(self, "holds");
    (void)proc_hear(self);
    proc_tell(self, "check %d", hf_check(hold));
    proc_tell(self, "release %d", hf_release(hold, NULL));
}

static void pause_a_holder(const char *query)
{
    struct server *server = postgres_start();
    struct job job = {server_port(server), query};
    struct proc *proc = proc_start(hold_and_look, &job);
    hf_client *client;
    hf_hold *hold;
    hf_error err;
    char wanted[32];

    proc_say(proc, "go");
    (void)proc_expect(proc, "holds");
    proc_stop(proc);
    client = postgres_open(server_port(server), query);
    hold = client_acquire(client, "jobs");
    proc_say(proc, "look");
    proc_continue(proc);
    (void)snprintf(wanted, sizeof(wanted), "check %d", HF_LOST);
    (void)proc_expect(proc, wanted);
    (void)snprintf(wanted, sizeof(wanted), "release %d", HF_ELOST);
    (void)proc_expect(proc, wanted);
    proc_join(proc);
    ASSERT_OK(hf_verify(hold, &err), &err); /* ours was not touched */
    client_release(hold);
    EVENTUALLY(postgres_leftovers(server) == 0);
}

TEST(client, that_was_paused_past_its_lease_has_lost_a_session_lock)
{
    pause_a_holder(QUICK "&ttl=2s");
}

TEST(client, that_was_paused_past_its_lease_has_lost_a_row)
{
    pause_a_holder(QUICK "&ttl=2s&mode=table");
}

TEST(client, that_was_paused_past_its_lease_has_lost_a_transaction)
{
    pause_a_holder(QUICK "&ttl=2s&mode=for_update");
}

/* ---- a full disk --------------------------------------------------------- */

enum { NAMES = 2000 };

/* The table of places on a disk of one megabyte; false where nothing may be
 * mounted. */
static bool shrink_disk(struct server *server)
{
    char command[1024];
    char small[256];

    (void)snprintf(small, sizeof(small), "%s/small", server_dir(server));
    (void)snprintf(command, sizeof(command),
                   "mkdir -p %s && chown --reference=%s/data %s", small,
                   server_dir(server), small);
    if (system(command) != 0 || /* NOLINT: our own words */
        !disk_mount(small, 1024))
        return false;
    (void)postgres_do(server, "CREATE TABLESPACE small LOCATION '%s/small'",
                      server_dir(server));
    (void)postgres_do(server,
                      "ALTER TABLE holdfast_place SET TABLESPACE small");
    return true;
}

static void widen_disk(void *arg)
{
    struct server *server = arg;

    (void)postgres_do(server, "DROP TABLE IF EXISTS holdfast_place, filler");
    (void)postgres_do(server, "CHECKPOINT");
    (void)postgres_do(server, "DROP TABLESPACE small");
}

/* Hold one lock after the other until there is no room for the next. */
static int fill_up(hf_client *client, hf_hold *holds[NAMES], int *ret_n)
{
    hf_error err = {0};
    int rc = 0;
    int n;

    for (n = 0; n < NAMES && rc == 0; n++) {
        char name[200];

        (void)snprintf(name, sizeof(name), "%0190d", n);
        rc = hf_acquire(client, name, WITHIN(0), &holds[n], &err);
    }
    *ret_n = rc == 0 ? n : n - 1;
    return rc;
}

TEST(server, whose_disk_is_full_grants_nothing_and_recovers)
{
    static hf_hold *holds[NAMES];
    struct server *server = postgres_start();
    hf_client *client =
        postgres_open(server_port(server), QUICK "&mode=table&ttl=60s");
    hf_error err;
    int n;

    if (!shrink_disk(server)) {
        test_not_tested("a disk of one megabyte cannot be mounted here");
        return;
    }
    test_defer(widen_disk, server);
    (void)postgres_do(server, "CREATE TABLE filler TABLESPACE small AS "
                              "SELECT generate_series(1, 22000)");
    ASSERT_EQ(fill_up(client, holds, &n), HF_ENOSPACE);
    ASSERT_STREQ(
        postgres_do(server, "SELECT count(*) = %d FROM holdfast_place", n),
        "t\n");
    (void)postgres_do(server, "DROP TABLE filler");
    (void)postgres_do(server, "CHECKPOINT");
    ASSERT_OK(client_try(client, "jobs", &err), &err);
    for (int i = 0; i < n; i++)
        client_release(holds[i]);
    ASSERT_EQ(postgres_leftovers(server), 0);
}

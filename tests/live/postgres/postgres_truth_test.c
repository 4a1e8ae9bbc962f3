/* SPDX-License-Identifier: MIT */
/*
 * postgres_truth_test.c - what was told stays true: tokens after a crash, a
 * place in line, a version whose answer was lost; and what nobody should
 * believe.
 */
#include <stdlib.h>
#include <unistd.h>

#include "event.h"
#include "postgres.h"
#include "tempdir.h"

#define QUICK "retry.base=1ms&retry.max_interval=20ms"
#define TABLE QUICK "&mode=table"

/* ---- a crash --------------------------------------------------------------- */

static void write_soon(void *server)
{
    (void)postgres_do(server, "ALTER SYSTEM RESET wal_writer_delay");
    (void)postgres_do(server, "SELECT pg_reload_conf()");
}

/* Somebody has drawn numbers and not committed, so that the record with ours
 * is not on disk; then the server dies. */
TEST(tokens, of_a_session_lock_go_up_over_a_crash)
{
    struct server *server = postgres_start();
    hf_client *client = postgres_open(server_port(server), QUICK);
    hf_client *later;
    hf_hold *hold;
    FILE *drawn;
    uint64_t token;

    client_release(client_acquire(client, "jobs"));
    (void)postgres_do(server, "ALTER SYSTEM SET wal_writer_delay = '10s'");
    test_defer(write_soon, server);
    (void)postgres_do(server, "SELECT pg_reload_conf()");
    EVENTUALLY(strcmp(postgres_do(server, "SHOW wal_writer_delay"), "10s\n") ==
               0);
    drawn = postgres_begin(server, "BEGIN; SELECT nextval('holdfast_token') "
                                   "FROM generate_series(1, 40); "
                                   "SELECT pg_sleep(100)");
    hold = client_acquire(client, "jobs");
    token = hf_token(hold);
    postgres_crash(server);
    (void)pclose(drawn);
    (void)hf_release(hold, NULL);
    later = postgres_open(server_port(server), QUICK);
    hold = client_acquire(later, "jobs");
    ASSERT_GT(hf_token(hold), token);
    client_release(hold);
}

/* ---- rows ------------------------------------------------------------------- */

/* Its session answers in order: what was sent before is answered. */
static void settle(hf_client *client)
{
    hf_error err;

    ASSERT_OK(hf_list(client, NULL, client_ignore_lock, NULL, &err), &err);
}

/* A wake-up for the waiter. */
static void tell_channel(struct server *server, const char *what,
                         const char *token)
{
    (void)postgres_do(server,
                      "SELECT pg_notify('hf_' || left(id, 16), 'g ' || %s || "
                      "' ' || %s) FROM holdfast_place WHERE token IS NULL",
                      what, token);
}

static void assert_one_waits(struct server *server)
{
    EVENTUALLY(strcmp(postgres_do(server, "SELECT count(*) FROM holdfast_place "
                                          "WHERE token IS NULL"),
                      "1\n") == 0);
}

/* The renewal of a waiter, and behind it a look of its own, are on their way
 * when its row goes: the renewal finds none, the look puts it in line again. */
TEST(line, a_renewal_that_crosses_a_look_puts_nobody_in_it_twice)
{
    struct server *server = postgres_start();
    struct proxy *proxy = proxy_start(server_port(server));
    hf_client *holder = postgres_open(server_port(server), TABLE);
    hf_client *waiter = postgres_open(proxy_port(proxy), TABLE "&ttl=3s");
    hf_request *request;
    hf_hold *hold;

    client_release(client_acquire(waiter, "jobs")); /* it knows a token */
    hold = client_acquire(holder, "jobs");
    request = client_start(waiter, "jobs");
    assert_one_waits(server);
    proxy_hold_at(proxy, PROXY_TO_SERVER, "hf_table_renew");
    EVENTUALLY(proxy_holds(proxy) == 1);
    tell_channel(server, "substr(id, 17)", "'1'");
    EVENTUALLY(proxy_keeps(proxy, PROXY_TO_SERVER, "hf_table_ask"));
    (void)postgres_do(server, "DELETE FROM holdfast_place WHERE token IS NULL");
    proxy_hold_at(proxy, PROXY_TO_SERVER, NULL);
    EVENTUALLY(atoi(postgres_do(server, "SELECT count(*) FROM holdfast_place "
                                        "WHERE token IS NULL")) > 0);
    settle(waiter);
    client_release(hold);
    client_release(client_finish(request));
    ASSERT_EQ(postgres_leftovers(server), 0);
}

/* A waiter that was stopped has a wake-up in its socket, and behind it the news
 * that its row went: it stands in line by another one when it hears the first. */
TEST(line, a_wake_up_for_a_row_that_went_grants_nothing)
{
    struct server *server = postgres_start();
    hf_client *holder = postgres_open(server_port(server), TABLE);
    hf_client *waiter = postgres_open(server_port(server), TABLE "&ttl=900ms");
    hf_hold *hold = client_acquire(holder, "jobs");
    hf_request *request = client_start(waiter, "jobs");
    hf_hold *own = NULL;
    char old[24];

    assert_one_waits(server);
    snprintf(old, sizeof(old), "'%d'",
             atoi(postgres_do(server, "SELECT nextval('holdfast_token')")));
    (void)postgres_do(server, "DELETE FROM holdfast_place WHERE token IS NULL");
    assert_one_waits(server);
    settle(waiter);
    tell_channel(server, "substr(id, 17)", old);
    settle(waiter);
    settle(waiter);
    ASSERT_EQ(hf_request_wait(request, 0, &own, NULL), HF_ETIMEOUT);
    client_release(hold);
    client_release(client_finish(request));
    ASSERT_EQ(postgres_leftovers(server), 0);
}

TEST(row, of_a_holder_without_a_token_is_lost_and_goes)
{
    struct server *server = postgres_start();
    hf_client *client = postgres_open(server_port(server), TABLE "&ttl=900ms");
    struct event events = EVENT_INIT;
    hf_hold *hold = client_acquire_told(client, "jobs", &events);

    (void)postgres_do(server, "UPDATE holdfast_place SET token = NULL");
    EVENTUALLY(hf_check(hold) == HF_LOST);
    EVENTUALLY(postgres_leftovers(server) == 0);
    ASSERT_RC(hf_release(hold, NULL), HF_ELOST, NULL);
}

/* ---- an answer that was lost -------------------------------------------------- */

TEST(version, whose_answer_was_lost_is_unknown)
{
    struct rivals at = postgres_proxied(QUICK "&io_timeout=300ms", QUICK);
    uint64_t version = 0;
    hf_error err;

    proxy_hold(at.proxy, PROXY_TO_CLIENT, true);
    ASSERT_RC(hf_version_commit(at.client, "jobs", 0, &version, &err),
              HF_EUNKNOWN, &err);
    EVENTUALLY(hf_version_read(at.rival, "jobs", &version, &err) == 0 &&
               version == 1);
}

TEST(break, whose_answer_was_lost_is_unknown)
{
    struct rivals at = postgres_proxied(TABLE "&io_timeout=10s", TABLE);
    hf_hold *hold = client_acquire(at.rival, "jobs");
    hf_error err;

    proxy_cut_after(at.proxy, PROXY_TO_CLIENT, 1);
    ASSERT_RC(hf_break(at.client, "jobs", hf_token(hold), NULL, &err),
              HF_EUNKNOWN, &err);
    EVENTUALLY(postgres_leftovers(at.server) == 0);
    (void)hf_release(hold, NULL);
}

/* ---- what somebody made up ---------------------------------------------------- */

/* What was told before has been heard. */
static void assert_waits(hf_client *client, const hf_request *request)
{
    settle(client);
    ASSERT_EQ(hf_request_pending(request), 1);
}

TEST(push, that_somebody_made_up_is_not_believed)
{
    struct rivals at = postgres_rivals(TABLE);
    hf_hold *hold;
    hf_request *request;

    client_release(client_acquire(at.rival, "jobs"));
    hold = client_acquire(at.client, "jobs");
    request = client_start(at.rival, "jobs");
    EVENTUALLY(
        strcmp(postgres_do(at.server, "SELECT count(*) FROM holdfast_place "
                                      "WHERE token IS NULL"),
               "1\n") == 0);
    tell_channel(at.server, "substr(id, 33)", "'999999'");
    assert_waits(at.rival, request);
    tell_channel(at.server, "'0000000000000000' || substr(id, 33)", "'999999'");
    assert_waits(at.rival, request);
    tell_channel(at.server, "substr(id, 17)", "'1'");
    assert_waits(at.rival, request);
    tell_channel(at.server, "substr(id, 17)", "'99999999999999999999999999'");
    assert_waits(at.rival, request);
    client_release(hold);
    client_release(client_finish(request));
    EVENTUALLY(postgres_leftovers(at.server) == 0);
}

/* ---- a program with the rights of another -------------------------------------- */

/* Run by the test below, as a program of its own that is set-user-ID. */
TEST(secure, opens_what_it_is_told_to)
{
    const char *url = getenv("HF_SECURE_URL");
    hf_client *client = NULL;
    hf_error err = {.text = ""};
    int rc;

    if (!url)
        return;
    rc = hf_open(url, NULL, &client, &err);
    test_note("opened: %d %s", rc, err.text);
    if (rc == 0)
        hf_close(client);
}

/* What it prints. */
static const char *run_secure(const char *program, const char *environment,
                              const char *url)
{
    static char answer[4096];
    char command[1024];
    size_t used;
    FILE *from;

    (void)snprintf(command, sizeof(command),
                   "setpriv --reuid=postgres --regid=postgres --clear-groups "
                   "env HF_SECURE_URL='%s' %s %s secure.opens 2>&1",
                   url, environment, program);
    from = popen(command, "re"); /* NOLINT: our own words */
    ASSERT_TRUE(from != NULL);
    used = fread(answer, 1, sizeof(answer) - 1, from);
    answer[used] = '\0';
    (void)pclose(from);
    return answer;
}

TEST(secure, a_program_with_the_rights_of_another_follows_no_environment)
{
    struct server *server = postgres_start();
    const char *dir = tempdir_new();
    char program[256];
    char text[1024];
    char url[256];

#ifdef __SANITIZE_ADDRESS__
    test_not_tested("a sanitizer does not run set-user-ID");
    return;
#endif
    if (geteuid() != 0) {
        test_not_tested("only root makes a program set-user-ID");
        return;
    }
    (void)snprintf(program, sizeof(program), "%s/program", dir);
    (void)snprintf(text, sizeof(text),
                   "chmod 755 %s && cp /proc/%d/exe %s && chown nobody %s && "
                   "chmod 4755 %s && mkdir %s/home && umask 077 && "
                   "echo '*:*:*:*:right' >%s/home/.pgpass && "
                   "chmod 755 %s/home && chown nobody %s/home/.pgpass",
                   dir, (int)getpid(), program, program, program, dir, dir, dir,
                   dir);
    ASSERT_EQ(system(text), 0); /* NOLINT: our own words */
    ASSERT_HAS(run_secure(program, "", postgres_url(server_port(server), NULL)),
               "opened: 0");
    ASSERT_HAS(run_secure(program, "PGOPTIONS='-c search_path=evil'",
                          postgres_url(server_port(server), NULL)),
               "PGOPTIONS");
    (void)postgres_do(server, "DROP ROLE IF EXISTS secret; CREATE ROLE secret "
                              "LOGIN PASSWORD 'right'");
    (void)snprintf(url, sizeof(url),
                   "postgresql://secret@127.0.0.1:%d/postgres",
                   server_port(server));
    (void)snprintf(text, sizeof(text), "HOME=%s/home", dir);
    ASSERT_HAS(run_secure(program, text, url), "password");
}

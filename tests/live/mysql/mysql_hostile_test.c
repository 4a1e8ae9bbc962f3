/* SPDX-License-Identifier: MIT */
/*
 * mysql_hostile_test.c - servers that lie, and callers that want more rights
 * than they have.
 */
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "event.h"
#include "fake.h"
#include "mysql.h"

#define QUICK "retry.base=1ms&retry.max_interval=20ms&io_timeout=5s"
#define BY_HAND "&dialect=row&table=t&key=k"

/* Every call that reads rows; each must come back with an error of its own. */
static void ask_everything(hf_client *client)
{
    uint64_t version = 0;
    hf_error err;

    ASSERT_NE(client_try(client, "jobs", &err), 0);
    (void)hf_list(client, NULL, client_ignore_lock, NULL, &err);
    (void)hf_list(client, "jobs", client_ignore_lock, NULL, &err);
    ASSERT_NE(hf_check_token(client, "jobs", 7, &err), 0);
    ASSERT_NE(hf_break(client, "jobs", 7, NULL, &err), 0);
    (void)hf_version_read(client, "jobs", &version, &err);
    ASSERT_NE(hf_version_commit(client, "jobs", 0, &version, &err), 0);
    (void)hf_doctor(client, client_ignore_finding, NULL, &err);
}

static hf_client *open_fake(enum fake_lie lie, const char *query)
{
    return mysql_open(fake_start(lie), query);
}

TEST(server, that_answers_with_too_few_columns_is_not_believed)
{
    hf_client *client = open_fake(FAKE_ONE_COLUMN, QUICK);
    uint64_t version = 0;
    hf_error err;

    ask_everything(client);
    ASSERT_RC(hf_version_commit(client, "jobs", 0, &version, &err), HF_EUNKNOWN,
              &err);
    ASSERT_RC(hf_check_token(client, "jobs", 7, &err), HF_EUNAVAILABLE, &err);
    ASSERT_HAS(err.text, "makes no sense");
    ask_everything(open_fake(FAKE_ONE_COLUMN, QUICK BY_HAND));
}

TEST(server, that_answers_with_nothing_but_null_is_survived)
{
    ask_everything(open_fake(FAKE_NULLS, QUICK));
    ask_everything(open_fake(FAKE_NULLS, QUICK "&dialect=shedlock"));
    ask_everything(open_fake(FAKE_NULLS, QUICK BY_HAND));
}

static long used_kb(void)
{
    struct rusage usage;

    ASSERT_EQ(getrusage(RUSAGE_SELF, &usage), 0);
    return usage.ru_maxrss;
}

TEST(server, that_sends_rows_without_end_is_cut_off)
{
    hf_client *client = open_fake(FAKE_ENDLESS_ROWS, QUICK);
    long before_kb = used_kb();
    hf_error err;

    ASSERT_NE(hf_list(client, NULL, client_ignore_lock, NULL, &err), 0);
    ASSERT_LT(used_kb() - before_kb, 256L * 1024);
}

TEST(server, that_sends_results_without_end_is_cut_off)
{
    hf_client *client = open_fake(FAKE_ENDLESS_RESULTS, QUICK);
    hf_error err;

    ASSERT_NE(hf_list(client, NULL, client_ignore_lock, NULL, &err), 0);
}

TEST(server, that_wants_more_values_than_we_have_gets_none)
{
    hf_client *client = open_fake(FAKE_MANY_PARAMETERS, QUICK);
    hf_error err;

    ASSERT_NE(client_try(client, "jobs", &err), 0);
}

/* It was the end of the process: libmariadb looks into the version, which it has
 * not heard yet. */
TEST(server, that_begins_with_anything_but_a_greeting_is_refused)
{
    hf_client *client;
    hf_error err;

    ASSERT_RC(
        hf_open(mysql_url(fake_start(FAKE_PROGRESS), "connect_timeout=500ms"),
                NULL, &client, &err),
        HF_EUNAVAILABLE, &err);
    ASSERT_HAS(err.text, "speaks another protocol");
}

TEST(server, of_another_make_is_named)
{
    hf_client *client;
    hf_error err;

    ASSERT_RC(hf_open(mysql_url(fake_start(FAKE_NO_VARIABLE), QUICK), NULL,
                      &client, &err),
              HF_EUNSUPPORTED, &err);
    ASSERT_HAS(err.text, "8.0.11-TiDB-v7.5.0");
    ASSERT_FALSE(strstr(err.text, "report") != NULL);
}

TEST(server, without_tls_hears_no_login_of_mysqls)
{
    static const char *const verify[] = {"on", "off"};
    int port = fake_start(FAKE_NULLS);
    hf_client *client;
    char url[128];
    hf_error err;

    for (size_t i = 0; i < HF_COUNT_OF(verify); i++) {
        (void)snprintf(
            url, sizeof(url),
            "mysqls://locker:s3cret@127.0.0.1:%d/locks?tls.verify=%s", port,
            verify[i]);
        ASSERT_RC(hf_open(url, NULL, &client, &err), HF_EAUTH, &err);
        ASSERT_HAS(err.text, "does not speak TLS");
    }
    ASSERT_EQ(fake_logins(), 0);
}

TEST(server, that_fails_renewals_does_not_renew)
{
    struct event events = EVENT_INIT;
    hf_client *client =
        open_fake(FAKE_RENEWS_NOTHING, QUICK "&mode=get_lock&ttl=1s");
    hf_hold *hold = client_acquire_told(client, "jobs", &events);

    EVENTUALLY(hf_check(hold) == HF_LOST);
    (void)hf_release(hold, NULL);
}

/* ---- callers -------------------------------------------------------------- */

/* A program with the set-user-id bit, called by nobody; what it says. */
static const char *call_with_rights(const char *environment)
{
    static char said[4096];
    char dir[] = "/tmp/holdfast-rights-XXXXXX";
    char command[1024];
    FILE *pipe;
    size_t n;

    ASSERT_TRUE(mkdtemp(dir) != NULL);
    ASSERT_EQ(chmod(dir, 0755), 0);
    (void)snprintf(command, sizeof(command),
                   "cp %s %s/program && cp %s %s/evil.so && "
                   "chmod 4755 %s/program && cd %s && "
                   "setpriv --reuid=65534 --regid=65534 --clear-groups env %s "
                   "MARIADB_PLUGIN_DIR=%s ./program 2>&1; rm -rf %s",
                   MYSQL_RIGHTS_PROGRAM, dir, MYSQL_EVIL_PLUGIN, dir, dir, dir,
                   environment, dir, dir);
    pipe = popen(command, "re");
    ASSERT_TRUE(pipe != NULL);
    n = fread(said, 1, sizeof(said) - 1, pipe);
    said[n] = '\0';
    (void)pclose(pipe);
    return said;
}

/* Each wait of mode=get_lock ends at once: it was asked again as fast. */
static void wait_in_vain(enum fake_lie lie)
{
    hf_client *client = open_fake(lie, "mode=get_lock&retry.base=20ms");
    hf_hold *hold;
    hf_error err;

    ASSERT_RC(hf_acquire(client, "jobs", WITHIN(500), &hold, &err), HF_ETIMEOUT,
              &err);
    ASSERT_GT(fake_waits(), 1);
    ASSERT_LT(fake_waits(), 20); /* the pauses double */
}

TEST(server, that_prepares_no_wait_is_asked_by_the_retry_policy)
{
    wait_in_vain(FAKE_PREPARES_NO_WAIT);
}

TEST(server, that_ends_each_wait_at_once_is_asked_by_the_retry_policy)
{
    wait_in_vain(FAKE_NULLS);
}

/* A waiter's connections break. The main one comes back; the one to wait on is
 * refused with @code. */
static hf_request *wait_and_be_refused(unsigned code)
{
    hf_client *client = open_fake(FAKE_WAITS, QUICK "&mode=get_lock");
    hf_request *request = client_start(client, "jobs");

    EVENTUALLY(fake_waits() == 1);
    fake_break(code);
    return request;
}

TEST(waiter, whose_new_connection_is_refused_once_waits_again)
{
    hf_request *request = wait_and_be_refused(/* too many */ 1040);

    EVENTUALLY(fake_waits() == 2);
    hf_request_free(request);
}

TEST(waiter, whose_new_connection_is_refused_for_good_is_told)
{
    hf_request *request = wait_and_be_refused(/* access denied */ 1045);
    hf_hold *hold;
    hf_error err;

    ASSERT_RC(hf_request_wait(request, 10000, &hold, &err), HF_EAUTH, &err);
    hf_request_free(request);
}

TEST(caller, of_a_program_with_more_rights_loads_no_plugin_into_it)
{
    const char *said;

    if (getuid() != 0) {
        test_not_tested("only root can make such a program");
        return;
    }
    said = call_with_rights("LIBMYSQL_PLUGINS=evil");
    if (!strstr(said, "secure 1")) {
        test_not_tested("the set-user-id bit means nothing here: %s", said);
        return;
    }
    ASSERT_FALSE(strstr(said, "EVIL") != NULL);
    ASSERT_HAS(said, "which libmariadb obeys");
}

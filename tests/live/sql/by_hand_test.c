/* SPDX-License-Identifier: MIT */
/*
 * by_hand_test.c - programs that lock by hand and we exclude each other, on
 * either database: rows that are inserted and deleted, rows that a transaction
 * locks, versions. Their side is SQL that the client of the server carries out.
 */
#include "live/sql/database.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/base.h"

#define QUICK "retry.base=1ms&retry.max_interval=20ms"
#define ROW QUICK "&dialect=row&table=database_lock&key=resource"
#define DESCRIBED ROW "&owner_column=description"
#define FOR_UPDATE QUICK "&mode=for_update&table=database_lock&key=resource"
#define VERSIONS "version_table=optimistic_lock&key=resource&column=version"

static hf_client *open_with(const char *query)
{
    return client_open(database_url(query));
}

/* The server with this table and nothing else. */
static hf_client *open_fresh(const char *table, const char *query)
{
    database_fresh();
    (void)database_do("%s", table);
    return open_with(query);
}

static int count(const char *where)
{
    return atoi(
        database_do("SELECT COUNT(*) FROM database_lock WHERE %s", where));
}

/* ---- a transaction of theirs ----------------------------------------------- */

static char said[] = "/tmp/holdfast-by-hand-XXXXXX";

static void forget_said(void *ctx)
{
    (void)ctx;
    (void)unlink(said);
}

static bool is_ready(void)
{
    char line[16] = "";
    FILE *from = fopen(said, "re");
    bool ready = false;

    while (from && fgets(line, sizeof(line), from))
        ready = ready || strcmp(line, "ready\n") == 0;
    if (from)
        (void)fclose(from);
    return ready;
}

/* It has carried out @statements, and is in a transaction. */
static FILE *their_transaction(const char *statements)
{
    char command[256];
    FILE *to;
    int fd;

    (void)snprintf(said, sizeof(said), "/tmp/holdfast-by-hand-XXXXXX");
    fd = mkstemp(said);
    ASSERT_TRUE(fd >= 0);
    (void)close(fd);
    test_defer(forget_said, NULL);
    (void)snprintf(command, sizeof(command), "%s >%s 2>&1", database_client(),
                   said);
    to = popen(command, "we"); /* NOLINT: our own words */
    ASSERT_TRUE(to != NULL);
    (void)fprintf(to, "BEGIN;\n%s;\nSELECT 'ready';\n", statements);
    (void)fflush(to);
    EVENTUALLY(is_ready());
    return to;
}

static void they_end(FILE *theirs, const char *how)
{
    (void)fprintf(theirs, "%s;\n", how);
    (void)pclose(theirs);
}

/* ---- dialect=row ------------------------------------------------------------ */

TEST(row, their_insert_keeps_us_out_and_their_delete_lets_us_in)
{
    hf_client *client = open_fresh(database_lock_table, ROW);
    hf_request *request;
    hf_error err;

    (void)database_do("INSERT INTO database_lock(resource) VALUES (1)");
    ASSERT_RC(client_try(client, "1", &err), HF_EBUSY, &err);
    ASSERT_RC(client_try(client, "2", &err), 0, &err);
    request = client_start(client, "1");
    ASSERT_EQ(hf_request_pending(request), 1);
    (void)database_do("DELETE FROM database_lock WHERE resource=1");
    client_release(client_finish(request));
    ASSERT_EQ(count("1=1"), 0);
}

TEST(row, our_lock_keeps_their_insert_out_until_it_is_released)
{
    hf_client *client = open_fresh(database_lock_table, ROW);
    hf_hold *hold = client_acquire(client, "1");

    ASSERT_HAS(database_do("INSERT INTO database_lock(resource) VALUES (1)"),
               "uplicate");
    ASSERT_EQ(count("resource=1"), 1);
    client_release(hold);
    ASSERT_STREQ(database_do("INSERT INTO database_lock(resource) VALUES (1)"),
                 "");
}

/* With the column that the articles' INSERT fills. */
TEST(row, the_column_of_the_holder_is_shared_both_ways)
{
    hf_client *client = open_fresh(database_described_table, DESCRIBED);
    hf_hold *hold;
    hf_error err;

    (void)database_do("INSERT INTO database_lock(resource, description) "
                      "VALUES (1, 'lock')");
    ASSERT_RC(client_try(client, "1", &err), HF_EBUSY, &err);
    ASSERT_HAS(err.text, "lock");
    (void)database_do("DELETE FROM database_lock WHERE resource=1");
    hold = client_acquire(client, "1");
    ASSERT_EQ(count("description LIKE '%:% %-%'"), 1);
    ASSERT_HAS(database_do("INSERT INTO database_lock(resource, description) "
                           "VALUES (1, 'lock')"),
               "uplicate");
    client_release(hold);
    ASSERT_EQ(count("1=1"), 0);
}

TEST(row, the_capabilities_promise_neither_lease_nor_token_nor_line)
{
    uint64_t caps;

    database_fresh();
    (void)database_do("%s", database_lock_table);
    caps = hf_capabilities(open_with(ROW));
    ASSERT_EQ(caps,
              HF_CAP_DISTRIBUTED | HF_CAP_SURVIVES_RESTART | HF_CAP_BREAK);
}

/* The lease would have ended long before; nobody renews a row of theirs. */
TEST(row, a_hold_has_no_lease_and_is_told_when_its_row_is_gone)
{
    hf_client *client = open_fresh(database_lock_table, ROW "&ttl=50ms");
    hf_error err;
    hf_hold *hold = client_acquire(client, "1");

    ASSERT_OK(hf_verify(hold, &err), &err);
    ASSERT_EQ(hf_token(hold), 0);
    (void)database_do("DELETE FROM database_lock");
    ASSERT_EQ(hf_verify(hold, NULL), HF_ELOST);
    ASSERT_EQ(hf_release(hold, NULL), HF_ELOST);
}

struct listed {
    int n;
    char last[512];
};

static int note_lock(const hf_lock_info *info, void *ctx)
{
    struct listed *listed = ctx;

    listed->n++;
    (void)snprintf(listed->last, sizeof(listed->last), "%s by %s, %d",
                   info->name, info->owner, (int)info->lease_ms);
    return 0;
}

TEST(row, of_a_dead_holder_is_listed_and_stays_until_it_is_broken)
{
    hf_client *client = open_fresh(database_lock_table, ROW);
    struct listed all = {0};
    hf_error err;

    (void)database_do("INSERT INTO database_lock(resource) VALUES (1), (27)");
    ASSERT_OK(hf_list(client, NULL, note_lock, &all, &err), &err);
    ASSERT_EQ(all.n, 2);
    ASSERT_STREQ(all.last, "27 by unknown, -1");
    ASSERT_EQ(hf_break(client, "3", 0, "unknown", &err), HF_ENOTFOUND);
    ASSERT_EQ(hf_break(client, "1", 0, "another", &err), HF_ECONFLICT);
    ASSERT_OK(hf_break(client, "1", 0, "unknown", &err), &err);
    ASSERT_RC(client_try(client, "1", &err), 0, &err);
    ASSERT_EQ(count("resource=27"), 1);
}

TEST(row, is_broken_by_the_holder_that_its_column_names)
{
    hf_client *client = open_fresh(database_described_table, DESCRIBED);
    struct listed all = {0};
    hf_error err;

    (void)database_do("INSERT INTO database_lock(resource, description) "
                      "VALUES (1, 'lock')");
    ASSERT_OK(hf_show(client, "1", note_lock, &all, &err), &err);
    ASSERT_STREQ(all.last, "1 by lock, -1");
    ASSERT_EQ(hf_break(client, "1", 0, "locks", &err), HF_ECONFLICT);
    ASSERT_OK(hf_break(client, "1", 0, "lock", &err), &err);
    ASSERT_EQ(count("1=1"), 0);
}

/* The column is of numbers, and 01 is 1 to it. */
TEST(row, a_name_that_the_column_cannot_have_is_refused_and_leaves_nothing)
{
    static const char *const wrong[] = {"jobs", "01",  "1x",
                                        "+1",   "1.0", "99999999999999999999"};
    hf_client *client;
    hf_error err;

    database_fresh();
    (void)database_do("%s", database_lock_table);
    client = open_with(ROW);
    for (size_t i = 0; i < HF_COUNT_OF(wrong); i++) {
        ASSERT_RC(client_try(client, wrong[i], &err), HF_EINVAL, &err);
        ASSERT_EQ(count("1=1"), 0);
    }
    ASSERT_RC(client_try(client, "-1", &err), 0, &err);
}

/* Our INSERT waits for theirs when our session is ended: its answer is lost. */
static hf_request *lose_an_answer(hf_client *client, const char *insert,
                                  const char *how)
{
    FILE *theirs = their_transaction(insert);
    hf_request *request = client_start(client, "1");

    EVENTUALLY(database_end_wait());
    they_end(theirs, how);
    return request;
}

TEST(row, that_may_be_anothers_is_left_alone_and_the_outcome_is_unknown)
{
    hf_client *client = open_fresh(database_lock_table, ROW);
    hf_hold *hold;
    hf_error err;
    hf_request *request = lose_an_answer(
        client, "INSERT INTO database_lock(resource) VALUES (1)", "COMMIT");

    ASSERT_RC(hf_request_wait(request, 60000, &hold, &err), HF_EUNKNOWN, &err);
    ASSERT_HAS(err.text, "ours or another's");
    hf_request_free(request);
    ASSERT_EQ(count("resource=1"), 1);
}

TEST(row, that_is_not_there_after_a_lost_answer_is_taken)
{
    hf_client *client = open_fresh(database_lock_table, ROW);

    client_release(client_finish(lose_an_answer(
        client, "INSERT INTO database_lock(resource) VALUES (1)", "ROLLBACK")));
    ASSERT_EQ(count("1=1"), 0);
}

TEST(row, whose_column_names_another_is_waited_for_after_a_lost_answer)
{
    hf_client *client = open_fresh(database_described_table, DESCRIBED);
    hf_request *request =
        lose_an_answer(client,
                       "INSERT INTO database_lock(resource, description) "
                       "VALUES (1, 'lock')",
                       "COMMIT");

    ASSERT_EQ(count("resource=1"), 1);
    ASSERT_EQ(hf_request_pending(request), 1);
    (void)database_do("DELETE FROM database_lock WHERE resource=1");
    client_release(client_finish(request));
}

TEST(row, of_a_table_that_is_not_there_is_an_error_and_the_table_is_not_made)
{
    hf_client *client;
    hf_error err;

    database_fresh();
    client = open_with(ROW);
    ASSERT_RC(client_try(client, "1", &err), HF_ECONFIG, &err);
    ASSERT_HAS(err.text, "database_lock");
    ASSERT_HAS(database_do("SELECT * FROM database_lock"), "ERROR");
}

/* Two clients would both hold it. */
TEST(row, of_a_column_that_is_not_unique_alone_is_refused_until_it_is)
{
    static const char *const indexes[] = {
        "CREATE INDEX i ON database_lock(resource)",
        "CREATE UNIQUE INDEX j ON database_lock(resource, id)",
        "CREATE UNIQUE INDEX k ON database_lock(id, resource)",
        "CREATE UNIQUE INDEX l ON database_lock(id)"};
    static const char query[] =
        QUICK "&dialect=row&table=%s.database_lock&key=resource";
    char in_schema[128];
    hf_client *clients[2];
    hf_error err;

    (void)snprintf(in_schema, sizeof(in_schema), query, database_schema);
    database_fresh();
    (void)database_do("CREATE TABLE database_lock(resource int NOT NULL, "
                      "id int NOT NULL DEFAULT 0)");
    clients[0] = open_with(ROW);
    clients[1] = open_with(in_schema);
    for (size_t i = 0; i < 2 * HF_COUNT_OF(indexes); i++) {
        ASSERT_RC(client_try(clients[i % 2], "1", &err), HF_ECONFIG, &err);
        ASSERT_HAS(err.text, "database_lock");
        ASSERT_HAS(err.text, "resource");
        ASSERT_HAS(err.text, "UNIQUE");
        if (i % 2 != 0)
            (void)database_do("%s", indexes[i / 2]);
    }
    ASSERT_EQ(count("1=1"), 0);
    (void)database_do("CREATE UNIQUE INDEX m ON database_lock(resource)");
    for (size_t i = 0; i < HF_COUNT_OF(clients); i++)
        ASSERT_RC(client_try(clients[i], "1", &err), 0, &err);
}

TEST(row, of_a_column_that_is_the_primary_key_is_taken)
{
    hf_error err;

    database_fresh();
    (void)database_do("CREATE TABLE database_lock(resource int PRIMARY KEY)");
    ASSERT_RC(client_try(open_with(ROW), "1", &err), 0, &err);
}

TEST(row, a_column_that_must_have_a_value_is_told)
{
    hf_client *client = open_fresh(database_described_table, ROW);
    hf_error err;

    ASSERT_RC(client_try(client, "1", &err), HF_ECONFIG, &err);
    ASSERT_HAS(err.text, "description");
}

TEST(row, the_doctor_warns_that_there_is_no_lease_and_leaves_nothing)
{
    hf_client *client = open_fresh(database_lock_table, ROW);

    ASSERT_TRUE(client_finding(client, "rights") != HF_FINDING_FAIL);
    ASSERT_EQ(client_finding(client, database_lease), HF_FINDING_WARN);
    ASSERT_EQ(count("1=1"), 0);
}

/* ---- names ------------------------------------------------------------------- */

TEST(names, of_tables_and_columns_are_quoted_and_not_pasted)
{
    static const char *const wrong[] = {
        "dialect=row&table=a%60b%22&key=resource",
        "dialect=row&table=database_lock&key=resource%60%29%20--",
        "dialect=row&table=database_lock&key=resource%22%29%20--",
        "dialect=row&table=database_lock%20WHERE%201=1&key=resource"};
    hf_error err;

    database_fresh();
    (void)database_do("%s", database_lock_table);
    for (size_t i = 0; i < HF_COUNT_OF(wrong); i++) {
        hf_client *client = open_with(wrong[i]);

        ASSERT_RC(client_try(client, "1", &err), HF_ECONFIG, &err);
        ASSERT_EQ(count("1=1"), 0);
    }
}

TEST(names, settings_that_do_not_belong_together_are_refused)
{
    static const char *const wrong[] = {
        "dialect=row",
        "dialect=row&table=t",
        "dialect=row&key=k",
        "table=t&key=k",
        "mode=for_update&table=t",
        "mode=for_update&key=k",
        "mode=for_update&table=t&key=k&owner_column=o",
        "dialect=shedlock&key=k",
        "version_table=v",
        "dialect=row&table=a..b&key=k",
        "dialect=row&table=a%3Bb&key=k",
        "dialect=row&table=t&key=k&mode=for_update"};

    database_fresh();
    for (size_t i = 0; i < HF_COUNT_OF(wrong); i++) {
        hf_client *client;
        hf_error err;

        ASSERT_RC(hf_open(database_url(wrong[i]), NULL, &client, &err),
                  HF_ECONFIG, &err);
    }
}

/* ---- mode=for_update ----------------------------------------------------------- */

static void begin_rows(void)
{
    database_fresh();
    (void)database_do("%s", database_lock_table);
    (void)database_do("INSERT INTO database_lock(resource) VALUES (1), (2)");
}

static hf_client *open_rows(const char *query)
{
    begin_rows();
    return open_with(query);
}

TEST(own_row, their_transaction_keeps_us_out_until_its_commit)
{
    hf_client *client = open_rows(FOR_UPDATE);
    hf_request *request;
    hf_error err;
    FILE *theirs = their_transaction(
        "SELECT * FROM database_lock WHERE id = 1 FOR UPDATE");

    ASSERT_RC(client_try(client, "1", &err), HF_EBUSY, &err);
    ASSERT_RC(client_try(client, "2", &err), 0, &err);
    request = client_start(client, "1");
    ASSERT_EQ(hf_request_pending(request), 1);
    they_end(theirs, "COMMIT");
    client_release(client_finish(request));
}

TEST(own_row, our_lock_keeps_their_transaction_out_until_it_is_released)
{
    hf_client *client = open_rows(FOR_UPDATE);
    hf_hold *hold = client_acquire(client, "1");

    ASSERT_HAS(database_do("%s SELECT * FROM database_lock WHERE id = 1 "
                           "FOR UPDATE",
                           database_impatient),
               "ERROR");
    ASSERT_HAS(database_do("%s SELECT resource FROM database_lock WHERE id = 2 "
                           "FOR UPDATE",
                           database_impatient),
               "2");
    client_release(hold);
    ASSERT_HAS(database_do("%s SELECT resource FROM database_lock WHERE id = 1 "
                           "FOR UPDATE",
                           database_impatient),
               "1");
}

TEST(own_row, that_is_not_there_is_an_error_and_is_not_made)
{
    hf_client *client = open_rows(FOR_UPDATE);
    static const char *const wrong[] = {"3", "01", "jobs"};
    hf_error err;

    for (size_t i = 0; i < HF_COUNT_OF(wrong); i++) {
        int rc = client_try(client, wrong[i], &err);

        ASSERT_TRUE(rc == HF_ENOTFOUND || rc == HF_EINVAL);
    }
    ASSERT_RC(client_try(client, "3", &err), HF_ENOTFOUND, &err);
    ASSERT_HAS(err.text, "database_lock");
    ASSERT_EQ(count("1=1"), 2);
    ASSERT_RC(client_try(client, "1", &err), 0, &err);
}

TEST(own_row, the_doctor_finds_nothing_wrong)
{
    begin_rows();
    ASSERT_TRUE(client_finding(open_with(FOR_UPDATE), "rights") !=
                HF_FINDING_FAIL);
}

/* ---- versions ------------------------------------------------------------------ */

static hf_client *begin_versions(const char *query)
{
    database_fresh();
    (void)database_do("%s", database_version_table);
    (void)database_do("INSERT INTO optimistic_lock(resource, version) "
                      "VALUES (7, 1)");
    return open_with(query);
}

TEST(own_version, their_update_is_a_conflict_for_our_commit_and_ours_for_theirs)
{
    hf_client *client = begin_versions(VERSIONS);
    uint64_t version = 0;
    hf_error err;

    ASSERT_OK(hf_version_read(client, "7", &version, &err), &err);
    ASSERT_EQ(version, 1);
    (void)database_do("UPDATE optimistic_lock SET resource = 7, "
                      "version = version + 1 WHERE id = 1 AND version = 1");
    ASSERT_RC(hf_version_commit(client, "7", 1, &version, &err), HF_ECONFLICT,
              &err);
    ASSERT_OK(hf_version_read(client, "7", &version, &err), &err);
    ASSERT_EQ(version, 2);
    ASSERT_OK(hf_version_commit(client, "7", 2, &version, &err), &err);
    ASSERT_EQ(version, 3);
    (void)database_do("UPDATE optimistic_lock SET resource = 7, "
                      "version = version + 1 WHERE id = 1 AND version = 2");
    ASSERT_HAS(database_do("SELECT version FROM optimistic_lock"), "3");
}

TEST(own_version, of_a_row_that_is_not_there_is_an_error)
{
    hf_client *client = begin_versions(VERSIONS);
    uint64_t version = 0;
    hf_error err;

    ASSERT_RC(hf_version_read(client, "8", &version, &err), HF_ENOTFOUND, &err);
    ASSERT_RC(hf_version_commit(client, "8", 0, &version, &err), HF_ENOTFOUND,
              &err);
    ASSERT_HAS(database_do("SELECT COUNT(*) FROM optimistic_lock"), "1");
}

/* One client locks by row and has versions. */
TEST(own_version, goes_with_every_way_to_lock)
{
    static const char *const queries[] = {
        ROW "&version_table=optimistic_lock",
        FOR_UPDATE "&version_table=optimistic_lock", VERSIONS "&mode=table"};
    uint64_t version = 0;
    hf_error err;

    (void)begin_versions(VERSIONS);
    (void)database_do("%s", database_lock_table);
    for (size_t i = 0; i < HF_COUNT_OF(queries); i++) {
        hf_client *client = open_with(queries[i]);

        ASSERT_TRUE((hf_capabilities(client) & HF_CAP_VERSIONS) != 0);
        ASSERT_OK(hf_version_read(client, "7", &version, &err), &err);
        ASSERT_OK(hf_version_commit(client, "7", version, &version, &err),
                  &err);
        ASSERT_EQ(version, i + 2);
    }
}

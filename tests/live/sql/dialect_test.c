/* SPDX-License-Identifier: MIT */
/*
 * dialect_test.c - the tables of ShedLock and Spring, on either database.
 *
 * What the others would read and write stands here as SQL; tests/interop has
 * the libraries themselves.
 */
#include "live/sql/database.h"

#include <stdlib.h>

#include "base/base.h"

#define QUICK "retry.base=1ms&retry.max_interval=20ms"
#define SHEDLOCK "dialect=shedlock&" QUICK
#define SPRING "dialect=spring&" QUICK

/* LOCK_KEY of "my-lock". */
#define MY_LOCK "eda23b8c-64b2-3f01-8c10-660455d15168"

static hf_client *open_with(const char *query)
{
    return client_open(database_url(query));
}

static hf_client *open_fresh(const char *query)
{
    database_fresh();
    return open_with(query);
}

/* How many rows of the table are so; %%u is now. */
static int count(const char *table, const char *where)
{
    const char *at = strstr(where, "%u");
    int before = at ? (int)(at - where) : (int)strlen(where);

    return atoi(database_do("SELECT COUNT(*) FROM %s WHERE %.*s%s%s", table,
                            before, where, at ? database_utc : "",
                            at ? at + 2 : ""));
}

/* ---- ShedLock -------------------------------------------------------------- */

TEST(shedlock, a_held_row_is_what_shedlock_would_have_written)
{
    hf_client *client = open_fresh(SHEDLOCK "&ttl=60s");
    hf_hold *hold = client_acquire(client, "jobs");

    ASSERT_EQ(count("shedlock", "name='jobs'"), 1);
    ASSERT_EQ(count("shedlock", "lock_until>%u+INTERVAL '30' SECOND"), 1);
    ASSERT_EQ(count("shedlock", "lock_until<%u+INTERVAL '62' SECOND"), 1);
    ASSERT_EQ(count("shedlock", "locked_at>%u-INTERVAL '30' SECOND"), 1);
    ASSERT_EQ(count("shedlock", "locked_at<=%u"), 1);
    ASSERT_EQ(count("shedlock", "locked_by LIKE '%:% %-%'"), 1);
    client_release(hold);
}

TEST(shedlock, a_row_stays_when_it_is_free_and_is_used_again)
{
    hf_client *client = open_fresh(SHEDLOCK);

    client_release(client_acquire(client, "jobs"));
    ASSERT_EQ(count("shedlock", "lock_until<=%u"), 1);
    client_release(client_acquire(client, "jobs"));
    ASSERT_EQ(count("shedlock", "lock_until<=%u"), 1);
}

/* As a ShedLock client leaves it: a row that it has, then one that it had. */
TEST(shedlock, a_foreign_holder_is_respected_until_its_time)
{
    hf_client *client = open_fresh(SHEDLOCK);
    hf_error err;

    client_release(client_acquire(client, "jobs"));
    (void)database_do("UPDATE shedlock SET locked_by='their-host', "
                      "locked_at=%s, lock_until=%s+INTERVAL '60' SECOND",
                      database_utc, database_utc);
    ASSERT_EQ(client_try(client, "jobs", &err), HF_EBUSY);
    ASSERT_HAS(err.text, "their-host");
    (void)database_do("UPDATE shedlock SET lock_until=%s", database_utc);
    client_release(client_acquire(client, "jobs"));
}

/* Also not of who has it now: only who wrote locked_by frees the row. */
TEST(shedlock, a_lock_that_was_taken_away_is_lost_and_not_freed)
{
    hf_client *client = open_fresh(SHEDLOCK);
    hf_hold *hold = client_acquire(client, "jobs");

    (void)database_do("UPDATE shedlock SET locked_by='their-host'");
    ASSERT_EQ(hf_verify(hold, NULL), HF_ELOST);
    ASSERT_EQ(hf_check(hold), HF_LOST);
    ASSERT_EQ(hf_release(hold, NULL), HF_ELOST);
    ASSERT_EQ(count("shedlock", "locked_by='their-host' AND lock_until>%u"), 1);
}

TEST(shedlock, names_that_do_not_fit_are_refused_before_anything_is_written)
{
    hf_client *client = open_fresh(SHEDLOCK);
    char name[66];
    hf_error err;

    memset(name, 'n', sizeof(name));
    name[65] = '\0';
    ASSERT_EQ(client_try(client, name, &err), HF_EINVAL);
    ASSERT_HAS(err.text, "64 characters");
    name[64] = '\0';
    ASSERT_EQ(client_try(client, name, &err), 0);
    ASSERT_EQ(count("shedlock", "name LIKE 'n%'"), 1);
}

/* ---- Spring ---------------------------------------------------------------- */

TEST(spring, a_held_row_is_what_spring_would_have_written)
{
    hf_client *client = open_fresh(SPRING "&ttl=60s");
    hf_hold *hold = client_acquire(client, "my-lock");

    ASSERT_EQ(count("INT_LOCK", "LOCK_KEY='" MY_LOCK "' AND REGION='DEFAULT'"),
              1);
    ASSERT_EQ(count("INT_LOCK", "EXPIRED_AFTER>%u+INTERVAL '30' SECOND"), 1);
    ASSERT_EQ(count("INT_LOCK", "EXPIRED_AFTER<%u+INTERVAL '62' SECOND"), 1);
    ASSERT_EQ(count("INT_LOCK", "CREATED_DATE<=%u"), 1);
    ASSERT_EQ(count("INT_LOCK",
                    "CLIENT_ID LIKE '________-____-____-____-____________'"),
              1);
    client_release(hold);
    ASSERT_EQ(count("INT_LOCK", "1=1"), 0);
}

/* Spring deletes what it frees, and what has expired sometimes. */
TEST(spring, a_foreign_holder_is_respected_until_its_time)
{
    hf_client *client = open_fresh(SPRING);
    hf_error err;

    client_release(client_acquire(client, "my-lock"));
    (void)database_do("INSERT INTO INT_LOCK VALUES('" MY_LOCK "', 'DEFAULT', "
                      "'theirs', %s, %s+INTERVAL '60' SECOND)",
                      database_utc, database_utc);
    ASSERT_EQ(client_try(client, "my-lock", &err), HF_EBUSY);
    ASSERT_HAS(err.text, "theirs");
    (void)database_do("UPDATE INT_LOCK SET EXPIRED_AFTER=%s-INTERVAL '1' "
                      "SECOND",
                      database_utc);
    client_release(client_acquire(client, "my-lock"));
    ASSERT_EQ(count("INT_LOCK", "1=1"), 0);
}

TEST(spring, a_lock_that_was_taken_away_is_lost_and_not_freed)
{
    hf_client *client = open_fresh(SPRING);
    hf_hold *hold = client_acquire(client, "my-lock");

    (void)database_do("UPDATE INT_LOCK SET CLIENT_ID='theirs'");
    ASSERT_EQ(hf_verify(hold, NULL), HF_ELOST);
    ASSERT_EQ(hf_release(hold, NULL), HF_ELOST);
    ASSERT_EQ(count("INT_LOCK", "CLIENT_ID='theirs'"), 1);
}

TEST(spring, regions_do_not_see_each_other)
{
    hf_client *one;
    hf_client *other;
    hf_hold *hold;
    hf_error err;

    database_fresh();
    one = open_with(SPRING);
    other = open_with(SPRING "&region=other');--");
    hold = client_acquire(one, "my-lock");
    ASSERT_EQ(client_try(one, "my-lock", &err), HF_EBUSY);
    ASSERT_EQ(client_try(other, "my-lock", &err), 0);
    client_release(hold);
}

TEST(spring, the_table_of_version_6_is_refused_with_a_reason)
{
    hf_client *client;
    hf_error err;

    database_fresh();
    (void)database_do("CREATE TABLE INT_LOCK(LOCK_KEY CHAR(36) NOT NULL, "
                      "REGION VARCHAR(100) NOT NULL, CLIENT_ID CHAR(36), "
                      "CREATED_DATE TIMESTAMP NOT NULL, "
                      "PRIMARY KEY(LOCK_KEY, REGION));");
    client = open_with(SPRING);
    ASSERT_EQ(client_try(client, "my-lock", &err), HF_ECONFIG);
    ASSERT_HAS(err.text, "7.0 or later");
}

/* ---- either ---------------------------------------------------------------- */

static const char *const dialects[] = {SHEDLOCK, SPRING};

TEST(dialect, a_table_of_another_name_is_made_and_used)
{
    static const char *const names[] = {"my_shedlock", "APP_LOCK"};
    char query[128];

    database_fresh();
    for (size_t i = 0; i < HF_COUNT_OF(dialects); i++) {
        hf_hold *hold;

        (void)snprintf(query, sizeof(query), "%s&table=%s", dialects[i],
                       names[i]);
        hold = client_acquire(open_with(query), "jobs");
        ASSERT_EQ(count(names[i], "1=1"), 1);
        client_release(hold);
    }
}

TEST(dialect, a_table_that_is_missing_and_may_not_be_made_is_asked_for)
{
    database_fresh();
    database_forbid_tables();
    for (size_t i = 0; i < HF_COUNT_OF(dialects); i++) {
        hf_client *client = NULL;
        hf_error err;
        int rc = hf_open(database_url(dialects[i]), NULL, &client, &err);

        if (rc == 0)
            rc = client_try(client, "jobs", &err);
        ASSERT_RC(rc, HF_EAUTH, &err);
        ASSERT_HAS(err.text, "holdfast(7)");
        hf_close(client);
    }
}

TEST(dialect, names_that_are_hostile_are_names)
{
    static const char *const names[] = {"'; DROP TABLE canary; -- ",
                                        "x'); DELETE FROM canary; --",
                                        "\\'; DROP TABLE canary; #",
                                        "$N $T $L @ $1",
                                        "%s%n%s%n",
                                        "1' OR '1'='1",
                                        "/*!50000 DROP TABLE canary*/"};

    database_fresh();
    (void)database_do("CREATE TABLE canary(n INT); INSERT INTO canary "
                      "VALUES(7);");
    for (size_t d = 0; d < HF_COUNT_OF(dialects); d++) {
        hf_client *client = open_with(dialects[d]);
        hf_client *rival = open_with(dialects[d]);

        for (size_t i = 0; i < HF_COUNT_OF(names); i++) {
            hf_hold *hold = client_acquire(client, names[i]);
            hf_error err;

            ASSERT_EQ(client_try(rival, names[i], &err), HF_EBUSY);
            client_release(hold);
        }
    }
    ASSERT_EQ(count("canary", "n=7"), 1);
    ASSERT_EQ(count("shedlock", "1=1"), (int)HF_COUNT_OF(names));
}

struct seen {
    int n;
    char owner[64];
    int64_t lease_ms;
};

static int see(const hf_lock_info *info, void *ctx)
{
    struct seen *seen = ctx;

    ASSERT_STREQ(info->name, "jobs");
    ASSERT_EQ(info->role, HF_HOLDER);
    seen->n++;
    seen->lease_ms = info->lease_ms;
    (void)snprintf(seen->owner, sizeof(seen->owner), "%s", info->owner);
    return 0;
}

/* The holder is called "theirs", however it came to the row. */
TEST(dialect, a_holder_is_shown_and_its_lock_can_be_broken)
{
    static const char *const rename[] = {
        "UPDATE shedlock SET locked_by='theirs'",
        "UPDATE INT_LOCK SET CLIENT_ID='theirs'"};

    database_fresh();
    for (size_t i = 0; i < HF_COUNT_OF(dialects); i++) {
        hf_client *client = open_with(dialects[i]);
        hf_hold *hold = client_acquire(client, "jobs");
        struct seen seen = {0};
        hf_error err;

        (void)database_do("%s", rename[i]);
        ASSERT_OK(hf_show(client, "jobs", see, &seen, &err), &err);
        ASSERT_EQ(seen.n, 1);
        ASSERT_TRUE(strncmp(seen.owner, "theirs", 6) == 0);
        ASSERT_TRUE(seen.lease_ms > 0 && seen.lease_ms <= 31000);
        ASSERT_EQ(hf_break(client, "jobs", 0, "ours", &err), HF_ECONFLICT);
        ASSERT_OK(hf_break(client, "jobs", 0, "theirs", &err), &err);
        ASSERT_EQ(hf_break(client, "jobs", 0, "theirs", &err), HF_ENOTFOUND);
        ASSERT_OK(hf_show(client, "jobs", see, &seen, &err), &err);
        ASSERT_EQ(seen.n, 1);
        ASSERT_EQ(hf_release(hold, &err), HF_ELOST);
        ASSERT_EQ(client_try(client, "jobs", &err), 0);
    }
}

/* ---- lists ----------------------------------------------------------------- */

struct listed {
    int n;
    char rows[8][128]; /* "NAME by OWNER" */
};

static int list_row(const hf_lock_info *info, void *ctx)
{
    struct listed *listed = ctx;

    ASSERT_LT(listed->n, (int)HF_COUNT_OF(listed->rows));
    ASSERT_EQ(info->role, HF_HOLDER);
    ASSERT_TRUE(info->lease_ms > 0 && info->lease_ms <= 61000);
    (void)snprintf(listed->rows[listed->n++], sizeof(listed->rows[0]),
                   "%s by %s", info->name, info->owner);
    return 0;
}

static struct listed list(hf_client *client, const char *prefix)
{
    struct listed listed = {0};
    hf_error err;

    ASSERT_OK(hf_list(client, prefix, list_row, &listed, &err), &err);
    return listed;
}

static void insert_shedlock(const char *name, int seconds)
{
    (void)database_do("INSERT INTO shedlock(name, lock_until, locked_at, "
                      "locked_by) VALUES('%s', %s+INTERVAL '%d' SECOND, %s, "
                      "'their-host')",
                      name, database_utc, seconds, database_utc);
}

TEST(shedlock, holders_are_listed_and_strangers_do_no_harm)
{
    hf_client *client = open_fresh(SHEDLOCK);
    struct listed all;
    hf_hold *hold;
    hf_client *team = open_with(SHEDLOCK "&prefix=team/");

    client_release(client_acquire(client, "team/free"));
    hold = client_acquire(client, "team/ours");
    insert_shedlock("team/theirs", 60);
    insert_shedlock("TEAM/jobs", 60);
    insert_shedlock("team/expired", -60);
    insert_shedlock("team/two\nlines", 60);
    insert_shedlock("", 60);

    all = list(client, NULL);
    ASSERT_EQ(all.n, 3);
    ASSERT_STREQ(all.rows[0], "TEAM/jobs by their-host");
    ASSERT_HAS(all.rows[1], "team/ours by ");
    ASSERT_STREQ(all.rows[2], "team/theirs by their-host");
    ASSERT_EQ(list(client, "team/").n, 2);
    ASSERT_EQ(list(client, "team/o").n, 1);
    ASSERT_EQ(list(client, "te%m/").n, 0);
    ASSERT_EQ(list(client, "x' OR '1'='1").n, 0);
    all = list(team, NULL);
    ASSERT_EQ(all.n, 2);
    ASSERT_HAS(all.rows[0], "ours by ");
    client_release(hold);
    ASSERT_EQ(list(team, "o").n, 0);
}

static void insert_spring(const char *key, const char *region, int seconds)
{
    (void)database_do("INSERT INTO INT_LOCK VALUES('%s', '%s', "
                      "'11111111-2222-3333-4444-555555555555', %s, "
                      "%s+INTERVAL '%d' SECOND)",
                      key, region, database_utc, database_utc, seconds);
}

/* A name is told by its key, which is a name for the same row. */
TEST(spring, holders_are_listed_by_their_keys)
{
    hf_client *client = open_fresh(SPRING);
    struct listed all = {0};
    hf_error err;
    hf_hold *hold = client_acquire(client, "my-lock");

    insert_spring("00000000-0000-0000-0000-000000000001", "DEFAULT", 60);
    insert_spring("00000000-0000-0000-0000-000000000002", "DEFAULT", -60);
    insert_spring("00000000-0000-0000-0000-000000000003", "other", 60);
    insert_spring("no key at all", "DEFAULT", 60);

    all = list(client, NULL);
    ASSERT_EQ(all.n, 2);
    ASSERT_STREQ(all.rows[0], "00000000-0000-0000-0000-000000000001 by "
                              "11111111-2222-3333-4444-555555555555");
    ASSERT_HAS(all.rows[1], MY_LOCK " by ");
    all.n = 0;
    ASSERT_OK(hf_show(client, MY_LOCK, list_row, &all, &err), &err);
    ASSERT_EQ(all.n, 1);
    client_release(hold);
    ASSERT_EQ(list(client, "").n, 1);
    ASSERT_EQ(hf_list(client, "my-", list_row, &all, &err), HF_EUNSUPPORTED);
    ASSERT_HAS(err.text, "digests");
    ASSERT_EQ(
        hf_list(open_with(SPRING "&prefix=a/"), NULL, list_row, &all, &err),
        HF_EUNSUPPORTED);
}

/* ---- the doctor ------------------------------------------------------------ */

static int note_failure(const hf_finding *finding, void *ctx)
{
    *(int *)ctx += finding->status == HF_FINDING_FAIL;
    return 0;
}

TEST(dialect, the_doctor_finds_nothing_wrong_and_leaves_nothing)
{
    database_fresh();
    for (size_t i = 0; i < HF_COUNT_OF(dialects); i++) {
        hf_client *client = open_with(dialects[i]);
        hf_hold *hold = client_acquire(client, "jobs");
        int failures = 0;
        hf_error err;

        ASSERT_OK(hf_doctor(client, note_failure, &failures, &err), &err);
        ASSERT_EQ(failures, 0);
        ASSERT_OK(hf_verify(hold, &err), &err);
        client_release(hold);
    }
    ASSERT_EQ(count("shedlock", "1=1"), 1);
    ASSERT_EQ(count("INT_LOCK", "1=1"), 0);
}

TEST(dialect, settings_that_mean_nothing_here_are_refused)
{
    static const char *const wrong[] = {
        "dialect=shedlok", "dialect=shedlock&mode=table", "table=shedlock",
        "dialect=shedlock&table=a%20b"};

    for (size_t i = 0; i < HF_COUNT_OF(wrong); i++) {
        hf_client *client;
        hf_error err;

        ASSERT_RC(hf_open(database_url(wrong[i]), NULL, &client, &err),
                  HF_ECONFIG, &err);
    }
}

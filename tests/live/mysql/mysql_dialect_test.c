/* SPDX-License-Identifier: MIT */
/* mysql_dialect_test.c - the tables of others on MariaDB. */
#include "live/sql/database.h"

/* As ShedLock's manual has it: the collation is the server's standard. */
#define THEIR_TABLE                                                            \
    "CREATE TABLE shedlock(name VARCHAR(64) NOT NULL,"                         \
    "lock_until TIMESTAMP(3) NOT NULL,"                                        \
    "locked_at TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3),"            \
    "locked_by VARCHAR(255) NOT NULL, PRIMARY KEY (name)) "

static int count_row(const hf_lock_info *info, void *ctx)
{
    (void)info;
    ++*(int *)ctx;
    return 0;
}

TEST(shedlock, two_names_of_one_row_are_an_error_and_not_one_lock)
{
    static const char *const others[] = {"JOBS", "jobs ",
                                         ("j\xc3\xb6"
                                          "bs")};
    hf_client *client;
    hf_hold *hold;
    hf_error err;
    int seen = 0;

    database_fresh();
    (void)database_do(THEIR_TABLE "COLLATE utf8mb4_unicode_ci");
    client = client_open(database_url("dialect=shedlock"));
    hold = client_acquire(client, "jobs");
    for (int i = 0; i < 3; i++) {
        ASSERT_EQ(client_try(client, others[i], &err), HF_EINVAL);
        ASSERT_HAS(err.text, "collation");
        ASSERT_OK(hf_show(client, others[i], count_row, &seen, &err), &err);
        ASSERT_EQ(hf_break(client, others[i], 0, "x", &err), HF_ENOTFOUND);
    }
    ASSERT_OK(hf_list(client, "J", count_row, &seen, &err), &err);
    ASSERT_EQ(seen, 0);
    ASSERT_OK(hf_list(client, "j", count_row, &seen, &err), &err);
    ASSERT_EQ(seen, 1);
    client_release(hold);
    ASSERT_EQ(client_try(client, "JOBS", &err), HF_EINVAL);
    ASSERT_EQ(client_try(client, "jobs", &err), 0);
}

/* A row is found by its key, or one lock would wait for all the others. */
TEST(shedlock, the_row_of_another_is_not_looked_at)
{
    static const char *const charsets[] = {"utf8mb4", "utf8mb3", "latin1"};
    hf_client *client;
    hf_hold *hold;
    hf_error err;

    database_fresh();
    for (int i = 0; i < 3; i++) {
        (void)database_do("DROP TABLE IF EXISTS shedlock;" THEIR_TABLE
                          "CHARSET=%s",
                          charsets[i]);
        client = client_open(
            database_url("dialect=shedlock&prefix=gr\xc3\xb6\xc3\x9f"
                         "e/"));
        hold = client_acquire(client, "jobs");
        ASSERT_HAS(
            database_do("EXPLAIN FORMAT=TRADITIONAL UPDATE shedlock SET "
                        "lock_until=NOW() "
                        "WHERE name=_utf8mb4 x'6772c3b6c39f652f6a6f6273' "
                        "AND locked_by=_utf8mb4 x'61'"),
            "PRIMARY");
        ASSERT_OK(hf_verify(hold, &err), &err);
        client_release(hold);
    }
}

/* A TIMESTAMP is written in the zone of the session: theirs is the server's. */
TEST(shedlock, the_zone_of_the_server_is_the_one_of_the_row)
{
    hf_hold *hold = database_shedlock_after("SET GLOBAL time_zone='+05:00'");

    ASSERT_STREQ(database_do("SELECT COUNT(*) FROM shedlock WHERE lock_until "
                             "BETWEEN UTC_TIMESTAMP()+INTERVAL 30 SECOND AND "
                             "UTC_TIMESTAMP()+INTERVAL 62 SECOND"),
                 "1\n");
    (void)database_do("SET GLOBAL time_zone='+00:00'");
    client_release(hold);
}

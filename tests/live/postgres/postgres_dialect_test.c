/* SPDX-License-Identifier: MIT */
/* postgres_dialect_test.c - the tables of others on PostgreSQL. */
#include "live/sql/database.h"

/* Leases are of the server's clock in UTC, whatever the zone of the session. */
TEST(shedlock, the_zone_of_the_session_does_not_matter)
{
    hf_hold *hold = database_shedlock_after(
        "ALTER DATABASE postgres SET timezone = 'Asia/Tokyo'");

    ASSERT_STREQ(database_do("SELECT count(*) FROM shedlock WHERE lock_until "
                             "BETWEEN %s + interval '30 seconds' AND %s + "
                             "interval '62 seconds'",
                             database_utc, database_utc),
                 "1\n");
    client_release(hold);
}

/* SPDX-License-Identifier: MIT */
/* Who holds a lock, from the lines that engines keep. */
#include "engines/common/holder.h"

#include "base/world.h"
#include "test.h"

static hf_lock_info read_who(const char *text)
{
    static char copy[128];
    hf_lock_info info = {0};
    char *at = copy;

    hf__text_copy(copy, sizeof(copy), text);
    hf__holder_read(&at, &info);
    return info;
}

static void assert_who(const char *text, const hf_lock_info *wanted,
                       const char *shown)
{
    hf_lock_info info = read_who(text);
    char name[64];

    ASSERT_STREQ(info.host, wanted->host);
    ASSERT_EQ(info.pid, wanted->pid);
    ASSERT_STREQ(info.owner, wanted->owner);
    ASSERT_STREQ(info.note, wanted->note);
    hf__holder_name(&info, name, sizeof(name));
    ASSERT_STREQ(name, shown);
}

TEST(holder, has_host_process_owner_and_note)
{
    assert_who(
        "db1\n4211\nworker\nvacuum",
        &(hf_lock_info){
            .host = "db1", .pid = 4211, .owner = "worker", .note = "vacuum"},
        "db1:4211 (worker), \"vacuum\"");
}

TEST(holder, without_a_note_has_no_quotes)
{
    assert_who("db1\n4211\nworker\n",
               &(hf_lock_info){
                   .host = "db1", .pid = 4211, .owner = "worker", .note = ""},
               "db1:4211 (worker)");
}

TEST(holder, an_age_is_never_below_zero_whatever_a_record_says)
{
    int64_t now_ms = hf__world->wall_us() / 1000;

    ASSERT_GE(hf__holder_age_ms(now_ms - 5), 5);
    ASSERT_EQ(hf__holder_age_ms(now_ms + 60000), 0);
    ASSERT_EQ(hf__holder_age_ms(INT64_MAX), 0);
    ASSERT_EQ(hf__holder_age_ms(INT64_MIN), -1);
    ASSERT_GT(hf__holder_age_ms(0), 0);
}

TEST(holder, that_ends_early_or_is_none_is_empty_from_there)
{
    hf_lock_info info = read_who("db1\nnobody");
    char name[8];

    assert_who("db1\nnobody",
               &(hf_lock_info){.host = "db1", .owner = "", .note = ""},
               "db1:0 ()");
    hf__holder_name(&info, name, sizeof(name));
    ASSERT_STREQ(name, "db1:0 (");
    ASSERT_STREQ(read_who("").host, "");
}

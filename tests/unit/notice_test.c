/* SPDX-License-Identifier: MIT */
#include "core/notice.h"

#include "test.h"

static struct hf__notice_wait sample(void)
{
    struct hf__notice_wait wait = {
        .process = UINT64_MAX,
        .owner = 7,
        .serial = 0,
        .since = 1700000000000000,
        .store = 0xabc,
        .mode = HF_SHARED,
        .breaks = true,
        .holds_n = 2,
        .holds = {{.store = 0xabc, .hash = 5, .token = 6, .mode = HF_EXCLUSIVE},
                  {.store = 9, .hash = 0, .token = 1, .mode = HF_SLOT}},
        .pid = 4711,
        .host = "db1",
        .name = "jobs of \xc3\xa4 week"};

    return wait;
}

static char *written(const struct hf__notice_wait *waits, size_t n)
{
    struct hf__buf buf = {0};
    char *text;

    hf__notice_write(waits, n, &buf);
    text = hf__buf_steal(&buf);
    ASSERT_NOT_NULL(text);
    test_defer(hf__free, text);
    return text;
}

TEST(notice, what_is_written_is_read)
{
    struct hf__notice_wait waits[2] = {sample(), sample()};
    struct hf__notice_wait back[2];
    const char *text;

    waits[1].holds_n = 0;
    waits[1].mode = HF_EXCLUSIVE;
    waits[1].breaks = false;
    text = written(waits, 2);
    ASSERT_STREQ(text, "1 1267 db1\n"
                       "w ffffffffffffffff 7 0 60a24181e4000 abc 1 1 jobs of "
                       "\xc3\xa4 week\n"
                       "h abc 5 6 0\n"
                       "h 9 0 1 2\n"
                       "w ffffffffffffffff 7 0 60a24181e4000 abc 0 0 jobs of "
                       "\xc3\xa4 week\n");
    ASSERT_EQ(hf__notice_read(text, strlen(text), back, 2), 2);
    ASSERT_STREQ(written(back, 2), text);
    ASSERT_STREQ(back[1].host, "db1");
    ASSERT_EQ(back[1].pid, 4711);
    ASSERT_EQ(back[0].holds[1].mode, HF_SLOT);
}

static int reads(const char *text)
{
    static struct hf__notice_wait waits[HF__NOTICE_WAITS];

    return hf__notice_read(text, strlen(text), waits, HF__NOTICE_WAITS);
}

TEST(notice, what_is_not_well_formed_is_not_read)
{
    static const char *const bad[] = {
        "",
        "1",
        "1 1 h",
        "2 1 h\n",
        "1  h\n",
        "1 1 \n",
        "1 8000000000000000 h\n",
        "1 1 h\nh 1 1 1 0\n",
        "1 1 h\nx\n",
        "1 1 h\nw 1 1 1 1 1 0 0 \n",
        "1 1 h\nw 1 1 1 1 1 3 0 n\n",
        "1 1 h\nw 1 1 1 1 1 0 2 n\n",
        "1 1 h\nw 1 1 1 1 1 0 0 n",
        "1 1 h\nw 01 1 1 1 1 0 0 n\n",
        "1 1 h\nw A 1 1 1 1 0 0 n\n",
        "1 1 h\nw 10000000000000000 1 1 1 1 0 0 n\n",
        "1 1 h\nw 1 1 1 1 1 0 0 n\x01\n",
        "1 1 h\nw 1 1 1 1 1 0 0 n\nh 1 1 1\n",
        "1 1 h\nw 1 1 1 1 1 0 0 n\nh 1 1 1 0 \n",
        "1 1 h\nw 1 1 1 1 1 0 0 n\nh 1 1 1 0 0\n",
    };

    ASSERT_EQ(reads("1 1 h\n"), 0);
    ASSERT_EQ(reads("1 1 h\nw 1 1 1 1 1 0 0 n\nh 1 1 1 0\n"), 1);
    for (size_t i = 0; i < HF_COUNT_OF(bad); i++) {
        if (reads(bad[i]) != -1)
            FAIL("was read: %s", bad[i]);
    }
}

TEST(notice, more_than_there_may_be_is_not_read)
{
    struct hf__notice_wait waits[HF__NOTICE_WAITS + 1];
    struct hf__notice_wait back[HF__NOTICE_WAITS + 1];
    const char *text;

    for (size_t i = 0; i < HF_COUNT_OF(waits); i++)
        waits[i] = sample();
    text = written(waits, HF__NOTICE_WAITS);
    ASSERT_EQ(hf__notice_read(text, strlen(text), back, HF_COUNT_OF(back)),
              HF__NOTICE_WAITS);
    ASSERT_EQ(hf__notice_read(text, strlen(text), back, 3), -1);
    text = written(waits, HF__NOTICE_WAITS + 1);
    ASSERT_EQ(hf__notice_read(text, strlen(text), back, HF_COUNT_OF(back)), -1);
}

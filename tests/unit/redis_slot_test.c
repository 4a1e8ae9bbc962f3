/* SPDX-License-Identifier: MIT */
/* redis_slot_test.c - slots of keys, and what nodes say of them. */
#include "engines/redis/slot.h"

#include "test.h"

static uint16_t slot(const char *key)
{
    return hf__slot_of(key, strlen(key));
}

TEST(slot, of_a_key_is_what_the_server_says)
{
    /* CLUSTER KEYSLOT of Redis 7. */
    ASSERT_EQ(slot("123456789"), 0x31c3);
    ASSERT_EQ(slot("foo"), 12182);
    ASSERT_EQ(slot(""), 0);
    ASSERT_EQ(slot("hf:{foo}:q"), slot("foo"));
    ASSERT_EQ(slot("{foo}{bar}"), slot("foo"));
}

TEST(slot, of_empty_or_open_braces_is_that_of_the_whole_key)
{
    ASSERT_NE(slot("{}foo"), slot(""));
    ASSERT_NE(slot("{foo"), slot("foo"));
    ASSERT_EQ(slot("foo{{bar}}zap"), slot("{bar"));
}

static bool redirect(const char *text, struct hf__slot_redirect *to)
{
    struct hf__resp_value error = {
        .type = HF__RESP_ERROR, .text = text, .len = strlen(text)};

    return hf__slot_read_redirect(&error, to);
}

TEST(redirect, tells_slot_and_address)
{
    struct hf__slot_redirect to;

    ASSERT_TRUE(redirect("MOVED 3999 127.0.0.1:6381", &to));
    ASSERT_EQ(to.slot, 3999);
    ASSERT_FALSE(to.ask);
    ASSERT_STREQ(to.to.host, "127.0.0.1");
    ASSERT_EQ(to.to.port, 6381);
    ASSERT_TRUE(redirect("MOVED 0 ::1:6381", &to));
    ASSERT_STREQ(to.to.host, "::1");
    ASSERT_TRUE(redirect("ASK 16383 :7000", &to));
    ASSERT_TRUE(to.ask);
    ASSERT_STREQ(to.to.host, "");
}

TEST(redirect, that_makes_no_sense_is_refused)
{
    static const char *const cases[] = {
        "MOVED",           "MOVED ",
        "MOVED 1",         "MOVED 1 ",
        "MOVED 1 host",    "MOVED 1 host:",
        "MOVED 1 host:0",  "MOVED 1 host:65536",
        "MOVED 1 host:1x", "MOVED 16384 host:1",
        "MOVED -1 host:1", "MOVED 99999999999999999999 host:1",
        "MOVED x host:1",  "ASK",
        "ASK 1",           "ASKED 1 host:1",
    };
    struct hf__slot_redirect to;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        ASSERT_FALSE(redirect(cases[i], &to));
}

static bool range(const char *text, uint16_t *first, uint16_t *last,
                  struct hf__slot_address *at)
{
    struct hf__resp reply = {text, text + strlen(text)};
    struct hf__resp_value head = hf__resp_next(&reply);

    return hf__slot_read_range(&reply, &head, first, last, at);
}

TEST(range, tells_slots_and_master)
{
    struct hf__slot_address at;
    uint16_t first;
    uint16_t last;

    ASSERT_TRUE(range("*3\r\n:5\r\n:9\r\n*2\r\n$1\r\nh\r\n:7000\r\n", &first,
                      &last, &at));
    ASSERT_EQ(first, 5);
    ASSERT_EQ(last, 9);
    ASSERT_STREQ(at.host, "h");
    ASSERT_EQ(at.port, 7000);
    /* A node that does not know its own address. */
    ASSERT_TRUE(
        range("*3\r\n:5\r\n:9\r\n*2\r\n_\r\n:7000\r\n", &first, &last, &at));
    ASSERT_STREQ(at.host, "");
}

TEST(range, that_makes_no_sense_is_refused)
{
    static const char *const cases[] = {
        "*0\r\n",
        ":1\r\n",
        "*3\r\n:9\r\n:5\r\n*2\r\n$1\r\nh\r\n:7000\r\n",
        "*3\r\n:0\r\n:16384\r\n*2\r\n$1\r\nh\r\n:7000\r\n",
        "*3\r\n:-1\r\n:5\r\n*2\r\n$1\r\nh\r\n:7000\r\n",
        "*3\r\n:0\r\n:5\r\n*2\r\n$1\r\nh\r\n:0\r\n",
        "*3\r\n:0\r\n:5\r\n*1\r\n$1\r\nh\r\n",
        "*3\r\n:0\r\n:5\r\n$1\r\nh\r\n",
    };
    struct hf__slot_address at;
    uint16_t first;
    uint16_t last;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        ASSERT_FALSE(range(cases[i], &first, &last, &at));
}

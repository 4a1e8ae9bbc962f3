/* SPDX-License-Identifier: MIT */
/* mysql_packet_test.c - prepared statements on the wire, and their answers. */
#include "engines/mysql/packet.h"
#include "test.h"

#define PARSE(bytes, answer)                                                   \
    hf__mysql_parse_answer(bytes, sizeof(bytes) - 1, answer)

TEST(execute, without_values)
{
    static const char want[] = "\x0a\0\0\0\x17\x01\x02\0\0\0\x01\0\0\0";
    struct hf__buf buf = {0};

    hf__mysql_put_execute(&buf, 0x0201, /* typed= */ false, NULL, NULL, 0);
    ASSERT_EQ(buf.len, sizeof(want) - 1);
    ASSERT_MEM_EQ(buf.text, want, buf.len);
    hf__buf_release(&buf);
}

TEST(execute, tells_types_once)
{
    static const char first[] =
        "\x1c\0\0\0\x17\x07\0\0\0\0\x01\0\0\0\0\x01\xfc\0\x08\x80"
        "\x03"
        "abc\x02\x01\0\0\0\0\0\x80";
    static const char second[] = "\x18\0\0\0\x17\x07\0\0\0\0\x01\0\0\0\0\0"
                                 "\x03"
                                 "abc\x02\x01\0\0\0\0\0\x80";
    const struct hf__mysql_param params[] = {
        {.at = 2, .len = 3}, {.is_number = true, .number = 0x8000000000000102}};
    struct hf__buf buf = {0};

    hf__mysql_put_execute(&buf, 7, /* typed= */ false, "xyabcz", params, 2);
    ASSERT_EQ(buf.len, sizeof(first) - 1);
    ASSERT_MEM_EQ(buf.text, first, buf.len);
    buf.len = 0;
    hf__mysql_put_execute(&buf, 7, /* typed= */ true, "xyabcz", params, 2);
    ASSERT_EQ(buf.len, sizeof(second) - 1);
    ASSERT_MEM_EQ(buf.text, second, buf.len);
    hf__buf_release(&buf);
}

TEST(execute, lengths_of_every_size)
{
    static const struct {
        size_t len;
        const char *written;
        size_t n;
    } cases[] = {{0, "\0", 1},
                 {250, "\xfa", 1},
                 {251, "\xfc\xfb\0", 3},
                 {0xffff, "\xfc\xff\xff", 3},
                 {0x10000, "\xfd\0\0\x01", 4}};
    static char bytes[0x10000];

    for (size_t i = 0; i < HF_COUNT_OF(cases); i++) {
        const struct hf__mysql_param param = {.len = cases[i].len};
        size_t before = 4 + 10 + 2;
        struct hf__buf buf = {0};

        hf__mysql_put_execute(&buf, 1, /* typed= */ true, bytes, &param, 1);
        ASSERT_EQ(buf.len, before + cases[i].n + cases[i].len);
        ASSERT_MEM_EQ(buf.text + before, cases[i].written, cases[i].n);
        ASSERT_EQ((uint8_t)buf.text[0], (buf.len - 4) & 0xff);
        ASSERT_EQ((uint8_t)buf.text[2], (buf.len - 4) >> 16);
        hf__buf_release(&buf);
    }
}

TEST(answer, done)
{
    struct hf__mysql_answer answer;

    ASSERT_EQ(PARSE("\x07\0\0\x01\0\x02\x05\x03\0\0\0", &answer),
              HF__MYSQL_WHOLE);
    ASSERT_EQ(answer.code, 0U);
    ASSERT_EQ(answer.affected, 2);
    ASSERT_EQ(answer.number, 5);
    ASSERT_TRUE(answer.in_transaction);
    ASSERT_EQ(PARSE("\x12\0\0\x01\0\xfc\x01\x02\xfe\1\2\3\4\5\6\7\x08\x02\0\0\0"
                    "x",
                    &answer),
              HF__MYSQL_WHOLE);
    ASSERT_EQ(answer.affected, 0x0201);
    ASSERT_EQ(answer.number, 0x0807060504030201);
    ASSERT_FALSE(answer.in_transaction);
}

TEST(answer, error)
{
    struct hf__mysql_answer answer;

    ASSERT_EQ(PARSE("\x0d\0\0\x01\xff\x9a\x06#22003full", &answer),
              HF__MYSQL_WHOLE);
    ASSERT_EQ(answer.code, 1690U);
    ASSERT_EQ(answer.text_len, 4);
    ASSERT_MEM_EQ(answer.text, "full", 4);
    ASSERT_EQ(PARSE("\x03\0\0\x01\xff\x10\x04", &answer), HF__MYSQL_WHOLE);
    ASSERT_EQ(answer.code, 1040U);
    ASSERT_EQ(answer.text_len, 0);
}

TEST(answer, every_beginning_wants_more)
{
    static const char text[] = "\x0d\0\0\x01\xff\x9a\x06#22003full";
    struct hf__mysql_answer answer;

    for (size_t n = 0; n < sizeof(text) - 1; n++)
        ASSERT_EQ(hf__mysql_parse_answer(text, n, &answer), HF__MYSQL_MORE);
}

TEST(answer, nonsense_is_refused)
{
    struct hf__mysql_answer answer;

    /* Out of turn, too long, rows, nothing, two of them. */
    ASSERT_EQ(PARSE("\x07\0\0\x02\0\0\0\0\0\0\0", &answer), HF__MYSQL_BAD);
    ASSERT_EQ(PARSE("\xff\xff\xff\x01", &answer), HF__MYSQL_BAD);
    ASSERT_EQ(PARSE("\x01\0\0\x01\x01", &answer), HF__MYSQL_BAD);
    ASSERT_EQ(PARSE("\0\0\0\x01", &answer), HF__MYSQL_BAD);
    ASSERT_EQ(PARSE("\x03\0\0\x01\xff\x10\x04\x03", &answer), HF__MYSQL_BAD);
    /* Cut short inside, and an error that is none. */
    ASSERT_EQ(PARSE("\x02\0\0\x01\0\xfe", &answer), HF__MYSQL_BAD);
    ASSERT_EQ(PARSE("\x02\0\0\x01\xff\x10", &answer), HF__MYSQL_BAD);
    ASSERT_EQ(PARSE("\x06\0\0\x01\xff\x9a\x06#22", &answer), HF__MYSQL_BAD);
    ASSERT_EQ(PARSE("\x03\0\0\x01\xff\0\0", &answer), HF__MYSQL_BAD);
}

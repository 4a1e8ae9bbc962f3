/* SPDX-License-Identifier: MIT */
/* etcd_message_test.c - messages of protobuf, and what gRPC puts around them. */
#include "engines/etcd/frame.h"

#include <stdlib.h>

#include "test.h"

#define READ(text)                                                             \
    (struct hf__pb)                                                            \
    {                                                                          \
        (text), sizeof(text) - 1                                               \
    }

static void check_bytes(struct hf__buf *buf, const char *wanted, size_t len)
{
    ASSERT_FALSE(hf__buf_failed(buf));
    ASSERT_EQ(buf->len, len);
    ASSERT_MEM_EQ(hf__buf_text(buf), wanted, len);
    hf__buf_release(buf);
}

/* ---- writing ----------------------------------------------------------- */

TEST(message, of_numbers_is_written_as_the_format_says)
{
    struct hf__buf buf = {0};

    hf__pb_add_number(&buf, 1, 0);
    hf__pb_add_number(&buf, 3, 150);
    hf__pb_add_number(&buf, 64, 1);
    hf__pb_add_number(&buf, 2, UINT64_MAX);
    check_bytes(&buf,
                "\x08\x00\x18\x96\x01\x80\x04\x01\x10"
                "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
                19);
}

TEST(message, of_bytes_may_have_any)
{
    struct hf__buf buf = {0};

    hf__pb_add_bytes(&buf, 1, "a\0\xff", 3);
    hf__pb_add_bytes(&buf, 2, "", 0);
    check_bytes(&buf, "\x0a\x03\x61\x00\xff\x12\x00", 7);
}

/* The length of what is inside needs one byte, two, or three. */
TEST(message, inside_another_has_its_length_before_it)
{
    static const size_t lens[] = {0, 1, 120, 124, 125, 126, 16380, 70000};
    static char bytes[70000];

    memset(bytes, 'x', sizeof(bytes));
    for (size_t i = 0; i < HF_COUNT_OF(lens); i++) {
        struct hf__buf buf = {0};
        size_t outer = hf__pb_begin(&buf, 5);
        size_t inner = hf__pb_begin(&buf, 7);
        struct hf__pb whole;
        struct hf__pb found;

        hf__pb_add_bytes(&buf, 9, bytes, lens[i]);
        hf__pb_end(&buf, inner);
        hf__pb_end(&buf, outer);
        hf__pb_add_number(&buf, 6, 42);
        ASSERT_FALSE(hf__buf_failed(&buf));
        whole = (struct hf__pb){buf.text, buf.len};
        ASSERT_TRUE(hf__pb_whole(whole));
        ASSERT_EQ(hf__pb_number(whole, 6), 42);
        found = hf__pb_inside(hf__pb_inside(hf__pb_inside(whole, 5), 7), 9);
        ASSERT_TRUE(hf__pb_there(found));
        ASSERT_EQ(found.len, lens[i]);
        ASSERT_MEM_EQ(found.bytes, bytes, lens[i]);
        hf__buf_release(&buf);
    }
}

/* ---- reading ----------------------------------------------------------- */

TEST(message, that_is_not_there_has_nothing_in_it)
{
    struct hf__pb nothing = {0};
    size_t at = 0;
    char text[8];

    ASSERT_FALSE(hf__pb_there(nothing));
    ASSERT_FALSE(hf__pb_whole(nothing));
    ASSERT_EQ(hf__pb_number(nothing, 1), 0);
    ASSERT_FALSE(hf__pb_there(hf__pb_inside(nothing, 1)));
    ASSERT_FALSE(hf__pb_there(hf__pb_next(nothing, 1, &at)));
    hf__pb_text(nothing, text, sizeof(text));
    ASSERT_STREQ(text, "");
}

TEST(message, that_is_empty_is_there)
{
    struct hf__pb empty = READ("");

    ASSERT_TRUE(hf__pb_there(empty));
    ASSERT_TRUE(hf__pb_whole(empty));
}

TEST(message, tells_the_last_of_several_and_each_in_turn)
{
    struct hf__pb message = READ("\x0a\x01\x61\x10\x01\x0a\x01\x62\x10\x02");
    struct hf__pb part;
    size_t at = 0;

    ASSERT_EQ(hf__pb_number(message, 2), 2);
    ASSERT_MEM_EQ(hf__pb_inside(message, 1).bytes, "b", 1);
    part = hf__pb_next(message, 1, &at);
    ASSERT_MEM_EQ(part.bytes, "a", 1);
    part = hf__pb_next(message, 1, &at);
    ASSERT_MEM_EQ(part.bytes, "b", 1);
    ASSERT_FALSE(hf__pb_there(hf__pb_next(message, 1, &at)));
    ASSERT_FALSE(hf__pb_there(hf__pb_next(message, 1, &at)));
}

TEST(message, of_a_later_version_is_read)
{
    /* A fixed 32, a fixed 64, a field far off, and a number we look for. */
    struct hf__pb message =
        READ("\x0d\x01\x02\x03\x04\x11\x01\x02\x03\x04\x05\x06\x07\x08"
             "\xf8\xff\x03\x05\x18\x07");

    ASSERT_TRUE(hf__pb_whole(message));
    ASSERT_EQ(hf__pb_number(message, 3), 7);
    ASSERT_EQ(hf__pb_number(message, 1), 0); /* of another shape */
    ASSERT_FALSE(hf__pb_there(hf__pb_inside(message, 2)));
}

TEST(message, that_is_not_well_formed_is_known)
{
    static const struct hf__pb bad[] = {
        {"\x08", 1},                                              /* cut */
        {"\x80", 1},                                              /* cut */
        {"\x0a\x05\x61", 3},                                      /* cut */
        {"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11},     /* too long */
        {"\x08\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00", 12}, /* too long */
        {"\x00\x01", 2},                                          /* no field */
        {"\x0b\x0c", 2},                                          /* a group */
        {"\x0f", 1},                                              /* no shape */
        {"\x0d\x01\x02", 3},                                      /* cut */
        {"\x11\x01\x02", 3},                                      /* cut */
    };

    for (size_t i = 0; i < HF_COUNT_OF(bad); i++) {
        size_t at = 0;

        ASSERT_FALSE(hf__pb_whole(bad[i]));
        ASSERT_EQ(hf__pb_number(bad[i], 1), 0);
        ASSERT_FALSE(hf__pb_there(hf__pb_inside(bad[i], 1)));
        ASSERT_FALSE(hf__pb_there(hf__pb_next(bad[i], 1, &at)));
        ASSERT_EQ(at, bad[i].len);
    }
}

TEST(text, for_people_has_nothing_that_moves_a_terminal)
{
    char text[6];

    hf__pb_text(READ("a\x1b[\xc3z!more"), text, sizeof(text));
    ASSERT_STREQ(text, "a?[?z");
}

/* ---- frames ------------------------------------------------------------ */

TEST(frame, is_read_when_all_of_it_has_come)
{
    static const char come[] = "\0\0\0\0\x02hi\0\0\0\0\0\0\0\0\0\x01!";
    size_t len = sizeof(come) - 1;
    struct hf__pb message;
    size_t at = 0;

    for (size_t cut = 0; cut < 7; cut++)
        ASSERT_EQ(hf__frame_next((struct hf__pb){come, cut}, &at, &message), 0);
    ASSERT_EQ(hf__frame_next((struct hf__pb){come, len}, &at, &message), 1);
    ASSERT_EQ(message.len, 2);
    ASSERT_MEM_EQ(message.bytes, "hi", 2);
    ASSERT_EQ(hf__frame_next((struct hf__pb){come, len}, &at, &message), 1);
    ASSERT_EQ(message.len, 0);
    ASSERT_EQ(hf__frame_next((struct hf__pb){come, len}, &at, &message), 1);
    ASSERT_MEM_EQ(message.bytes, "!", 1);
    ASSERT_EQ(at, len);
}

TEST(frame, that_is_compressed_or_too_long_is_refused)
{
    struct hf__pb message;
    size_t at = 0;

    ASSERT_EQ(hf__frame_next(READ("\x01\0\0\0\0"), &at, &message), -1);
    ASSERT_EQ(hf__frame_next(READ("\0\xff\xff\xff\xff"), &at, &message), -1);
    ASSERT_EQ(hf__frame_next(READ("\0\x01\0\0\x01"), &at, &message), -1);
    ASSERT_EQ(at, 0);
}

TEST(frame, that_is_written_can_be_read)
{
    static const size_t lens[] = {0, 255, 256, 65536, HF__FRAME_MOST};
    struct hf__pb message;

    for (size_t i = 0; i < HF_COUNT_OF(lens); i++) {
        char *bytes = calloc(1, HF__FRAME_HEAD + lens[i]);
        size_t at = 0;

        ASSERT_NOT_NULL(bytes);
        hf__frame_head(bytes, lens[i]);
        ASSERT_EQ(
            hf__frame_next((struct hf__pb){bytes, HF__FRAME_HEAD + lens[i]},
                           &at, &message),
            1);
        ASSERT_EQ(message.len, lens[i]);
        free(bytes);
    }
}

/* ---- the end of a call ------------------------------------------------- */

TEST(code, is_a_number_that_grpc_knows)
{
    static const struct {
        const char *value;
        int code;
    } cases[] = {{"0", 0},  {"5", 5},   {"16", 16}, {"", 2},
                 {"17", 2}, {"-1", 2},  {"1x", 2},  {" 0", 2},
                 {"00", 0}, {"000", 2}, {"999", 2}, {"x", 2}};

    for (size_t i = 0; i < HF_COUNT_OF(cases); i++)
        ASSERT_EQ(hf__frame_code(cases[i].value, strlen(cases[i].value)),
                  cases[i].code);
}

TEST(text, of_an_error_has_its_percent_signs_undone)
{
    static const struct {
        const char *value;
        const char *text;
    } cases[] = {{"no leader", "no leader"},
                 {"100%25 full", "100% full"},
                 {"a%2Fb%2fc", "a/b/c"},
                 {"50%", "50%"},
                 {"50%2", "50%2"},
                 {"%zz", "%zz"},
                 {"a%0ab%1b%C3%A4", "a?b???"},
                 {"0123456789abcdefghi", "0123456789abcde"}};

    for (size_t i = 0; i < HF_COUNT_OF(cases); i++) {
        char text[16];

        hf__frame_text(cases[i].value, strlen(cases[i].value), text,
                       sizeof(text));
        ASSERT_STREQ(text, cases[i].text);
    }
}

/* SPDX-License-Identifier: MIT */
/* etcd_json_test.c - answers of etcd: what is read, and what is refused. */
#include "engines/etcd/json.h"

#include "test.h"

static struct hf__json read_text(const char *text)
{
    return hf__json_read(text, strlen(text));
}

TEST(json, one_value_is_read_and_anything_else_refused)
{
    static const char *const good[] = {
        "{}",       " [ ] ",    "\"\"",
        "0",        "-12.5e+3", "true",
        "false",    "null",     "{\"a\":{\"b\":[1,2,{\"c\":\"\\u00e4\\\"\"}]}}",
        "[1 , 2]\n"};
    static const char *const bad[] = {"",
                                      " ",
                                      "{",
                                      "}",
                                      "{]",
                                      "[1,]",
                                      "{,}",
                                      "{\"a\"}",
                                      "{1:2}",
                                      "\"",
                                      "\"\\x\"",
                                      "\"\\u12g4\"",
                                      "tru",
                                      "1.",
                                      "1e",
                                      "-",
                                      "+1",
                                      "{} {}",
                                      "nul",
                                      "'a'",
                                      "[1 2]",
                                      "\"\n\"",
                                      "{\"a\":}",
                                      "\"\\",
                                      "[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]"};

    for (size_t i = 0; i < HF_COUNT_OF(good); i++)
        ASSERT_NE(read_text(good[i]).type, HF__JSON_NONE);
    for (size_t i = 0; i < HF_COUNT_OF(bad); i++) {
        if (read_text(bad[i]).type != HF__JSON_NONE)
            FAIL("was read: %s", bad[i]);
    }
}

TEST(json, members_and_elements_are_found)
{
    struct hf__json root = read_text(
        "{\"x\":{\"a\":1},\"header\":{\"revision\":\"42\"},\"list\":[7,\"8\","
        "{\"k\":[]}],\"done\":true}");
    struct hf__json list = hf__json_member(root, "list");
    size_t at = 0;

    ASSERT_EQ(hf__json_number(hf__json_path(root, "header.revision")), 42);
    ASSERT_EQ(hf__json_number(hf__json_path(root, "x.a")), 1);
    ASSERT_TRUE(hf__json_true(hf__json_member(root, "done")));
    ASSERT_EQ(hf__json_number(hf__json_next(list, &at)), 7);
    ASSERT_EQ(hf__json_number(hf__json_next(list, &at)), 8);
    ASSERT_EQ(hf__json_next(list, &at).type, HF__JSON_OBJECT);
    ASSERT_EQ(hf__json_next(list, &at).type, HF__JSON_NONE);
    ASSERT_EQ(hf__json_next(list, &at).type, HF__JSON_NONE);
}

TEST(json, what_is_not_there_is_harmless)
{
    struct hf__json root = read_text("{\"a\":[],\"b\":\"text\"}");
    struct hf__json none = hf__json_member(root, "c");
    char text[8];
    size_t at = 0;

    ASSERT_EQ(none.type, HF__JSON_NONE);
    ASSERT_EQ(hf__json_number(none), 0);
    ASSERT_FALSE(hf__json_true(none));
    ASSERT_EQ(hf__json_next(none, &at).type, HF__JSON_NONE);
    ASSERT_EQ(hf__json_next(hf__json_member(root, "a"), &at).type,
              HF__JSON_NONE);
    ASSERT_EQ(hf__json_path(root, "b.c.d").type, HF__JSON_NONE);
    hf__json_text(none, text, sizeof(text));
    ASSERT_STREQ(text, "");
    ASSERT_EQ(hf__base64_read(none, text, sizeof(text)), -1);
}

TEST(json, numbers_that_do_not_fit_are_zero)
{
    ASSERT_EQ(hf__json_number(read_text("\"9223372036854775807\"")), INT64_MAX);
    ASSERT_EQ(hf__json_number(read_text("\"9223372036854775808\"")), 0);
    ASSERT_EQ(hf__json_number(read_text("-17")), 0);
    ASSERT_EQ(hf__json_unsigned(read_text("\"10501334649042878790\"")),
              UINT64_C(10501334649042878790));
    ASSERT_EQ(hf__json_unsigned(read_text("18446744073709551616")), 0);
    ASSERT_EQ(hf__json_number(read_text("1.5")), 0);
    ASSERT_EQ(hf__json_number(read_text("\"12a\"")), 0);
    ASSERT_EQ(hf__json_number(read_text("\"\"")), 0);
    ASSERT_EQ(hf__json_number(read_text("\"-\"")), 0);
}

TEST(json, texts_are_fit_for_people)
{
    char text[16];

    hf__json_text(read_text("\"a\\\"b\\nc\\u0000d\\\\\""), text, sizeof(text));
    ASSERT_STREQ(text, "a\"b c d\\");
    hf__json_text(read_text("\"0123456789abcdefghij\""), text, sizeof(text));
    ASSERT_STREQ(text, "0123456789abcde");
    hf__json_text(read_text("\"\x1b[31m\xc3\xa4\""), text, sizeof(text));
    ASSERT_STREQ(text, "");
}

TEST(base64, of_any_bytes_is_read_back)
{
    unsigned char bytes[256];
    char back[256];

    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (unsigned char)(255 - i);
    for (size_t len = 0; len < sizeof(bytes); len++) {
        struct hf__buf buf = {0};
        struct hf__json value;

        hf__buf_add(&buf, "\"");
        hf__base64_add(&buf, bytes, len);
        hf__buf_add(&buf, "\"");
        value = hf__json_read(buf.text, buf.len);
        ASSERT_EQ(hf__base64_read(value, back, sizeof(back)), (long)len);
        ASSERT_EQ(memcmp(back, bytes, len), 0);
        ASSERT_EQ(hf__base64_read(value, back, len > 0 ? len - 1 : 0),
                  len > 0 ? -1 : 0);
        hf__buf_release(&buf);
    }
}

TEST(base64, that_is_none_is_refused)
{
    static const char *const bad[] = {"\"a\"",    "\"====\"", "\"ab=c\"",
                                      "\"a===\"", "\"****\"", "12"};
    char bytes[16];

    for (size_t i = 0; i < HF_COUNT_OF(bad); i++) {
        if (hf__base64_read(read_text(bad[i]), bytes, sizeof(bytes)) != -1)
            FAIL("was read: %s", bad[i]);
    }
}

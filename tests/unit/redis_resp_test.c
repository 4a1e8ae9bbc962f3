/* SPDX-License-Identifier: MIT */
/* redis_resp_test.c - the Redis protocol: what is a message, and what is not. */
#include "engines/redis/resp.h"

#include "test.h"

static int scan(const char *bytes, size_t len)
{
    struct hf__resp_scan state = {0};

    return hf__resp_scan(&state, bytes, len);
}

static int scan_text(const char *text)
{
    return scan(text, strlen(text));
}

/* Byte by byte gives the same as at once, and no byte too early. */
static void check_whole(const char *text)
{
    struct hf__resp_scan state = {0};
    size_t len = strlen(text);

    for (size_t i = 0; i < len; i++)
        ASSERT_EQ(hf__resp_scan(&state, text, i), HF__RESP_MORE);
    ASSERT_EQ(hf__resp_scan(&state, text, len), HF__RESP_WHOLE);
    ASSERT_EQ(state.at, len);
}

TEST(resp, finds_the_end_of_every_kind_of_message)
{
    static const char *const messages[] = {
        "+OK\r\n",
        "-ERR no\r\n",
        ":-12\r\n",
        "$3\r\nabc\r\n",
        "$0\r\n\r\n",
        "$-1\r\n",
        "_\r\n",
        "#t\r\n",
        ",3.14\r\n",
        "(123456789012345678901234567890\r\n",
        "=7\r\ntxt:abc\r\n",
        "!5\r\nERR x\r\n",
        "*0\r\n",
        "*-1\r\n",
        "*2\r\n:1\r\n*1\r\n$1\r\nx\r\n",
        "%1\r\n+a\r\n*2\r\n:1\r\n:2\r\n",
        "~2\r\n+a\r\n+b\r\n",
        ">3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nm\r\n",
        "|1\r\n+a\r\n+b\r\n:1\r\n",
        "|0\r\n|2\r\n+a\r\n*1\r\n:2\r\n+b\r\n_\r\n$-1\r\n",
        "*2\r\n|1\r\n+a\r\n|1\r\n+x\r\n+y\r\n+b\r\n:1\r\n|0\r\n:2\r\n",
    };

    for (size_t i = 0; i < sizeof(messages) / sizeof(messages[0]); i++)
        check_whole(messages[i]);
}

TEST(resp, does_not_read_beyond_the_first_message)
{
    struct hf__resp_scan state = {0};
    const char *two = "+OK\r\n:1\r\n";

    ASSERT_EQ(hf__resp_scan(&state, two, strlen(two)), HF__RESP_WHOLE);
    ASSERT_EQ(state.at, 5);
}

TEST(resp, refuses_what_is_not_the_protocol)
{
    static const char *const messages[] = {
        "HTTP/1.1 400 Bad Request\r\n",
        "+OK\n",
        "\r\n",
        ":12a\r\n",
        ":\r\n",
        ":9223372036854775808\r\n",
        "$-2\r\n",
        "$abc\r\n",
        "$99999999999\r\n",
        "$3\r\nabcd\r\n",
        "*1000000000\r\n",
        "*-2\r\n",
        "%9223372036854775807\r\n",
        "#x\r\n",
        "_x\r\n",
        "|-1\r\n:1\r\n",
        "|1000000000\r\n",
        "|1\r\n|1\r\n|1\r\n|1\r\n|1\r\n|1\r\n|1\r\n|1\r\n|1\r\n:1\r\n",
        "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n",
    };

    for (size_t i = 0; i < sizeof(messages) / sizeof(messages[0]); i++) {
        if (scan_text(messages[i]) != HF__RESP_BAD)
            FAIL("believed: %s", messages[i]);
    }
}

TEST(resp, refuses_a_line_without_end)
{
    static char line[HF__RESP_LINE + 1];

    memset(line, 'x', sizeof(line));
    line[0] = '+';
    ASSERT_EQ(scan(line, HF__RESP_LINE - 1), HF__RESP_MORE);
    ASSERT_EQ(scan(line, HF__RESP_LINE), HF__RESP_BAD);
}

TEST(resp, walks_through_a_message)
{
    const char *text =
        "*5\r\n$3\r\nabc\r\n:-7\r\n_\r\n#t\r\n%1\r\n+k\r\n:1\r\n";
    struct hf__resp resp = {text, text + strlen(text)};
    struct hf__resp_value value = hf__resp_next(&resp);

    ASSERT_EQ(value.type, HF__RESP_LIST);
    ASSERT_EQ(value.count, 5);
    value = hf__resp_next(&resp);
    ASSERT_TRUE(hf__resp_is(&value, "abc"));
    ASSERT_FALSE(hf__resp_is(&value, "ab"));
    value = hf__resp_next(&resp);
    ASSERT_EQ(value.number, -7);
    ASSERT_EQ(hf__resp_number(&value, 0), -7);
    ASSERT_EQ(hf__resp_next(&resp).type, HF__RESP_NULL);
    ASSERT_EQ(hf__resp_next(&resp).number, 1);
    value = hf__resp_next(&resp);
    ASSERT_EQ(value.count, 2);
    hf__resp_skip(&resp, &value);
    ASSERT_EQ(hf__resp_next(&resp).type, HF__RESP_END);
}

TEST(resp, skips_attributes_wherever_they_stand)
{
    const char *text = "|1\r\n+ttl\r\n*2\r\n:1\r\n:2\r\n"
                       "*2\r\n|1\r\n+a\r\n|1\r\n+x\r\n+y\r\n+b\r\n:7\r\n"
                       "*1\r\n|0\r\n:8\r\n:9\r\n";
    struct hf__resp resp = {text, text + strlen(text)};
    struct hf__resp again = resp;
    struct hf__resp_scan state = {0};
    struct hf__resp_value value;

    ASSERT_EQ(hf__resp_scan(&state, text, strlen(text)), HF__RESP_WHOLE);
    ASSERT_EQ(state.at, strlen(text) - 4);
    ASSERT_EQ(text[state.begin], '*');
    ASSERT_EQ(text[state.begin + 4], '|');
    value = hf__resp_next(&resp);
    ASSERT_EQ(value.type, HF__RESP_LIST);
    ASSERT_EQ(value.count, 2);
    ASSERT_EQ(hf__resp_next(&resp).number, 7);
    ASSERT_EQ(hf__resp_next(&resp).count, 1);
    ASSERT_EQ(hf__resp_next(&resp).number, 8);
    value = hf__resp_next(&again);
    hf__resp_skip(&again, &value);
    ASSERT_EQ(hf__resp_next(&again).number, 9);
    ASSERT_EQ(hf__resp_next(&again).type, HF__RESP_END);
}

TEST(resp, skips_what_is_inside)
{
    const char *text = "*2\r\n*2\r\n*1\r\n:1\r\n:2\r\n:3\r\n";
    struct hf__resp resp = {text, text + strlen(text)};
    struct hf__resp_value value;

    (void)hf__resp_next(&resp);
    value = hf__resp_next(&resp);
    hf__resp_skip(&resp, &value);
    ASSERT_EQ(hf__resp_next(&resp).number, 3);
}

TEST(resp, reads_numbers_out_of_texts)
{
    const char *text = "$2\r\n42\r\n$2\r\n4x\r\n:-9223372036854775808\r\n";
    struct hf__resp resp = {text, text + strlen(text)};
    struct hf__resp_value value = hf__resp_next(&resp);

    ASSERT_EQ(hf__resp_number(&value, -1), 42);
    value = hf__resp_next(&resp);
    ASSERT_EQ(hf__resp_number(&value, -1), -1);
    value = hf__resp_next(&resp);
    ASSERT_EQ(value.number, INT64_MIN);
}

TEST(resp, writes_commands)
{
    struct hf__buf buf = {0};

    hf__resp_head(&buf, 4);
    hf__resp_arg_text(&buf, "SET");
    hf__resp_arg(&buf, "a\0b", 3);
    hf__resp_arg_number(&buf, -120);
    hf__resp_arg(&buf, "", 0);
    ASSERT_MEM_EQ(buf.text,
                  "*4\r\n$3\r\nSET\r\n$3\r\na\0b\r\n$4\r\n-120\r\n$0\r\n\r\n",
                  buf.len);
    hf__buf_release(&buf);
}

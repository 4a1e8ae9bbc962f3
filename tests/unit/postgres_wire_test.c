/* SPDX-License-Identifier: MIT */
/* postgres_wire_test.c - PostgreSQL's messages, and the answers they make. */
#include "engines/postgres/wire.h"
#include "test.h"

/* ---- to the server ------------------------------------------------------- */

#define ASSERT_WRITTEN(buf, want)                                              \
    do {                                                                       \
        ASSERT_EQ((buf)->len, sizeof(want) - 1);                               \
        ASSERT_MEM_EQ((buf)->text, want, sizeof(want) - 1);                    \
        hf__buf_release(buf);                                                  \
    } while (0)

TEST(put, a_query)
{
    struct hf__buf buf = {0};

    hf__pg_put_query(&buf, "SELECT 1");
    ASSERT_WRITTEN(&buf, "Q\0\0\0\x0dSELECT 1\0");
}

TEST(put, a_statement_that_gets_a_name)
{
    struct hf__buf buf = {0};

    hf__pg_put_prepare(&buf, "hf_a", "BEGIN");
    ASSERT_WRITTEN(&buf, "P\0\0\0\x11hf_a\0BEGIN\0\0\0");
}

TEST(put, values_of_every_kind)
{
    const char *const values[] = {"abc", "", NULL};
    struct hf__buf buf = {0};

    hf__pg_put_execute(&buf, "hf_a", values, 3);
    ASSERT_WRITTEN(&buf, "B\0\0\0\x1f\0hf_a\0\0\0\0\x03\0\0\0\x03"
                         "abc\0\0\0\0\xff\xff\xff\xff\0\0"
                         "E\0\0\0\x09\0\0\0\0\0");
}

TEST(put, a_sync)
{
    struct hf__buf buf = {0};

    hf__pg_put_sync(&buf);
    ASSERT_WRITTEN(&buf, "S\0\0\0\x04");
}

/* ---- from the server ----------------------------------------------------- */

#define NEXT(bytes, message, len)                                              \
    hf__pg_next(bytes, sizeof(bytes) - 1, message, len)

TEST(next, is_whole_or_not_yet_there)
{
    static const char bytes[] = "Z\0\0\0\x05Tx";
    struct hf__pg_message message;
    size_t len;

    for (size_t n = 0; n < 6; n++)
        ASSERT_EQ(hf__pg_next(bytes, n, &message, &len), HF__WIRE_MORE);
    ASSERT_EQ(NEXT(bytes, &message, &len), HF__WIRE_WHOLE);
    ASSERT_TRUE(message.type == HF__WIRE_READY);
    ASSERT_EQ(message.len, 1);
    ASSERT_TRUE(message.body[0] == HF__WIRE_IN_TRANSACTION);
    ASSERT_EQ(len, 6);
}

TEST(next, lengths_that_cannot_be_are_refused)
{
    struct hf__pg_message message;
    size_t len;

    ASSERT_EQ(NEXT("Z\0\0\0\x03", &message, &len), HF__WIRE_BAD);
    ASSERT_EQ(NEXT("D\xff\xff\xff\xff", &message, &len), HF__WIRE_BAD);
    ASSERT_EQ(NEXT("D\x01\0\0\x01", &message, &len), HF__WIRE_BAD);
    ASSERT_EQ(NEXT("D\x01\0\0\0", &message, &len), HF__WIRE_MORE);
}

#define MESSAGE(kind, bytes)                                                   \
    {                                                                          \
        .type = (kind), .body = (bytes), .len = sizeof(bytes) - 1              \
    }

TEST(notification, is_the_last_text)
{
    const struct hf__pg_message whole = MESSAGE('A', "\0\0\0\x07hf_1\0g 1 2\0");
    const struct hf__pg_message cut = MESSAGE('A', "\0\0\0\x07hf_1\0g 1 2");
    const struct hf__pg_message none = MESSAGE('A', "\0\0");

    ASSERT_STREQ(hf__pg_notification(&whole), "g 1 2");
    ASSERT_TRUE(hf__pg_notification(&cut) == NULL);
    ASSERT_TRUE(hf__pg_notification(&none) == NULL);
}

TEST(error, has_a_state_a_text_and_may_be_the_end)
{
    const struct hf__pg_message usual =
        MESSAGE('E', "SFEHLER\0VERROR\0C40P01\0Mdeadlock\0\0");
    const struct hf__pg_message last =
        MESSAGE('E', "VFATAL\0C57P01\0Mgood bye\0\0");
    const struct hf__pg_message cut = MESSAGE('E', "C57");
    struct hf__pg_error error;

    hf__pg_error_read(&usual, &error);
    ASSERT_STREQ(error.text, "deadlock");
    ASSERT_TRUE(hf__pg_error_is(&error, "40P01"));
    ASSERT_TRUE(hf__pg_error_is(&error, "40"));
    ASSERT_FALSE(hf__pg_error_is(&error, "57"));
    ASSERT_FALSE(error.fatal);
    hf__pg_error_read(&last, &error);
    ASSERT_TRUE(error.fatal);
    hf__pg_error_read(&cut, &error);
    ASSERT_STREQ(error.state, "XX000");
    ASSERT_FALSE(hf__pg_error_is(NULL, "57"));
}

/* ---- answers --------------------------------------------------------------- */

static bool add(struct hf__pg_answer *answer, char type, const char *bytes,
                size_t len)
{
    struct hf__pg_message message = {.type = type, .body = bytes, .len = len};

    return hf__pg_answer_add(answer, &message);
}

#define ADD(answer, type, bytes) add(answer, type, bytes, sizeof(bytes) - 1)

static struct hf__pg_answer empty(void)
{
    return (struct hf__pg_answer){0};
}

TEST(answer, keeps_rows_until_it_is_cleared)
{
    struct hf__pg_answer answer = empty();
    const struct hf__pg_result *result = &answer.results[1];

    hf__pg_answer_clear(&answer);
    ASSERT_TRUE(ADD(&answer, 'C', "DELETE 3\0"));
    ASSERT_TRUE(ADD(&answer, 'D', "\0\x02\0\0\0\x02-7\xff\xff\xff\xff"));
    ASSERT_TRUE(ADD(&answer, 'D', "\0\x02\0\0\0\x01x\0\0\0\0"));
    ASSERT_TRUE(ADD(&answer, 'C', "SELECT 2\0"));
    ASSERT_EQ(answer.n, 2);
    ASSERT_EQ(answer.results[0].rows, 0);
    ASSERT_EQ(answer.results[0].changed, 3);
    ASSERT_TRUE(answer.last == result);
    ASSERT_EQ(result->rows, 2);
    ASSERT_EQ(hf__pg_number(result, 0, 0, 5), -7);
    ASSERT_EQ(hf__pg_number(result, 0, 1, 5), 5);
    ASSERT_STREQ(hf__pg_text(result, 0, 1), "");
    ASSERT_STREQ(hf__pg_text(result, 1, 0), "x");
    ASSERT_STREQ(hf__pg_text(result, 2, 0), "");
    ASSERT_STREQ(hf__pg_text(result, 0, 2), "");
    hf__pg_answer_clear(&answer);
    ASSERT_EQ(answer.n, 0);
    ASSERT_EQ(answer.last->rows, 0);
    ASSERT_STREQ(hf__pg_text(answer.last, 0, 0), "");
    hf__pg_answer_release(&answer);
}

TEST(answer, tells_a_commit_from_a_rollback)
{
    struct hf__pg_answer answer = empty();

    hf__pg_answer_clear(&answer);
    ASSERT_TRUE(ADD(&answer, 'C', "COMMIT\0"));
    ASSERT_TRUE(answer.last->committed);
    ASSERT_TRUE(ADD(&answer, 'C', "ROLLBACK\0"));
    ASSERT_FALSE(answer.last->committed);
    hf__pg_answer_release(&answer);
}

TEST(answer, an_error_ends_it)
{
    struct hf__pg_answer answer = empty();

    hf__pg_answer_clear(&answer);
    ASSERT_TRUE(ADD(&answer, 'D', "\0\x01\0\0\0\x01x"));
    ASSERT_TRUE(ADD(&answer, 'E', "C55P03\0Mtaken\0\0"));
    ASSERT_EQ(answer.n, 0);
    ASSERT_STREQ(answer.error->text, "taken");
    hf__pg_answer_clear(&answer);
    ASSERT_TRUE(answer.error == NULL);
    hf__pg_answer_release(&answer);
}

TEST(answer, what_cannot_be_is_refused)
{
    static const struct {
        const char *bytes;
        size_t len;
    } rows[] = {{"", 0},
                {"\0", 1},
                {"\0\x01\0\0\0", 5},
                {"\0\x01\0\0\0\x02x", 7},
                {"\0\x01\0\0\0\x01xy", 8},
                {"\0\x02\0\0\0\x01x", 7}};
    struct hf__pg_answer answer = empty();

    for (size_t i = 0; i < HF_COUNT_OF(rows); i++) {
        hf__pg_answer_clear(&answer);
        ASSERT_FALSE(add(&answer, 'D', rows[i].bytes, rows[i].len));
    }
    hf__pg_answer_clear(&answer);
    ASSERT_TRUE(ADD(&answer, 'D', "\0\x01\0\0\0\x01x"));
    ASSERT_FALSE(ADD(&answer, 'D', "\0\0"));
    hf__pg_answer_clear(&answer);
    ASSERT_FALSE(ADD(&answer, 'C', "SELECT 1"));
    for (int i = 0; i < HF__PG_RESULTS; i++)
        ASSERT_TRUE(ADD(&answer, 'C', "SELECT 0\0"));
    ASSERT_FALSE(ADD(&answer, 'C', "SELECT 0\0"));
    ASSERT_FALSE(ADD(&answer, 'D', "\0\0"));
    hf__pg_answer_release(&answer);
}

/* SPDX-License-Identifier: MIT */
/* error_test.c - codes, their texts, and the making of hf_error. */
#include "base/error.h"

#include "core/log.h"
#include "lib/test.h"

TEST(error, every_code_has_a_name_and_a_text)
{
#define HF_X(name, value, text)                                                \
    ASSERT_STREQ(hf_errname(value), "HF_" #name);                              \
    ASSERT_STREQ(hf_strerror(value), text);
    HF_ERROR_MAP(HF_X)
#undef HF_X
    ASSERT_STREQ(hf_errname(0), "HF_OK");
    ASSERT_STREQ(hf_strerror(0), "success");
}

TEST(error, a_foreign_code_is_never_null)
{
    ASSERT_NOT_NULL(hf_errname(-9999));
    ASSERT_NOT_NULL(hf_strerror(9999));
}

TEST(error, retriable_and_fatal_exclude_each_other)
{
    for (int code = -30; code <= 0; code++)
        ASSERT_FALSE(hf_is_retriable(code) && hf_is_fatal(code));
    ASSERT_EQ(hf_is_retriable(HF_EBUSY), 1);
    ASSERT_EQ(hf_is_retriable(HF_EUNAVAILABLE), 1);
    ASSERT_EQ(hf_is_retriable(HF_EINVAL), 0);
    ASSERT_EQ(hf_is_fatal(HF_ECLOSED), 1);
    ASSERT_EQ(hf_is_fatal(HF_EFORK), 1);
    ASSERT_EQ(hf_is_fatal(HF_EBUSY), 0);
}

TEST(error, the_layout_is_frozen)
{
    ASSERT_EQ(sizeof(hf_error), 256);
    ASSERT_EQ(sizeof(((hf_error *)0)->text), 248);
}

TEST(error, fail_writes_text_and_returns_the_code)
{
    hf_error err;

    ASSERT_EQ(hf__fail(&err, HF_EINVAL, "name: %d bytes", 7), HF_EINVAL);
    ASSERT_EQ(err.code, HF_EINVAL);
    ASSERT_EQ(err.engine_code, 0);
    ASSERT_STREQ(err.text, "name: 7 bytes");
    ASSERT_EQ(hf__fail_engine(&err, HF_ENOSPACE, 28, "disk"), HF_ENOSPACE);
    ASSERT_EQ(err.engine_code, 28);
}

TEST(error, nobody_has_to_pass_an_error)
{
    ASSERT_EQ(hf__fail(NULL, HF_EBUSY, "x"), HF_EBUSY);
    ASSERT_EQ(hf__fail_engine(NULL, HF_EBUSY, 1, "x"), HF_EBUSY);
    ASSERT_EQ(hf__fail_in(NULL, HF_EBUSY, "x"), HF_EBUSY);
}

TEST(error, context_goes_in_front)
{
    hf_error err;

    hf__fail_engine(&err, HF_ENOSPACE, 28, "disk full");
    ASSERT_EQ(hf__fail_in(&err, HF_EINTERNAL, "acquire '%s'", "jobs"),
              HF_ENOSPACE);
    ASSERT_STREQ(err.text, "acquire 'jobs': disk full");
    ASSERT_EQ(err.engine_code, 28);
}

TEST(error, a_long_text_is_cut_between_characters)
{
    char text[400];
    hf_error err;

    memset(text, 'a', sizeof(text));
    memcpy(text + 246, "\xc3\xa4", 2); /* would be split by the end */
    text[sizeof(text) - 1] = '\0';
    hf__fail(&err, HF_EINVAL, "%s", text);
    ASSERT_EQ(strlen(err.text), 246);
    hf__fail_in(&err, HF_EINVAL, "%s", text);
    ASSERT_EQ(strlen(err.text), 246);
}

TEST(error, passing_on_copies_everything)
{
    hf_error from;
    hf_error to;

    hf__fail_engine(&from, HF_EAUTH, 5, "no");
    ASSERT_EQ(hf__fail_pass(&to, &from), HF_EAUTH);
    ASSERT_EQ(to.engine_code, 5);
    ASSERT_STREQ(to.text, "no");
    ASSERT_EQ(hf__fail_pass(NULL, &from), HF_EAUTH);
    ASSERT_EQ(hf__fail_pass(&from, &from), HF_EAUTH);
}

TEST(error, the_version_is_the_headers)
{
    ASSERT_STREQ(hf_library_version(), HF_VERSION_TEXT);
}

struct heard {
    int lines;
    int level;
    char text[1024];
};

static void hear(int level, const char *text, void *ctx)
{
    struct heard *heard = ctx;

    heard->lines++;
    heard->level = level;
    snprintf(heard->text, sizeof(heard->text), "%s", text);
}

static void be_silent(void *unused)
{
    (void)unused;
    hf_set_log(NULL, 0, NULL);
}

/* A line of a client that has no hook of its own. */
static void say(int level, const char *text)
{
    static const struct hf__log_hook none;

    hf__log_line(&none, level, text);
}

TEST(log, is_silent_until_a_hook_is_set)
{
    ASSERT_FALSE(hf__log_on(HF_LOG_ERROR));
    say(HF_LOG_ERROR, "nobody hears this");
}

TEST(log, lines_up_to_the_level_are_heard)
{
    struct heard heard = {0};

    hf_set_log(hear, HF_LOG_WARNING, &heard);
    test_defer(be_silent, NULL);
    ASSERT_TRUE(hf__log_on(HF_LOG_ERROR));
    ASSERT_FALSE(hf__log_on(HF_LOG_INFO));
    say(HF_LOG_INFO, "quiet");
    say(HF_LOG_WARNING, "lost 'jobs'");
    ASSERT_EQ(heard.lines, 1);
    ASSERT_EQ(heard.level, HF_LOG_WARNING);
    ASSERT_STREQ(heard.text, "lost 'jobs'");
}

TEST(log, one_call_is_one_line)
{
    struct heard heard = {0};

    hf_set_log(hear, HF_LOG_DEBUG, &heard);
    test_defer(be_silent, NULL);
    say(HF_LOG_DEBUG, "a\r\nb\tc\x7f");
    ASSERT_STREQ(heard.text, "a  b c ");
}

/* SPDX-License-Identifier: MIT */
/* sql_dialect_test.c - what stands for a name in the tables of others. */
#include "engines/sql/dialect.h"

#include "engines/sql/md5.h"
#include "test.h"

static const char *md5(const char *text, size_t len)
{
    static char hex[33];
    uint8_t digest[16];

    hf__sql_md5(text, len, digest);
    for (size_t i = 0; i < 16; i++)
        (void)snprintf(hex + 2 * i, 3, "%02x", digest[i]);
    return hex;
}

TEST(md5, knows_the_examples_of_the_standard)
{
    ASSERT_STREQ(md5("", 0), "d41d8cd98f00b204e9800998ecf8427e");
    ASSERT_STREQ(md5("abc", 3), "900150983cd24fb0d6963f7d28e17f72");
    ASSERT_STREQ(md5("abcdefghijklmnopqrstuvwxyz", 26),
                 "c3fcd3d76192e4007dfb496cca67e13b");
}

/* Of 55, 56, 63, 64, 65 and 130 letters: where the padding changes. */
TEST(md5, pads_at_every_length)
{
    char text[130];

    memset(text, 'x', sizeof(text));
    ASSERT_STREQ(md5(text, 55), "04364420e25c512fd958a70738aa8f72");
    ASSERT_STREQ(md5(text, 56), "668a72d5ba17f08e62dabcafad6db14b");
    ASSERT_STREQ(md5(text, 63), "7dc2ca208106a2f703567bdff99d8981");
    ASSERT_STREQ(md5(text, 64), "c1bb4f81d892b2d57947682aeb252456");
    ASSERT_STREQ(md5(text, 65), "1bc932052302d074bdec39795fe00cf6");
    ASSERT_STREQ(md5(text, 130), "cfc92f41305ca00c9f9584bf67ae1b54");
}

/* ---- names ----------------------------------------------------------------- */

static struct hf__settings settings;
static char nothing[] = "";

static const struct hf__engine_ops ops = {.name = "sql"};
static struct hf__engine_host settled = {.settings = &settings};
static struct hf__engine engine = {.ops = &ops, .host = &settled};

static const struct hf__sql_dialect *dialect(const char *name)
{
    const struct hf__sql_dialect *found = NULL;
    static char word[32];
    hf_error err;

    (void)snprintf(word, sizeof(word), "%s", name);
    settings.dialect = word;
    settings.prefix = settings.mode = settings.key = nothing;
    settings.owner_column = settings.version_table = nothing;
    settings.column = nothing;
    if (!settings.table)
        settings.table = nothing;
    return hf__sql_dialect_find(&engine, &found, &err) == 0 ? found : NULL;
}

/* The key of @name, or "refused". */
static const char *key(const char *in, const char *name)
{
    static char to[HF__SQL_KEY];
    hf_error err;
    int rc = hf__sql_dialect_key(dialect(in), &settings, name, to, &err);

    if (rc != 0)
        ASSERT_EQ(rc, HF_EINVAL);
    return rc == 0 ? to : "refused";
}

TEST(spring, a_key_is_the_uuid_that_java_makes_of_the_name)
{
    ASSERT_STREQ(key("spring", "my-lock"),
                 "eda23b8c-64b2-3f01-8c10-660455d15168");
}

TEST(spring, a_name_that_is_a_uuid_stands_for_itself)
{
    ASSERT_STREQ(key("spring", "0b6e1d2c-9f3a-4c5d-8e7f-001122334455"),
                 "0b6e1d2c-9f3a-4c5d-8e7f-001122334455");
}

/* Java reads them all as one, and two names would be one lock. */
TEST(spring, other_spellings_of_a_uuid_are_refused)
{
    ASSERT_STREQ(key("spring", "0B6E1D2C-9F3A-4C5D-8E7F-001122334455"),
                 "refused");
    ASSERT_STREQ(key("spring", "1-1-1-1-1"), "refused");
    ASSERT_STREQ(key("spring", "+1-01-001-1-1"), "refused");
    ASSERT_STREQ(key("spring", "\xd9\xa1-1-1-1-1"), "refused");
    ASSERT_TRUE(strcmp(key("spring", "1-1-1-1"), "refused") != 0);
    ASSERT_TRUE(strcmp(key("spring", "1-1-1--1"), "refused") != 0);
    ASSERT_TRUE(strcmp(key("spring", "a-b-c-d-e-f"), "refused") != 0);
    ASSERT_TRUE(strcmp(key("spring", "one-1-1-1-1"), "refused") != 0);
    ASSERT_TRUE(strcmp(key("spring", "-----"), "refused") != 0);
    ASSERT_TRUE(strcmp(key("spring", "0b6e1d2c-9f3a-4c5d-8e7f-0011223344556"),
                       "refused") != 0);
}

TEST(shedlock, a_name_has_64_characters_at_most)
{
    char name[4 * 65 + 1] = "";

    for (int i = 0; i < 64; i++)
        memcpy(name + (size_t)4 * i, "\xf0\x9f\x94\x92", 5);
    ASSERT_STREQ(key("shedlock", name), name);
    memcpy(name + 4 * 64, "x", 2);
    ASSERT_STREQ(key("shedlock", name), "refused");
}

/* ---- rows ------------------------------------------------------------------ */

/* The name whose row @key is of, or "none". */
static const char *name(const char *in, const char *prefix, const char *key)
{
    const struct hf__sql_dialect *found = dialect(in);
    static char words[32];
    static char to[HF_NAME_MAX + 1];

    (void)snprintf(words, sizeof(words), "%s", prefix);
    settings.prefix = words;
    return hf__sql_dialect_name(found, &settings, key, strlen(key), to)
               ? to
               : "none";
}

TEST(row, of_a_name_tells_it_without_the_prefix)
{
    ASSERT_STREQ(name("shedlock", "", "jobs"), "jobs");
    ASSERT_STREQ(name("shedlock", "team/", "team/jobs"), "jobs");
    ASSERT_STREQ(name("spring", "", "0b6e1d2c-9f3a-4c5d-8e7f-001122334455"),
                 "0b6e1d2c-9f3a-4c5d-8e7f-001122334455");
}

/* Its holder is a stranger, whose lock nobody can ask for here. */
TEST(row, that_no_name_would_find_is_none)
{
    char longer[HF_NAME_MAX + 3] = "";

    ASSERT_STREQ(name("shedlock", "", ""), "none");
    ASSERT_STREQ(name("shedlock", "team/", "team/"), "none");
    ASSERT_STREQ(name("shedlock", "team/", "other/jobs"), "none");
    ASSERT_STREQ(name("shedlock", "", "two\nlines"), "none");
    ASSERT_STREQ(name("shedlock", "", "no \xff text"), "none");
    memset(longer, 'x', 65);
    ASSERT_STREQ(name("shedlock", "", longer), "none");
    memset(longer, 'x', sizeof(longer) - 1);
    ASSERT_STREQ(name("shedlock", "", longer), "none");
    ASSERT_STREQ(name("spring", "", "jobs"), "none");
    ASSERT_STREQ(name("spring", "", "0B6E1D2C-9F3A-4C5D-8E7F-001122334455"),
                 "none");
}

TEST(row, of_a_digest_has_no_prefix)
{
    hf_error err;

    settings.prefix = nothing;
    ASSERT_EQ(hf__sql_dialect_list(dialect("spring"), &settings, "", &err), 0);
    ASSERT_EQ(hf__sql_dialect_list(dialect("spring"), &settings, "a", &err),
              HF_EUNSUPPORTED);
    ASSERT_EQ(hf__sql_dialect_list(dialect("shedlock"), &settings, "a", &err),
              0);
}

/* ---- tables ---------------------------------------------------------------- */

static const char *text(const char *in, const char *table)
{
    static const char *const texts[] = {"a @ b @"};
    static char copy[128];
    const char *answer = "refused";
    char *to = NULL;
    hf_error err;

    (void)snprintf(copy, sizeof(copy), "%s", table);
    settings.table = copy;
    if (dialect(in)) {
        ASSERT_OK(
            hf__sql_dialect_texts(&engine, dialect(in), texts, 1, &to, &err),
            &err);
        (void)snprintf(copy, sizeof(copy), "%s", to);
        answer = copy;
    }
    hf__free(to);
    settings.table = nothing;
    return answer;
}

TEST(table, its_name_can_be_given)
{
    ASSERT_STREQ(text("shedlock", ""), "a shedlock b shedlock");
    ASSERT_STREQ(text("spring", ""), "a INT_LOCK b INT_LOCK");
    ASSERT_STREQ(text("spring", "app.MY_LOCK2"),
                 "a app.MY_LOCK2 b app.MY_LOCK2");
}

TEST(table, what_would_need_quotes_is_refused)
{
    static const char *const wrong[] = {"a b",  "a;",  "a'", "`a`", "\"a\"",
                                        "a--b", "a/*", "1a", "a.",  ".a",
                                        "a..b", "ä",   "a$", "a(b"};

    for (size_t i = 0; i < HF_COUNT_OF(wrong); i++)
        ASSERT_STREQ(text("shedlock", wrong[i]), "refused");
    ASSERT_STREQ(text("native", "shedlock"), "refused");
}

TEST(holder, no_two_have_one_text)
{
    static const char *const dialects[] = {"shedlock", "spring"};
    struct hf__engine_host host = {.identity = {1, 2, 3},
                                   .identity_hex =
                                       "0102030000000000000000000000000000",
                                   .host = "db1",
                                   .pid = 4211};
    char one[HF__SQL_HOLDER];
    char two[HF__SQL_HOLDER];

    for (size_t i = 0; i < HF_COUNT_OF(dialects); i++) {
        dialect(dialects[i])->put_holder(&host, 7, one);
        dialect(dialects[i])->put_holder(&host, 8, two);
        ASSERT_TRUE(strcmp(one, two) != 0);
    }
    ASSERT_STREQ(one, "01020300-0000-0000-0000-000000000007");
    dialect("shedlock")->put_holder(&host, 7, one);
    ASSERT_STREQ(one, "db1:4211 0102030000000000000000000000000000-7");
}

/* ---- names of the application's --------------------------------------------- */

static const char *quoted(const char *name, char quote)
{
    static char copy[64];
    struct hf__buf to = {0};

    hf__sql_dialect_put_table(&to, name, quote);
    (void)snprintf(copy, sizeof(copy), "%.*s", (int)to.len, to.text);
    hf__buf_release(&to);
    return copy;
}

TEST(names, of_tables_are_quoted_part_by_part_and_quotes_doubled)
{
    ASSERT_STREQ(quoted("locks", '`'), "`locks`");
    ASSERT_STREQ(quoted("app.my locks", '"'), "\"app\".\"my locks\"");
    ASSERT_STREQ(quoted("a`b\"c", '`'), "`a``b\"c`");
    ASSERT_STREQ(quoted("a`b\"c", '"'), "\"a`b\"\"c\"");
}

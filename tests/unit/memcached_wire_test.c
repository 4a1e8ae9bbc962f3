/* SPDX-License-Identifier: MIT */
/* memcached_wire_test.c - what a Memcached server answers. */
#include "engines/memcached/wire.h"
#include "test.h"

static int parse(const char *text, struct hf__meta *meta)
{
    size_t used = 0;
    int rc = hf__memcached_wire_parse(text, strlen(text), meta, &used);

    if (rc == HF__META_WHOLE)
        ASSERT_LE(used, strlen(text));
    return rc;
}

TEST(meta, words)
{
    static const struct {
        const char *text;
        int kind;
    } words[] = {{"NS c0\r\n", HF__META_NS},  {"EX\r\n", HF__META_EX},
                 {"NF\r\n", HF__META_NF},     {"EN\r\n", HF__META_EN},
                 {"STORED\r\n", HF__META_HD}, {"NOT_STORED\r\n", HF__META_NS}};
    struct hf__meta meta;

    ASSERT_EQ(parse("HD c12 O7\r\n", &meta), HF__META_WHOLE);
    ASSERT_EQ(meta.kind, HF__META_HD);
    ASSERT_EQ(meta.cas, 12);
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        ASSERT_EQ(parse(words[i].text, &meta), HF__META_WHOLE);
        ASSERT_EQ(meta.kind, words[i].kind);
    }
    ASSERT_EQ(parse("HD c18446744073709551615\r\n", &meta), HF__META_WHOLE);
    ASSERT_EQ(meta.cas, UINT64_MAX);
}

TEST(meta, a_value_may_contain_anything)
{
    struct hf__meta meta;
    static const char text[] = "VA 6 c3\r\n\r\nEN\r\n\r\nEN\r\n";
    size_t used;

    ASSERT_EQ(hf__memcached_wire_parse(text, sizeof(text) - 1, &meta, &used),
              HF__META_WHOLE);
    ASSERT_EQ(meta.kind, HF__META_VA);
    ASSERT_EQ(meta.cas, 3);
    ASSERT_EQ(meta.value_len, 6);
    ASSERT_MEM_EQ(meta.value, "\r\nEN\r\n", 6);
    ASSERT_STREQ(text + used, "EN\r\n");
}

TEST(meta, every_beginning_wants_more)
{
    static const char text[] = "VA 3 c3 t-1 W\r\nabc\r\n";
    struct hf__meta meta;
    size_t used;

    for (size_t n = 0; n + 1 < sizeof(text) - 1; n++)
        ASSERT_EQ(hf__memcached_wire_parse(text, n, &meta, &used),
                  HF__META_MORE);
}

TEST(meta, what_is_none_is_refused)
{
    static const char *const texts[] = {
        "\r\n",
        "\n",
        "HD\n",
        "HDX\r\n",
        "+OK\r\n",
        "-ERR unknown command\r\n",
        "VA\r\n",
        "VA -1\r\n",
        "VA 99999999999999999999 c1\r\n",
        "VA 1048577 c1\r\n",
        "VA 1 c1\r\nab\r\n",
        "HD cx\r\n",
        "HD c18446744073709551616\r\n",
        "HTTP/1.1 400 Bad Request\r\n",
    };
    struct hf__meta meta;
    char endless[HF__META_LINE_MAX + 1];

    for (size_t i = 0; i < HF_COUNT_OF(texts); i++)
        ASSERT_EQ(parse(texts[i], &meta), HF__META_BAD);
    memset(endless, 'H', sizeof(endless) - 1);
    endless[sizeof(endless) - 1] = '\0';
    ASSERT_EQ(parse(endless, &meta), HF__META_BAD);
}

TEST(meta, statistics_and_errors_have_a_text)
{
    struct hf__meta meta;
    char value[8];

    ASSERT_EQ(parse("STAT evictions 123456789\r\n", &meta), HF__META_WHOLE);
    ASSERT_TRUE(
        hf__memcached_wire_stat(&meta, "evictions", value, sizeof(value)));
    ASSERT_STREQ(value, "1234567");
    ASSERT_FALSE(
        hf__memcached_wire_stat(&meta, "eviction", value, sizeof(value)));
    ASSERT_EQ(parse("END\r\n", &meta), HF__META_WHOLE);
    ASSERT_FALSE(
        hf__memcached_wire_stat(&meta, "evictions", value, sizeof(value)));
    ASSERT_EQ(parse("SERVER_ERROR out of memory\r\n", &meta), HF__META_WHOLE);
    ASSERT_EQ(meta.kind, HF__META_ERROR);
    ASSERT_EQ(meta.text_len, strlen("SERVER_ERROR out of memory"));
}

/* SPDX-License-Identifier: MIT */
/* name_test.c - what may be a name, its encoding and its hash. */
#include "config/name.h"

#include "lib/test.h"

static int check(const char *name)
{
    return hf_name_check(name, strlen(name), NULL);
}

TEST(name, plain_and_unicode_names_are_good)
{
    ASSERT_EQ(check("jobs"), 0);
    ASSERT_EQ(check("a b/c:d%41'\"\\"), 0);
    ASSERT_EQ(check("\xc3\xa4\xe2\x82\xac\xf0\x9f\x94\x92"), 0);
    ASSERT_EQ(check("\xc2\xa0"), 0); /* the first after C1 */
    ASSERT_EQ(check("\xf4\x8f\xbf\xbf"), 0);
}

TEST(name, length_is_limited_to_255_bytes)
{
    char name[257];

    memset(name, 'x', sizeof(name));
    ASSERT_EQ(hf_name_check(name, 255, NULL), 0);
    ASSERT_EQ(hf_name_check(name, 256, NULL), HF_EINVAL);
    ASSERT_EQ(hf_name_check(name, 0, NULL), HF_EINVAL);
    ASSERT_EQ(hf_name_check(NULL, 0, NULL), HF_EINVAL);
}

TEST(name, control_characters_are_refused_with_their_place)
{
    hf_error err;

    ASSERT_RC(hf_name_check("a\nb", 3, &err), HF_EINVAL, &err);
    ASSERT_HAS(err.text, "byte 2 (0x0a)");
    ASSERT_EQ(hf_name_check("a\0b", 3, NULL), HF_EINVAL);
    ASSERT_EQ(check("\x7f"), HF_EINVAL);
    ASSERT_EQ(check("\xc2\x80"), HF_EINVAL);
    ASSERT_EQ(check("\xc2\x9f"), HF_EINVAL);
}

TEST(name, malformed_utf8_is_refused)
{
    static const char *const bad[] = {
        "\x80",         "\xc0\xaf",         "\xc1\xbf",         "\xc3",
        "\xe0\x9f\xbf", "\xed\xa0\x80",     "\xe2\x82",         "\xe2\x82x",
        "\xf5\x80\x80", "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xff",
    };

    for (size_t i = 0; i < HF_COUNT_OF(bad); i++)
        ASSERT_EQ(check(bad[i]), HF_EINVAL);
}

TEST(name, a_note_may_be_empty)
{
    hf_error err;

    ASSERT_OK(hf__name_check_text("note", "", 0, 0, HF_NOTE_MAX, &err), &err);
    ASSERT_RC(hf__name_check_text("owner", "", 0, 1, HF_OWNER_MAX, &err),
              HF_EINVAL, &err);
    ASSERT_HAS(err.text, "owner");
}

TEST(name, encoding_keeps_plain_bytes_and_escapes_the_rest)
{
    char text[64];

    ASSERT_EQ(hf__name_encode("a.b-C_9", 7, text, sizeof(text)), 7);
    ASSERT_STREQ(text, "a.b-C_9");
    ASSERT_EQ(hf__name_encode("../x%", 5, text, sizeof(text)), 11);
    ASSERT_STREQ(text, "%2E.%2Fx%25");
}

TEST(name, every_byte_survives_the_round_trip)
{
    char name[2];
    char text[8];
    char back[8];

    for (int c = 0; c < 256; c++) {
        size_t len;

        name[0] = (char)c;
        name[1] = (char)c;
        len = hf__name_encode(name, 2, text, sizeof(text));
        ASSERT_NE(len, 0);
        ASSERT_EQ(hf__name_decode(text, len, back, sizeof(back)), 2);
        ASSERT_MEM_EQ(back, name, 2);
    }
}

TEST(name, only_the_one_spelling_is_decoded)
{
    static const char *const foreign[] = {
        "%2f", "%41", "%", "%2", "%zz", "a/b", ".a", "a%2Eb", "\xc3\xa4",
    };
    char back[16];

    for (size_t i = 0; i < HF_COUNT_OF(foreign); i++)
        ASSERT_EQ(
            hf__name_decode(foreign[i], strlen(foreign[i]), back, sizeof(back)),
            0);
}

TEST(name, too_small_a_buffer_gives_nothing)
{
    char text[16];

    for (size_t size = 0; size <= 6; size++)
        ASSERT_EQ(hf__name_encode("//", 2, text, size), 0);
    ASSERT_EQ(hf__name_encode("//", 2, text, 7), 6);
    for (size_t size = 0; size <= 2; size++)
        ASSERT_EQ(hf__name_decode("%2F%2F", 6, text, size), 0);
    ASSERT_EQ(hf__name_decode("%2F%2F", 6, text, 3), 2);
}

/* Stores outlive the programs that made them. */
TEST(name, hash_stays_what_it_is)
{
    static const uint64_t key[2] = {UINT64_C(0x0706050403020100),
                                    UINT64_C(0x0f0e0d0c0b0a0908)};
    static const struct {
        size_t len;
        uint64_t hash;
    } wanted[] = {
        {0, UINT64_C(0xe2b1930172a6736d)},  {1, UINT64_C(0xc6c66c3fa7492152)},
        {7, UINT64_C(0xc729ad099d040d9b)},  {8, UINT64_C(0xd7ac66b59d81d0b0)},
        {15, UINT64_C(0xfc1f55ff39e45fc1)}, {16, UINT64_C(0xc6347b3e95f8c992)},
        {63, UINT64_C(0x33b167bc12e00f6f)},
    };
    unsigned char bytes[64];

    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (unsigned char)i;
    for (size_t i = 0; i < HF_COUNT_OF(wanted); i++)
        ASSERT_TRUE(hf__name_hash(bytes, wanted[i].len, key) == wanted[i].hash);
}

TEST(name, hash_spreads_names_that_differ_little)
{
    enum { NAMES = 1 << 16, PLACES = 1 << 12 };
    static const uint64_t key[2] = {UINT64_C(0xc0ffee), UINT64_C(0xdecaf)};
    static uint32_t low[PLACES];
    static uint32_t high[PLACES];
    char name[32];

    for (int i = 0; i < NAMES; i++) {
        int len = snprintf(name, sizeof(name), "tenant-7/job-%d", i);
        uint64_t hash = hf__name_hash(name, (size_t)len, key);

        low[hash % PLACES]++;
        high[hash >> 52]++;
    }
    /* 16 in each by chance; 40 would be six standard deviations off. */
    for (int i = 0; i < PLACES; i++) {
        ASSERT_LT(low[i], 40);
        ASSERT_LT(high[i], 40);
    }
}

TEST(name, hash_sees_every_byte_the_length_and_the_key)
{
    static const uint64_t key[2] = {1, 2};
    static const uint64_t other[2] = {1, 3};
    char bytes[40] = {0};
    uint64_t base = hf__name_hash(bytes, sizeof(bytes), key);

    for (size_t i = 0; i < sizeof(bytes); i++) {
        bytes[i] = 1;
        ASSERT_TRUE(hf__name_hash(bytes, sizeof(bytes), key) != base);
        bytes[i] = 0;
        ASSERT_TRUE(hf__name_hash(bytes, i, key) != base);
    }
    ASSERT_TRUE(hf__name_hash(bytes, sizeof(bytes), other) != base);
}

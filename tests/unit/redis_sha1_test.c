/* SPDX-License-Identifier: MIT */
/* redis_sha1_test.c - the examples of FIPS 180, and every length of a block. */
#include "engines/redis/sha1.h"

#include "test.h"

static const char *sha1(const char *text, size_t len)
{
    static char hex[41];

    hf__redis_sha1(text, len, hex);
    return hex;
}

TEST(sha1, knows_the_examples_of_the_standard)
{
    static char million[1000000];

    memset(million, 'a', sizeof(million));
    ASSERT_STREQ(sha1("", 0), "da39a3ee5e6b4b0d3255bfef95601890afd80709");
    ASSERT_STREQ(sha1("abc", 3), "a9993e364706816aba3e25717850c26c9cd0d89d");
    ASSERT_STREQ(
        sha1("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56),
        "84983e441c3bd26ebaae4aa1f95129e5e54670f1");
    ASSERT_STREQ(sha1(million, sizeof(million)),
                 "34aa973cd4c4daa4f61eeb2bdbad27316534016f");
}

TEST(sha1, pads_at_every_length)
{
    char text[130];

    /* Of 55, 56, 63, 64 and 65 letters: where the padding changes. */
    memset(text, 'x', sizeof(text));
    ASSERT_STREQ(sha1(text, 55), "cef734ba81a024479e09eb5a75b6ddae62e6abf1");
    ASSERT_STREQ(sha1(text, 56), "901305367c259952f4e7af8323f480d59f81335b");
    ASSERT_STREQ(sha1(text, 63), "0ddc4e0cccd9a12850deb5abb0853a4425559fec");
    ASSERT_STREQ(sha1(text, 64), "bb2fa3ee7afb9f54c6dfb5d021f14b1ffe40c163");
    ASSERT_STREQ(sha1(text, 65), "78c741ddc482e4cdf8c474a0876347a0905b6233");
}

/* SPDX-License-Identifier: MIT */
/*
 * md5.c - MD5 (RFC 1321), by which others turn names into keys.
 *
 * It protects nothing here: two names with one digest, which an attacker
 * could make, exclude each other, as they do for the other programs that use it.
 */
#include "engines/sql/md5.h"

#include <string.h>

/* The first 32 bits behind the point of |sin(1)|, |sin(2)|, … */
static const uint32_t sines[64] = {
    0xd76aa478, 0xe8c7b756, 0x242070db, 0xc1bdceee, 0xf57c0faf, 0x4787c62a,
    0xa8304613, 0xfd469501, 0x698098d8, 0x8b44f7af, 0xffff5bb1, 0x895cd7be,
    0x6b901122, 0xfd987193, 0xa679438e, 0x49b40821, 0xf61e2562, 0xc040b340,
    0x265e5a51, 0xe9b6c7aa, 0xd62f105d, 0x02441453, 0xd8a1e681, 0xe7d3fbc8,
    0x21e1cde6, 0xc33707d6, 0xf4d50d87, 0x455a14ed, 0xa9e3e905, 0xfcefa3f8,
    0x676f02d9, 0x8d2a4c8a, 0xfffa3942, 0x8771f681, 0x6d9d6122, 0xfde5380c,
    0xa4beea44, 0x4bdecfa9, 0xf6bb4b60, 0xbebfbc70, 0x289b7ec6, 0xeaa127fa,
    0xd4ef3085, 0x04881d05, 0xd9d4d039, 0xe6db99e5, 0x1fa27cf8, 0xc4ac5665,
    0xf4292244, 0x432aff97, 0xab9423a7, 0xfc93a039, 0x655b59c3, 0x8f0ccc92,
    0xffeff47d, 0x85845dd1, 0x6fa87e4f, 0xfe2ce6e0, 0xa3014314, 0x4e0811a1,
    0xf7537e82, 0xbd3af235, 0x2ad7d2bb, 0xeb86d391,
};

static uint32_t rotate(uint32_t word, int bits)
{
    return word << bits | word >> (32 - bits);
}

/* One of the 64 steps: what is mixed, and which word is taken. */
static uint32_t mix(int t, const uint32_t s[4], int *ret_word)
{
    if (t < 16) {
        *ret_word = t;
        return (s[1] & s[2]) | (~s[1] & s[3]);
    }
    if (t < 32) {
        *ret_word = (5 * t + 1) % 16;
        return (s[3] & s[1]) | (~s[3] & s[2]);
    }
    if (t < 48) {
        *ret_word = (3 * t + 5) % 16;
        return s[1] ^ s[2] ^ s[3];
    }
    *ret_word = 7 * t % 16;
    return s[2] ^ (s[1] | ~s[3]);
}

static void add_block(uint32_t state[4], const uint8_t block[64])
{
    static const int turns[4][4] = {
        {7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}};
    uint32_t w[16];
    uint32_t s[4];

    for (int i = 0; i < 16; i++, block += 4)
        w[i] = (uint32_t)block[3] << 24 | (uint32_t)block[2] << 16 |
               (uint32_t)block[1] << 8 | block[0];
    memcpy(s, state, sizeof(s));
    for (int t = 0; t < 64; t++) {
        int word;
        uint32_t sum = mix(t, s, &word) + s[0] + sines[t];

        s[0] = s[3];
        s[3] = s[2];
        s[2] = s[1];
        s[1] += rotate(sum + w[word], turns[t / 16][t % 4]);
    }
    for (int i = 0; i < 4; i++)
        state[i] += s[i];
}

void hf__sql_md5(const void *bytes, size_t len, uint8_t ret_digest[16])
{
    uint32_t state[4] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476};
    const uint8_t *at = bytes;
    uint8_t end[128] = {0};
    size_t rest = len % 64;
    size_t size = rest < 56 ? 64 : 128;

    for (size_t n = len / 64; n > 0; n--, at += 64)
        add_block(state, at);
    if (rest > 0)
        memcpy(end, at, rest);
    end[rest] = 0x80;
    for (int i = 0; i < 8; i++)
        end[size - 8 + (size_t)i] = (uint8_t)((uint64_t)len * 8 >> (8 * i));
    add_block(state, end);
    if (size > 64)
        add_block(state, end + 64);
    for (int i = 0; i < 16; i++)
        ret_digest[i] = (uint8_t)(state[i / 4] >> (8 * (i % 4)));
}

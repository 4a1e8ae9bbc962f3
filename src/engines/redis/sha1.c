/* SPDX-License-Identifier: MIT */
/*
 * sha1.c - SHA-1 (FIPS 180-4), because EVALSHA names scripts by it.
 *
 * It protects nothing here. It is our own so that a lock without TLS does not
 * load OpenSSL, which would cost every start of the command two milliseconds.
 */
#include "engines/redis/sha1.h"

#include <stdint.h>
#include <string.h>

static uint32_t rotate(uint32_t word, int bits)
{
    return word << bits | word >> (32 - bits);
}

static uint32_t mix(int t, uint32_t b, uint32_t c, uint32_t d)
{
    if (t < 20)
        return ((b & c) | (~b & d)) + 0x5a827999;
    if (t < 40)
        return (b ^ c ^ d) + 0x6ed9eba1;
    if (t < 60)
        return ((b & c) | (b & d) | (c & d)) + 0x8f1bbcdc;
    return (b ^ c ^ d) + 0xca62c1d6;
}

static void add_block(uint32_t state[5], const unsigned char block[64])
{
    uint32_t w[80];
    uint32_t s[5];

    for (int t = 0; t < 16; t++)
        w[t] = (uint32_t)block[4 * t] << 24 | (uint32_t)block[4 * t + 1] << 16 |
               (uint32_t)block[4 * t + 2] << 8 | block[4 * t + 3];
    for (int t = 16; t < 80; t++)
        w[t] = rotate(w[t - 3] ^ w[t - 8] ^ w[t - 14] ^ w[t - 16], 1);
    memcpy(s, state, sizeof(s));
    for (int t = 0; t < 80; t++) {
        uint32_t next =
            rotate(s[0], 5) + mix(t, s[1], s[2], s[3]) + s[4] + w[t];

        s[4] = s[3];
        s[3] = s[2];
        s[2] = rotate(s[1], 30);
        s[1] = s[0];
        s[0] = next;
    }
    for (int i = 0; i < 5; i++)
        state[i] += s[i];
}

/* The last bytes, a one, zeroes, and the length in bits. */
static void add_end(uint32_t state[5], const unsigned char *rest, size_t len,
                    uint64_t all)
{
    unsigned char block[128] = {0};
    size_t size = len < 56 ? 64 : 128;

    if (len > 0)
        memcpy(block, rest, len);
    block[len] = 0x80;
    for (size_t i = 0; i < 8; i++)
        block[size - 1 - i] = (unsigned char)(all * 8 >> 8 * i);
    add_block(state, block);
    if (size > 64)
        add_block(state, block + 64);
}

void hf__redis_sha1(const void *bytes, size_t len, char hex[41])
{
    static const char digits[] = "0123456789abcdef";
    uint32_t state[5] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476,
                         0xc3d2e1f0};
    const unsigned char *at = bytes;
    size_t left = len;

    for (; left >= 64; left -= 64, at += 64)
        add_block(state, at);
    add_end(state, at, left, len);
    for (size_t i = 0; i < 40; i++)
        hex[i] = digits[state[i / 8] >> (28 - 4 * (i % 8)) & 15];
    hex[40] = '\0';
}

/* SPDX-License-Identifier: MIT */
/*
 * name.c - what may be a name, and how a name becomes an engine's key.
 *
 * Names are data. A name is 1 to 255 bytes of well-formed UTF-8 without
 * control characters, compared byte by byte: no case folding, no
 * normalisation, so look-alikes are different locks. Where an engine's key
 * cannot hold every byte, the name is percent-encoded; the encoding is
 * injective and has one spelling per name, so two names never become one key
 * and a key that decodes is a key that we made.
 *
 * Failure: a bad byte is named with its place. Nothing here allocates.
 */
#include "config/name.h"

#include "base/error.h"

/* Little-endian on every machine: some tables outlive the process. */
static inline uint64_t load(const unsigned char *s)
{
    uint64_t word;

    memcpy(&word, s, sizeof(word));
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    return word;
}

/* The length of the well-formed character at @s, 0 if there is none. The
 * table of Unicode 15, section 3.9 ("D92"), by first byte. */
static size_t utf8_length(const unsigned char *s, size_t left)
{
    unsigned char low = 0x80;
    unsigned char high = 0xbf;
    size_t len;

    if (s[0] < 0x80)
        return 1;
    if (s[0] < 0xc2 || s[0] > 0xf4)
        return 0;
    len = s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
    if (len > left)
        return 0;
    if (s[0] == 0xe0)
        low = 0xa0; /* overlong */
    else if (s[0] == 0xed)
        high = 0x9f; /* surrogates */
    else if (s[0] == 0xf0)
        low = 0x90; /* overlong */
    else if (s[0] == 0xf4)
        high = 0x8f; /* beyond U+10FFFF */
    if (s[1] < low || s[1] > high)
        return 0;
    for (size_t i = 2; i < len; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    }
    return len;
}

/* C0, DEL, and C1 (U+0080 to U+009F, two bytes). */
static bool is_control(const unsigned char *s)
{
    return s[0] < 0x20 || s[0] == 0x7f || (s[0] == 0xc2 && s[1] < 0xa0);
}

/* How many bytes at the start are printable ASCII, eight at a time. A byte is
 * not if its top bit is set, or is set by adding 1 (DEL), or by taking away
 * 0x20 (controls); a borrow or carry that spills over only makes it look
 * closer. */
static size_t plain_start(const unsigned char *s, size_t len)
{
    static const uint64_t ones = UINT64_C(0x0101010101010101);
    size_t i = 0;

    for (; len - i >= 8; i += 8) {
        uint64_t word = load(s + i);

        if ((word | (word + ones) | (word - ones * 0x20)) & ones * 0x80)
            break;
    }
    return i;
}

static int check_bytes(const char *what, const unsigned char *s, size_t len,
                       hf_error *err)
{
    size_t step;

    for (size_t i = plain_start(s, len); i < len; i += step) {
        step = 1;
        if (HF_LIKELY(s[i] >= 0x20 && s[i] < 0x7f))
            continue;
        step = utf8_length(s + i, len - i);
        if (HF_UNLIKELY(step == 0))
            return hf__fail(err, HF_EINVAL,
                            "%s: byte %zu (0x%02x) is not UTF-8", what, i + 1,
                            s[i]);
        if (HF_UNLIKELY(is_control(s + i)))
            return hf__fail(err, HF_EINVAL,
                            "%s: byte %zu (0x%02x) is a control character",
                            what, i + 1, s[i]);
    }
    return 0;
}

int hf__name_check_text(const char *what, const char *text, size_t len,
                        size_t min, size_t max, hf_error *err)
{
    if (!text)
        return hf__fail(err, HF_EINVAL, "%s: missing (NULL)", what);
    if (len < min)
        return hf__fail(err, HF_EINVAL, "%s: empty", what);
    if (len > max)
        return hf__fail(err, HF_EINVAL,
                        "%s: %zu bytes long, and at most %zu are allowed", what,
                        len, max);
    return check_bytes(what, (const unsigned char *)text, len, err);
}

int hf_name_check(const char *name, size_t len, hf_error *err)
{
    return hf__name_check_text("name", name, len, 1, HF_NAME_MAX, err);
}

static bool is_plain(unsigned char c, bool first)
{
    if (c == '.')
        return !first;
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c >= '0' && c <= '9') || c == '_' || c == '-';
}

size_t hf__name_encode(const char *name, size_t len, char *to, size_t size)
{
    static const char digits[] = "0123456789ABCDEF";
    size_t n = 0;

    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)name[i];
        bool plain = is_plain(c, i == 0);

        if (size - n <= (plain ? 1u : 3u))
            return 0;
        if (plain) {
            to[n++] = (char)c;
        } else {
            to[n++] = '%';
            to[n++] = digits[c >> 4];
            to[n++] = digits[c & 15];
        }
    }
    if (n >= size)
        return 0;
    to[n] = '\0';
    return n;
}

/* Upper case only: one spelling per name. */
static int digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

size_t hf__name_decode(const char *text, size_t len, char *to, size_t size)
{
    size_t n = 0;

    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i];
        bool first = n == 0;

        if (size - n <= 1)
            return 0;
        if (c == '%') {
            int high = len - i > 2 ? digit(text[i + 1]) : -1;
            int low = len - i > 2 ? digit(text[i + 2]) : -1;

            if (high < 0 || low < 0)
                return 0;
            c = (unsigned char)(high << 4 | low);
            if (is_plain(c, first))
                return 0;
            i += 2;
        } else if (!is_plain(c, first)) {
            return 0;
        }
        to[n++] = (char)c;
    }
    if (n >= size)
        return 0;
    to[n] = '\0';
    return n;
}

/* A product of 128 bits, folded: every bit of it depends on all bits below. */
static inline uint64_t mix(uint64_t a, uint64_t b)
{
    unsigned __int128 product = (unsigned __int128)a * b;

    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* The last bytes, up to eight, as one word. */
static inline uint64_t load_tail(const unsigned char *s, size_t len)
{
    uint64_t word = 0;

    if (len == 8)
        return load(s);
    for (size_t i = 0; i < len; i++)
        word = word << 8 | s[i];
    return word;
}

uint64_t hf__name_hash(const void *bytes, size_t len, const uint64_t key[2])
{
    static const uint64_t odd = UINT64_C(0x9e3779b97f4a7c15);
    const unsigned char *s = bytes;
    uint64_t by = key[1] ^ odd; /* a key of zero must not make all zero */
    uint64_t hash = key[0] ^ mix(len + 1, odd);

    for (; len > 8; s += 8, len -= 8)
        hash = mix(hash ^ load(s), by);
    hash = mix(hash ^ load_tail(s, len), by);
    return mix(hash ^ key[0], odd);
}

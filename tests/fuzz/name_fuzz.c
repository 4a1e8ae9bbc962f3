/* SPDX-License-Identifier: MIT */
/*
 * name_fuzz.c - the encoding of names: reversible, one spelling, injective.
 *
 * The input is two names, split at its first zero byte.
 */
#include "config/name.h"

#include "fuzz.h"

enum { ROOM = 3 * 4096 + 1 };

static size_t encode(const char *name, size_t len, char *to)
{
    size_t n = hf__name_encode(name, len, to, 3 * len + 1);

    CHECK(n >= len && (n > 0 || len == 0));
    for (size_t i = 0; i < n; i++)
        CHECK(to[i] > ' ' && to[i] < 0x7f && to[i] != '/' && to[i] != ':');
    CHECK(n == 0 || to[0] != '.');
    return n;
}

static void check_round_trip(const char *name, size_t len)
{
    static char text[ROOM];
    static char back[ROOM];
    size_t n = encode(name, len, text);

    CHECK(hf__name_decode(text, n, back, sizeof(back)) == len);
    CHECK(memcmp(back, name, len) == 0);
}

/* Whatever decodes is what we would have written. */
static void check_one_spelling(const char *text, size_t len)
{
    static char name[ROOM];
    static char again[ROOM];
    size_t n = hf__name_decode(text, len, name, sizeof(name));

    if (n == 0)
        return;
    CHECK(encode(name, n, again) == len);
    CHECK(memcmp(again, text, len) == 0);
}

static void check_injective(const char *a, size_t a_len, const char *b,
                            size_t b_len)
{
    static char a_text[ROOM];
    static char b_text[ROOM];
    size_t n = encode(a, a_len, a_text);
    size_t m = encode(b, b_len, b_text);
    bool same = a_len == b_len && memcmp(a, b, a_len) == 0;

    CHECK(same == (n == m && memcmp(a_text, b_text, n) == 0));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *name = (const char *)data;
    const char *zero;
    size_t len;
    hf_error err = {0};
    int rc;

    if (size > 4096)
        return 0;
    zero = size ? memchr(name, '\0', size) : NULL;
    len = zero ? (size_t)(zero - name) : size;
    check_round_trip(name, size);
    check_one_spelling(name, len);
    if (zero)
        check_injective(name, len, zero + 1, size - len - 1);
    rc = hf_name_check(name, len, &err);
    CHECK(rc == 0 || (rc == HF_EINVAL && err.text[0]));
    CHECK(rc != 0 || (len >= 1 && len <= HF_NAME_MAX));
    return 0;
}

/* SPDX-License-Identifier: MIT */
/*
 * wire.c - what a Memcached server answers.
 *
 * An answer is a line of words, of the meta commands or the older ones; the
 * value of VA follows it, with its length in the second word. Of the flags we
 * read only the number of the item (c).
 *
 * Failure: a line without end, a word that is none, a length beyond the limit, a
 * value without its line end: BAD, and the connection cannot be trusted any
 * more.
 */
#include "engines/memcached/wire.h"

static const struct {
    const char *word;
    enum hf__meta_kind kind;
} words[] = {
    {"HD", HF__META_HD},
    {"STORED", HF__META_HD},
    {"NOT_STORED", HF__META_NS},
    {"EXISTS", HF__META_EX},
    {"NOT_FOUND", HF__META_NF},
    {"NS", HF__META_NS},
    {"EX", HF__META_EX},
    {"NF", HF__META_NF},
    {"EN", HF__META_EN},
    {"VA", HF__META_VA},
    {"VERSION", HF__META_VERSION},
    {"STAT", HF__META_STAT},
    {"END", HF__META_END},
    {"ERROR", HF__META_ERROR},
    {"CLIENT_ERROR", HF__META_ERROR},
    {"SERVER_ERROR", HF__META_ERROR},
};

static bool read_number(const char *at, size_t len, uint64_t *ret)
{
    uint64_t number = 0;

    if (len == 0)
        return false;
    for (size_t i = 0; i < len; i++) {
        if (at[i] < '0' || at[i] > '9' ||
            __builtin_mul_overflow(number, 10, &number) ||
            __builtin_add_overflow(number, (uint64_t)(at[i] - '0'), &number))
            return false;
    }
    *ret = number;
    return true;
}

/* The length of the word at @at. */
static size_t word_length(const char *at, const char *end)
{
    const char *space = memchr(at, ' ', (size_t)(end - at));

    return (size_t)((space ? space : end) - at);
}

/* The flags of a line, from @at; false if the number is none. */
static bool read_flags(struct hf__meta *meta, const char *at, const char *end)
{
    while (at < end) {
        size_t n = word_length(at, end);

        if (n > 1 && at[0] == 'c' && !read_number(at + 1, n - 1, &meta->cas))
            return false;
        at += n < (size_t)(end - at) ? n + 1 : n;
    }
    return true;
}

static bool read_line(struct hf__meta *meta, const char *line, const char *end)
{
    size_t n = word_length(line, end);
    const char *rest = line + n < end ? line + n + 1 : end;
    uint64_t size = 0;
    size_t i = 0;

    while (i < HF_COUNT_OF(words) &&
           (strlen(words[i].word) != n || memcmp(words[i].word, line, n) != 0))
        i++;
    if (i == HF_COUNT_OF(words))
        return false;
    meta->kind = words[i].kind;
    meta->text = meta->kind == HF__META_ERROR ? line : rest;
    meta->text_len = (size_t)(end - meta->text);
    if (meta->kind >= HF__META_VERSION)
        return true;
    if (meta->kind == HF__META_VA) {
        n = word_length(rest, end);
        if (!read_number(rest, n, &size) || size > HF__META_VALUE_MAX)
            return false;
        meta->value_len = (size_t)size;
        rest += n;
    }
    return read_flags(meta, rest, end);
}

int hf__memcached_wire_parse(const char *bytes, size_t len,
                             struct hf__meta *ret_meta, size_t *ret_used)
{
    size_t most = len < HF__META_LINE_MAX ? len : HF__META_LINE_MAX;
    const char *end = memchr(bytes, '\n', most);
    size_t used;

    memset(ret_meta, 0, sizeof(*ret_meta));
    if (!end)
        return len < HF__META_LINE_MAX ? HF__META_MORE : HF__META_BAD;
    used = (size_t)(end - bytes) + 1;
    if (end == bytes || end[-1] != '\r' || !read_line(ret_meta, bytes, end - 1))
        return HF__META_BAD;
    if (ret_meta->kind == HF__META_VA) {
        ret_meta->value = bytes + used;
        used += ret_meta->value_len + 2;
        if (len < used)
            return HF__META_MORE;
        if (memcmp(bytes + used - 2, "\r\n", 2) != 0)
            return HF__META_BAD;
    }
    *ret_used = used;
    return HF__META_WHOLE;
}

bool hf__memcached_wire_stat(const struct hf__meta *meta, const char *key,
                             char *to, size_t size)
{
    size_t n = strlen(key);
    size_t used;

    if (meta->kind != HF__META_STAT || meta->text_len <= n ||
        memcmp(meta->text, key, n) != 0 || meta->text[n] != ' ')
        return false;
    used = meta->text_len - n - 1;
    used = used < size ? used : size - 1;
    memcpy(to, meta->text + n + 1, used);
    to[used] = '\0';
    return true;
}

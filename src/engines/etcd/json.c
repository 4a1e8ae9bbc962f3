/* SPDX-License-Identifier: MIT */
/*
 * json.c - a reader for the answers of etcd, and base64.
 *
 * The text is checked once, from its first to its last byte, with bounded
 * nesting; then values are found by stepping over it. Nothing is copied and
 * nothing is allocated, so a hostile answer costs no more than its length.
 *
 * Failure: a text that is not exactly one value is type NONE, of which nothing
 * is ever found.
 */
#include "engines/etcd/json.h"

#include <limits.h>

struct scan {
    const char *at;
    const char *end;
};

static void skip_space(struct scan *scan)
{
    while (scan->at < scan->end && (*scan->at == ' ' || *scan->at == '\t' ||
                                    *scan->at == '\n' || *scan->at == '\r'))
        scan->at++;
}

static bool take(struct scan *scan, char c)
{
    skip_space(scan);
    if (scan->at == scan->end || *scan->at != c)
        return false;
    scan->at++;
    return true;
}

static bool take_word(struct scan *scan, const char *word)
{
    size_t len = strlen(word);

    if ((size_t)(scan->end - scan->at) < len ||
        memcmp(scan->at, word, len) != 0)
        return false;
    scan->at += len;
    return true;
}

static bool is_hex(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') ||
           (c >= 'A' && c <= 'F');
}

/* After a backslash. */
static bool take_escape(struct scan *scan)
{
    if (scan->at == scan->end)
        return false;
    if (*scan->at != 'u')
        return strchr("\"\\/bfnrt", *scan->at++) != NULL &&
               scan->at[-1] != '\0';
    scan->at++;
    for (int i = 0; i < 4; i++, scan->at++) {
        if (scan->at == scan->end || !is_hex(*scan->at))
            return false;
    }
    return true;
}

static bool take_string(struct scan *scan)
{
    if (!take(scan, '"'))
        return false;
    while (scan->at < scan->end) {
        char c = *scan->at++;

        if (c == '"')
            return true;
        if ((unsigned char)c < 0x20 || (c == '\\' && !take_escape(scan)))
            return false;
    }
    return false;
}

static bool take_digits(struct scan *scan)
{
    const char *from = scan->at;

    while (scan->at < scan->end && *scan->at >= '0' && *scan->at <= '9')
        scan->at++;
    return scan->at > from;
}

static bool take_number(struct scan *scan)
{
    if (scan->at < scan->end && *scan->at == '-')
        scan->at++;
    if (!take_digits(scan))
        return false;
    if (scan->at < scan->end && *scan->at == '.') {
        scan->at++;
        if (!take_digits(scan))
            return false;
    }
    if (scan->at < scan->end && (*scan->at == 'e' || *scan->at == 'E')) {
        scan->at++;
        if (scan->at < scan->end && (*scan->at == '+' || *scan->at == '-'))
            scan->at++;
        return take_digits(scan);
    }
    return true;
}

static uint8_t take_value(struct scan *scan, int depth);

static bool take_array(struct scan *scan, int depth)
{
    if (!take(scan, '['))
        return false;
    if (take(scan, ']'))
        return true;
    do {
        if (take_value(scan, depth) == HF__JSON_NONE)
            return false;
    } while (take(scan, ','));
    return take(scan, ']');
}

static bool take_object(struct scan *scan, int depth)
{
    if (!take(scan, '{'))
        return false;
    if (take(scan, '}'))
        return true;
    do {
        if (!take_string(scan) || !take(scan, ':') ||
            take_value(scan, depth) == HF__JSON_NONE)
            return false;
    } while (take(scan, ','));
    return take(scan, '}');
}

/* NOLINTNEXTLINE(misc-no-recursion): as deep as HF__JSON_DEPTH. */
static uint8_t take_value(struct scan *scan, int depth)
{
    skip_space(scan);
    if (scan->at == scan->end || depth == HF__JSON_DEPTH)
        return HF__JSON_NONE;
    switch (*scan->at) {
    case '{':
        return take_object(scan, depth + 1) ? HF__JSON_OBJECT : HF__JSON_NONE;
    case '[':
        return take_array(scan, depth + 1) ? HF__JSON_ARRAY : HF__JSON_NONE;
    case '"':
        return take_string(scan) ? HF__JSON_STRING : HF__JSON_NONE;
    case 't':
        return take_word(scan, "true") ? HF__JSON_BOOLEAN : HF__JSON_NONE;
    case 'f':
        return take_word(scan, "false") ? HF__JSON_BOOLEAN : HF__JSON_NONE;
    case 'n':
        return take_word(scan, "null") ? HF__JSON_NULL : HF__JSON_NONE;
    default:
        return take_number(scan) ? HF__JSON_NUMBER : HF__JSON_NONE;
    }
}

/* The value at the scan's place, in a text that is known to be right. */
static struct hf__json value_here(struct scan *scan)
{
    struct hf__json value = {.type = HF__JSON_NONE};

    skip_space(scan);
    value.text = scan->at;
    value.type = take_value(scan, /* depth= */ 0);
    value.len = (size_t)(scan->at - value.text);
    return value;
}

struct hf__json hf__json_read(const char *text, size_t len)
{
    static const struct hf__json none;
    struct scan scan = {text, text ? text + len : text};
    struct hf__json value = value_here(&scan);

    skip_space(&scan);
    return scan.at == scan.end ? value : none;
}

/* ---- looking inside ---------------------------------------------------- */

/* What is between the brackets. */
static struct scan inside(struct hf__json value, size_t at)
{
    struct scan scan = {value.text + 1 + at, value.text + value.len - 1};

    skip_space(&scan);
    return scan;
}

struct hf__json hf__json_member(struct hf__json object, const char *name)
{
    static const struct hf__json none;
    size_t len = strlen(name);
    struct scan scan;

    if (object.type != HF__JSON_OBJECT)
        return none;
    scan = inside(object, 0);
    while (scan.at < scan.end) {
        struct hf__json key = value_here(&scan);
        struct hf__json value;

        (void)take(&scan, ':');
        value = value_here(&scan);
        if (key.len == len + 2 && memcmp(key.text + 1, name, len) == 0)
            return value;
        (void)take(&scan, ',');
        skip_space(&scan);
    }
    return none;
}

struct hf__json hf__json_path(struct hf__json object, const char *path)
{
    char name[32];

    while (*path) {
        size_t len = strcspn(path, ".");

        assert(len < sizeof(name));
        memcpy(name, path, len);
        name[len] = '\0';
        object = hf__json_member(object, name);
        path += len + (path[len] == '.');
    }
    return object;
}

struct hf__json hf__json_next(struct hf__json array, size_t *at)
{
    static const struct hf__json none;
    struct scan scan;
    struct hf__json value;

    if (array.type != HF__JSON_ARRAY)
        return none;
    scan = inside(array, *at);
    if (scan.at >= scan.end)
        return none;
    value = value_here(&scan);
    (void)take(&scan, ',');
    *at = (size_t)(scan.at - array.text) - 1;
    return value;
}

struct hf__json hf__json_first(struct hf__json array)
{
    size_t at = 0;

    return hf__json_next(array, &at);
}

uint64_t hf__json_unsigned(struct hf__json value)
{
    uint64_t number = 0;

    if (value.type == HF__JSON_STRING) {
        value.text++;
        value.len -= 2;
    } else if (value.type != HF__JSON_NUMBER) {
        return 0;
    }
    for (size_t at = 0; at < value.len; at++) {
        if (value.text[at] < '0' || value.text[at] > '9' ||
            __builtin_mul_overflow(number, 10, &number) ||
            __builtin_add_overflow(number, (uint64_t)(value.text[at] - '0'),
                                   &number))
            return 0;
    }
    return number;
}

int64_t hf__json_number(struct hf__json value)
{
    uint64_t number = hf__json_unsigned(value);

    return number <= INT64_MAX ? (int64_t)number : 0;
}

bool hf__json_true(struct hf__json value)
{
    return value.type == HF__JSON_BOOLEAN && value.text[0] == 't';
}

void hf__json_text(struct hf__json value, char *to, size_t size)
{
    size_t n = 0;

    if (value.type == HF__JSON_STRING) {
        for (size_t i = 1; i + 1 < value.len && n + 1 < size; i++) {
            char c = value.text[i];

            if (c == '\\') {
                c = value.text[++i];
                i += c == 'u' ? 4 : 0;
                c = c == '"' || c == '\\' || c == '/' ? c : ' ';
            }
            to[n++] = (unsigned char)c < 0x80 && c >= 0x20 ? c : '?';
        }
    }
    to[n] = '\0';
}

/* ---- base64 ------------------------------------------------------------ */

static const char alphabet[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void hf__base64_add(struct hf__buf *buf, const void *bytes, size_t len)
{
    const unsigned char *from = bytes;

    for (size_t i = 0; i < len; i += 3) {
        uint32_t three = (uint32_t)from[i] << 16;
        char four[4];

        three |= i + 1 < len ? (uint32_t)from[i + 1] << 8 : 0;
        three |= i + 2 < len ? from[i + 2] : 0;
        four[0] = alphabet[three >> 18];
        four[1] = alphabet[three >> 12 & 63];
        four[2] = i + 1 < len ? alphabet[three >> 6 & 63] : '=';
        four[3] = i + 2 < len ? alphabet[three & 63] : '=';
        hf__buf_append(buf, four, sizeof(four));
    }
}

static int digit_of(char c)
{
    const char *at = c ? strchr(alphabet, c) : NULL;

    return at ? (int)(at - alphabet) : -1;
}

long hf__base64_read(struct hf__json value, char *to, size_t size)
{
    size_t len = value.len - 2;
    size_t pads = 0;
    size_t n = 0;

    if (value.type != HF__JSON_STRING || len % 4 != 0)
        return -1;
    while (pads < 2 && pads < len && value.text[len - pads] == '=')
        pads++;
    if (len / 4 * 3 - pads > size || len > LONG_MAX / 4)
        return -1;
    for (size_t i = 0; i < len; i += 4) {
        uint32_t three = 0;

        for (size_t j = 0; j < 4; j++) {
            bool pad = i + j >= len - pads;
            int digit = pad ? 0 : digit_of(value.text[1 + i + j]);

            if (digit < 0)
                return -1;
            three = three << 6 | (uint32_t)digit;
        }
        for (int shift = 16; shift >= 0 && n < len / 4 * 3 - pads; shift -= 8)
            to[n++] = (char)(three >> shift & 255);
    }
    return (long)n;
}

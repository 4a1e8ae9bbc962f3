/* SPDX-License-Identifier: MIT */
/*
 * frame.c - what gRPC adds to HTTP/2.
 *
 * A message has a head of five bytes: a flag for compression, which nobody
 * asked for, and its length. A call ends with a code in decimal and a text in
 * which percent signs stand for what a header cannot carry.
 */
#include "engines/etcd/frame.h"

void hf__frame_head(char head[HF__FRAME_HEAD], size_t len)
{
    head[0] = 0;
    for (int i = 1; i < HF__FRAME_HEAD; i++)
        head[i] = (char)(len >> 8 * (HF__FRAME_HEAD - 1 - i));
}

int hf__frame_next(struct hf__pb come, size_t *at, struct hf__pb *ret_message)
{
    const unsigned char *head = (const unsigned char *)come.bytes + *at;
    size_t len = 0;

    if (come.len - *at < HF__FRAME_HEAD)
        return 0;
    for (int i = 1; i < HF__FRAME_HEAD; i++)
        len = len << 8 | head[i];
    if (head[0] != 0 || len > HF__FRAME_MOST)
        return -1;
    if (come.len - *at - HF__FRAME_HEAD < len)
        return 0;
    *ret_message = (struct hf__pb){(const char *)head + HF__FRAME_HEAD, len};
    *at += HF__FRAME_HEAD + len;
    return 1;
}

int hf__frame_code(const void *value, size_t len)
{
    const char *digits = value;
    int code = 0;

    for (size_t i = 0; i < len; i++) {
        if (digits[i] < '0' || digits[i] > '9' || i > 1)
            return HF__FRAME_UNKNOWN_CODE;
        code = 10 * code + digits[i] - '0';
    }
    return len > 0 && code <= HF__FRAME_LAST_CODE ? code
                                                  : HF__FRAME_UNKNOWN_CODE;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The byte that "%2F" at @from stands for; -1: it is none. */
static int escaped(const char *from, size_t len)
{
    int high = len > 2 && from[0] == '%' ? hex_digit(from[1]) : -1;
    int low = high < 0 ? -1 : hex_digit(from[2]);

    return low < 0 ? -1 : 16 * high + low;
}

void hf__frame_text(const void *value, size_t len, char *to, size_t size)
{
    const char *from = value;
    size_t n = 0;

    for (size_t i = 0; i < len && n + 1 < size; i++) {
        int byte = escaped(from + i, len - i);

        if (byte < 0)
            byte = (unsigned char)from[i];
        else
            i += 2;
        to[n++] = byte >= ' ' && byte <= '~' ? (char)byte : '?';
    }
    to[n] = '\0';
}

/* SPDX-License-Identifier: MIT */
/*
 * buf.c - text that grows.
 *
 * The size doubles, so appending n bytes one by one costs O(n). Failure:
 * memory runs out once, the buffer keeps what it has, drops the rest and says
 * so when asked. A text with a hole in its middle is never handed over.
 *
 * A text may have a password in it (a login on its way to a server), so memory
 * that is given back is wiped, also when the text grows.
 */
#include "base/buf.h"

#include <stdio.h>

enum { FIRST_SIZE = 64 };

void hf__buf_release(struct hf__buf *buf)
{
    if (buf->text)
        explicit_bzero(buf->text, buf->size);
    hf__free(buf->text);
    *buf = (struct hf__buf){0};
}

/* Room for @len more bytes and the terminator. */
static bool reserve(struct hf__buf *buf, size_t len)
{
    size_t size = buf->size ? buf->size : FIRST_SIZE;
    char *text;

    if (buf->failed)
        return false;
    while (size - buf->len <= len) {
        if (size > SIZE_MAX / 2) {
            buf->failed = true;
            return false;
        }
        size *= 2;
    }
    if (size == buf->size)
        return true;

    text = hf__malloc(size);
    if (!text) {
        buf->failed = true;
        return false;
    }
    if (buf->text) {
        memcpy(text, buf->text, buf->len);
        explicit_bzero(buf->text, buf->size);
        hf__free(buf->text);
    }
    text[buf->len] = '\0';
    buf->text = text;
    buf->size = size;
    return true;
}

char *hf__buf_room(struct hf__buf *buf, size_t most)
{
    if (HF_UNLIKELY(buf->failed || buf->size - buf->len <= most) &&
        !reserve(buf, most))
        return NULL;
    return buf->text + buf->len;
}

void hf__buf_append(struct hf__buf *buf, const void *bytes, size_t len)
{
    char *to = hf__buf_room(buf, len);

    if (!to)
        return;
    if (len > 0)
        memcpy(to, bytes, len);
    hf__buf_filled(buf, to + len);
}

void hf__buf_add(struct hf__buf *buf, const char *text)
{
    hf__buf_append(buf, text, strlen(text));
}

void hf__buf_add_char(struct hf__buf *buf, char c)
{
    hf__buf_append(buf, &c, 1);
}

void hf__buf_add_number(struct hf__buf *buf, uint64_t number)
{
    char room[HF_DIGITS];
    const char *digits = hf__text_number(number, room);

    hf__buf_append(buf, digits, (size_t)(room + HF_DIGITS - 1 - digits));
}

void hf__buf_vprintf(struct hf__buf *buf, const char *format, va_list args)
{
    va_list again;
    int len;

    va_copy(again, args);
    len = vsnprintf(NULL, 0, format, again);
    va_end(again);
    if (len < 0) {
        buf->failed = true;
        return;
    }
    if (!reserve(buf, (size_t)len))
        return;
    vsnprintf(buf->text + buf->len, (size_t)len + 1, format, args);
    buf->len += (size_t)len;
}

void hf__buf_printf(struct hf__buf *buf, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    hf__buf_vprintf(buf, format, args);
    va_end(args);
}

char *hf__buf_steal(struct hf__buf *buf)
{
    char *text;

    reserve(buf, 0);
    if (buf->failed) {
        hf__buf_release(buf);
        return NULL;
    }
    text = buf->text;
    text[buf->len] = '\0';
    *buf = (struct hf__buf){0};
    return text;
}

/* SPDX-License-Identifier: MIT */
/*
 * buf.h - text that grows.
 *
 * A failed allocation is remembered: everything appended after it is dropped,
 * and the one question at the end (hf__buf_failed, hf__buf_steal) tells. So
 * writers append line by line without a check at each.
 */
#ifndef HF_BASE_BUF_H
#define HF_BASE_BUF_H

#include <stdarg.h>

#include "base/base.h"

/* Zeroed is empty. */
struct hf__buf {
    char *text; /* terminated; NULL while empty */
    size_t len;
    size_t size;
    bool failed;
};

void hf__buf_release(struct hf__buf *buf);
void hf__buf_append(struct hf__buf *buf, const void *bytes, size_t len);
void hf__buf_add(struct hf__buf *buf, const char *text);
void hf__buf_add_char(struct hf__buf *buf, char c);
void hf__buf_add_number(struct hf__buf *buf, uint64_t number);
void hf__buf_printf(struct hf__buf *buf, const char *format, ...)
    HF_PRINTF(2, 3);
void hf__buf_vprintf(struct hf__buf *buf, const char *format, va_list args)
    HF_PRINTF(2, 0);

/* For writers who know how long it will be at most: room for @most bytes at
 * the end, or NULL; then say up to where it was filled. */
char *hf__buf_room(struct hf__buf *buf, size_t most);
static inline void hf__buf_filled(struct hf__buf *buf, char *end)
{
    *end = '\0';
    buf->len = (size_t)(end - buf->text);
}

/* True if something did not find memory. */
static inline bool hf__buf_failed(const struct hf__buf *buf)
{
    return buf->failed;
}

/* The text so far, "" if there is none. Borrowed until the next call. */
static inline const char *hf__buf_text(const struct hf__buf *buf)
{
    return buf->text ? buf->text : "";
}

/* Hand over the text, NULL if something did not find memory; the buffer is
 * empty afterwards. */
char *hf__buf_steal(struct hf__buf *buf);

#endif

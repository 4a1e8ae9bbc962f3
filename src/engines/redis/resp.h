/* SPDX-License-Identifier: MIT */
/*
 * resp.h - the Redis protocol, version 3: bytes in, values out.
 *
 * A pure parser. hf__resp_scan() finds the end of the next whole message and
 * checks every byte of its structure; it goes on where it stopped when more
 * bytes have come. hf__resp_next() then walks through a whole message, without
 * memory of its own.
 *
 * Everything is bounded: a message that is too long, too deep, or not the
 * protocol is refused before any of it is believed.
 */
#ifndef HF_REDIS_RESP_H
#define HF_REDIS_RESP_H

#include "base/buf.h"

enum {
    HF__RESP_DEPTH = 8,
    HF__RESP_MESSAGE = 16 * 1024 * 1024, /* bytes */
    HF__RESP_LINE = 64 * 1024
};

/* Zeroed at the beginning of every message. */
struct hf__resp_scan {
    size_t at;      /* bytes of the message that are known to be good */
    size_t begin;   /* the first so many are attributes of the message */
    uint32_t depth; /* aggregates that are open */
    uint32_t left[HF__RESP_DEPTH];  /* their values still to come */
    bool attribute[HF__RESP_DEPTH]; /* it stands before a value, and is none */
};

enum { HF__RESP_MORE = 0, HF__RESP_WHOLE = 1, HF__RESP_BAD = -1 };

/* Look at the @len bytes there are of one message. HF__RESP_WHOLE: it has
 * scan->at bytes, and its value begins at scan->begin. HF__RESP_MORE: call
 * again with more. */
int hf__resp_scan(struct hf__resp_scan *scan, const char *bytes, size_t len);

/* A whole message, or what is left of it. */
struct hf__resp {
    const char *at;
    const char *end;
};

/* Types are the protocol's own letters, but for the three that say nothing. */
enum {
    HF__RESP_NULL = '_',
    HF__RESP_TEXT = '$',   /* also simple, verbatim, double, big number */
    HF__RESP_NUMBER = ':', /* also boolean */
    HF__RESP_ERROR = '-',
    HF__RESP_LIST = '*', /* also set, push; a map is a list of twice as many */
    HF__RESP_END = 0     /* there is no further value */
};

struct hf__resp_value {
    char type;
    const char *text; /* TEXT, ERROR: borrowed from the message */
    size_t len;
    int64_t number; /* NUMBER */
    uint32_t count; /* LIST: so many values follow */
};

/* The next value; attributes are skipped. A list's values follow it. */
struct hf__resp_value hf__resp_next(struct hf__resp *resp);
/* The first value of an answer; of type 0 where there is no answer (NULL). */
static inline struct hf__resp_value hf__resp_first(struct hf__resp *reply)
{
    return reply ? hf__resp_next(reply) : (struct hf__resp_value){0};
}
/* Pass over the values that follow @value. */
void hf__resp_skip(struct hf__resp *resp, const struct hf__resp_value *value);
/* A TEXT or NUMBER as a number; @wrong if it is none. */
int64_t hf__resp_number(const struct hf__resp_value *value, int64_t wrong);
/* Is @value this text? */
bool hf__resp_is(const struct hf__resp_value *value, const char *text);

/* Commands: a head, then as many arguments. */
void hf__resp_head(struct hf__buf *buf, uint32_t arguments);
void hf__resp_arg(struct hf__buf *buf, const void *bytes, size_t len);
void hf__resp_arg_text(struct hf__buf *buf, const char *text);
void hf__resp_arg_number(struct hf__buf *buf, int64_t number);
/* Parts that are always the same, as they travel. */
#define hf__resp_literal(buf, text) hf__buf_append(buf, text, sizeof(text) - 1)
/* "$@len\r\n": the caller appends the bytes and hf__resp_arg_end(). */
void hf__resp_arg_begin(struct hf__buf *buf, size_t len);
void hf__resp_arg_end(struct hf__buf *buf);

#endif

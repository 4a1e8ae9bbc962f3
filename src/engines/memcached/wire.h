/* SPDX-License-Identifier: MIT */
/*
 * wire.h - what a Memcached server answers. A pure, bounded parser: bytes in,
 * values out; it takes no memory and believes no length.
 */
#ifndef HF_MEMCACHED_WIRE_H
#define HF_MEMCACHED_WIRE_H

#include "base/base.h"

enum {
    HF__META_LINE_MAX = 2048,
    HF__META_VALUE_MAX = 1 << 20 /* the server's own standard limit */
};

enum hf__meta_kind {
    HF__META_HD,      /* done; also STORED */
    HF__META_NS,      /* not stored: it is there already */
    HF__META_EX,      /* the number has changed */
    HF__META_NF,      /* not there */
    HF__META_EN,      /* not there, to a question */
    HF__META_VA,      /* a value */
    HF__META_VERSION, /* text: the version */
    HF__META_STAT,    /* text: "key value"; more follow */
    HF__META_END,     /* of those */
    HF__META_ERROR    /* text: the whole line */
};

struct hf__meta {
    enum hf__meta_kind kind;
    uint64_t cas;     /* 0: not said */
    const char *text; /* of the line, behind the first word */
    size_t text_len;
    const char *value; /* VA */
    size_t value_len;
};

enum { HF__META_MORE, HF__META_WHOLE, HF__META_BAD };

/* Read one answer at @bytes; @ret_used is its length when it is WHOLE. */
int hf__memcached_wire_parse(const char *bytes, size_t len,
                             struct hf__meta *ret_meta, size_t *ret_used);
/* Is the STAT called @key? Its value goes to @to then. */
bool hf__memcached_wire_stat(const struct hf__meta *meta, const char *key,
                             char *to, size_t size);

#endif

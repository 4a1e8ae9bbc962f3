/* SPDX-License-Identifier: MIT */
/*
 * packet.h - a prepared statement on the wire, and its answer. Pure: values in,
 * bytes out, and back; nothing that the server says about a length is believed.
 */
#ifndef HF_MYSQL_PACKET_H
#define HF_MYSQL_PACKET_H

#include "base/buf.h"

enum { HF__MYSQL_ANSWER_MAX = 1024 };

/* A value that goes beside a prepared statement. */
struct hf__mysql_param {
    bool is_number;
    uint64_t number;
    size_t at; /* where its bytes are */
    size_t len;
};

/* Carry out statement @id with @n values, whose bytes are in @bytes. @typed: the
 * server was told before what they are, and remembers. */
void hf__mysql_put_execute(struct hf__buf *to, uint32_t id, bool typed,
                           const char *bytes,
                           const struct hf__mysql_param *params, size_t n);

/* Done, or an error. */
struct hf__mysql_answer {
    uint64_t affected;
    uint64_t number; /* LAST_INSERT_ID() */
    bool in_transaction;
    unsigned code; /* 0: done */
    const char *text;
    size_t text_len;
};

enum { HF__MYSQL_MORE, HF__MYSQL_WHOLE, HF__MYSQL_BAD };

/* Read the one packet that @bytes are, or begin with. */
int hf__mysql_parse_answer(const char *bytes, size_t len,
                           struct hf__mysql_answer *ret_answer);

#endif

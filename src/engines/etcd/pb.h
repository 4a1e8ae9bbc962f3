/* SPDX-License-Identifier: MIT */
/*
 * pb.h - messages of protobuf, written and read. Pure: nothing is allocated
 * but by the buffer that is written to.
 *
 * A message that is read is a stretch of bytes. What is not there has no bytes
 * (NULL), and every question about it has a harmless answer, because etcd
 * leaves out whatever has its default. Of a message that is not well-formed
 * nothing is found beyond the place where it ceases to be.
 */
#ifndef HF_ETCD_PB_H
#define HF_ETCD_PB_H

#include "base/buf.h"

/* ---- writing ----------------------------------------------------------- */

void hf__pb_add_number(struct hf__buf *to, uint32_t field, uint64_t number);
void hf__pb_add_bytes(struct hf__buf *to, uint32_t field, const void *bytes,
                      size_t len);
/* A message inside: what is added until hf__pb_end() belongs to it. */
size_t hf__pb_begin(struct hf__buf *to, uint32_t field);
void hf__pb_end(struct hf__buf *to, size_t begun);

/* ---- reading ----------------------------------------------------------- */

struct hf__pb {
    const char *bytes; /* NULL: not there */
    size_t len;
};

static inline bool hf__pb_there(struct hf__pb message)
{
    return message.bytes != NULL;
}
/* Is every field of it whole? What is inside its fields is not looked at. */
bool hf__pb_whole(struct hf__pb message);
/* A number; the last one counts, and 0 for what is none. */
uint64_t hf__pb_number(struct hf__pb message, uint32_t field);
/* Bytes, text or a message; the last one counts. */
struct hf__pb hf__pb_inside(struct hf__pb message, uint32_t field);
/* One after the other: begin with *at = 0; not there after the last. */
struct hf__pb hf__pb_next(struct hf__pb message, uint32_t field, size_t *at);
/* For people: what is not printable ASCII as '?', cut, terminated. */
void hf__pb_text(struct hf__pb text, char *to, size_t size);

#endif

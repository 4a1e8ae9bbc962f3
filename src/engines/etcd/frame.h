/* SPDX-License-Identifier: MIT */
/*
 * frame.h - what gRPC puts around a message, and how it says that a call has
 * failed. Pure.
 */
#ifndef HF_ETCD_FRAME_H
#define HF_ETCD_FRAME_H

#include "engines/etcd/pb.h"

enum {
    HF__FRAME_HEAD = 5,         /* bytes before a message */
    HF__FRAME_MOST = 16 << 20,  /* longer messages are refused */
    HF__FRAME_UNKNOWN_CODE = 2, /* gRPC's own word */
    HF__FRAME_LAST_CODE = 16
};

/* Write the head of a message of @len bytes. */
void hf__frame_head(char head[HF__FRAME_HEAD], size_t len);
/* The message at *at of what has come, and step over it. 1, or 0 if not all of
 * it is there, or -1 if it is compressed or too long. */
int hf__frame_next(struct hf__pb come, size_t *at, struct hf__pb *ret_message);
/* The value of "grpc-status". */
int hf__frame_code(const void *value, size_t len);
/* The value of "grpc-message", for people: percent signs undone, what is not
 * printable ASCII as '?', cut, terminated. */
void hf__frame_text(const void *value, size_t len, char *to, size_t size);

#endif

/* SPDX-License-Identifier: MIT */
/* sha1.h - the name that Redis gives to a script. For nothing else. */
#ifndef HF_REDIS_SHA1_H
#define HF_REDIS_SHA1_H

#include <stddef.h>

/* SHA-1 of @bytes as 40 hex digits, terminated. */
void hf__redis_sha1(const void *bytes, size_t len, char hex[41]);

#endif

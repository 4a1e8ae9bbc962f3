/* SPDX-License-Identifier: MIT */
/* md5.h - MD5 (RFC 1321), by which others turn names into keys. */
#ifndef HF_SQL_MD5_H
#define HF_SQL_MD5_H

#include <stddef.h>
#include <stdint.h>

void hf__sql_md5(const void *bytes, size_t len, uint8_t ret_digest[16]);

#endif

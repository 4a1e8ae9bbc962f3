/* SPDX-License-Identifier: MIT */
/*
 * record.h - who holds or waits, as a row keeps it: host, process, owner and
 * note in lines. None of them can contain a newline.
 */
#ifndef HF_SQL_RECORD_H
#define HF_SQL_RECORD_H

#include "base/buf.h"
#include "engines/engine.h"

enum { HF__SQL_TEXTS = 1024 };

/* Append the record of @ticket. */
void hf__sql_record_put(struct hf__buf *to, const struct hf__engine_host *host,
                        const struct hf__ticket *ticket);
/* Fill host, pid, owner and note of @info; the pointers go into @copy. */
void hf__sql_record_read(const char *record, size_t len,
                         char copy[HF__SQL_TEXTS], hf_lock_info *info);
/* "db1:4211 (worker), \"vacuum\"" for error texts. */
void hf__sql_record_holder(const char *record, size_t len, char *to,
                           size_t size);

#endif

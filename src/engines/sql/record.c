/* SPDX-License-Identifier: MIT */
/*
 * record.c - who holds or waits, as a row keeps it.
 *
 * A row may have been written by anybody: what is read is cut to size, and
 * whatever is missing is empty.
 */
#include "engines/sql/record.h"

#include "engines/common/holder.h"

void hf__sql_record_put(struct hf__buf *to, const struct hf__engine_host *host,
                        const struct hf__ticket *ticket)
{
    hf__buf_add(to, host->host);
    hf__buf_add_char(to, '\n');
    hf__buf_add_number(to, (uint64_t)host->pid);
    hf__buf_add_char(to, '\n');
    hf__buf_add(to, ticket->owner);
    hf__buf_add_char(to, '\n');
    hf__buf_add(to, ticket->note);
}

void hf__sql_record_read(const char *record, size_t len,
                         char copy[HF__SQL_TEXTS], hf_lock_info *info)
{
    char *at = hf__holder_copy(record, len, copy, HF__SQL_TEXTS);

    hf__holder_read(&at, info);
    info->alive = 2;
}

void hf__sql_record_holder(const char *record, size_t len, char *to,
                           size_t size)
{
    char copy[HF__SQL_TEXTS];
    hf_lock_info info = {0};

    hf__sql_record_read(record, len, copy, &info);
    hf__holder_name(&info, to, size);
}

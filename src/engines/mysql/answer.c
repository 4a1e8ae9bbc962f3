/* SPDX-License-Identifier: MIT */
/*
 * answer.c - what the server said to one call.
 *
 * A server may say anything. One call has at most one result with rows, whose
 * columns, rows and bytes are counted while they come.
 */
#include <stdlib.h>

#include "engines/mysql/calls.h"

const char hf__mysql_answer_strange[] = "an answer that makes no sense";

void hf__mysql_answer_release(struct hf__mysql_reply *reply)
{
    hf__buf_release(&reply->bytes);
    memset(reply, 0, sizeof(*reply));
}

/* NULL is a field of SIZE_MAX bytes. */
bool hf__mysql_answer_keep(struct hf__mysql_reply *reply, char *const *row,
                           const unsigned long *lengths)
{
    if (!lengths || reply->rows++ == HF__MYSQL_ROWS)
        return false;
    for (unsigned i = 0; i < reply->columns; i++) {
        const char *field = row[i];
        size_t len = field ? lengths[i] : SIZE_MAX;

        if (field && len > HF__MYSQL_BYTES)
            return false;
        hf__buf_append(&reply->bytes, &len, sizeof(len));
        if (field)
            hf__buf_append(&reply->bytes, field, len);
        hf__buf_add_char(&reply->bytes, '\0');
        if (reply->bytes.len > HF__MYSQL_BYTES)
            return false;
    }
    return !hf__buf_failed(&reply->bytes);
}

bool hf__mysql_answer_row(struct hf__mysql_reply *reply, unsigned columns,
                          struct hf__mysql_field row[])
{
    if (reply->columns != columns || reply->at == reply->bytes.len)
        return false;
    for (unsigned i = 0; i < columns; i++) {
        size_t len;

        memcpy(&len, reply->bytes.text + reply->at, sizeof(len));
        reply->at += sizeof(len);
        row[i].text = len == SIZE_MAX ? NULL : reply->bytes.text + reply->at;
        row[i].len = len == SIZE_MAX ? 0 : len;
        reply->at += row[i].len + 1;
    }
    return true;
}

uint64_t hf__mysql_answer_number(struct hf__mysql_field field)
{
    return field.text ? strtoull(field.text, NULL, 10) : 0;
}

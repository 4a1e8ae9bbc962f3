/* SPDX-License-Identifier: MIT */
/*
 * packet.c - COM_STMT_EXECUTE, and the answer of a statement without rows.
 *
 *   packet   length (3 bytes), number in its conversation (1), payload
 *   execute  17, statement (4), 0, 1 (4), which are NULL, 1, types, values; or
 *            0 without the types
 *   done     00, changed rows, LAST_INSERT_ID(), state (2), warnings (2), …
 *   error    ff, code (2), '#' and a state (5), text
 *
 * Numbers are little-endian; one of changing length begins with fc, fd or fe
 * if it is 2, 3 or 8 bytes long, and is a byte below that otherwise.
 */
#include "engines/mysql/packet.h"

enum {
    HEADER = 4,
    EXECUTE = 0x17,
    TYPE_NUMBER = 0x08,
    TYPE_BYTES = 0xfc,
    UNSIGNED = 0x80,
    DONE = 0x00,
    ERROR = 0xff,
    IN_TRANSACTION = 0x0001
};

/* ---- writing ----------------------------------------------------------- */

static char *put(char *at, uint64_t number, size_t len)
{
    for (size_t i = 0; i < len; i++, number >>= 8)
        *at++ = (char)(number & 0xff);
    return at;
}

static char *put_len(char *at, size_t len)
{
    if (len < 251)
        return put(at, len, 1);
    return put(put(at, len <= 0xffff ? 0xfc : 0xfd, 1), len,
               len <= 0xffff ? 2 : 3);
}

static char *put_params(char *at, bool typed, const char *bytes,
                        const struct hf__mysql_param *params, size_t n)
{
    at = put(at, 0, (n + 7) / 8); /* none is NULL */
    at = put(at, !typed, 1);
    for (size_t i = 0; i < n && !typed; i++) {
        at = put(at, params[i].is_number ? TYPE_NUMBER : TYPE_BYTES, 1);
        at = put(at, params[i].is_number ? UNSIGNED : 0, 1);
    }
    for (size_t i = 0; i < n; i++) {
        if (params[i].is_number) {
            at = put(at, params[i].number, 8);
            continue;
        }
        at = put_len(at, params[i].len);
        if (params[i].len > 0)
            memcpy(at, bytes + params[i].at, params[i].len);
        at += params[i].len;
    }
    return at;
}

void hf__mysql_put_execute(struct hf__buf *to, uint32_t id, bool typed,
                           const char *bytes,
                           const struct hf__mysql_param *params, size_t n)
{
    size_t most = HEADER + 11 + (n + 7) / 8;
    char *start;
    char *at;

    for (size_t i = 0; i < n; i++)
        most += 2 + 8 + params[i].len;
    start = hf__buf_room(to, most);
    if (!start)
        return;
    at = put(start + HEADER, EXECUTE, 1);
    at = put(put(put(at, id, 4), 0, 1), 1, 4);
    if (n > 0)
        at = put_params(at, typed, bytes, params, n);
    (void)put(start, (uint64_t)(at - start - HEADER), HEADER);
    hf__buf_filled(to, at);
}

/* ---- reading ----------------------------------------------------------- */

struct reader {
    const uint8_t *at;
    const uint8_t *end;
    bool failed; /* it would have been beyond the end */
};

static uint64_t get(struct reader *reader, size_t len)
{
    uint64_t number = 0;

    if ((size_t)(reader->end - reader->at) < len) {
        reader->failed = true;
        return 0;
    }
    for (size_t i = 0; i < len; i++)
        number |= (uint64_t)*reader->at++ << (8 * i);
    return number;
}

static uint64_t get_number(struct reader *reader)
{
    uint64_t first = get(reader, 1);

    switch (first) {
    case 0xfc:
        return get(reader, 2);
    case 0xfd:
        return get(reader, 3);
    case 0xfe:
        return get(reader, 8);
    default:
        return first;
    }
}

static void get_error(struct reader *reader, struct hf__mysql_answer *answer)
{
    answer->code = (unsigned)get(reader, 2);
    if (reader->at < reader->end && *reader->at == '#')
        (void)get(reader, 6);
    answer->text = (const char *)reader->at;
    answer->text_len = (size_t)(reader->end - reader->at);
    reader->failed |= answer->code == 0;
}

int hf__mysql_parse_answer(const char *bytes, size_t len,
                           struct hf__mysql_answer *ret_answer)
{
    struct reader reader = {(const uint8_t *)bytes,
                            (const uint8_t *)bytes + len, false};
    size_t size = get(&reader, 3);
    uint64_t turn = get(&reader, 1);

    if (reader.failed)
        return HF__MYSQL_MORE;
    if (turn != 1 || size > HF__MYSQL_ANSWER_MAX - HEADER ||
        len > size + HEADER)
        return HF__MYSQL_BAD;
    if (len < size + HEADER)
        return HF__MYSQL_MORE;
    memset(ret_answer, 0, sizeof(*ret_answer));
    switch (get(&reader, 1)) {
    case DONE:
        ret_answer->affected = get_number(&reader);
        ret_answer->number = get_number(&reader);
        ret_answer->in_transaction = (get(&reader, 2) & IN_TRANSACTION) != 0;
        break;
    case ERROR:
        get_error(&reader, ret_answer);
        break;
    default: /* rows, which we have not asked for */
        return HF__MYSQL_BAD;
    }
    return reader.failed ? HF__MYSQL_BAD : HF__MYSQL_WHOLE;
}

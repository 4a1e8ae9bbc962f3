/* SPDX-License-Identifier: MIT */
/*
 * pb.c - messages of protobuf: fields, each with a number and one of four
 * shapes.
 *
 * There is no description of messages here: the caller knows what field 3 means
 * (messages.h). The length of a message inside is known at its end
 * only; one byte is kept for it, and where that is not enough the message is
 * moved. Numbers that are written are unsigned; those of etcd that may be below
 * zero are read by a cast.
 */
#include "engines/etcd/pb.h"

enum shape { NUMBER = 0, EIGHT = 1, BYTES = 2, FOUR = 5 };

enum { VARINT = 10 }; /* the most bytes of one */

/* ---- writing ----------------------------------------------------------- */

static size_t put_varint(char *to, uint64_t number)
{
    size_t n = 0;

    for (; number >= 0x80; number >>= 7)
        to[n++] = (char)(number | 0x80);
    to[n++] = (char)number;
    return n;
}

static void add_varint(struct hf__buf *to, uint64_t number)
{
    char bytes[VARINT];

    hf__buf_append(to, bytes, put_varint(bytes, number));
}

static void add_tag(struct hf__buf *to, uint32_t field, enum shape shape)
{
    add_varint(to, (uint64_t)field << 3 | shape);
}

void hf__pb_add_number(struct hf__buf *to, uint32_t field, uint64_t number)
{
    add_tag(to, field, NUMBER);
    add_varint(to, number);
}

void hf__pb_add_bytes(struct hf__buf *to, uint32_t field, const void *bytes,
                      size_t len)
{
    add_tag(to, field, BYTES);
    add_varint(to, len);
    hf__buf_append(to, bytes, len);
}

size_t hf__pb_begin(struct hf__buf *to, uint32_t field)
{
    add_tag(to, field, BYTES);
    hf__buf_add_char(to, '\0');
    return to->len;
}

void hf__pb_end(struct hf__buf *to, size_t begun)
{
    static const char room[VARINT];
    char length[VARINT];
    size_t len = to->len - begun;
    size_t n = put_varint(length, len);

    hf__buf_append(to, room, n - 1);
    if (hf__buf_failed(to))
        return;
    memmove(to->text + begun + n - 1, to->text + begun, len);
    memcpy(to->text + begun - 1, length, n);
}

/* ---- reading ----------------------------------------------------------- */

struct field {
    uint32_t number;
    enum shape shape;
    uint64_t value;      /* of a NUMBER */
    struct hf__pb bytes; /* of BYTES */
};

static bool read_varint(struct hf__pb message, size_t *at, uint64_t *ret)
{
    uint64_t number = 0;

    for (unsigned shift = 0; shift < 7 * VARINT && *at < message.len;
         shift += 7) {
        unsigned char byte = (unsigned char)message.bytes[(*at)++];

        number |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            *ret = number;
            return true;
        }
    }
    return false;
}

/* The field at *at, and step over it. False: the end, or no field. */
static bool read_field(struct hf__pb message, size_t *at, struct field *ret)
{
    uint64_t tag;
    uint64_t len = 0;

    if (!read_varint(message, at, &tag) || tag >> 3 == 0 ||
        tag >> 3 > UINT32_MAX)
        return false;
    ret->number = (uint32_t)(tag >> 3);
    ret->shape = tag & 7;
    switch (ret->shape) {
    case NUMBER:
        return read_varint(message, at, &ret->value);
    case BYTES:
        if (!read_varint(message, at, &len))
            return false;
        break;
    case EIGHT:
        len = 8;
        break;
    case FOUR:
        len = 4;
        break;
    default:
        return false;
    }
    if (len > message.len - *at)
        return false;
    ret->bytes = (struct hf__pb){message.bytes + *at, (size_t)len};
    *at += (size_t)len;
    return true;
}

bool hf__pb_whole(struct hf__pb message)
{
    struct field field;
    size_t at = 0;

    while (at < message.len) {
        if (!read_field(message, &at, &field))
            return false;
    }
    return hf__pb_there(message);
}

uint64_t hf__pb_number(struct hf__pb message, uint32_t field)
{
    struct field found;
    uint64_t number = 0;
    size_t at = 0;

    while (read_field(message, &at, &found)) {
        if (found.number == field && found.shape == NUMBER)
            number = found.value;
    }
    return number;
}

struct hf__pb hf__pb_next(struct hf__pb message, uint32_t field, size_t *at)
{
    struct field found;

    while (read_field(message, at, &found)) {
        if (found.number == field && found.shape == BYTES)
            return found.bytes;
    }
    *at = message.len; /* also where it ceases to be well-formed */
    return (struct hf__pb){0};
}

struct hf__pb hf__pb_inside(struct hf__pb message, uint32_t field)
{
    struct hf__pb last = {0};
    struct hf__pb found;
    size_t at = 0;

    while (hf__pb_there(found = hf__pb_next(message, field, &at)))
        last = found;
    return last;
}

void hf__pb_text(struct hf__pb text, char *to, size_t size)
{
    size_t n = text.len < size ? text.len : size - 1;

    for (size_t i = 0; i < n; i++)
        to[i] =
            text.bytes[i] >= ' ' && text.bytes[i] <= '~' ? text.bytes[i] : '?';
    to[n] = '\0';
}

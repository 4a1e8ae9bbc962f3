/* SPDX-License-Identifier: MIT */
/*
 * wire.c - ZooKeeper's wire format.
 *
 * Reading takes no memory and believes no length: what does not fit into the
 * frame makes the rest of it bad, and bad stays. Callers look once, at the end.
 */
#include "engines/zookeeper/wire.h"

/* ---- reading ----------------------------------------------------------- */

/* @n bytes, or NULL. */
static const unsigned char *take(struct hf__zk_wire *in, size_t n)
{
    const char *at = in->at;

    if (in->bad || (size_t)(in->end - at) < n) {
        in->bad = true;
        return NULL;
    }
    in->at = at + n;
    return (const unsigned char *)at;
}

static uint64_t number(struct hf__zk_wire *in, size_t n)
{
    const unsigned char *at = take(in, n);
    uint64_t value = 0;

    for (size_t i = 0; at && i < n; i++)
        value = value << 8 | at[i];
    return value;
}

bool hf__zk_wire_bool(struct hf__zk_wire *in)
{
    return number(in, 1) != 0;
}

int32_t hf__zk_wire_int(struct hf__zk_wire *in)
{
    return (int32_t)(uint32_t)number(in, 4);
}

int64_t hf__zk_wire_long(struct hf__zk_wire *in)
{
    return (int64_t)number(in, 8);
}

struct hf__zk_wire_text hf__zk_wire_text(struct hf__zk_wire *in)
{
    struct hf__zk_wire_text value = {"", 0};
    int32_t len = hf__zk_wire_int(in);
    const unsigned char *text;

    if (len == -1) /* a text that is NULL */
        return value;
    text = len < 0 ? NULL : take(in, (size_t)len);
    in->bad |= len < 0;
    if (text) {
        value.text = (const char *)text;
        value.len = (size_t)len;
    }
    return value;
}

void hf__zk_wire_stat(struct hf__zk_wire *in, struct hf__zk_wire_stat *stat)
{
    stat->czxid = hf__zk_wire_long(in);
    stat->mzxid = hf__zk_wire_long(in);
    stat->ctime_ms = hf__zk_wire_long(in);
    (void)hf__zk_wire_long(in); /* mtime */
    stat->version = hf__zk_wire_int(in);
    stat->children_version = hf__zk_wire_int(in);
    (void)hf__zk_wire_int(in); /* of the access list */
    stat->owner = hf__zk_wire_long(in);
    (void)hf__zk_wire_int(in); /* length of the data */
    stat->children = hf__zk_wire_int(in);
    (void)hf__zk_wire_long(in); /* pzxid */
}

bool hf__zk_wire_part(struct hf__zk_wire *in, struct hf__zk_wire_part *part)
{
    struct hf__zk_wire_stat stat;
    bool last;

    memset(part, 0, sizeof(*part));
    part->type = hf__zk_wire_int(in);
    last = hf__zk_wire_bool(in);
    part->error = hf__zk_wire_int(in);
    if (last)
        return false;
    switch (part->type) {
    case -1:
        part->error = hf__zk_wire_int(in);
        break;
    case HF__ZK_CREATE_PLAIN:
        part->path = hf__zk_wire_text(in);
        break;
    case HF__ZK_SET_DATA:
        hf__zk_wire_stat(in, &stat);
        break;
    case HF__ZK_DELETE:
    case HF__ZK_CHECK:
        break;
    default:
        in->bad = true; /* nobody asked for such a part */
        break;
    }
    return !in->bad;
}

uint32_t hf__zk_wire_count(struct hf__zk_wire *in, size_t least)
{
    int32_t count = hf__zk_wire_int(in);

    if (count == -1) /* a list that is NULL */
        return 0;
    if (count < 0 || (size_t)count > (size_t)(in->end - in->at) / least) {
        in->bad = true;
        return 0;
    }
    return (uint32_t)count;
}

int64_t hf__zk_wire_frame(const char *from, size_t len)
{
    struct hf__zk_wire in = {from, from + len, false};
    int32_t frame = hf__zk_wire_int(&in);

    if (in.bad)
        return -1;
    return frame < 0 || frame > HF__ZK_WIRE_FRAME ? -2 : frame;
}

/* ---- writing ----------------------------------------------------------- */

static void put(struct hf__buf *out, uint64_t value, size_t n)
{
    char bytes[8];

    for (size_t i = 0; i < n; i++)
        bytes[i] = (char)(unsigned char)(value >> 8 * (n - 1 - i));
    hf__buf_append(out, bytes, n);
}

void hf__zk_wire_put_bool(struct hf__buf *out, bool value)
{
    put(out, value, 1);
}

void hf__zk_wire_put_int(struct hf__buf *out, int32_t value)
{
    put(out, (uint32_t)value, 4);
}

void hf__zk_wire_put_long(struct hf__buf *out, int64_t value)
{
    put(out, (uint64_t)value, 8);
}

void hf__zk_wire_put_text(struct hf__buf *out, const void *text, size_t len)
{
    put(out, (uint32_t)len, 4);
    hf__buf_append(out, text, len);
}

void hf__zk_wire_put(struct hf__buf *out, struct hf__zk_wire_text text)
{
    if (text.text)
        hf__zk_wire_put_text(out, text.text, text.len);
    else
        out->failed = true;
}

void hf__zk_wire_put_part(struct hf__buf *out, int32_t type)
{
    hf__zk_wire_put_int(out, type);
    hf__zk_wire_put_bool(out, type == -1);
    hf__zk_wire_put_int(out, -1);
}

void hf__zk_wire_patch_int(struct hf__buf *out, size_t at, int32_t value)
{
    if (hf__buf_failed(out))
        return;
    for (size_t i = 0; i < 4; i++)
        out->text[at + i] =
            (char)(unsigned char)((uint32_t)value >> 8 * (3 - i));
}

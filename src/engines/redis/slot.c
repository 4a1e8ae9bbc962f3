/* SPDX-License-Identifier: MIT */
/*
 * slot.c - which of a cluster's slots a key is in; what its nodes say of them.
 *
 * Pure: bytes in, values out. What a node says may be anything; a slot that is
 * out of range, or an address that is none, is refused here.
 */
#include "engines/redis/slot.h"

/* CRC-16/XMODEM, as the cluster's specification has it. */
static uint16_t crc16(const char *bytes, size_t len)
{
    uint32_t crc = 0;

    for (size_t i = 0; i < len; i++) {
        crc ^= (uint32_t)(unsigned char)bytes[i] << 8;
        for (int bit = 0; bit < 8; bit++)
            crc = crc & 0x8000 ? crc << 1 ^ 0x1021 : crc << 1;
    }
    return (uint16_t)crc;
}

uint16_t hf__slot_of(const char *key, size_t len)
{
    const char *open = memchr(key, '{', len);
    const char *close = NULL;

    if (open)
        close = memchr(open, '}', len - (size_t)(open - key));
    if (close && close > open + 1)
        return crc16(open + 1, (size_t)(close - open) - 1) % HF__SLOTS;
    return crc16(key, len) % HF__SLOTS;
}

static bool set_address(struct hf__slot_address *to, const char *host,
                        size_t len, int64_t port)
{
    if (len >= sizeof(to->host) || memchr(host, '\0', len) || port < 1 ||
        port > 65535)
        return false;
    memcpy(to->host, host, len);
    to->host[len] = '\0';
    to->port = (int)port;
    return true;
}

/* Digits up to @end; -1 for anything else. */
static int64_t number(const char *at, const char *end)
{
    int64_t value = 0;

    if (at == end || end - at > 9)
        return -1;
    for (; at < end; at++) {
        if (*at < '0' || *at > '9')
            return -1;
        value = value * 10 + (*at - '0');
    }
    return value;
}

/* What follows @word in the error; NULL if it is another. */
static const char *after(const struct hf__resp_value *error, const char *word)
{
    size_t len = strlen(word);

    if (error->type != HF__RESP_ERROR || error->len < len ||
        memcmp(error->text, word, len) != 0)
        return NULL;
    return error->text + len;
}

bool hf__slot_read_redirect(const struct hf__resp_value *error,
                            struct hf__slot_redirect *ret_redirect)
{
    const char *moved = after(error, "MOVED ");
    const char *ask = after(error, "ASK ");
    const char *at = moved ? moved : ask;
    const char *end = error->text + error->len;
    const char *space = at ? memchr(at, ' ', (size_t)(end - at)) : NULL;
    const char *colon =
        space ? memrchr(space, ':', (size_t)(end - space)) : NULL;
    int64_t slot;

    if (!colon)
        return false;
    slot = number(at, space);
    if (slot < 0 || slot >= HF__SLOTS ||
        !set_address(&ret_redirect->to, space + 1, (size_t)(colon - space) - 1,
                     number(colon + 1, end)))
        return false;
    ret_redirect->ask = ask != NULL;
    ret_redirect->slot = (uint16_t)slot;
    return true;
}

bool hf__slot_read_range(struct hf__resp *reply,
                         const struct hf__resp_value *head, uint16_t *ret_first,
                         uint16_t *ret_last, struct hf__slot_address *ret_at)
{
    struct hf__resp_value first = hf__resp_next(reply);
    struct hf__resp_value last = hf__resp_next(reply);
    struct hf__resp_value node = hf__resp_next(reply);
    struct hf__resp_value host = hf__resp_next(reply);
    struct hf__resp_value port = hf__resp_next(reply);
    bool named = host.type == HF__RESP_TEXT && !hf__resp_is(&host, "?");
    int64_t from = hf__resp_number(&first, -1);
    int64_t to = hf__resp_number(&last, -1);

    if (head->type != HF__RESP_LIST || head->count < 3 || from < 0 ||
        to < from || to >= HF__SLOTS || node.type != HF__RESP_LIST ||
        node.count < 2 ||
        !set_address(ret_at, named ? host.text : "", named ? host.len : 0,
                     hf__resp_number(&port, 0)))
        return false;
    *ret_first = (uint16_t)from;
    *ret_last = (uint16_t)to;
    return true;
}

/* SPDX-License-Identifier: MIT */
/*
 * items.c - the key and the value of a lock's item.
 *
 * A key has at most 250 bytes and no spaces. We percent-encode names; a name
 * that is too long then becomes a hash, and the value has the whole name, which
 * we compare: two names never become one lock.
 */
#include <inttypes.h>
#include <stdio.h>

#include "config/name.h"
#include "engines/memcached/memcached.h"

enum {
    NAME_MAX = 128 + HF_NAME_MAX, /* prefix and name */
    TICKET_LEN = 44               /* identity and number, in hex */
};

/* @text to @to, as far as there is room before @end. */
static char *put(char *to, char *end, const char *text)
{
    char *behind = memccpy(to, text, '\0', (size_t)(end - to));

    return behind ? behind - 1 : end;
}

/* Prefix and name; its length. */
static size_t full_name(const struct hf__memcached *memcached,
                        const struct hf__ticket *ticket, char to[NAME_MAX + 1])
{
    char *end = put(to, to + NAME_MAX, memcached->base.host->settings->prefix);

    end = put(end, to + NAME_MAX, ticket->name);
    *end = '\0';
    return (size_t)(end - to);
}

/* As tooz has it, which does not encode anything. */
static int tooz_key(const char *name, size_t len,
                    char to[HF__MEMCACHED_KEY + 1], hf_error *err)
{
    int n = snprintf(to, HF__MEMCACHED_KEY + 1, "__TOOZ_LOCK_%s", name);

    if (n > HF__MEMCACHED_KEY || memchr(name, ' ', len))
        return hf__fail(err, HF_EINVAL,
                        "dialect=tooz: the name is too long for a key of "
                        "Memcached, or has a space in it");
    return 0;
}

int hf__memcached_items_key(const struct hf__memcached *memcached,
                            const struct hf__ticket *ticket,
                            char to[HF__MEMCACHED_KEY + 1], hf_error *err)
{
    static const uint64_t seeds[2][2] = {{1, 2}, {3, 4}};
    char name[NAME_MAX + 1];
    size_t len = full_name(memcached, ticket, name);

    if (memcached->tooz)
        return tooz_key(name, len, to, err);
    memcpy(to, "hf:", 3);
    if (hf__name_encode(name, len, to + 3, HF__MEMCACHED_KEY + 1 - 3) == 0)
        (void)snprintf(to, HF__MEMCACHED_KEY + 1,
                       "hf:#%016" PRIx64 "%016" PRIx64,
                       hf__name_hash(name, len, seeds[0]),
                       hf__name_hash(name, len, seeds[1]));
    return 0;
}

/* What no other ticket of any client has. */
static void put_ticket(const struct hf__memcached *memcached,
                       const struct hf__ticket *ticket, char to[TICKET_LEN])
{
    static const char digits[] = "0123456789abcdef";
    uint64_t id = ticket->id;

    memcpy(to, memcached->base.host->identity_hex, 32);
    for (int i = TICKET_LEN - 1; i >= 32; i--, id >>= 4)
        to[i] = digits[id & 15];
}

size_t hf__memcached_items_value(const struct hf__memcached *memcached,
                                 const struct hf__ticket *ticket,
                                 char to[HF__MEMCACHED_VALUE])
{
    char *end = to + HF__MEMCACHED_VALUE;
    char name[NAME_MAX + 1];
    char *at = to + TICKET_LEN;

    put_ticket(memcached, ticket, to);
    if (memcached->tooz)
        return TICKET_LEN;
    (void)full_name(memcached, ticket, name);
    at = put(at, end, memcached->origin);
    at = put(at, end, ticket->owner);
    at = put(at, end, "\n");
    at = put(at, end, ticket->note);
    at = put(at, end, "\n");
    return (size_t)(put(at, end, name) - to);
}

bool hf__memcached_items_is_ours(const struct hf__memcached *memcached,
                                 const struct hf__ticket *ticket,
                                 const struct hf__meta *meta)
{
    char ours[TICKET_LEN];

    put_ticket(memcached, ticket, ours);
    return meta->value_len >= TICKET_LEN &&
           memcmp(meta->value, ours, TICKET_LEN) == 0;
}

/* The part of a value behind @lines line ends, up to the next one. */
static size_t line_of(const struct hf__meta *meta, int lines,
                      const char **ret_at)
{
    const char *at = meta->value;
    const char *end = at + meta->value_len;
    const char *next;

    for (; lines > 0 && at; lines--) {
        at = memchr(at, '\n', (size_t)(end - at));
        at = at ? at + 1 : NULL;
    }
    *ret_at = at;
    if (!at)
        return 0;
    next = memchr(at, '\n', (size_t)(end - at));
    return (size_t)((next ? next : end) - at);
}

bool hf__memcached_items_is_other_name(const struct hf__memcached *memcached,
                                       const struct hf__ticket *ticket,
                                       const struct hf__meta *meta)
{
    char name[NAME_MAX + 1];
    const char *theirs;
    size_t len = full_name(memcached, ticket, name);
    size_t their_len = line_of(meta, 4, &theirs);

    return theirs && (their_len != len || memcmp(theirs, name, len) != 0);
}

bool hf__memcached_items_holder(const struct hf__meta *meta, char *to,
                                size_t size)
{
    const char *host;
    const char *pid;
    const char *owner;
    size_t host_len = line_of(meta, 0, &host);
    size_t pid_len = line_of(meta, 1, &pid);
    size_t owner_len = line_of(meta, 2, &owner);

    if (!owner || host_len <= TICKET_LEN || host_len > 200 || pid_len > 20 ||
        owner_len > HF_OWNER_MAX || host[TICKET_LEN] != ':' ||
        hf__name_check_text("host", host, host_len, 1, 200, NULL) != 0 ||
        hf__name_check_text("pid", pid, pid_len, 0, 20, NULL) != 0 ||
        hf__name_check_text("owner", owner, owner_len, 0, HF_OWNER_MAX, NULL) !=
            0)
        return false;
    (void)snprintf(to, size, "%.*s:%.*s (%.*s)",
                   (int)(host_len - TICKET_LEN - 1), host + TICKET_LEN + 1,
                   (int)pid_len, pid, (int)owner_len, owner);
    return true;
}

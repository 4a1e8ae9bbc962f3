/* SPDX-License-Identifier: MIT */
/*
 * redisson_inspect.c - what can be read of Redisson's locks, and breaking them.
 *
 * Redisson keeps of an owner "<uuid of the client>:<number of the thread>", or
 * the number of a permit, and nothing about its machine or its purpose; there is
 * no place for more that its clients would not stumble over. So that is what is
 * shown, and what names the owner whose lock is to be broken. Of our own client
 * the rest is known here.
 *
 * A list goes through the keys that have the type of such a lock. What is in
 * them tells whether they are one: the owners of no other hash look like that.
 *
 * Failure: a lost connection or an error of the server is the answer.
 */
#include "engines/redis/connection.h"
#include "engines/redis/redis.h"
#include "engines/redis/redisson.h"
#include "engines/redis/tickets.h"

#include <stdio.h>
#include <stdlib.h>

static uint8_t nibble(char digit)
{
    return (uint8_t)(digit <= '9' ? digit - '0' : (digit | 32) - 'a' + 10);
}

/* 32 hex digits as 16 bytes; false if they are not. */
static bool from_hex(const char *text, size_t len, char to[16])
{
    if (len != 32 || strspn(text, "0123456789abcdefABCDEF") < 32)
        return false;
    for (size_t i = 0; i < 16; i++)
        to[i] = (char)(nibble(text[2 * i]) << 4 | nibble(text[2 * i + 1]));
    return true;
}

/* The ticket of this client that @owner is; NULL if it is another's. */
static struct hf__ticket *own_ticket(struct hf__redis *redis, const char *owner)
{
    char mine[HF__REDISSON_OWNER];
    char permit[16];
    uint64_t id = 0;

    if (!redis->kind->permits) {
        if (strncmp(owner, redis->uuid, 36) != 0 || owner[36] != ':')
            return NULL;
        return hf__redis_tickets_find(redis, strtoull(owner + 37, NULL, 10));
    }
    if (!from_hex(owner, strlen(owner), permit))
        return NULL;
    for (int i = 0; i < 6; i++)
        id = id << 8 | (uint8_t)permit[8 + i];
    (void)hf__redisson_owner(redis, id, mine);
    return memcmp(mine, permit, 14) == 0 ? hf__redis_tickets_find(redis, id)
                                         : NULL;
}

/* "<uuid>:<number>", or that and ":write"? Other hashes are not locks. */
static bool is_owner(const char *text)
{
    size_t digits;

    if (strlen(text) < 38 || strspn(text, "0123456789abcdefABCDEF-") != 36 ||
        text[36] != ':')
        return false;
    digits = strspn(text + 37, "0123456789");
    return digits > 0 && (text[37 + digits] == '\0' ||
                          strcmp(text + 37 + digits, ":write") == 0);
}

/* {role, owner, lease, mode, token} */
static int add_row(struct hf__redis *redis, struct hf__query *query,
                   const char *name, struct hf__resp *reply, uint32_t *places)
{
    struct hf__resp_value role = hf__resp_next(reply);
    struct hf__resp_value owner = hf__resp_next(reply);
    struct hf__resp_value lease = hf__resp_next(reply);
    struct hf__resp_value mode = hf__resp_next(reply);
    struct hf__resp_value token = hf__resp_next(reply);
    hf_lock_info row = {
        .name = name, .host = "", .note = "", .since_ms = -1, .alive = 2};
    struct hf__ticket *ticket;
    char text[128];

    if (role.type != HF__RESP_TEXT || owner.type != HF__RESP_TEXT)
        return 0;
    (void)snprintf(text, sizeof(text), "%.*s",
                   (int)(owner.len < 120 ? owner.len : 120), owner.text);
    if (!query->name && !redis->kind->permits && !is_owner(text))
        return 0;
    row.owner = text;
    row.role = hf__resp_is(&role, "w") ? HF_WAITER : HF_HOLDER;
    row.place = row.role == HF_WAITER ? ++*places : 0;
    row.lease_ms = hf__resp_number(&lease, -1);
    row.mode = hf__resp_is(&mode, "x")   ? HF_EXCLUSIVE
               : hf__resp_is(&mode, "s") ? HF_SHARED
                                         : HF_SLOT;
    if (redis->base.caps & HF_CAP_FENCED)
        row.token = (uint64_t)hf__resp_number(&token, 0);
    ticket = own_ticket(redis, text);
    if (ticket) {
        row.host = redis->base.host->host;
        row.pid = redis->base.host->pid;
        row.note = ticket->note;
        row.slots = ticket->slots;
        row.alive = 1;
    }
    return hf__query_add_lock(query, &row);
}

/* ---- list -------------------------------------------------------------- */

/* Permits are in a set beside the name. */
static const char *permits_end(const struct hf__redis *redis)
{
    return redis->kind->no_exclusive ? ":holdfast" : ":timeout";
}

static void add_glob(struct hf__buf *to, const char *text)
{
    for (; *text; text++) {
        if (strchr("*?[]\\", *text))
            hf__buf_append(to, "\\", 1);
        hf__buf_append(to, text, 1);
    }
}

const char *hf__redisson_inspect_pattern(struct hf__redis *redis,
                                         const char *prefix)
{
    struct hf__buf *to = &redis->scratch;

    to->len = 0;
    if (redis->kind->permits)
        hf__buf_append(to, "*", 1); /* perhaps a brace */
    add_glob(to, redis->base.host->settings->prefix);
    add_glob(to, prefix);
    hf__buf_append(to, "*", 1);
    if (redis->kind->permits)
        hf__buf_add(to, permits_end(redis));
    return redis->kind->permits ? "zset" : "hash";
}

bool hf__redisson_inspect_name(const struct hf__redis *redis,
                               const struct hf__resp_value *key, char *to,
                               size_t size)
{
    const char *prefix = redis->base.host->settings->prefix;
    const char *at = key->text;
    size_t len = key->type == HF__RESP_TEXT ? key->len : 0;
    size_t end = redis->kind->permits ? strlen(permits_end(redis)) : 0;

    if (len <= end)
        return false;
    len -= end;
    if (end > 0 && len > 2 && at[0] == '{' && at[len - 1] == '}') {
        at++;
        len -= 2;
    }
    if (len <= redis->prefix_len || len - redis->prefix_len >= size ||
        memcmp(at, prefix, redis->prefix_len) != 0)
        return false;
    memcpy(to, at + redis->prefix_len, len - redis->prefix_len);
    to[len - redis->prefix_len] = '\0';
    return true;
}

int hf__redisson_inspect_add_rows(struct hf__redis *redis,
                                  struct hf__query *query,
                                  struct hf__resp *reply, uint32_t count)
{
    struct hf__resp_value key = hf__resp_next(reply);
    char name[HF_NAME_MAX + 1];
    uint32_t places = 0;
    int rc = 0;

    if (count == 0 || key.type != HF__RESP_TEXT ||
        key.len <= redis->prefix_len ||
        key.len - redis->prefix_len >= sizeof(name))
        return 0;
    (void)snprintf(name, sizeof(name), "%.*s",
                   (int)(key.len - redis->prefix_len),
                   key.text + redis->prefix_len);
    for (uint32_t i = 1; i < count && rc == 0; i++) {
        struct hf__resp_value row = hf__resp_next(reply);
        struct hf__resp after = *reply;

        hf__resp_skip(&after, &row);
        if (row.type == HF__RESP_LIST && row.count == 5)
            rc = add_row(redis, query, name, reply, &places);
        *reply = after;
    }
    return rc;
}

int hf__redisson_inspect_break(struct hf__redis *redis, struct hf__query *query,
                               hf__redis_reply_fn *done, hf_error *err)
{
    struct hf__redis_call call = {.done = done, .query = query};
    const char *owner = query->owner ? query->owner : "";
    size_t len = strlen(owner);
    size_t mark;
    char permit[16];

    /* A writer is shown with the end that its field has. */
    if (len > 6 && strcmp(owner + len - 6, ":write") == 0)
        len -= 6;
    if (redis->kind->permits && !from_hex(owner, len, permit))
        return hf__fail(err, HF_EINVAL,
                        "the owner of a permit is its number, 32 hex digits");
    mark = hf__redis_connection_eval_begin(redis, redis->kind->release_script,
                                           1, 2);
    hf__resp_arg(&redis->stream.out, redis->scratch.text, redis->scratch.len);
    if (redis->kind->permits)
        hf__resp_arg(&redis->stream.out, permit, sizeof(permit));
    else
        hf__resp_arg(&redis->stream.out, owner, len);
    hf__resp_arg_number(&redis->stream.out, (int64_t)query->token);
    return hf__redis_connection_end(redis, mark, &call, err);
}

/* SPDX-License-Identifier: MIT */
/*
 * redisson_look.c - what can be read of Redisson's locks, and breaking them.
 *
 * Redisson keeps of an owner "<uuid of the client>:<number of the thread>", or
 * the number of a permit, and nothing about its machine or its purpose; there is
 * no place for more that its clients would not stumble over. So that is what is
 * shown, and what names the owner whose lock is to be broken. Of our own client
 * the rest is known here.
 *
 * Failure: a lost connection or an error of the server is the answer.
 */
#include "engines/redis/redis.h"

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
        return hf__redis_ticket_find(redis, strtoull(owner + 37, NULL, 10));
    }
    if (!from_hex(owner, strlen(owner), permit))
        return NULL;
    for (int i = 0; i < 6; i++)
        id = id << 8 | (uint8_t)permit[8 + i];
    (void)hf__redisson_owner(redis, id, mine);
    return memcmp(mine, permit, 14) == 0 ? hf__redis_ticket_find(redis, id)
                                         : NULL;
}

/* {role, owner, lease, mode, token} */
static int add_row(struct hf__redis *redis, struct hf__query *query,
                   struct hf__resp *reply, uint32_t *places)
{
    struct hf__resp_value role = hf__resp_next(reply);
    struct hf__resp_value owner = hf__resp_next(reply);
    struct hf__resp_value lease = hf__resp_next(reply);
    struct hf__resp_value mode = hf__resp_next(reply);
    struct hf__resp_value token = hf__resp_next(reply);
    hf_lock_info row = {.name = query->name,
                        .host = "",
                        .note = "",
                        .since_ms = -1,
                        .alive = 2};
    struct hf__ticket *ticket;
    char text[128];

    if (role.type != HF__RESP_TEXT || owner.type != HF__RESP_TEXT)
        return 0;
    (void)snprintf(text, sizeof(text), "%.*s",
                   (int)(owner.len < 120 ? owner.len : 120), owner.text);
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

static void on_look(struct hf__redis *redis, const struct hf__redis_call *call,
                    struct hf__resp *reply)
{
    struct hf__query *query = call->query;
    struct hf__resp_value head;
    uint32_t places = 0;
    int rc = 0;

    if (!reply) {
        hf__redis_answer_lost(redis, query);
        return;
    }
    head = hf__resp_next(reply);
    if (head.type != HF__RESP_LIST) {
        hf__redis_answer_refused(redis, query, &head);
        return;
    }
    for (uint32_t i = 0; i < head.count && rc == 0; i++) {
        struct hf__resp_value row = hf__resp_next(reply);
        struct hf__resp after = *reply;

        hf__resp_skip(&after, &row);
        if (row.type == HF__RESP_LIST && row.count == 5)
            rc = add_row(redis, query, reply, &places);
        *reply = after;
    }
    hf__up_answer(&redis->base, query, rc, /* err= */ NULL);
}

static void add_key(struct hf__redis *redis)
{
    hf__resp_arg(&redis->stream.out, redis->scratch.text, redis->scratch.len);
}

int hf__redisson_show(struct hf__redis *redis, struct hf__query *query,
                      hf_error *err)
{
    struct hf__redis_call call = {.done = on_look, .query = query};
    int rc = hf__redis_make_key(redis, query, redis->dialect, err);
    size_t mark;

    if (rc != 0)
        return rc;
    mark = hf__redis_eval_begin(redis, HF__REDISSON_LOOK, 1, 0);
    add_key(redis);
    return hf__redis_call_end(redis, mark, &call, err);
}

int hf__redisson_break(struct hf__redis *redis, struct hf__query *query,
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
    mark = hf__redis_eval_begin(redis, redis->kind->leave_script, 1, 2);
    add_key(redis);
    if (redis->kind->permits)
        hf__resp_arg(&redis->stream.out, permit, sizeof(permit));
    else
        hf__resp_arg(&redis->stream.out, owner, len);
    hf__resp_arg_number(&redis->stream.out, (int64_t)query->token);
    return hf__redis_call_end(redis, mark, &call, err);
}

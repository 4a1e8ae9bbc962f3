/* SPDX-License-Identifier: MIT */
/*
 * board.c - the board: one hash that has the notices of all clients.
 *
 * Its key is that of a lock called "~waits" with ":w" behind it, which no lock
 * uses. The server's clock ends notices; the hash goes after a day without any.
 *
 * Failure: an answer of another shape is an error of the question.
 */
#include "engines/redis/board.h"

#include <stdio.h>
#include <stdlib.h>

#include "engines/redis/connection.h"
#include "engines/redis/errors.h"
#include "engines/redis/inspect.h"

const char hf__redis_board_name[] = "~waits";

static int board_key(struct hf__redis *redis, hf_error *err)
{
    const struct hf__query question = {.name = hf__redis_board_name};
    int rc;

    if (redis->dialect != &hf__redis_native)
        return hf__fail(
            err, HF_EUNSUPPORTED,
            "dialect=%s cannot tell which waiters wait for one another",
            redis->dialect->name);
    rc = hf__redis_inspect_key(redis, &question, redis->dialect, err);
    if (rc == 0)
        hf__buf_add(&redis->scratch, ":w");
    return rc;
}

/* 1 to 16 digits; 0: it is none. */
static uint64_t number_of(const struct hf__resp_value *value)
{
    char digits[17] = "";
    char *end;
    uint64_t number;

    if (value->type != HF__RESP_TEXT || value->len == 0 ||
        value->len >= sizeof(digits))
        return 0;
    memcpy(digits, value->text, value->len);
    number = strtoull(digits, &end, 16);
    return *end == '\0' ? number : 0;
}

static void on_posted(struct hf__redis *redis,
                      const struct hf__redis_call *call, struct hf__resp *reply)
{
    struct hf__query *query = call->query;
    struct hf__resp_value value;
    hf_error err;

    if (!hf__redis_inspect_answered(redis, query, reply, /* list= */ false,
                                    &value))
        return;
    query->version = number_of(&value);
    if (query->version != 0) {
        hf__up_answer(&redis->base, query, 0, /* err= */ NULL);
        return;
    }
    (void)hf__fail(&err, HF_EUNAVAILABLE, "%s: not the answer of a board",
                   redis->peer);
    hf__up_answer(&redis->base, query, err.code, &err);
}

int hf__redis_board_post(struct hf__engine *engine, struct hf__query *query,
                         hf_error *err)
{
    struct hf__redis *redis = (struct hf__redis *)engine;
    struct hf__redis_call call = {.done = on_posted, .query = query};
    char chance[17];
    uint64_t number;
    size_t mark;
    int rc = board_key(redis, err);

    if (rc != 0)
        return rc;
    if (hf__world->random(&number, sizeof(number)) != 0)
        return hf__fail(err, HF_EINTERNAL, "no random numbers");
    (void)snprintf(chance, sizeof(chance), "%llx",
                   (unsigned long long)(number | 1));
    mark = hf__redis_connection_eval_begin(redis, HF__SCRIPT_BOARD_POST, 1, 4);
    hf__redis_inspect_put_key(redis);
    hf__resp_arg_text(&redis->stream.out, query->owner);
    hf__resp_arg_text(&redis->stream.out, query->text ? query->text : "");
    hf__resp_arg_number(&redis->stream.out, HF__BOARD_MS);
    hf__resp_arg_text(&redis->stream.out, chance);
    return hf__redis_connection_end(redis, mark, &call, err);
}

static void on_read(struct hf__redis *redis, const struct hf__redis_call *call,
                    struct hf__resp *reply)
{
    struct hf__query *query = call->query;
    struct hf__resp_value value;
    uint32_t n;
    int rc = 0;

    if (!hf__redis_inspect_answered(redis, query, reply, /* list= */ true,
                                    &value))
        return;
    n = value.count;
    for (uint32_t i = 0; i < n && rc == 0; i++) {
        value = hf__resp_next(reply);
        if (i == 0)
            query->version = number_of(&value);
        else if (value.type == HF__RESP_TEXT)
            rc = hf__query_add_notice(query, value.text, value.len);
    }
    hf__up_answer(&redis->base, query, rc, /* err= */ NULL);
}

int hf__redis_board_read(struct hf__engine *engine, struct hf__query *query,
                         hf_error *err)
{
    struct hf__redis *redis = (struct hf__redis *)engine;
    struct hf__redis_call call = {.done = on_read, .query = query};
    size_t mark;
    int rc = board_key(redis, err);

    if (rc != 0)
        return rc;
    mark = hf__redis_connection_eval_begin(redis, HF__SCRIPT_BOARD_READ, 1, 0);
    hf__redis_inspect_put_key(redis);
    return hf__redis_connection_end(redis, mark, &call, err);
}

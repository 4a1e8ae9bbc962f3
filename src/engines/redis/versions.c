/* SPDX-License-Identifier: MIT */
/*
 * versions.c - read and commit an optimistic version.
 *
 * Failure: a commit whose answer is lost is unknown; everything else is the
 * error of the server, or of the connection.
 */
#include "engines/redis/connection.h"
#include "engines/redis/inspect.h"

static int version_key(struct hf__redis *redis, const struct hf__query *query,
                       hf_error *err)
{
    int rc = hf__redis_inspect_key(redis, query, &hf__redis_native, err);

    if (rc == 0)
        hf__buf_add(&redis->scratch, ":v");
    return rc;
}

static void on_version(struct hf__redis *redis,
                       const struct hf__redis_call *call,
                       struct hf__resp *reply)
{
    struct hf__query *query = call->query;
    struct hf__resp_value value;

    if (!hf__redis_inspect_answered(redis, query, reply, /* list= */ false,
                                    &value))
        return;
    query->version = (uint64_t)hf__resp_number(&value, 0);
    hf__up_answer(&redis->base, query, 0, /* err= */ NULL);
}

static void on_committed(struct hf__redis *redis,
                         const struct hf__redis_call *call,
                         struct hf__resp *reply)
{
    struct hf__query *query = call->query;
    struct hf__resp_value head;
    struct hf__resp_value done;
    struct hf__resp_value version;

    head = hf__resp_first(reply);
    if (head.type == HF__RESP_ERROR) {
        hf__redis_inspect_refused(redis, query,
                                  &head); /* SET is its last act */
        return;
    }
    if (head.type != HF__RESP_LIST || head.count != 2) {
        hf__redis_inspect_unknown(redis, query);
        return;
    }
    done = hf__resp_next(reply);
    version = hf__resp_next(reply);
    query->version = (uint64_t)hf__resp_number(&version, 0);
    if (hf__resp_number(&done, 0) == 1)
        hf__up_answer(&redis->base, query, 0, /* err= */ NULL);
    else
        hf__redis_inspect_text(redis, query, HF_ECONFLICT,
                               "another version was committed");
}

static int ask(struct hf__engine *engine, struct hf__query *query, bool commit,
               hf_error *err)
{
    struct hf__redis *redis = (struct hf__redis *)engine;
    struct hf__redis_call call = {.done = commit ? on_committed : on_version,
                                  .query = query};
    int rc = version_key(redis, query, err);
    size_t mark;

    if (rc != 0)
        return rc;
    if (commit) {
        mark = hf__redis_connection_eval_begin(redis, HF__SCRIPT_VERSION_COMMIT,
                                               1, 1);
    } else {
        mark = hf__redis_connection_begin(redis, 2);
        hf__resp_arg_text(&redis->stream.out, "GET");
    }
    hf__redis_inspect_put_key(redis);
    if (commit)
        hf__resp_arg_number(&redis->stream.out, (int64_t)query->token);
    return hf__redis_connection_end(redis, mark, &call, err);
}

int hf__redis_versions_read(struct hf__engine *engine, struct hf__query *query,
                            hf_error *err)
{
    return ask(engine, query, /* commit= */ false, err);
}

int hf__redis_versions_commit(struct hf__engine *engine,
                              struct hf__query *query, hf_error *err)
{
    return ask(engine, query, /* commit= */ true, err);
}

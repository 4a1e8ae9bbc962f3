/* SPDX-License-Identifier: MIT */
/*
 * versions.c - optimistic versions: one node each, under ROOT/.versions.
 *
 * The version is the number of the transaction that wrote the node last
 * (mzxid). It grows over the whole ensemble, so a version does not return, not
 * even after somebody has deleted the node. A commit reads the node, compares,
 * and writes it on condition that nobody has written in between.
 *
 * Failure: a commit whose answer was lost is HF_EUNKNOWN: read again.
 */
#include "engines/zookeeper/zookeeper.h"

static void answer(struct hf__zk *zk, struct hf__query *query, int32_t error)
{
    hf_error err;
    int rc = hf__zk_errors_read(zk, error, &err);

    hf__up_answer(&zk->base, query, rc, &err);
}

static void answer_lost(struct hf__zk *zk, struct hf__query *query, int code)
{
    hf_error err;

    (void)hf__zk_errors_lost(zk, &err);
    err.code = code;
    hf__up_answer(&zk->base, query, code, &err);
}

static void answer_conflict(struct hf__zk *zk, struct hf__query *query)
{
    hf_error err;
    int rc = hf__fail(&err, HF_ECONFLICT, "'%s': another version was committed",
                      query->name);

    hf__up_answer(&zk->base, query, rc, &err);
}

/* ROOT/.versions/NAME in zk->scratch. No lock's node begins with a dot. */
static int version_path(struct hf__zk *zk, const struct hf__query *query,
                        hf_error *err)
{
    static const char dir[] = "/.versions";
    size_t len;

    if (!hf__zk_connection_is_up(zk))
        return hf__zk_errors_not_up(zk, err);
    if (hf__zk_nodes_path(zk, query->name, strlen(query->name)) != 0)
        return hf__fail(err, HF_ENOMEM, "out of memory");
    len = zk->scratch.len - zk->root_len;
    hf__buf_add(&zk->scratch, dir);
    if (hf__buf_failed(&zk->scratch)) {
        hf__buf_release(&zk->scratch);
        return hf__fail(err, HF_ENOMEM, "out of memory");
    }
    memmove(zk->scratch.text + zk->root_len + strlen(dir),
            zk->scratch.text + zk->root_len, len);
    memcpy(zk->scratch.text + zk->root_len, dir, strlen(dir));
    return 0;
}

/* ---- reading ----------------------------------------------------------- */

static int ask_stat(struct hf__zk *zk, struct hf__query *query,
                    hf__zk_reply_fn *done, hf_error *err)
{
    struct hf__zk_call call = {.done = done, .query = query};
    int rc = version_path(zk, query, err);

    if (rc == 0)
        rc = hf__zk_calls_sync(zk, err);
    if (rc == 0)
        rc = hf__zk_calls_ask(zk, HF__ZK_EXISTS, zk->scratch.text,
                              zk->scratch.len,
                              /* watch= */ false, &call, err);
    return rc;
}

static void on_read(struct hf__zk *zk, const struct hf__zk_call *call,
                    struct hf__zk_reply *reply)
{
    struct hf__zk_wire_stat stat = {0};

    if (!reply) {
        answer_lost(zk, call->query, HF_EUNAVAILABLE);
        return;
    }
    if (reply->error != HF__ZK_OK && reply->error != HF__ZK_NO_NODE) {
        answer(zk, call->query, reply->error);
        return;
    }
    if (reply->error == HF__ZK_OK)
        hf__zk_wire_stat(&reply->in, &stat);
    call->query->version = (uint64_t)stat.mzxid;
    hf__up_answer(&zk->base, call->query, 0, /* err= */ NULL);
}

int hf__zk_versions_read(struct hf__engine *engine, struct hf__query *query,
                         hf_error *err)
{
    return ask_stat((struct hf__zk *)engine, query, on_read, err);
}

/* ---- committing -------------------------------------------------------- */

static int create_it(struct hf__zk *zk, struct hf__query *query, size_t len,
                     hf_error *err);
static hf__zk_reply_fn on_compare;

/* It is written, or another client was quicker: then what is there now? */
static void on_written(struct hf__zk *zk, const struct hf__zk_call *call,
                       struct hf__zk_reply *reply)
{
    struct hf__zk_wire_stat stat;
    hf_error err;
    int rc;

    if (!reply) {
        answer_lost(zk, call->query, HF_EUNKNOWN);
        return;
    }
    if (reply->error == HF__ZK_BAD_VERSION ||
        reply->error == HF__ZK_NODE_EXISTS || reply->error == HF__ZK_NO_NODE) {
        rc = ask_stat(zk, call->query, on_compare, &err);
        if (rc != 0)
            hf__up_answer(&zk->base, call->query, rc, &err);
        return;
    }
    if (reply->error != HF__ZK_OK) {
        answer(zk, call->query, reply->error);
        return;
    }
    if (call->number != 0) /* a create answers with the path first */
        (void)hf__zk_wire_text(&reply->in);
    hf__zk_wire_stat(&reply->in, &stat);
    call->query->version = (uint64_t)stat.mzxid;
    hf__up_answer(&zk->base, call->query, 0, /* err= */ NULL);
}

/* A node above the version's: call->number is the length of its path. */
static void on_above(struct hf__zk *zk, const struct hf__zk_call *call,
                     struct hf__zk_reply *reply)
{
    size_t len = (size_t)call->number;
    hf_error err;
    int rc;

    if (!reply) {
        answer_lost(zk, call->query, HF_EUNAVAILABLE);
        return;
    }
    rc = version_path(zk, call->query, &err);
    if (rc == 0 && reply->error == HF__ZK_NO_NODE) {
        while (len > 0 && zk->scratch.text[--len] != '/')
            continue;
        rc = len > 0 ? create_it(zk, call->query, len, &err)
                     : hf__zk_errors_read(zk, reply->error, &err);
    } else if (rc == 0 && reply->error != HF__ZK_OK &&
               reply->error != HF__ZK_NODE_EXISTS) {
        rc = hf__zk_errors_read(zk, reply->error, &err);
    } else if (rc == 0) {
        len++;
        while (len < zk->scratch.len && zk->scratch.text[len] != '/')
            len++;
        rc = create_it(zk, call->query, len, &err);
    }
    if (rc != 0)
        hf__up_answer(&zk->base, call->query, rc, &err);
}

static void on_made(struct hf__zk *zk, const struct hf__zk_call *call,
                    struct hf__zk_reply *reply)
{
    if (reply && reply->error == HF__ZK_NO_NODE)
        on_above(zk, call, reply);
    else
        on_written(zk, call, reply);
}

/* Make the first @len bytes of the path in zk->scratch: all of it is the
 * version's node, less is one above it. */
static int create_it(struct hf__zk *zk, struct hf__query *query, size_t len,
                     hf_error *err)
{
    bool whole = len == zk->scratch.len;
    struct hf__zk_call call = {.done = whole ? on_made : on_above,
                               .query = query,
                               .number = (int32_t)len};

    return hf__zk_calls_create(zk, zk->scratch.text, len, /* data= */ NULL,
                               HF__ZK_PERSISTENT, &call, err);
}

static int write_it(struct hf__zk *zk, struct hf__query *query, int32_t version,
                    hf_error *err)
{
    struct hf__zk_call call = {.done = on_written, .query = query};
    size_t mark = hf__zk_calls_begin(zk, HF__ZK_SET_DATA);

    hf__zk_wire_put_text(&zk->stream.out, zk->scratch.text, zk->scratch.len);
    hf__zk_wire_put_text(&zk->stream.out, "", 0);
    hf__zk_wire_put_int(&zk->stream.out, version);
    return hf__zk_calls_end(zk, mark, &call, err);
}

/* Is the node still what the caller has read? */
static void on_compare(struct hf__zk *zk, const struct hf__zk_call *call,
                       struct hf__zk_reply *reply)
{
    struct hf__query *query = call->query;
    struct hf__zk_wire_stat stat = {0};
    hf_error err;
    int rc;

    if (!reply) {
        answer_lost(zk, query, HF_EUNAVAILABLE);
        return;
    }
    if (reply->error != HF__ZK_OK && reply->error != HF__ZK_NO_NODE) {
        answer(zk, query, reply->error);
        return;
    }
    if (reply->error == HF__ZK_OK)
        hf__zk_wire_stat(&reply->in, &stat);
    query->version = (uint64_t)stat.mzxid;
    if (query->version != query->token) {
        answer_conflict(zk, query);
        return;
    }
    if (!query->waiter) { /* and is told that nothing was committed */
        answer_lost(zk, query, HF_EUNAVAILABLE);
        return;
    }
    rc = version_path(zk, query, &err);
    if (rc == 0)
        rc = stat.mzxid == 0 ? create_it(zk, query, zk->scratch.len, &err)
                             : write_it(zk, query, stat.version, &err);
    if (rc != 0)
        hf__up_answer(&zk->base, query, rc, &err);
}

int hf__zk_versions_commit(struct hf__engine *engine, struct hf__query *query,
                           hf_error *err)
{
    return ask_stat((struct hf__zk *)engine, query, on_compare, err);
}

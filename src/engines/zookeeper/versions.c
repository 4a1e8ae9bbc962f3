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

static void answer_conflict(struct hf__zk *zk, struct hf__query *query)
{
    hf_error err;
    int rc = hf__fail(&err, HF_ECONFLICT, "'%s': another version was committed",
                      query->name);

    hf__up_answer(&zk->base, query, rc, &err);
}

/* ROOT/.versions/NAME. No lock's node begins with a dot. */
static struct hf__zk_wire_text version_path(struct hf__zk *zk,
                                            const struct hf__query *query)
{
    return hf__zk_nodes_path(zk, "/.versions", query->name,
                             strlen(query->name));
}

/* ---- reading ----------------------------------------------------------- */

static int ask_stat(struct hf__zk *zk, struct hf__query *query,
                    hf__zk_reply_fn *done, hf_error *err)
{
    struct hf__zk_call call = {.done = done, .query = query};
    int rc = hf__zk_calls_sync(zk, err);

    if (rc == 0)
        rc = hf__zk_calls_ask(zk, HF__ZK_EXISTS, version_path(zk, query),
                              /* watch= */ false, &call, err);
    return rc;
}

static bool is_there_or_not(const struct hf__zk_reply *reply)
{
    return reply &&
           (reply->error == HF__ZK_OK || reply->error == HF__ZK_NO_NODE);
}

static void on_read(struct hf__zk *zk, const struct hf__zk_call *call,
                    struct hf__zk_reply *reply)
{
    struct hf__zk_wire_stat stat = {0};

    if (!is_there_or_not(reply)) {
        hf__zk_errors_answer(zk, call->query, reply);
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
        (void)hf__zk_errors_lost(zk, &err);
        err.code = HF_EUNKNOWN;
        hf__up_answer(&zk->base, call->query, err.code, &err);
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
        hf__zk_errors_answer(zk, call->query, reply);
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
    struct hf__zk_wire_text path = version_path(zk, call->query);
    bool missing;
    size_t next = 0;
    hf_error err;
    int rc;

    if (!reply) {
        hf__zk_errors_answer(zk, call->query, reply);
        return;
    }
    missing = reply->error == HF__ZK_NO_NODE;
    if (path.text)
        next = hf__zk_nodes_next(path, (size_t)call->number, missing);
    if (!path.text)
        rc = hf__fail(&err, HF_ENOMEM, "out of memory");
    else if (next > 0 && (missing || reply->error == HF__ZK_OK ||
                          reply->error == HF__ZK_NODE_EXISTS))
        rc = create_it(zk, call->query, next, &err);
    else
        rc = hf__zk_errors_read(zk, reply->error, &err);
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

/* Make the first @len bytes of the path: all of it is the version's node, less
 * is one above it. */
static int create_it(struct hf__zk *zk, struct hf__query *query, size_t len,
                     hf_error *err)
{
    struct hf__zk_wire_text path = version_path(zk, query);
    bool whole = len >= path.len;
    struct hf__zk_call call = {.done = whole ? on_made : on_above,
                               .query = query};

    path.len = whole ? path.len : len;
    call.number = (int32_t)path.len;
    return hf__zk_calls_create(zk, path, hf__zk_wire_text_of(""),
                               HF__ZK_PERSISTENT, &call, err);
}

/* Is the node still what the caller has read? */
static void on_compare(struct hf__zk *zk, const struct hf__zk_call *call,
                       struct hf__zk_reply *reply)
{
    struct hf__query *query = call->query;
    struct hf__zk_call write = {.done = on_written, .query = query};
    struct hf__zk_wire_stat stat = {0};
    hf_error err;
    int rc;

    if (!is_there_or_not(reply)) {
        hf__zk_errors_answer(zk, query, reply);
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
        hf__zk_errors_answer(zk, query, /* reply= */ NULL);
        return;
    }
    rc = stat.mzxid == 0 ? create_it(zk, query, /* len= */ SIZE_MAX, &err)
                         : hf__zk_calls_set(zk, version_path(zk, query),
                                            hf__zk_wire_text_of(""),
                                            stat.version, &write, &err);
    if (rc != 0)
        hf__up_answer(&zk->base, query, rc, &err);
}

int hf__zk_versions_commit(struct hf__engine *engine, struct hf__query *query,
                           hf_error *err)
{
    return ask_stat((struct hf__zk *)engine, query, on_compare, err);
}

/* SPDX-License-Identifier: MIT */
/*
 * versions.c - optimistic versions: one key each beside the queues.
 *
 * The version is the revision at which the key was written last. It grows over
 * the whole store, so a version does not return.
 *
 * Failure: a commit whose answer was lost is HF_EUNKNOWN: read again.
 */
#include "engines/etcd/etcd.h"

static uint64_t version_in(struct hf__pb range)
{
    return hf__pb_number(hf__etcd_queue_first_of(range), HF__KV_MODIFIED);
}

static void on_version(struct hf__etcd *etcd, struct hf__etcd_call *call,
                       const struct hf__etcd_reply *reply)
{
    if (reply->code != HF__ETCD_OK) {
        hf__etcd_errors_answer(etcd, call->query, reply);
        return;
    }
    call->query->version = version_in(reply->root);
    hf__etcd_errors_tell(etcd, call->query, 0, "");
}

static void on_commit(struct hf__etcd *etcd, struct hf__etcd_call *call,
                      const struct hf__etcd_reply *reply)
{
    if (reply->code != HF__ETCD_OK) {
        hf__etcd_errors_answer_unsure(etcd, call->query, reply);
    } else if (hf__pb_number(reply->root, HF__TXN_SUCCEEDED) != 0) {
        call->query->version = hf__etcd_queue_revision_of(reply->root);
        if (call->query->version > call->query->token)
            hf__etcd_errors_tell(etcd, call->query, 0, "");
        else
            hf__etcd_errors_tell(etcd, call->query, HF_EUNKNOWN,
                                 "an odd answer");
    } else {
        call->query->version =
            version_in(hf__etcd_queue_range_of(reply->root, 0));
        hf__etcd_errors_tell(etcd, call->query, HF_ECONFLICT,
                             "another version was committed");
    }
}

/* A call about the version of query->name, whose key is in etcd->key. */
static struct hf__etcd_call *version_call(struct hf__etcd *etcd,
                                          struct hf__query *query,
                                          const char *path,
                                          hf__etcd_reply_fn *done,
                                          hf_error *err)
{
    struct hf__etcd_call *call = NULL;

    if (!etcd->up) {
        (void)hf__etcd_errors_not_up(etcd, err);
        return NULL;
    }
    call = hf__etcd_connection_call(etcd, path, done);
    if (!call) {
        (void)hf__fail(err, HF_ENOMEM, "out of memory");
        return NULL;
    }
    call->query = query;
    hf__etcd_queue_key_beside(etcd, "version", query->name,
                              strlen(query->name));
    return call;
}

int hf__etcd_versions_read(struct hf__engine *engine, struct hf__query *query,
                           hf_error *err)
{
    struct hf__etcd *etcd = (struct hf__etcd *)engine;
    struct hf__etcd_call *call =
        version_call(etcd, query, HF__CALL_RANGE, on_version, err);

    if (!call)
        return etcd->up ? HF_ENOMEM : HF_EUNAVAILABLE;
    hf__etcd_queue_add_key(etcd, &call->rpc.body, /* range= */ false);
    hf__pb_add_number(&call->rpc.body, HF__RANGE_KEYS_ONLY, 1);
    return hf__etcd_connection_send(call, err);
}

/* Put etcd->key if its version is @expected; if not, tell which it is. */
static void add_commit(struct hf__etcd *etcd, struct hf__buf *to,
                       uint64_t expected)
{
    size_t part;
    size_t put;

    hf__etcd_queue_add_compare_modified(etcd, to, expected);
    part = hf__pb_begin(to, HF__TXN_SUCCESS);
    put = hf__pb_begin(to, HF__OP_PUT);
    hf__etcd_queue_add_key(etcd, to, /* range= */ false);
    hf__pb_end(to, put);
    hf__pb_end(to, part);
    hf__etcd_queue_add_get(etcd, to, HF__TXN_FAILURE);
}

int hf__etcd_versions_commit(struct hf__engine *engine, struct hf__query *query,
                             hf_error *err)
{
    struct hf__etcd *etcd = (struct hf__etcd *)engine;
    struct hf__etcd_call *call =
        version_call(etcd, query, HF__CALL_TXN, on_commit, err);

    if (!call)
        return etcd->up ? HF_ENOMEM : HF_EUNAVAILABLE;
    add_commit(etcd, &call->rpc.body, query->token);
    return hf__etcd_connection_send(call, err);
}

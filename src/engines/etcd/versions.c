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

static void version_key(struct hf__etcd *etcd, const struct hf__query *query)
{
    hf__etcd_queue_key_beside(etcd, "version", query->name,
                              strlen(query->name));
}

static void add_read(struct hf__etcd *etcd, struct hf__buf *to,
                     const struct hf__query *query)
{
    version_key(etcd, query);
    hf__etcd_queue_add_key(etcd, to, /* range= */ false);
    hf__pb_add_number(to, HF__RANGE_KEYS_ONLY, 1);
}

int hf__etcd_versions_read(struct hf__engine *engine, struct hf__query *query,
                           hf_error *err)
{
    return hf__etcd_connection_ask((struct hf__etcd *)engine, query,
                                   HF__CALL_RANGE, add_read, on_version, err);
}

/* Put the key if its version is the expected one; if not, tell which it is. */
static void add_commit(struct hf__etcd *etcd, struct hf__buf *to,
                       const struct hf__query *query)
{
    size_t part;
    size_t put;

    version_key(etcd, query);
    hf__etcd_queue_add_compare_modified(etcd, to, query->token);
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
    return hf__etcd_connection_ask((struct hf__etcd *)engine, query,
                                   HF__CALL_TXN, add_commit, on_commit, err);
}

/* SPDX-License-Identifier: MIT */
/*
 * errors.c - what went wrong, in our words.
 *
 * A code of gRPC that we know is certain: nothing was carried out. Every other
 * one, and an answer that did not come, is LOST: nobody knows.
 */
#include "engines/etcd/etcd.h"

static const struct {
    int code;
    int ours;
    const char *hint;
} codes[] = {
    {HF__ETCD_INVALID, HF_EINTERNAL, ""},
    {HF__ETCD_NOT_FOUND, HF_ENOTFOUND, ""},
    {HF__ETCD_DENIED, HF_EAUTH,
     ": the user's role needs readwrite on the prefix, see holdfast(7)"},
    {HF__ETCD_EXHAUSTED, HF_ENOSPACE,
     ": compact, defragment, and disarm the alarm"},
    {HF__ETCD_PRECONDITION, HF_EUNSUPPORTED, ""},
    {HF__ETCD_UNIMPLEMENTED, HF_EUNSUPPORTED, ""},
    {HF__ETCD_UNAUTHENTICATED, HF_EAUTH, ""},
};

int hf__etcd_errors_not_up(struct hf__etcd *etcd, hf_error *err)
{
    return hf__fail(err, HF_EUNAVAILABLE, "etcd %s: not connected",
                    hf__etcd_connection_peer(etcd));
}

void hf__etcd_errors_lost(struct hf__etcd *etcd, struct hf__etcd_reply *reply,
                          int code, const char *why)
{
    reply->code = HF__ETCD_LOST;
    (void)hf__fail(&reply->err, code, "etcd %s: %s",
                   hf__etcd_connection_peer(etcd), why);
}

void hf__etcd_errors_read(struct hf__etcd *etcd, struct hf__etcd_reply *reply,
                          const struct hf__grpc_call *rpc)
{
    hf__etcd_errors_lost(etcd, reply, HF_EUNAVAILABLE,
                         rpc->text[0] ? rpc->text : "an error without a text");
    for (size_t i = 0; i < HF_COUNT_OF(codes); i++) {
        if (codes[i].code != rpc->code)
            continue;
        reply->code = rpc->code;
        (void)hf__fail_engine(&reply->err, codes[i].ours, rpc->code,
                              "etcd %s: %s%s", hf__etcd_connection_peer(etcd),
                              rpc->text, codes[i].hint);
    }
}

void hf__etcd_errors_answer(struct hf__etcd *etcd, struct hf__query *query,
                            const struct hf__etcd_reply *reply)
{
    hf__up_answer(&etcd->base, query, reply->err.code, &reply->err);
}

void hf__etcd_errors_answer_unsure(struct hf__etcd *etcd,
                                   struct hf__query *query,
                                   const struct hf__etcd_reply *reply)
{
    hf_error err = reply->err;

    if (reply->code == HF__ETCD_LOST)
        err.code = HF_EUNKNOWN;
    hf__up_answer(&etcd->base, query, err.code, &err);
}

void hf__etcd_errors_tell(struct hf__etcd *etcd, struct hf__query *query,
                          int code, const char *text)
{
    hf_error err;

    if (code == 0) {
        hf__up_answer(&etcd->base, query, 0, /* err= */ NULL);
        return;
    }
    (void)hf__fail(&err, code, "%s", text);
    hf__up_answer(&etcd->base, query, code, &err);
}

/* SPDX-License-Identifier: MIT */
/*
 * errors.c - the server's errors in our words.
 */
#include "engines/zookeeper/zookeeper.h"

static const struct {
    int32_t error;
    int code;
    const char *text;
} errors[] = {
    {HF__ZK_UNIMPLEMENTED, HF_EUNSUPPORTED,
     "the server is too old: ZooKeeper 3.5.3 or later is needed"},
    {HF__ZK_NO_AUTH, HF_EAUTH, "not allowed by the node's access list"},
    {HF__ZK_INVALID_ACL, HF_ECONFIG, "the server does not accept the acl"},
    {HF__ZK_AUTH_FAILED, HF_EAUTH, "user and password are not accepted"},
    {HF__ZK_QUOTA, HF_ENOSPACE, "the quota is exceeded"},
    {HF__ZK_SESSION_EXPIRED, HF_EUNAVAILABLE, "the session has expired"},
    {HF__ZK_SESSION_MOVED, HF_EUNAVAILABLE, "the session is elsewhere"},
};

int hf__zk_errors_read(const struct hf__zk *zk, int32_t error, hf_error *err)
{
    for (size_t i = 0; i < HF_COUNT_OF(errors); i++) {
        if (errors[i].error == error)
            return hf__fail_engine(err, errors[i].code, error, "%s: %s",
                                   zk->peer, errors[i].text);
    }
    return hf__fail_engine(err, HF_EINTERNAL, error, "%s: error %d", zk->peer,
                           (int)error);
}

int hf__zk_errors_lost(const struct hf__zk *zk, hf_error *err)
{
    return hf__fail(err, HF_EUNAVAILABLE, "%s: the connection was lost",
                    zk->peer);
}

int hf__zk_errors_not_up(const struct hf__zk *zk, hf_error *err)
{
    return hf__fail(err, HF_EUNAVAILABLE, "%s: not connected", zk->peer);
}

void hf__zk_errors_answer(struct hf__zk *zk, struct hf__query *query,
                          const struct hf__zk_reply *reply)
{
    hf_error err;
    int rc = reply ? hf__zk_errors_read(zk, reply->error, &err)
                   : hf__zk_errors_lost(zk, &err);

    hf__up_answer(&zk->base, query, rc, &err);
}

/* SPDX-License-Identifier: MIT */
/*
 * multi.c - transactions: several changes, all of them or none.
 *
 * The server answers for each part. Where one has failed, the parts before it
 * say 0 and those behind it HF__ZK_OTHER_PART, and nothing is done.
 */
#include "engines/zookeeper/zookeeper.h"

/* Begin a part. */
static struct hf__buf *put_part(struct hf__zk *zk, int32_t type,
                                struct hf__zk_wire_text path)
{
    hf__zk_wire_put_part(&zk->stream.out, type);
    hf__zk_wire_put(&zk->stream.out, path);
    return &zk->stream.out;
}

void hf__zk_multi_create(struct hf__zk *zk, struct hf__zk_wire_text path,
                         struct hf__zk_wire_text data, int32_t kind)
{
    struct hf__buf *out = put_part(zk, HF__ZK_CREATE_PLAIN, path);

    hf__zk_wire_put(out, data);
    hf__zk_acl_put(zk, out);
    hf__zk_wire_put_int(out, kind);
}

void hf__zk_multi_delete(struct hf__zk *zk, struct hf__zk_wire_text path)
{
    hf__zk_wire_put_int(put_part(zk, HF__ZK_DELETE, path), HF__ZK_ANY_VERSION);
}

void hf__zk_multi_check(struct hf__zk *zk, struct hf__zk_wire_text path,
                        int32_t version)
{
    hf__zk_wire_put_int(put_part(zk, HF__ZK_CHECK, path), version);
}

void hf__zk_multi_set(struct hf__zk *zk, struct hf__zk_wire_text path,
                      struct hf__zk_wire_text data, int32_t version)
{
    struct hf__buf *out = put_part(zk, HF__ZK_SET_DATA, path);

    hf__zk_wire_put(out, data);
    hf__zk_wire_put_int(out, version);
}

int hf__zk_multi_end(struct hf__zk *zk, size_t mark,
                     const struct hf__zk_call *call, hf_error *err)
{
    hf__zk_wire_put_part(&zk->stream.out, /* the end */ -1);
    return hf__zk_calls_end(zk, mark, call, err);
}

struct hf__zk_multi_result hf__zk_multi_result(struct hf__zk_reply *reply)
{
    struct hf__zk_multi_result result = {.error = reply->error};
    struct hf__zk_wire_part part;

    for (uint32_t i = 0;
         result.error == HF__ZK_OK && hf__zk_wire_part(&reply->in, &part);
         i++) {
        if (part.error != HF__ZK_OK) {
            result.error = part.error;
            result.failed = i;
        } else if (part.path.len > 0 && result.made.len == 0) {
            result.made = part.path;
        }
    }
    return result;
}

/* SPDX-License-Identifier: MIT */
/*
 * version.c - optimistic versions: read, work, commit if nobody else did.
 *
 * No lock is held in between. Of all who read the same version exactly one
 * commits; the others get HF_ECONFLICT and read again. A version never
 * returns, not even after the store was lost, so an old one cannot match.
 */
#include "core/query.h"

static int ask_version(hf_client *client, size_t slot_offset, const char *name,
                       uint64_t expected, uint64_t *ret_version, hf_error *err)
{
    struct hf__query *query;
    int rc;

    if (!client || !name || !ret_version)
        return hf__fail(err, HF_EINVAL, "client, name or ret_version is NULL");
    query = hf__query_new(err);
    if (!query)
        return HF_ENOMEM;
    query->token = expected;
    query->changes =
        slot_offset == offsetof(struct hf__engine_ops, version_commit);
    rc = hf__query_name(query, name, err);
    if (rc == 0)
        rc = hf__query_ask(client, slot_offset, &query, err);
    if (rc == 0)
        *ret_version = query->version;
    hf__query_free(query);
    return rc;
}

int hf_version_read(hf_client *client, const char *name, uint64_t *ret_version,
                    hf_error *err)
{
    return ask_version(client, offsetof(struct hf__engine_ops, version_read),
                       name, 0, ret_version, err);
}

int hf_version_commit(hf_client *client, const char *name, uint64_t expected,
                      uint64_t *ret_version, hf_error *err)
{
    return ask_version(client, offsetof(struct hf__engine_ops, version_commit),
                       name, expected, ret_version, err);
}

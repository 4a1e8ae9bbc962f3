/* SPDX-License-Identifier: MIT */
/*
 * acl.c - the permissions of the nodes that we make.
 *
 * acl= is a list of scheme:id:permissions, as ZooKeeper's own shell writes it:
 * "world:anyone:r,digest:ops:HASH:cdrwa". The default allows everything to
 * the creator of the node if there are credentials, else to everybody.
 */
#include "engines/zookeeper/zookeeper.h"

static int32_t permissions(const char *text, size_t len)
{
    static const char letters[] = "rwcda";
    int32_t sum = 0;

    for (size_t i = 0; i < len; i++) {
        const char *letter = text[i] ? strchr(letters, text[i]) : NULL;

        if (!letter)
            return 0;
        sum |= 1 << (letter - letters);
    }
    return sum;
}

static int add(struct hf__zk *zk, const char *scheme, size_t scheme_len,
               const char *id, size_t id_len, int32_t allowed)
{
    struct hf__zk_acl *acl = &zk->acls[zk->n_acls++];

    acl->permissions = allowed;
    acl->scheme = hf__strndup(scheme, scheme_len);
    acl->id = hf__strndup(id, id_len);
    return acl->scheme && acl->id ? 0 : HF_ENOMEM;
}

/* One "scheme:id:permissions" of @len bytes; the id may have colons. */
static int add_text(struct hf__zk *zk, const char *text, size_t len)
{
    const char *first = memchr(text, ':', len);
    const char *last = first ? memrchr(text, ':', len) : NULL;
    const char *id = first ? first + 1 : NULL;
    int32_t allowed;

    if (!first || last == first || zk->n_acls == HF__ZK_ACLS)
        return HF_ECONFIG;
    allowed = permissions(last + 1, len - (size_t)(last + 1 - text));
    if (allowed == 0)
        return HF_ECONFIG;
    return add(zk, text, (size_t)(first - text), id, (size_t)(last - id),
               allowed);
}

int hf__zk_acl_read(struct hf__zk *zk, const char *text, hf_error *err)
{
    int rc = 0;

    if (text[0] == '\0')
        rc = zk->credentials ? add(zk, "auth", 4, "", 0, 31)
                             : add(zk, "world", 5, "anyone", 6, 31);
    while (*text && rc == 0) {
        size_t len = strcspn(text, ",");

        rc = add_text(zk, text, len);
        text += len + (text[len] == ',');
    }
    if (rc == HF_ECONFIG)
        return hf__fail(err, rc,
                        "acl: write scheme:id:permissions, as in "
                        "world:anyone:r or digest:ops:HASH:cdrwa");
    return rc == 0 ? 0 : hf__fail(err, rc, "out of memory");
}

void hf__zk_acl_put(const struct hf__zk *zk, struct hf__buf *out)
{
    hf__zk_wire_put_int(out, (int32_t)zk->n_acls);
    for (size_t i = 0; i < zk->n_acls; i++) {
        const struct hf__zk_acl *acl = &zk->acls[i];

        hf__zk_wire_put_int(out, acl->permissions);
        hf__zk_wire_put_text(out, acl->scheme, strlen(acl->scheme));
        hf__zk_wire_put_text(out, acl->id, strlen(acl->id));
    }
}

void hf__zk_acl_release(struct hf__zk *zk)
{
    for (size_t i = 0; i < zk->n_acls; i++) {
        hf__free(zk->acls[i].scheme);
        hf__free(zk->acls[i].id);
    }
    zk->n_acls = 0;
}

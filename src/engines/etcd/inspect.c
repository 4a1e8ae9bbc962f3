/* SPDX-License-Identifier: MIT */
/*
 * inspect.c - questions about locks in general: list, check, break, versions.
 *
 * All but versions read queues and judge them as waiters do. In a list of many
 * names only keys of the shape of a lock count, those that name their own lease
 * after the slash: the store may hold anything else. Of one name every key
 * counts, because every key stands in line.
 *
 * check_token is exact: the token is the create revision of a key, and the
 * server tells which keys there are at one instant of a majority.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "engines/etcd/etcd.h"
#include "name.h"

enum { MOST_ROWS = 10000 };

static void answer(struct hf__etcd *etcd, struct hf__query *query, int code,
                   const char *text)
{
    hf_error err;

    if (code == 0) {
        hf__up_answer(&etcd->base, query, 0, /* err= */ NULL);
        return;
    }
    (void)hf__fail(&err, code, "%s", text);
    hf__up_answer(&etcd->base, query, code, &err);
}

/* ---- reading queues ---------------------------------------------------- */

struct rows {
    struct hf__etcd_entry *entries; /* by name and revision, judged */
    char (*names)[HF_NAME_MAX + 1];
    size_t n;
};

static void rows_release(struct rows *rows)
{
    hf__free(rows->entries);
    hf__free(rows->names);
}

/* The name in the key of @entry; false: it is not the key of a lock. */
static bool read_name(const struct hf__etcd *etcd,
                      const struct hf__etcd_entry *entry,
                      char name[HF_NAME_MAX + 1])
{
    char key[4 * HF_NAME_MAX + 256];
    long len = hf__base64_read(entry->key, key, sizeof(key) - 1);
    char *slash;
    char *end;
    size_t n;

    if (len < (long)etcd->prefix_len ||
        memcmp(key, etcd->prefix, etcd->prefix_len) != 0)
        return false;
    key[len] = '\0';
    slash = strchr(key + etcd->prefix_len, '/');
    if (!slash || (size_t)(slash - key) + strlen(slash) != (size_t)len)
        return false;
    n = hf__name_decode(key + etcd->prefix_len,
                        (size_t)(slash - key) - etcd->prefix_len, name,
                        HF_NAME_MAX + 1);
    name[n] = '\0';
    return n > 0 && entry->lease != 0 &&
           strtoull(slash + 1, &end, 16) == (uint64_t)entry->lease &&
           (*end == '\0' || *end == '-');
}

static int by_name_and_revision(const void *a, const void *b)
{
    const struct hf__etcd_entry *one = a;
    const struct hf__etcd_entry *two = b;
    int order = strcmp(one->name, two->name);

    return order != 0 ? order
                      : (one->revision > two->revision) -
                            (one->revision < two->revision);
}

static void judge(struct rows *rows)
{
    size_t from = 0;

    qsort(rows->entries, rows->n, sizeof(rows->entries[0]),
          by_name_and_revision);
    for (size_t i = 1; i <= rows->n; i++) {
        if (i < rows->n &&
            strcmp(rows->entries[i].name, rows->entries[from].name) == 0)
            continue;
        hf__etcd_entry_judge(rows->entries + from, i - from);
        from = i;
    }
}

/* All keys of the answer that are locks, or are in line for query->name. */
static int read_rows(struct hf__etcd *etcd, const struct hf__query *query,
                     struct hf__json kvs, struct rows *rows)
{
    struct hf__json kv;
    size_t count = 0;
    size_t at = 0;

    while (hf__json_next(kvs, &at).type != HF__JSON_NONE)
        count++;
    memset(rows, 0, sizeof(*rows));
    rows->entries = hf__calloc(count + 1, sizeof(rows->entries[0]));
    rows->names = hf__calloc(count + 1, sizeof(rows->names[0]));
    if (!rows->entries || !rows->names) {
        rows_release(rows);
        return HF_ENOMEM;
    }
    at = 0;
    while ((kv = hf__json_next(kvs, &at)).type != HF__JSON_NONE) {
        struct hf__etcd_entry *entry = &rows->entries[rows->n];

        *entry = hf__etcd_entry_read(kv);
        entry->name = query->name ? query->name : rows->names[rows->n];
        rows->n += query->name || read_name(etcd, entry, rows->names[rows->n]);
    }
    if (rows->n > 0)
        judge(rows);
    return 0;
}

static int send_range(struct hf__etcd *etcd, struct hf__query *query,
                      hf__etcd_reply_fn *done, hf_error *err)
{
    struct hf__etcd_call *call;

    if (!etcd->up)
        return hf__etcd_not_up(etcd, err);
    call = hf__etcd_call_new(etcd, "/v3/kv/range", done);
    if (!call)
        return hf__fail(err, HF_ENOMEM, "out of memory");
    call->query = query;
    if (query->name)
        hf__etcd_key_queue(etcd, query->name, strlen(query->name));
    else
        hf__etcd_key_names(etcd, query->prefix);
    hf__buf_add(&call->http.body, "{");
    hf__etcd_add_key(etcd, &call->http.body, /* range= */ true);
    hf__buf_printf(&call->http.body, ",\"limit\":\"%d\"}", MOST_ROWS);
    return hf__etcd_call_send(call, err);
}

/* The rows of a good answer; otherwise the query is answered, false. */
static bool got_rows(struct hf__etcd *etcd, struct hf__query *query,
                     const struct hf__etcd_reply *reply, struct rows *rows)
{
    if (reply->code != HF__ETCD_OK) {
        hf__etcd_answer_failed(etcd, query, reply);
        return false;
    }
    if (read_rows(etcd, query, hf__json_member(reply->root, "kvs"), rows) == 0)
        return true;
    answer(etcd, query, HF_ENOMEM, "out of memory");
    return false;
}

/* ---- list -------------------------------------------------------------- */

/* Those who hold, or those who wait, of the queue that begins at @from. */
static int add_queue(struct hf__query *query, const struct rows *rows,
                     size_t from, size_t to, bool holders)
{
    uint32_t place = 0;

    for (size_t i = from; i < to; i++) {
        const struct hf__etcd_entry *entry = &rows->entries[i];
        char copy[HF__ETCD_RECORD];
        hf_lock_info info = {.name = entry->name};
        int rc;

        if (entry->holds != holders)
            continue;
        hf__etcd_record_read(entry, copy, &info);
        info.role = holders ? HF_HOLDER : HF_WAITER;
        info.place = holders ? 0 : ++place;
        info.token = holders ? entry->revision : 0;
        rc = hf__query_add_lock(query, &info);
        if (rc != 0)
            return rc;
    }
    return 0;
}

static int add_rows(struct hf__query *query, const struct rows *rows)
{
    size_t from = 0;
    int rc = 0;

    for (size_t i = 1; i <= rows->n && rc == 0; i++) {
        if (i < rows->n &&
            strcmp(rows->entries[i].name, rows->entries[from].name) == 0)
            continue;
        rc = add_queue(query, rows, from, i, /* holders= */ true);
        if (rc == 0)
            rc = add_queue(query, rows, from, i, /* holders= */ false);
        from = i;
    }
    return rc;
}

static void on_list(struct hf__etcd *etcd, struct hf__etcd_call *call,
                    const struct hf__etcd_reply *reply)
{
    struct rows rows;
    int rc;

    if (!got_rows(etcd, call->query, reply, &rows))
        return;
    rc = add_rows(call->query, &rows);
    rows_release(&rows);
    answer(etcd, call->query, rc, "out of memory");
}

int hf__etcd_list(struct hf__engine *engine, struct hf__query *query,
                  hf_error *err)
{
    return send_range((struct hf__etcd *)engine, query, on_list, err);
}

/* ---- tokens ------------------------------------------------------------ */

/* The holder that is asked for, by token or owner; NULL: *ret_rc says why. */
static const struct hf__etcd_entry *find_holder(const struct hf__query *query,
                                                const struct rows *rows,
                                                int *ret_rc)
{
    *ret_rc = HF_ENOTFOUND;
    for (size_t i = 0; i < rows->n; i++) {
        const struct hf__etcd_entry *entry = &rows->entries[i];
        char copy[HF__ETCD_RECORD];
        hf_lock_info info = {0};

        if (!entry->holds)
            continue;
        hf__etcd_record_read(entry, copy, &info);
        if (query->token != 0 ? entry->revision == query->token
                              : strcmp(info.owner, query->owner) == 0)
            return entry;
        *ret_rc = HF_ECONFLICT;
    }
    return NULL;
}

static void answer_not_found(struct hf__etcd *etcd, struct hf__query *query,
                             int rc)
{
    answer(etcd, query, rc,
           rc == HF_ENOTFOUND ? "nobody holds it"
                              : "held under another token or by another owner");
}

static void on_check(struct hf__etcd *etcd, struct hf__etcd_call *call,
                     const struct hf__etcd_reply *reply)
{
    const struct hf__etcd_entry *holder;
    struct rows rows;
    int rc;

    if (!got_rows(etcd, call->query, reply, &rows))
        return;
    holder = find_holder(call->query, &rows, &rc);
    rows_release(&rows);
    if (holder)
        answer(etcd, call->query, 0, "");
    else
        answer_not_found(etcd, call->query, rc);
}

int hf__etcd_check_token(struct hf__engine *engine, struct hf__query *query,
                         hf_error *err)
{
    return send_range((struct hf__etcd *)engine, query, on_check, err);
}

static void on_broken(struct hf__etcd *etcd, struct hf__etcd_call *call,
                      const struct hf__etcd_reply *reply)
{
    if (reply->code != HF__ETCD_OK)
        hf__etcd_answer_failed(etcd, call->query, reply);
    else if (hf__json_true(hf__json_member(reply->root, "succeeded")))
        answer(etcd, call->query, 0, "");
    else
        answer_not_found(etcd, call->query, HF_ENOTFOUND);
}

/* Delete the key if it still is the one that was found. */
static int send_break(struct hf__etcd *etcd, struct hf__query *query,
                      const struct hf__etcd_entry *holder, hf_error *err)
{
    struct hf__etcd_call *call =
        hf__etcd_call_new(etcd, "/v3/kv/txn", on_broken);
    int len = (int)holder->key.len;

    if (!call)
        return hf__fail(err, HF_ENOMEM, "out of memory");
    call->query = query;
    hf__buf_printf(&call->http.body,
                   "{\"compare\":[{\"key\":%.*s,\"target\":\"CREATE\","
                   "\"result\":\"EQUAL\",\"create_revision\":\"%" PRIu64
                   "\"}],\"success\":[{\"request_delete_range\":{\"key\":"
                   "%.*s}}]}",
                   len, holder->key.text, holder->revision, len,
                   holder->key.text);
    return hf__etcd_call_send(call, err);
}

static void on_break(struct hf__etcd *etcd, struct hf__etcd_call *call,
                     const struct hf__etcd_reply *reply)
{
    const struct hf__etcd_entry *holder;
    struct rows rows;
    hf_error err;
    int rc;

    if (!got_rows(etcd, call->query, reply, &rows))
        return;
    holder = find_holder(call->query, &rows, &rc);
    if (!holder)
        answer_not_found(etcd, call->query, rc);
    else if (send_break(etcd, call->query, holder, &err) != 0)
        answer(etcd, call->query, err.code, err.text);
    rows_release(&rows);
}

int hf__etcd_break(struct hf__engine *engine, struct hf__query *query,
                   hf_error *err)
{
    return send_range((struct hf__etcd *)engine, query, on_break, err);
}

/* ---- versions ---------------------------------------------------------- */

static uint64_t version_in(struct hf__json kvs)
{
    size_t at = 0;
    struct hf__json kv = hf__json_next(kvs, &at);

    return (uint64_t)hf__json_number(hf__json_member(kv, "mod_revision"));
}

static void on_version(struct hf__etcd *etcd, struct hf__etcd_call *call,
                       const struct hf__etcd_reply *reply)
{
    if (reply->code != HF__ETCD_OK) {
        hf__etcd_answer_failed(etcd, call->query, reply);
        return;
    }
    call->query->version = version_in(hf__json_member(reply->root, "kvs"));
    answer(etcd, call->query, 0, "");
}

static void on_commit(struct hf__etcd *etcd, struct hf__etcd_call *call,
                      const struct hf__etcd_reply *reply)
{
    struct hf__json responses = hf__json_member(reply->root, "responses");
    size_t at = 0;
    struct hf__json response = hf__json_next(responses, &at);

    if (reply->code != HF__ETCD_OK) {
        hf__etcd_answer_failed(etcd, call->query, reply);
    } else if (hf__json_true(hf__json_member(reply->root, "succeeded"))) {
        call->query->version = (uint64_t)hf__json_number(
            hf__json_path(reply->root, "header.revision"));
        answer(etcd, call->query, 0, "");
    } else {
        call->query->version =
            version_in(hf__json_path(response, "response_range.kvs"));
        answer(etcd, call->query, HF_ECONFLICT,
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
        (void)hf__etcd_not_up(etcd, err);
        return NULL;
    }
    call = hf__etcd_call_new(etcd, path, done);
    if (!call) {
        (void)hf__fail(err, HF_ENOMEM, "out of memory");
        return NULL;
    }
    call->query = query;
    hf__etcd_key_beside(etcd, "version", query->name, strlen(query->name));
    return call;
}

int hf__etcd_version_read(struct hf__engine *engine, struct hf__query *query,
                          hf_error *err)
{
    struct hf__etcd *etcd = (struct hf__etcd *)engine;
    struct hf__etcd_call *call =
        version_call(etcd, query, "/v3/kv/range", on_version, err);

    if (!call)
        return etcd->up ? HF_ENOMEM : HF_EUNAVAILABLE;
    hf__buf_add(&call->http.body, "{");
    hf__etcd_add_key(etcd, &call->http.body, /* range= */ false);
    hf__buf_add(&call->http.body, ",\"keys_only\":true}");
    return hf__etcd_call_send(call, err);
}

int hf__etcd_version_commit(struct hf__engine *engine, struct hf__query *query,
                            hf_error *err)
{
    struct hf__etcd *etcd = (struct hf__etcd *)engine;
    struct hf__etcd_call *call =
        version_call(etcd, query, "/v3/kv/txn", on_commit, err);

    if (!call)
        return etcd->up ? HF_ENOMEM : HF_EUNAVAILABLE;
    hf__buf_add(&call->http.body, "{\"compare\":[{");
    hf__etcd_add_key(etcd, &call->http.body, /* range= */ false);
    hf__buf_printf(&call->http.body,
                   ",\"target\":\"MOD\",\"result\":\"EQUAL\","
                   "\"mod_revision\":\"%" PRIu64
                   "\"}],\"success\":[{\"request_put\":{",
                   query->token);
    hf__etcd_add_key(etcd, &call->http.body, /* range= */ false);
    hf__buf_add(&call->http.body, "}}],\"failure\":[{\"request_range\":{");
    hf__etcd_add_key(etcd, &call->http.body, /* range= */ false);
    hf__buf_add(&call->http.body, ",\"keys_only\":true}}]}");
    return hf__etcd_call_send(call, err);
}

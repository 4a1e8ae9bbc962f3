/* SPDX-License-Identifier: MIT */
/*
 * inspect.c - questions about locks in general: list, check, break.
 *
 * All of them read queues and judge them as waiters do. In a list of many
 * names only keys of the shape of a lock count, those that name their own lease
 * after the slash: the store may hold anything else. Of one name every key
 * counts, because every key stands in line.
 *
 * check_token is exact: the token is the create revision of a key, and the
 * server tells which keys there are at one instant of a majority.
 */
#include <stdio.h>
#include <stdlib.h>

#include "config/name.h"
#include "engines/etcd/etcd.h"

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
    size_t len = entry->key.len;
    char *slash;
    char *end;
    size_t n;

    if (len < etcd->prefix_len || len >= sizeof(key) || len == 0 ||
        memcmp(entry->key.bytes, etcd->prefix, etcd->prefix_len) != 0)
        return false;
    memcpy(key, entry->key.bytes, len);
    key[len] = '\0';
    slash = strchr(key + etcd->prefix_len, '/');
    if (!slash || (size_t)(slash - key) + strlen(slash) != len)
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
        hf__etcd_queue_judge(rows->entries + from, i - from);
        from = i;
    }
}

/* All keys of the answer that are locks, or are in line for query->name. */
static int read_rows(struct hf__etcd *etcd, const struct hf__query *query,
                     struct hf__pb range, struct rows *rows)
{
    struct hf__pb kv;
    size_t count = 0;
    size_t at = 0;

    if (hf__etcd_queue_is_long(range))
        return HF_EUNAVAILABLE;
    while (hf__pb_there(hf__pb_next(range, HF__RANGE_KVS, &at)))
        count++;
    memset(rows, 0, sizeof(*rows));
    rows->entries = hf__calloc(count + 1, sizeof(rows->entries[0]));
    rows->names = hf__calloc(count + 1, sizeof(rows->names[0]));
    if (!rows->entries || !rows->names) {
        rows_release(rows);
        return HF_ENOMEM;
    }
    at = 0;
    while (hf__pb_there(kv = hf__pb_next(range, HF__RANGE_KVS, &at))) {
        struct hf__etcd_entry *entry = &rows->entries[rows->n];

        *entry = hf__etcd_queue_read(kv);
        entry->name = query->name ? query->name : rows->names[rows->n];
        rows->n += query->name || read_name(etcd, entry, rows->names[rows->n]);
    }
    if (rows->n > 0)
        judge(rows);
    return 0;
}

static void queue_key(struct hf__etcd *etcd, const struct hf__query *query)
{
    if (query->name)
        hf__etcd_queue_key(etcd, query->name, strlen(query->name));
    else
        hf__etcd_queue_key_names(etcd, query->prefix);
}

static void add_range(struct hf__etcd *etcd, struct hf__buf *to,
                      const struct hf__query *query)
{
    queue_key(etcd, query);
    hf__etcd_queue_add_key(etcd, to, /* range= */ true);
    hf__pb_add_number(to, HF__RANGE_LIMIT, HF__ETCD_ROWS);
}

/* The rows of a good answer; otherwise the query is answered, false. */
static bool got_rows(struct hf__etcd *etcd, struct hf__query *query,
                     const struct hf__etcd_reply *reply, struct rows *rows)
{
    int rc;

    if (reply->code != HF__ETCD_OK) {
        hf__etcd_errors_answer(etcd, query, reply);
        return false;
    }
    rc = read_rows(etcd, query, reply->root, rows);
    if (rc != 0)
        hf__etcd_errors_tell(
            etcd, query, rc,
            rc == HF_ENOMEM ? "out of memory"
                            : "an answer of more rows than were asked for");
    return rc == 0;
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
        hf__etcd_queue_read_record(entry, copy, &info);
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
    struct hf__etcd_reply queues = *reply;
    struct rows rows;
    int rc;

    queues.root = hf__etcd_queue_range_of(reply->root, 0);
    if (!got_rows(etcd, call->query, &queues, &rows))
        return;
    rc = add_rows(call->query, &rows);
    rows_release(&rows);
    if (rc == 0)
        rc = hf__etcd_inspect_parked_add(
            etcd, call->query, hf__etcd_queue_range_of(reply->root, 1),
            hf__etcd_queue_range_of(reply->root, 2));
    hf__etcd_errors_tell(etcd, call->query, rc,
                         rc == HF_ENOMEM ? "out of memory"
                                         : "the conditions cannot be read");
}

/* Locks, records and stamps, at one revision. */
static void add_list(struct hf__etcd *etcd, struct hf__buf *to,
                     const struct hf__query *query)
{
    queue_key(etcd, query);
    hf__etcd_queue_add_list(etcd, to, HF__ETCD_ROWS, /* keys_only= */ false);
    hf__etcd_inspect_parked_ask(etcd, to, query, "cond");
    hf__etcd_inspect_parked_ask(etcd, to, query, "wake");
}

int hf__etcd_inspect_list(struct hf__engine *engine, struct hf__query *query,
                          hf_error *err)
{
    return hf__etcd_connection_ask((struct hf__etcd *)engine, query,
                                   HF__CALL_TXN, add_list, on_list, err);
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
        hf__etcd_queue_read_record(entry, copy, &info);
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
    hf__etcd_errors_tell(etcd, query, rc,
                         rc == HF_ENOTFOUND
                             ? "nobody holds it"
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
        hf__etcd_errors_tell(etcd, call->query, 0, "");
    else
        answer_not_found(etcd, call->query, rc);
}

int hf__etcd_inspect_check(struct hf__engine *engine, struct hf__query *query,
                           hf_error *err)
{
    return hf__etcd_connection_ask((struct hf__etcd *)engine, query,
                                   HF__CALL_RANGE, add_range, on_check, err);
}

static void on_broken(struct hf__etcd *etcd, struct hf__etcd_call *call,
                      const struct hf__etcd_reply *reply)
{
    if (reply->code != HF__ETCD_OK)
        hf__etcd_errors_answer_unsure(etcd, call->query, reply);
    else if (hf__pb_number(reply->root, HF__TXN_SUCCEEDED) != 0)
        hf__etcd_errors_tell(etcd, call->query, 0, "");
    else
        answer_not_found(etcd, call->query, HF_ENOTFOUND);
}

/* Delete the key if it still is the one that was found. */
static int send_break(struct hf__etcd *etcd, struct hf__query *query,
                      const struct hf__etcd_entry *holder, hf_error *err)
{
    struct hf__etcd_call *call =
        hf__etcd_connection_call(etcd, HF__CALL_TXN, on_broken);

    call->query = query;
    hf__etcd_queue_key_of(etcd, holder->key);
    hf__etcd_queue_add_compare(etcd, &call->rpc.body, /* range= */ false,
                               holder->revision);
    hf__etcd_queue_add_delete(etcd, &call->rpc.body);
    return hf__etcd_connection_send(call, err);
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
    else if (!call->query->waiter) /* and is told that it failed */
        hf__etcd_errors_tell(etcd, call->query, HF_EUNAVAILABLE,
                             "nobody waits any more");
    else if (send_break(etcd, call->query, holder, &err) != 0)
        hf__etcd_errors_tell(etcd, call->query, err.code, err.text);
    rows_release(&rows);
}

int hf__etcd_inspect_break(struct hf__engine *engine, struct hf__query *query,
                           hf_error *err)
{
    return hf__etcd_connection_ask((struct hf__etcd *)engine, query,
                                   HF__CALL_RANGE, add_range, on_break, err);
}

/* SPDX-License-Identifier: MIT */
/*
 * inspect_parked.c - the rows of those who are parked.
 *
 * A list reads the records and the stamps of all conditions together with the
 * locks, at one revision. Who is called stands in the lock's line, or is about
 * to, and is no row here.
 */
#include <stdlib.h>

#include "config/name.h"
#include "engines/etcd/etcd.h"

/* One record; of @key, the part that is "<name>/<cond>". */
struct record {
    struct hf__pb condition;
    struct hf__etcd_entry entry;
};

/* "<name>" or its beginning, behind "<prefix>~<what>/". */
void hf__etcd_inspect_parked_ask(struct hf__etcd *etcd, struct hf__buf *to,
                                 const struct hf__query *query,
                                 const char *what)
{
    const char *name = query->name ? query->name : query->prefix;

    hf__etcd_queue_key_beside(etcd, what, name, strlen(name));
    if (query->name)
        hf__buf_add_char(&etcd->key, '/');
    hf__etcd_queue_add_list(etcd, to, HF__ETCD_ROWS, /* keys_only= */ false);
}

/* Without what follows the last slash. */
static struct hf__pb without_last(struct hf__pb text)
{
    const char *slash =
        text.len > 0 ? memrchr(text.bytes, '/', text.len) : NULL;

    return slash ? (struct hf__pb){text.bytes, (size_t)(slash - text.bytes)}
                 : (struct hf__pb){0};
}

static int compare_texts(struct hf__pb a, struct hf__pb b)
{
    size_t len = a.len < b.len ? a.len : b.len;
    int order = len > 0 ? memcmp(a.bytes, b.bytes, len) : 0;

    return order != 0 ? order : (a.len > b.len) - (a.len < b.len);
}

static int by_condition(const void *a, const void *b)
{
    const struct record *one = a;
    const struct record *two = b;
    int order = compare_texts(one->condition, two->condition);

    return order != 0 ? order
                      : (one->entry.revision > two->entry.revision) -
                            (one->entry.revision < two->entry.revision);
}

/* The records of @range, condition by condition; NULL: no memory. */
static struct record *read_records(const struct hf__etcd *etcd,
                                   struct hf__pb range, size_t *ret_n)
{
    struct record *records;
    struct hf__pb kv;
    size_t count = 0;
    size_t n = 0;
    size_t at = 0;

    while (hf__pb_there(hf__pb_next(range, HF__RANGE_KVS, &at)))
        count++;
    records = hf__calloc(count + 1, sizeof(*records));
    at = 0;
    while (records &&
           hf__pb_there(kv = hf__pb_next(range, HF__RANGE_KVS, &at))) {
        records[n].entry = hf__etcd_queue_read(kv);
        records[n].condition = without_last(
            hf__etcd_queue_behind(etcd, records[n].entry.key, "~cond/"));
        n += hf__pb_there(records[n].condition);
    }
    if (n > 0)
        qsort(records, n, sizeof(*records), by_condition);
    *ret_n = n;
    return records;
}

/* How many of the @n records of one condition are called. */
static int count_called(const struct hf__etcd *etcd,
                        const struct record *records, size_t n,
                        struct hf__pb stamps, size_t *ret_called)
{
    uint64_t *made = hf__malloc(n * sizeof(*made));
    struct hf__condition wakes = {0};
    struct hf__pb value = {0};
    struct hf__pb kv;
    size_t at = 0;
    int rc = made ? 0 : HF_ENOMEM;

    for (size_t i = 0; i < n && made; i++)
        made[i] = records[i].entry.revision;
    while (hf__pb_there(kv = hf__pb_next(stamps, HF__RANGE_KVS, &at))) {
        struct hf__pb key = hf__pb_inside(kv, HF__KV_KEY);

        if (compare_texts(hf__etcd_queue_behind(etcd, key, "~wake/"),
                          records[0].condition) == 0)
            value = hf__pb_inside(kv, HF__KV_VALUE);
    }
    if (rc == 0)
        rc = hf__condition_read(&wakes, value.bytes, value.len);
    if (rc == 0)
        *ret_called = hf__condition_called(&wakes, made, n);
    hf__condition_release(&wakes);
    hf__free(made);
    return rc;
}

static bool read_names(struct hf__pb condition, char name[HF_NAME_MAX + 1],
                       char cond[HF_COND_MAX + 1])
{
    struct hf__pb whole = without_last(condition);
    size_t n = hf__name_decode(whole.bytes, whole.len, name, HF_NAME_MAX + 1);
    size_t m =
        hf__name_decode(condition.bytes + whole.len + 1,
                        condition.len - whole.len - 1, cond, HF_COND_MAX + 1);

    name[n] = '\0';
    cond[m] = '\0';
    return n > 0 && m > 0;
}

/* The rows of one condition, which has @n records. */
static int add_condition(const struct hf__etcd *etcd, struct hf__query *query,
                         const struct record *records, size_t n,
                         struct hf__pb stamps)
{
    char name[HF_NAME_MAX + 1];
    char cond[HF_COND_MAX + 1];
    size_t called = 0;
    int rc;

    if (!hf__pb_there(without_last(records[0].condition)) ||
        !read_names(records[0].condition, name, cond))
        return 0; /* not ours */
    rc = count_called(etcd, records, n, stamps, &called);
    for (size_t i = called; i < n && rc == 0; i++) {
        char copy[HF__ETCD_RECORD];
        hf_lock_info info = {.name = name, .cond = cond};

        hf__etcd_queue_read_record(&records[i].entry, copy, &info);
        info.role = HF_PARKED;
        info.token = 0;
        info.place = (uint32_t)(i - called + 1);
        rc = hf__query_add_lock(query, &info);
    }
    return rc;
}

int hf__etcd_inspect_parked_add(struct hf__etcd *etcd, struct hf__query *query,
                                struct hf__pb range, struct hf__pb stamps)
{
    struct record *records;
    size_t n = 0;
    size_t from = 0;
    int rc = 0;

    if (hf__etcd_queue_is_long(range) || hf__etcd_queue_is_long(stamps))
        return HF_EUNAVAILABLE;
    records = read_records(etcd, range, &n);
    if (!records)
        return HF_ENOMEM;
    for (size_t i = 1; i <= n && rc == 0; i++) {
        if (i < n &&
            compare_texts(records[i].condition, records[from].condition) == 0)
            continue;
        rc = add_condition(etcd, query, records + from, i - from, stamps);
        from = i;
    }
    hf__free(records);
    return rc;
}

/* SPDX-License-Identifier: MIT */
/*
 * queue.h - keys and records; who of a queue holds.
 */
#ifndef HF_ETCD_QUEUE_H
#define HF_ETCD_QUEUE_H

#include "engines/engine.h"
#include "engines/etcd/messages.h"

struct hf__etcd;

/* One key of a queue. */
struct hf__etcd_entry {
    uint64_t revision; /* when it was created */
    int64_t lease;
    int mode; /* HF_EXCLUSIVE also for keys of others */
    int slots;
    bool holds;       /* hf__etcd_queue_judge() */
    const char *name; /* inspect.c's */
    struct hf__pb key;
    struct hf__pb value;
};

enum { HF__ETCD_RECORD = 1024 };

int hf__etcd_queue_init(struct hf__etcd *etcd);
/* @key into etcd->key. */
void hf__etcd_queue_key_of(struct hf__etcd *etcd, struct hf__pb key);
/* "<prefix><name>/" into etcd->key; @name encoded. */
void hf__etcd_queue_key(struct hf__etcd *etcd, const char *name, size_t len);
/* The ticket's key: "<prefix><name>/<lease>-<ticket>". */
void hf__etcd_queue_key_ticket(struct hf__etcd *etcd,
                               struct hf__ticket *ticket);
/* The sign that the ticket has left: "<prefix>~gone/<lease>-<ticket>". */
void hf__etcd_queue_key_gone(struct hf__etcd *etcd, struct hf__ticket *ticket);
/* A key of our own beside the queues: "<prefix>~<what>/<name>". */
void hf__etcd_queue_key_beside(struct hf__etcd *etcd, const char *what,
                               const char *name, size_t len);
/* A key of the condition @cond of the lock @name:
 * "<prefix>~<what>/<name>/<cond>". */
void hf__etcd_queue_key_condition(struct hf__etcd *etcd, const char *what,
                                  const char *name, const char *cond);
/* What begins every record of it: "<prefix>~cond/<name>/<cond>/". */
void hf__etcd_queue_key_records(struct hf__etcd *etcd, const char *name,
                                const char *cond);
/* The ticket's record: that, and "<lease>-<ticket>". */
void hf__etcd_queue_key_record(struct hf__etcd *etcd,
                               struct hf__ticket *ticket);
/* What begins a key for every name that begins with @prefix. */
void hf__etcd_queue_key_names(struct hf__etcd *etcd, const char *prefix);
/* What follows "<prefix>@what" in @key; not there: it is another key. */
struct hf__pb hf__etcd_queue_behind(const struct hf__etcd *etcd,
                                    struct hf__pb key, const char *what);
/* Add etcd->key, and with @range the end of all that begin with it, to a
 * message whose HF__OF_KEY and HF__OF_RANGE_END they are. */
void hf__etcd_queue_add_key(struct hf__etcd *etcd, struct hf__buf *to,
                            bool range);
/* Add the comparison of the create revision of etcd->key, or of all keys that
 * begin with it, with @revision, to a transaction. */
void hf__etcd_queue_add_compare(struct hf__etcd *etcd, struct hf__buf *to,
                                bool range, uint64_t revision);
/* Add the comparison of the mod revision of etcd->key. */
void hf__etcd_queue_add_compare_modified(struct hf__etcd *etcd,
                                         struct hf__buf *to, uint64_t revision);
/* Add the request that deletes etcd->key, in case of success. */
void hf__etcd_queue_add_delete(struct hf__etcd *etcd, struct hf__buf *to);
/* A part @field of a transaction that puts etcd->key with the lease @id: begun,
 * for hf__pb_end() of *@ret_put, and then of what is returned. */
size_t hf__etcd_queue_begin_put(struct hf__etcd *etcd, struct hf__buf *to,
                                uint32_t field, int64_t id, size_t *ret_put);
/* Add the request that puts the ticket's key, as a part @field of a
 * transaction: HF__TXN_SUCCESS or HF__TXN_FAILURE. */
void hf__etcd_queue_add_put(struct hf__etcd *etcd, struct hf__buf *to,
                            uint32_t field, struct hf__ticket *ticket);
/* Add the request for all keys that begin with etcd->key, @limit of them, in
 * case of success. */
void hf__etcd_queue_add_list(struct hf__etcd *etcd, struct hf__buf *to,
                             uint64_t limit, bool keys_only);
/* Add the request for etcd->key, without its value. */
void hf__etcd_queue_add_get(struct hf__etcd *etcd, struct hf__buf *to,
                            uint32_t field);
/* Add what the server keeps of @ticket. */
void hf__etcd_queue_add_record(struct hf__etcd *etcd, struct hf__buf *to,
                               const struct hf__ticket *ticket);
/* An element of HF__RANGE_KVS. */
struct hf__etcd_entry hf__etcd_queue_read(struct hf__pb kv);
/* The @i-th answer of a transaction, to an HF__OP_RANGE. */
struct hf__pb hf__etcd_queue_range_of(struct hf__pb root, int i);
/* Are there more keys in it than any limit that we ask with? */
bool hf__etcd_queue_is_long(struct hf__pb range);
/* The first key of it. */
struct hf__pb hf__etcd_queue_first_of(struct hf__pb range);
/* The store's revision in an answer. */
uint64_t hf__etcd_queue_revision_of(struct hf__pb root);
/* @entries, in the order of their revisions, are one queue: who holds? */
void hf__etcd_queue_judge(struct hf__etcd_entry *entries, size_t n);
/* The texts of a record; @info's pointers go into @copy. */
void hf__etcd_queue_read_record(const struct hf__etcd_entry *entry,
                                char copy[HF__ETCD_RECORD], hf_lock_info *info);
/* "db1:4211 (thread 1), \"vacuum\"" for error texts. */
void hf__etcd_queue_read_holder(const struct hf__etcd_entry *entry, char *to,
                                size_t size);

#endif

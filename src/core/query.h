/* SPDX-License-Identifier: MIT */
/* query.h - one question to the engine, and the rows of its answer. */
#ifndef HF_QUERY_H
#define HF_QUERY_H

#include "engines/engine.h"

/* One row, with its texts behind it. */
struct hf__row {
    union {
        hf_lock_info lock;
        hf_finding finding;
        size_t notice_len; /* of texts */
    } is;
    size_t number; /* in the order in which the engine gave them */
    _Atomic uint32_t refs;
    bool broken;     /* a watch's: this client has taken the lock away */
    int64_t seen_ns; /* a watch's: when the list was asked for */
    char texts[];
};

struct hf__rows {
    struct hf__row **at;
    size_t n;
    size_t size;
    size_t bytes; /* of all rows together */
};

/* Drop a reference; any thread. */
void hf__query_row_unref(struct hf__row *row);
/* Drop the rows. */
void hf__query_rows_release(struct hf__rows *rows);

struct hf__query *hf__query_new(hf_error *err);
/* A question for the locks that begin with @text (NULL: all), or, with @exact,
 * for that one. */
int hf__query_new_list(const char *text, bool exact,
                       struct hf__query **ret_query, hf_error *err);
/* Sort the rows of an answered list by name, those of one name as they came. */
void hf__query_sort(struct hf__query *query);
/* NULL is ignored. */
void hf__query_free(struct hf__query *query);
/* Copy a text into a field of a query. */
int hf__query_set(const char **to, const char *text, hf_error *err);
/* The name, checked. */
int hf__query_name(struct hf__query *query, const char *name, hf_error *err);
/* Ask by the slot of struct hf__engine_ops at @slot_offset, and wait. *query is
 * NULL afterwards if the answer is still to come. */
int hf__query_ask(hf_client *client, size_t slot_offset,
                  struct hf__query **query, hf_error *err);

/* With the monitor: the engine's function for such a question; NULL with @err. */
hf__engine_query_fn *hf__query_slot(const hf_client *client, size_t slot_offset,
                                    hf_error *err);
/* With the monitor: ask, and have @waiter told. Non-zero, as query->rc with
 * query->err: it is not asked. */
int hf__query_begin(hf_client *client, hf__engine_query_fn *slot,
                    struct hf__query *query, struct hf__waiter *waiter);
/* With the monitor: nobody waits for the answer any more, after which the query
 * frees itself. HF_EUNAVAILABLE, or HF_EUNKNOWN of one that changes something. */
int hf__query_give_up(const hf_client *client, struct hf__query **query,
                      hf_error *err);

/* The engine has answered. */
void hf__query_answered(hf_client *client, struct hf__query *query, int rc,
                        const hf_error *err);
/* With the monitor, by who closes: ask the engine to leave nothing behind. */
void hf__query_finish(hf_client *client);
/* The client goes: nobody will answer what is still asked. */
void hf__query_abandon(hf_client *client);

#endif

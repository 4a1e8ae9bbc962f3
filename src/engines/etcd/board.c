/* SPDX-License-Identifier: MIT */
/*
 * board.c - the board: a key for each client that has a notice, on a lease of
 * that client, and one with the number of this store.
 *
 *   PREFIX~wait/IDENTITY    the notice        PREFIX~board/number    the number
 *
 * A notice ends with the lease that also carries the client's locks. The number
 * is made by the first who posts, in the transaction that posts.
 *
 * Failure: an error of the server is the answer.
 */
#include <stdio.h>
#include <stdlib.h>

#include "engines/etcd/etcd.h"

enum { NOTICES_MAX = 300 };

static void number_key(struct hf__etcd *etcd)
{
    hf__etcd_queue_key_beside(etcd, "board", "number", 6);
}

/* 0: it is none. */
static uint64_t number_in(struct hf__pb range)
{
    struct hf__pb value =
        hf__pb_inside(hf__etcd_queue_first_of(range), HF__KV_VALUE);
    char digits[17];
    char *end;
    uint64_t number;

    if (!hf__pb_there(value) || value.len == 0 || value.len >= sizeof(digits))
        return 0;
    hf__pb_text(value, digits, sizeof(digits));
    number = strtoull(digits, &end, 16);
    return *end == '\0' ? number : 0;
}

/* Any lease of ours that is there; 0: none. */
static int64_t some_lease(const struct hf__etcd *etcd)
{
    for (size_t i = 0; i < HF__ETCD_LEASES; i++) {
        if (etcd->leases[i].id != 0)
            return etcd->leases[i].id;
    }
    return 0;
}

/* ---- posting ----------------------------------------------------------------- */

static void on_posted(struct hf__etcd *etcd, struct hf__etcd_call *call,
                      const struct hf__etcd_reply *reply)
{
    struct hf__query *query = call->query;

    if (reply->code != HF__ETCD_OK) {
        hf__etcd_errors_answer(etcd, query, reply);
        return;
    }
    /* Otherwise the number that we brought along is the store's now. */
    if (hf__pb_number(reply->root, HF__TXN_SUCCEEDED) == 0)
        query->version = number_in(hf__etcd_queue_range_of(reply->root, 0));
    if (query->version == 0)
        hf__etcd_errors_tell(etcd, query, HF_EUNAVAILABLE, "an odd answer");
    else
        hf__etcd_errors_tell(etcd, query, 0, "");
}

/* Put etcd->key, @value, on the lease @id. */
static void add_put(struct hf__etcd *etcd, struct hf__buf *to, uint32_t field,
                    int64_t id, const char *value)
{
    size_t put;
    size_t part = hf__etcd_queue_begin_put(etcd, to, field, id, &put);

    hf__pb_add_bytes(to, HF__PUT_VALUE, value, strlen(value));
    hf__pb_end(to, put);
    hf__pb_end(to, part);
}

/* etcd->key: its value, or that it goes. */
static void add_key_request(struct hf__etcd *etcd, struct hf__buf *to,
                            uint32_t field, uint32_t request)
{
    size_t part = hf__pb_begin(to, field);
    size_t inside = hf__pb_begin(to, request);

    hf__etcd_queue_add_key(etcd, to, /* range= */ false);
    hf__pb_end(to, inside);
    hf__pb_end(to, part);
}

static void add_notice(struct hf__etcd *etcd, struct hf__buf *to,
                       uint32_t field, const struct hf__query *query)
{
    if (query->text)
        add_put(etcd, to, field, some_lease(etcd), query->text);
    else
        add_key_request(etcd, to, field, HF__OP_DELETE);
}

static void add_post(struct hf__etcd *etcd, struct hf__buf *to,
                     const struct hf__query *query)
{
    char number[17];

    (void)snprintf(number, sizeof(number), "%llx",
                   (unsigned long long)query->version);
    number_key(etcd);
    hf__etcd_queue_add_compare(etcd, to, /* range= */ false, 0);
    add_put(etcd, to, HF__TXN_SUCCESS, /* id= */ 0, number);
    add_key_request(etcd, to, HF__TXN_FAILURE, HF__OP_RANGE);
    hf__etcd_queue_key_beside(etcd, "wait", query->owner, strlen(query->owner));
    add_notice(etcd, to, HF__TXN_SUCCESS, query);
    add_notice(etcd, to, HF__TXN_FAILURE, query);
}

int hf__etcd_board_post(struct hf__engine *engine, struct hf__query *query,
                        hf_error *err)
{
    struct hf__etcd *etcd = (struct hf__etcd *)engine;

    if (!hf__etcd_connection_is_up(etcd))
        return hf__etcd_errors_not_up(etcd, err);
    if (query->text && some_lease(etcd) == 0)
        return hf__fail(err, HF_EUNAVAILABLE, "no lease for a notice");
    if (hf__world->random(&query->version, sizeof(query->version)) != 0)
        return hf__fail(err, HF_EINTERNAL, "no random numbers");
    query->version |= 1;
    return hf__etcd_connection_ask(etcd, query, HF__CALL_TXN, add_post,
                                   on_posted, err);
}

/* ---- reading ------------------------------------------------------------------ */

static void on_read(struct hf__etcd *etcd, struct hf__etcd_call *call,
                    const struct hf__etcd_reply *reply)
{
    struct hf__query *query = call->query;
    struct hf__pb range;
    struct hf__pb kv;
    size_t at = 0;
    int rc = 0;

    if (reply->code != HF__ETCD_OK) {
        hf__etcd_errors_answer(etcd, query, reply);
        return;
    }
    query->version = number_in(hf__etcd_queue_range_of(reply->root, 0));
    range = hf__etcd_queue_range_of(reply->root, 1);
    while (rc == 0 && hf__pb_there(range) &&
           hf__pb_there(kv = hf__pb_next(range, HF__RANGE_KVS, &at))) {
        struct hf__pb notice = hf__pb_inside(kv, HF__KV_VALUE);

        if (hf__pb_there(notice))
            rc = hf__query_add_notice(query, notice.bytes, notice.len);
    }
    hf__etcd_errors_tell(etcd, query, rc, rc == 0 ? "" : "too many notices");
}

static void add_read(struct hf__etcd *etcd, struct hf__buf *to,
                     const struct hf__query *query)
{
    (void)query;
    number_key(etcd);
    add_key_request(etcd, to, HF__TXN_SUCCESS, HF__OP_RANGE);
    hf__etcd_queue_key_beside(etcd, "wait", "", 0);
    hf__etcd_queue_add_list(etcd, to, NOTICES_MAX, /* keys_only= */ false);
}

int hf__etcd_board_read(struct hf__engine *engine, struct hf__query *query,
                        hf_error *err)
{
    return hf__etcd_connection_ask((struct hf__etcd *)engine, query,
                                   HF__CALL_TXN, add_read, on_read, err);
}

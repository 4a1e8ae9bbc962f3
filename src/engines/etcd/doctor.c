/* SPDX-License-Identifier: MIT */
/*
 * doctor.c - is this cluster fit to keep locks?
 *
 * All questions are asked at once; each answer becomes findings, and the last
 * one ends the query. What the user may not ask is a warning: we do not know.
 * What a lease is given for is tried out, with one that is revoked again.
 */
#include <inttypes.h>
#include <stdio.h>

#include "engines/etcd/etcd.h"

enum { OK = HF_FINDING_OK, WARN = HF_FINDING_WARN, BAD = HF_FINDING_FAIL };

/* One answer less to come; the last one, or the loss of all, is told. */
static void conclude(struct hf__etcd *etcd, struct hf__query *query,
                     const struct hf__etcd_reply *reply)
{
    uintptr_t left = (uintptr_t)query->engine_data - 1;

    query->engine_data = (void *)left;
    if (left > 0)
        return;
    if (reply->code < 0)
        hf__etcd_errors_answer(etcd, query, reply);
    else
        hf__up_answer(&etcd->base, query, 0, /* err= */ NULL);
}

static bool refused(struct hf__query *query, const char *check,
                    const struct hf__etcd_reply *reply)
{
    if (reply->code == HF__ETCD_OK)
        return false;
    if (reply->code > 0)
        (void)hf__query_add_finding(query, WARN, check,
                                    "ask as a user with the role root",
                                    "cannot be asked: %s", reply->err.text);
    return true;
}

static void look_at_watches(struct hf__query *query, const char *peer,
                            const char *version)
{
    if (hf__etcd_wait_is_late(version))
        (void)hf__query_add_finding(
            query, WARN, "watches", "upgrade to 3.4.38, 3.5.22, 3.6.2 or later",
            "%s, version %s, serves a watch late, after up to 100 ms, if "
            "others write while it is made: waiters ask again",
            peer, version);
}

static void on_status(struct hf__etcd *etcd, struct hf__etcd_call *call,
                      const struct hf__etcd_reply *reply)
{
    int64_t trip_us = (hf__now() - reply->sent_ns) / 1000;
    int64_t ttl_ms = etcd->base.host->settings->ttl_ms;
    bool slow = trip_us > ttl_ms * 1000 / 20;
    struct hf__query *query = call->query;
    uint64_t leader;

    if (!refused(query, "server", reply)) {
        leader = hf__pb_number(reply->root, HF__STATUS_LEADER);
        (void)hf__query_add_finding(query, OK, "server", "", "%s, version %s",
                                    hf__etcd_connection_peer(etcd),
                                    etcd->version);
        look_at_watches(query, hf__etcd_connection_peer(etcd), etcd->version);
        (void)hf__query_add_finding(
            query, leader != 0 ? OK : BAD, "leader",
            leader != 0 ? "" : "start the missing members",
            leader != 0 ? "member %" PRIx64 ", term %" PRIu64
                        : "none (%" PRIx64 "), term %" PRIu64,
            leader, hf__pb_number(reply->root, HF__STATUS_TERM));
        (void)hf__query_add_finding(query, slow ? WARN : OK, "round trip",
                                    slow ? "use a longer ttl" : "",
                                    "%lld µs, for a lease of %lld ms",
                                    (long long)trip_us, (long long)ttl_ms);
    }
    conclude(etcd, query, reply);
}

/* One that is not in use, but will be when that one fails. */
static void on_other(struct hf__etcd *etcd, struct hf__etcd_call *call,
                     const struct hf__etcd_reply *reply)
{
    int64_t trip_us = (hf__now() - reply->sent_ns) / 1000;
    const char *peer = call->other->grpc.name;
    uint64_t leader = hf__pb_number(reply->root, HF__STATUS_LEADER);
    bool fit = reply->code == HF__ETCD_OK && leader != 0;
    struct hf__etcd_reply answered = {.code = HF__ETCD_OK};
    char version[24];

    hf__pb_text(hf__pb_inside(reply->root, HF__STATUS_VERSION), version,
                sizeof(version));
    if (fit) {
        (void)hf__query_add_finding(call->query, OK, "member", "",
                                    "%s, version %s, %lld µs", peer, version,
                                    (long long)trip_us);
        look_at_watches(call->query, peer, version);
    } else {
        (void)hf__query_add_finding(
            call->query, WARN, "member",
            "it cannot take over when the one in use fails", "%s: %s", peer,
            reply->code == HF__ETCD_OK ? "has no leader"
            : call->rpc.text[0]        ? call->rpc.text
                                       : "does not answer");
    }
    conclude(etcd, call->query, &answered);
}

static void ask_others(struct hf__etcd *etcd, struct hf__query *query)
{
    for (size_t i = 0; i < etcd->n_endpoints; i++) {
        struct hf__etcd_call *call;

        if (i == etcd->endpoint)
            continue;
        call = hf__etcd_connection_call_at(etcd, &etcd->endpoints[i],
                                           HF__CALL_STATUS, on_other);
        call->query = query;
        if (hf__etcd_connection_send(call, /* err= */ NULL) == 0)
            query->engine_data = (void *)((uintptr_t)query->engine_data + 1);
    }
}

static void on_members(struct hf__etcd *etcd, struct hf__etcd_call *call,
                       const struct hf__etcd_reply *reply)
{
    struct hf__query *query = call->query;
    size_t n = 0;
    size_t at = 0;

    if (!refused(query, "members", reply)) {
        while (hf__pb_there(hf__pb_next(reply->root, HF__MEMBERS, &at)))
            n++;
        (void)hf__query_add_finding(
            query, n >= 3 && n % 2 == 1 ? OK : WARN, "members",
            n < 3        ? "a lock survives the loss of a member with three"
            : n % 2 == 0 ? "use an odd number: one more bears no more losses"
                         : "",
            "%zu; %zu named in the URL", n, etcd->n_endpoints);
        if (n > 1 && etcd->n_endpoints < n)
            (void)hf__query_add_finding(
                query, WARN, "endpoints", "name every member in the URL",
                "%zu of %zu members can be used", etcd->n_endpoints, n);
    }
    conclude(etcd, query, reply);
}

static void on_alarms(struct hf__etcd *etcd, struct hf__etcd_call *call,
                      const struct hf__etcd_reply *reply)
{
    struct hf__pb alarm = hf__pb_inside(reply->root, HF__ALARMS);
    struct hf__query *query = call->query;
    bool full = hf__pb_number(alarm, HF__ALARM_KIND) == HF__ALARM_NOSPACE;

    if (!refused(query, "alarms", reply)) {
        if (!hf__pb_there(alarm))
            (void)hf__query_add_finding(query, OK, "alarms", "", "none");
        else
            (void)hf__query_add_finding(
                query, BAD, "alarms",
                "compact, defragment, then etcdctl alarm disarm", "%s",
                full ? "NOSPACE: nothing can be written"
                     : "CORRUPT: the store is in danger");
    }
    conclude(etcd, query, reply);
}

static void on_revoked(struct hf__etcd *etcd, struct hf__etcd_call *call,
                       const struct hf__etcd_reply *reply)
{
    conclude(etcd, call->query, reply);
}

/* A question with one number, @field, or without (0). */
static bool ask(struct hf__etcd *etcd, struct hf__query *query,
                const char *path, hf__etcd_reply_fn *done, uint32_t field,
                uint64_t number)
{
    struct hf__etcd_call *call = hf__etcd_connection_call(etcd, path, done);

    call->query = query;
    call->n = number;
    if (field != 0)
        hf__pb_add_number(&call->rpc.body, field, number);
    if (hf__etcd_connection_send(call, /* err= */ NULL) != 0)
        return false;
    query->engine_data = (void *)((uintptr_t)query->engine_data + 1);
    return true;
}

static void on_lease(struct hf__etcd *etcd, struct hf__etcd_call *call,
                     const struct hf__etcd_reply *reply)
{
    struct hf__query *query = call->query;
    int64_t asked_s = (int64_t)call->n;
    int64_t ttl_s = (int64_t)hf__pb_number(reply->root, HF__LEASE_GIVEN_TTL);

    if (!refused(query, "lease", reply)) {
        (void)hf__query_add_finding(
            query, ttl_s == asked_s ? OK : WARN, "lease",
            ttl_s == asked_s ? ""
                             : "the lock of a dead holder stays closed for "
                               "so long: use a longer ttl, or a shorter "
                               "--election-timeout",
            "asked for %lld s, given %lld s", (long long)asked_s,
            (long long)ttl_s);
        (void)ask(etcd, query, HF__CALL_REVOKE, on_revoked, HF__LEASE_ID,
                  hf__pb_number(reply->root, HF__LEASE_GIVEN_ID));
    }
    conclude(etcd, query, reply);
}

static bool ask_lease(struct hf__etcd *etcd, struct hf__query *query)
{
    const struct hf__settings *settings = etcd->base.host->settings;

    return ask(etcd, query, HF__CALL_GRANT, on_lease, HF__GRANT_TTL,
               (uint64_t)(settings->ttl_ms + settings->lock_delay_ms + 999) /
                   1000);
}

/* ---- wake-ups that nobody is left for -------------------------------------- */

/* Is anybody parked, or bears a wake-up, at the condition "<name>/<cond>"? */
static bool has_records(const struct hf__etcd *etcd, struct hf__pb records,
                        struct hf__pb condition)
{
    struct hf__pb kv;
    size_t at = 0;

    while (hf__pb_there(kv = hf__pb_next(records, HF__RANGE_KVS, &at))) {
        struct hf__pb record = hf__etcd_queue_behind(
            etcd, hf__pb_inside(kv, HF__KV_KEY), "~cond/");

        if (record.len > condition.len && record.bytes[condition.len] == '/' &&
            memcmp(record.bytes, condition.bytes, condition.len) == 0)
            return true;
    }
    return false;
}

/* Delete the stamps of @kv, if they have not changed and nobody has parked
 * meanwhile. */
static void remove_stamps(struct hf__etcd *etcd, struct hf__query *query,
                          struct hf__pb kv, struct hf__pb condition)
{
    struct hf__etcd_call *call =
        hf__etcd_connection_call(etcd, HF__CALL_TXN, on_revoked);
    struct hf__pb key = hf__pb_inside(kv, HF__KV_KEY);

    call->query = query;
    etcd->key.len = 0;
    hf__buf_append(&etcd->key, etcd->prefix, etcd->prefix_len);
    hf__buf_add(&etcd->key, "~cond/");
    hf__buf_append(&etcd->key, condition.bytes, condition.len);
    hf__buf_add_char(&etcd->key, '/');
    hf__etcd_queue_add_compare(etcd, &call->rpc.body, /* range= */ true, 0);
    hf__etcd_queue_key_of(etcd, key);
    hf__etcd_queue_add_compare_modified(etcd, &call->rpc.body,
                                        hf__pb_number(kv, HF__KV_MODIFIED));
    hf__etcd_queue_add_delete(etcd, &call->rpc.body);
    if (hf__etcd_connection_send(call, /* err= */ NULL) == 0)
        query->engine_data = (void *)((uintptr_t)query->engine_data + 1);
}

/* The death of the last waiter of a condition may leave wake-ups behind, which
 * no lease ends. They wake nobody, and so they go. */
static void on_stamps(struct hf__etcd *etcd, struct hf__etcd_call *call,
                      const struct hf__etcd_reply *reply)
{
    struct hf__pb stamps = hf__etcd_queue_range_of(reply->root, 0);
    struct hf__pb records = hf__etcd_queue_range_of(reply->root, 1);
    struct hf__query *query = call->query;
    struct hf__pb kv;
    size_t stale = 0;
    size_t at = 0;

    if (!refused(query, "wake-ups", reply)) {
        while (hf__pb_there(kv = hf__pb_next(stamps, HF__RANGE_KVS, &at)) &&
               stale < HF__ETCD_RENEWALS) {
            struct hf__pb condition = hf__etcd_queue_behind(
                etcd, hf__pb_inside(kv, HF__KV_KEY), "~wake/");

            if (!hf__pb_there(condition) ||
                has_records(etcd, records, condition))
                continue;
            stale++;
            remove_stamps(etcd, query, kv, condition);
        }
        (void)hf__query_add_finding(
            query, OK, "wake-ups", "",
            stale > 0 ? "removed those of %zu conditions: nobody is left for "
                        "them"
                      : "none are left behind (%zu)",
            stale);
    }
    conclude(etcd, query, reply);
}

static void add_stamps(struct hf__etcd *etcd, struct hf__buf *to,
                       const struct hf__query *query)
{
    (void)query;
    hf__etcd_queue_key_beside(etcd, "wake", "", 0);
    hf__etcd_queue_add_list(etcd, to, HF__ETCD_ROWS, /* keys_only= */ true);
    hf__etcd_queue_key_beside(etcd, "cond", "", 0);
    hf__etcd_queue_add_list(etcd, to, HF__ETCD_ROWS, /* keys_only= */ true);
}

static void ask_stamps(struct hf__etcd *etcd, struct hf__query *query)
{
    if (hf__etcd_connection_ask(etcd, query, HF__CALL_TXN, add_stamps,
                                on_stamps, /* err= */ NULL) == 0)
        query->engine_data = (void *)((uintptr_t)query->engine_data + 1);
}

static void look_at_settings(struct hf__etcd *etcd, struct hf__query *query)
{
    const struct hf__engine_host *host = etcd->base.host;
    bool user = (host->url->user ? host->url->user : host->settings->user)[0];
    bool tls = etcd->tls != NULL;

    (void)hf__query_add_finding(query, user ? OK : WARN, "user",
                                user ? ""
                                     : "every client that reaches the port "
                                       "may break locks: etcdctl auth enable",
                                user ? "a token is used" : "none is given");
    if (!tls && user)
        (void)hf__query_add_finding(query, WARN, "encryption", "use etcds://",
                                    "the password crosses the network in "
                                    "clear text");
}

int hf__etcd_doctor(struct hf__engine *engine, struct hf__query *query,
                    hf_error *err)
{
    struct hf__etcd *etcd = (struct hf__etcd *)engine;
    bool sent;

    if (!hf__etcd_connection_is_up(etcd))
        return hf__etcd_errors_not_up(etcd, err);
    query->engine_data = NULL;
    sent = ask(etcd, query, HF__CALL_STATUS, on_status, 0, 0);
    if (!sent)
        return hf__fail(err, HF_ENOMEM, "out of memory");
    look_at_settings(etcd, query);
    (void)ask(etcd, query, HF__CALL_MEMBERS, on_members, 0, 0);
    (void)ask(etcd, query, HF__CALL_ALARM, on_alarms, 0, 0);
    (void)ask_lease(etcd, query);
    ask_stamps(etcd, query);
    ask_others(etcd, query);
    return 0;
}

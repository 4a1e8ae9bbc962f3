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
    if (reply->code == HF__ETCD_LOST)
        hf__etcd_answer_failed(etcd, query, reply);
    else
        hf__up_answer(&etcd->base, query, 0, /* err= */ NULL);
}

static bool refused(struct hf__query *query, const char *check,
                    const struct hf__etcd_reply *reply)
{
    if (reply->code == HF__ETCD_OK)
        return false;
    if (reply->code != HF__ETCD_LOST)
        (void)hf__query_add_finding(query, WARN, check,
                                    "ask as a user with the role root",
                                    "cannot be asked: %s", reply->err.text);
    return true;
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
        leader = hf__json_unsigned(hf__json_member(reply->root, "leader"));
        (void)hf__query_add_finding(query, OK, "server", "", "%s, version %s",
                                    hf__etcd_peer(etcd), etcd->version);
        (void)hf__query_add_finding(
            query, leader != 0 ? OK : BAD, "leader",
            leader != 0 ? "" : "start the missing members",
            leader != 0 ? "member %" PRIx64 ", term %" PRIu64
                        : "none (%" PRIx64 "), term %" PRIu64,
            leader,
            (uint64_t)hf__json_number(
                hf__json_member(reply->root, "raftTerm")));
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
    const char *peer = strstr(call->member, "//") + 2;
    uint64_t leader = hf__json_unsigned(hf__json_member(reply->root, "leader"));
    bool fit = reply->code == HF__ETCD_OK && leader != 0;
    struct hf__etcd_reply answered = {.code = HF__ETCD_OK};
    char version[24];

    hf__json_text(hf__json_member(reply->root, "version"), version,
                  sizeof(version));
    if (fit)
        (void)hf__query_add_finding(call->query, OK, "member", "",
                                    "%s, version %s, %lld µs", peer, version,
                                    (long long)trip_us);
    else
        (void)hf__query_add_finding(
            call->query, WARN, "member",
            "it cannot take over when the one in use fails", "%s: %s", peer,
            reply->code == HF__ETCD_OK ? "has no leader"
            : call->http.text[0]       ? call->http.text
                                       : "does not answer");
    conclude(etcd, call->query, &answered);
}

static void ask_others(struct hf__etcd *etcd, struct hf__query *query)
{
    for (size_t i = 0; i < etcd->n_endpoints; i++) {
        struct hf__etcd_call *call = NULL;

        if (i != etcd->endpoint)
            call = hf__etcd_call_new(etcd, "/v3/maintenance/status", on_other);
        if (!call)
            continue;
        call->query = query;
        call->member = etcd->endpoints[i];
        hf__buf_add(&call->http.body, "{}");
        if (hf__etcd_call_send(call, /* err= */ NULL) == 0)
            query->engine_data = (void *)((uintptr_t)query->engine_data + 1);
    }
}

static void on_members(struct hf__etcd *etcd, struct hf__etcd_call *call,
                       const struct hf__etcd_reply *reply)
{
    struct hf__json members = hf__json_member(reply->root, "members");
    struct hf__query *query = call->query;
    size_t n = 0;
    size_t at = 0;

    if (!refused(query, "members", reply)) {
        while (hf__json_next(members, &at).type != HF__JSON_NONE)
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
    struct hf__json alarms = hf__json_member(reply->root, "alarms");
    struct hf__query *query = call->query;
    struct hf__json alarm;
    size_t at = 0;
    char what[32];

    if (!refused(query, "alarms", reply)) {
        alarm = hf__json_next(alarms, &at);
        hf__json_text(hf__json_member(alarm, "alarm"), what, sizeof(what));
        if (alarm.type == HF__JSON_NONE)
            (void)hf__query_add_finding(query, OK, "alarms", "", "none");
        else
            (void)hf__query_add_finding(
                query, BAD, "alarms",
                "compact, defragment, then etcdctl alarm disarm", "%s: %s",
                what[0] ? what : "an alarm",
                strcmp(what, "NOSPACE") == 0 ? "nothing can be written"
                                             : "the store is in danger");
    }
    conclude(etcd, query, reply);
}

static void on_revoked(struct hf__etcd *etcd, struct hf__etcd_call *call,
                       const struct hf__etcd_reply *reply)
{
    conclude(etcd, call->query, reply);
}

static bool ask(struct hf__etcd *etcd, struct hf__query *query,
                const char *path, hf__etcd_reply_fn *done, const char *body)
{
    struct hf__etcd_call *call = hf__etcd_call_new(etcd, path, done);

    if (!call)
        return false;
    call->query = query;
    hf__buf_add(&call->http.body, body);
    if (hf__etcd_call_send(call, /* err= */ NULL) != 0)
        return false;
    query->engine_data = (void *)((uintptr_t)query->engine_data + 1);
    return true;
}

static void on_lease(struct hf__etcd *etcd, struct hf__etcd_call *call,
                     const struct hf__etcd_reply *reply)
{
    struct hf__query *query = call->query;
    int64_t asked_s = (int64_t)call->n;
    int64_t ttl_s = hf__json_number(hf__json_member(reply->root, "TTL"));
    char body[48];

    if (!refused(query, "lease", reply)) {
        (void)hf__query_add_finding(
            query, ttl_s == asked_s ? OK : WARN, "lease",
            ttl_s == asked_s ? ""
                             : "the lock of a dead holder stays closed for "
                               "so long: use a longer ttl, or a shorter "
                               "--election-timeout",
            "asked for %lld s, given %lld s", (long long)asked_s,
            (long long)ttl_s);
        (void)snprintf(body, sizeof(body), "{\"ID\":\"%" PRId64 "\"}",
                       hf__json_number(hf__json_member(reply->root, "ID")));
        (void)ask(etcd, query, "/v3/lease/revoke", on_revoked, body);
    }
    conclude(etcd, query, reply);
}

static bool ask_lease(struct hf__etcd *etcd, struct hf__query *query)
{
    const struct hf__settings *settings = etcd->base.host->settings;
    struct hf__etcd_call *call =
        hf__etcd_call_new(etcd, "/v3/lease/grant", on_lease);
    int64_t seconds = (settings->ttl_ms + settings->lock_delay_ms + 999) / 1000;

    if (!call)
        return false;
    call->query = query;
    call->n = (size_t)seconds;
    hf__buf_printf(&call->http.body, "{\"TTL\":\"%" PRId64 "\"}", seconds);
    if (hf__etcd_call_send(call, /* err= */ NULL) != 0)
        return false;
    query->engine_data = (void *)((uintptr_t)query->engine_data + 1);
    return true;
}

static void look_at_settings(struct hf__etcd *etcd, struct hf__query *query)
{
    const struct hf__engine_host *host = etcd->base.host;
    bool user = (host->url->user ? host->url->user : host->settings->user)[0];
    bool tls = etcd->http.tls;

    (void)hf__query_add_finding(query, user ? OK : WARN, "user",
                                user ? ""
                                     : "whoever reaches the port may break "
                                       "every lock: etcdctl auth enable",
                                user ? "a token is used" : "none is given");
    if (!tls && user)
        (void)hf__query_add_finding(query, WARN, "encryption", "use etcds://",
                                    "the password crosses the network as it "
                                    "is");
}

int hf__etcd_doctor(struct hf__engine *engine, struct hf__query *query,
                    hf_error *err)
{
    struct hf__etcd *etcd = (struct hf__etcd *)engine;
    bool sent;

    if (!etcd->up)
        return hf__etcd_not_up(etcd, err);
    query->engine_data = NULL;
    sent = ask(etcd, query, "/v3/maintenance/status", on_status, "{}");
    if (!sent)
        return hf__fail(err, HF_ENOMEM, "out of memory");
    look_at_settings(etcd, query);
    (void)ask(etcd, query, "/v3/cluster/member/list", on_members, "{}");
    (void)ask(etcd, query, "/v3/maintenance/alarm", on_alarms,
              "{\"action\":\"GET\"}");
    (void)ask_lease(etcd, query);
    ask_others(etcd, query);
    return 0;
}

/* SPDX-License-Identifier: MIT */
/*
 * doctor.c - is this server fit to keep locks?
 *
 * A cache forgets on purpose. What can be seen beforehand: that it may throw
 * items away, that it does so already, that it was restarted lately.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "engines/memcached/memcached.h"

enum { OK = HF_FINDING_OK, WARN = HF_FINDING_WARN, BAD = HF_FINDING_FAIL };

static void on_settings(struct hf__memcached *memcached,
                        const struct hf__memcached_call *call,
                        const struct hf__meta *meta)
{
    char value[24];

    (void)memcached;
    if (!meta ||
        !hf__memcached_wire_stat(meta, "evictions", value, sizeof(value)))
        return;
    if (strcmp(value, "off") == 0)
        (void)hf__query_add_finding(call->query, OK, "eviction", "",
                                    "off (-M): a full server refuses locks");
    else
        (void)hf__query_add_finding(call->query, WARN, "eviction",
                                    "a server for locks alone, started with -M",
                                    "a full server throws locks away");
}

static void look_at_age(struct hf__memcached *memcached,
                        struct hf__query *query, int64_t uptime_s)
{
    bool young = uptime_s * 1000 < memcached->base.host->settings->ttl_ms;

    (void)hf__query_add_finding(
        query, young ? WARN : OK, "uptime",
        young ? "wait for the longest ttl after a restart" : "",
        "%" PRId64 " s: everything before it is forgotten", uptime_s);
}

static void on_stats(struct hf__memcached *memcached,
                     const struct hf__memcached_call *call,
                     const struct hf__meta *meta)
{
    int64_t ttl_ms = memcached->base.host->settings->ttl_ms;
    int64_t apart_s;
    char value[24];
    hf_error err;

    if (!meta) {
        hf__memcached_connection_explain_lost(memcached, &err);
        hf__up_answer(&memcached->base, call->query, err.code, &err);
    } else if (hf__memcached_wire_stat(meta, "uptime", value, sizeof(value))) {
        look_at_age(memcached, call->query, strtoll(value, NULL, 10));
    } else if (hf__memcached_wire_stat(meta, "time", value, sizeof(value))) {
        apart_s = strtoll(value, NULL, 10) - hf__world->wall_us() / 1000000;
        (void)hf__query_add_finding(
            call->query, OK, "clock", "",
            "%lld s from ours; leases do not depend on it, and are counted in "
            "whole seconds",
            (long long)apart_s);
    } else if (hf__memcached_wire_stat(meta, "evictions", value,
                                       sizeof(value))) {
        bool some = strcmp(value, "0") != 0;

        (void)hf__query_add_finding(
            call->query, some ? BAD : OK, "evictions",
            some ? "give it more memory (-m), or a server of its own" : "",
            "%s items were thrown away before their time", value);
    } else if (meta->kind != HF__META_STAT) {
        int64_t trip_us = (hf__now() - call->sent_ns) / 1000;

        (void)hf__query_add_finding(
            call->query, trip_us > ttl_ms * 50 ? WARN : OK, "round trip",
            trip_us > ttl_ms * 50 ? "use a longer ttl" : "",
            "%" PRId64 " µs, for a lease of %" PRId64 " ms", trip_us, ttl_ms);
        hf__up_answer(&memcached->base, call->query, 0, /* err= */ NULL);
    }
}

int hf__memcached_doctor(struct hf__engine *engine, struct hf__query *query,
                         hf_error *err)
{
    struct hf__memcached *memcached = (struct hf__memcached *)engine;
    struct hf__memcached_call settings = {
        .done = on_settings, .answers = HF__MEMCACHED_STATS, .query = query};
    struct hf__memcached_call stats = {
        .done = on_stats, .answers = HF__MEMCACHED_STATS, .query = query};
    struct hf__buf *out = &memcached->stream.out;
    size_t mark = out->len;
    hf_error why;

    if (!memcached->up)
        return hf__fail(err, HF_EUNAVAILABLE, "%s: not connected",
                        memcached->peer);
    (void)hf__query_add_finding(query, OK, "server", "", "%s, version %s",
                                memcached->peer, memcached->version);
    (void)hf__query_add_finding(
        query, WARN, "promise", "use an engine that is fenced",
        "efficiency only: a cache forgets, and there is no token");
    hf__buf_add(out, "stats settings\r\n");
    if (hf__memcached_connection_sent(memcached, mark, &settings, err) != 0)
        return HF_ENOMEM;
    mark = out->len;
    hf__buf_add(out, "stats\r\n");
    if (hf__memcached_connection_sent(memcached, mark, &stats, err) == 0)
        return 0;
    /* What was sent refers to the query: no half answers. */
    (void)hf__fail(&why, HF_ENOMEM, "out of memory");
    hf__memcached_connection_fail(memcached, &why);
    return hf__fail_pass(err, &why);
}

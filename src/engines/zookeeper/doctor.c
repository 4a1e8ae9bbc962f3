/* SPDX-License-Identifier: MIT */
/*
 * doctor.c - is this ensemble fit to keep locks?
 *
 * One question after the other; each answer becomes a finding, and after the
 * last one doctor_members.c goes on. What we may not ask is a warning: we do not know.
 * The rights that locks need are tried out, on a node of our own.
 */
#include <stdio.h>
#include <stdlib.h>

#include "engines/common/doctor.h"
#include "engines/zookeeper/zookeeper.h"

enum { OK = HF_FINDING_OK, WARN = HF_FINDING_WARN, BAD = HF_FINDING_FAIL };

static void tell_session(struct hf__zk *zk, struct hf__query *query)
{
    const struct hf__settings *settings = zk->base.host->settings;
    int64_t wanted_ms = hf__zk_session_wanted_ms(zk);
    bool less = zk->session_ms < wanted_ms;

    (void)hf__query_add_finding(query, OK, "server", "", "%s, session 0x%llx",
                                zk->peer, (unsigned long long)zk->session);
    (void)hf__query_add_finding(
        query, less ? WARN : OK, "session timeout",
        less ? "raise maxSessionTimeout of the servers, or ask for less" : "",
        "%d ms granted, %lld ms asked; a lease is %lld ms, ttl is %lld ms",
        (int)zk->session_ms, (long long)wanted_ms,
        (long long)hf__zk_session_lease_ms(zk), (long long)settings->ttl_ms);
}

/* A round trip to the leader. */
static void on_trip(struct hf__zk *zk, const struct hf__zk_call *call,
                    struct hf__zk_reply *reply)
{
    int64_t trip_us = (hf__now() - call->sent_ns) / 1000;
    int64_t lease_ms = hf__zk_session_lease_ms(zk);
    bool slow = trip_us > lease_ms * 1000 / 20;

    (void)reply;
    (void)hf__query_add_finding(call->query, slow ? WARN : OK, "round trip",
                                slow ? "use a longer ttl" : "",
                                "%lld µs to the leader, for a lease of %lld ms",
                                (long long)trip_us, (long long)lease_ms);
}

static uint32_t count_voters(struct hf__zk_wire_text text)
{
    static const char word[] = ":participant";
    uint32_t n = 0;

    for (size_t i = 0; i + strlen(word) <= text.len; i++)
        n += memcmp(text.text + i, word, strlen(word)) == 0;
    return n;
}

static void on_config(struct hf__zk *zk, const struct hf__zk_call *call,
                      struct hf__zk_reply *reply)
{
    size_t hosts = zk->base.host->url->n_hosts;
    uint32_t voters;

    if (reply->error != HF__ZK_OK) {
        (void)hf__query_add_finding(
            call->query, WARN, "ensemble", "allow reading /zookeeper/config",
            "cannot be asked: error %d", (int)reply->error);
        return;
    }
    voters = count_voters(hf__zk_wire_text(&reply->in));
    if (voters < 3)
        (void)hf__query_add_finding(
            call->query, WARN, "ensemble",
            "three servers survive the loss of one",
            voters == 0 ? "one server: no lock can be had while it is down"
                        : "%u voting servers: no loss is survived",
            (unsigned)voters);
    else
        (void)hf__query_add_finding(call->query, OK, "ensemble", "",
                                    "%u voting servers survive the loss of %u",
                                    (unsigned)voters,
                                    (unsigned)(voters - 1) / 2);
    if (voters > 1 && hosts == 1)
        (void)hf__query_add_finding(
            call->query, WARN, "hosts", "write all servers into the URL",
            "the URL has one of %u servers: when it goes, we are alone",
            (unsigned)voters);
}

static void on_root(struct hf__zk *zk, const struct hf__zk_call *call,
                    struct hf__zk_reply *reply)
{
    struct hf__zk_wire_stat stat;

    if (reply->error == HF__ZK_OK) {
        hf__zk_wire_stat(&reply->in, &stat);
        (void)hf__query_add_finding(call->query, OK, "root", "",
                                    "%s has %d nodes", zk->top,
                                    (int)stat.children);
    } else {
        (void)hf__query_add_finding(
            call->query, reply->error == HF__ZK_NO_NODE ? OK : BAD, "root",
            reply->error == HF__ZK_NO_NODE ? "" : "look at its access list",
            reply->error == HF__ZK_NO_NODE
                ? "%s is not there yet: the first lock makes it"
                : "%s cannot be read: error %d",
            zk->top, (int)reply->error);
    }
}

static void on_container(struct hf__zk *zk, const struct hf__zk_call *call,
                         struct hf__zk_reply *reply)
{
    bool good;

    (void)zk;
    good = reply->error == HF__ZK_OK || reply->error == HF__ZK_NODE_EXISTS;
    (void)hf__query_add_finding(
        call->query, good ? OK : BAD, "rights",
        good ? "" : "locks need create, delete and read below the root",
        good ? "nodes can be made" : "no container can be made: error %d",
        (int)reply->error);
}

static void on_scratch(struct hf__zk *zk, const struct hf__zk_call *call,
                       struct hf__zk_reply *reply)
{
    struct hf__zk_wire_stat stat;
    int64_t apart_s;

    (void)zk;
    if (reply->error != HF__ZK_OK)
        return;
    (void)hf__zk_wire_text(&reply->in);
    hf__zk_wire_stat(&reply->in, &stat);
    apart_s = stat.ctime_ms / 1000 - hf__world->wall_us() / 1000000;
    (void)hf__doctor_add_clock(
        call->query, "the leader's", apart_s,
        "ages of locks are shown wrong; nothing else depends on it");
}

/* ---- one question after the other -------------------------------------- */

static int ask_config(struct hf__zk *zk, const struct hf__zk_call *call,
                      hf_error *err)
{
    return hf__zk_calls_ask(zk, HF__ZK_GET_DATA,
                            hf__zk_wire_text_of("/zookeeper/config"),
                            /* watch= */ false, call, err);
}

static int ask_root(struct hf__zk *zk, const struct hf__zk_call *call,
                    hf_error *err)
{
    return hf__zk_calls_ask(zk, HF__ZK_EXISTS, hf__zk_wire_text_of(zk->top),
                            /* watch= */ false, call, err);
}

static int ask_trip(struct hf__zk *zk, const struct hf__zk_call *call,
                    hf_error *err)
{
    size_t mark = hf__zk_calls_begin(zk, HF__ZK_SYNC);

    hf__zk_wire_put_text(&zk->stream.out, zk->top, strlen(zk->top));
    return hf__zk_calls_end(zk, mark, call, err);
}

static int ask_container(struct hf__zk *zk, const struct hf__zk_call *call,
                         hf_error *err)
{
    return hf__zk_calls_create(zk, hf__zk_wire_text_of(zk->top),
                               /* data= */ hf__zk_wire_text_of(""),
                               HF__ZK_CONTAINER, call, err);
}

/* A node below the root, that is made and deleted again. */
static struct hf__zk_wire_text scratch_path(struct hf__zk *zk)
{
    hf__buf_printf(hf__zk_nodes_begin(zk), "/.doctor-%s",
                   zk->base.host->identity_hex);
    return hf__zk_nodes_spelled(zk);
}

static int ask_scratch(struct hf__zk *zk, const struct hf__zk_call *call,
                       hf_error *err)
{
    return hf__zk_calls_create(zk, scratch_path(zk), hf__zk_wire_text_of(""),
                               HF__ZK_EPHEMERAL, call, err);
}

static int ask_delete(struct hf__zk *zk, const struct hf__zk_call *call,
                      hf_error *err)
{
    return hf__zk_calls_delete(zk, scratch_path(zk), call, err);
}

static const struct {
    int (*ask)(struct hf__zk *zk, const struct hf__zk_call *call,
               hf_error *err);
    hf__zk_reply_fn *tell;
} questions[] = {
    {ask_config, on_config},   {ask_root, on_root},
    {ask_trip, on_trip},       {ask_container, on_container},
    {ask_scratch, on_scratch}, {ask_delete, hf__zk_calls_ignore},
};

static int ask(struct hf__zk *zk, struct hf__query *query, int32_t number,
               hf_error *err);

static void on_answer(struct hf__zk *zk, const struct hf__zk_call *call,
                      struct hf__zk_reply *reply)
{
    int32_t next = call->number + 1;
    hf_error err;
    int rc = 0;

    if (reply)
        questions[call->number].tell(zk, call, reply);
    else
        rc = hf__zk_errors_lost(zk, &err);
    if (rc == 0 && (size_t)next < HF_COUNT_OF(questions)) {
        rc = ask(zk, call->query, next, &err);
        if (rc == 0)
            return;
    }
    if (rc == 0)
        hf__zk_doctor_members_ask(zk, call->query);
    else
        hf__up_answer(&zk->base, call->query, rc, &err);
}

static int ask(struct hf__zk *zk, struct hf__query *query, int32_t number,
               hf_error *err)
{
    struct hf__zk_call call = {
        .done = on_answer, .query = query, .number = number};

    return questions[number].ask(zk, &call, err);
}

int hf__zk_doctor(struct hf__engine *engine, struct hf__query *query,
                  hf_error *err)
{
    struct hf__zk *zk = (struct hf__zk *)engine;

    if (!hf__zk_connection_is_up(zk))
        return hf__zk_errors_not_up(zk, err);
    tell_session(zk, query);
    return ask(zk, query, 0, err);
}

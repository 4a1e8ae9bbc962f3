/* SPDX-License-Identifier: MIT */
/*
 * redlock_doctor.c - are these servers fit for a RedLock?
 *
 * First what concerns all of them together, then each one by itself: the Redis
 * engine of the node is asked its own questions, one node after the other.
 */
#include <inttypes.h>

#include "engines/redis/redlock.h"

enum { OK = HF_FINDING_OK, WARN = HF_FINDING_WARN, BAD = HF_FINDING_FAIL };

static void look_at_number(const struct hf__redlock *redlock,
                           struct hf__query *query)
{
    bool even = redlock->n % 2 == 0;

    (void)hf__query_add_finding(
        query, even ? WARN : OK, "majority",
        even ? "use an odd number: one server more costs a vote, and helps "
               "nobody"
             : "",
        "%u of %u servers must agree", redlock->quorum, redlock->n);
    (void)hf__query_add_finding(
        query, WARN, "token", "let the resource check versions instead",
        "RedLock has no number that grows with every grant");
}

/* Several servers of one machine fail together. */
static void look_at_hosts(const struct hf__redlock *redlock,
                          struct hf__query *query)
{
    for (uint32_t i = 0; i < redlock->n; i++) {
        for (uint32_t j = 0; j < i; j++) {
            const char *host = redlock->nodes[i].url.hosts[0].host;

            if (strcmp(host, redlock->nodes[j].url.hosts[0].host) != 0)
                continue;
            (void)hf__query_add_finding(
                query, WARN, "independence", "one server per machine",
                "%s and %s are on one machine, and fail together",
                redlock->nodes[j].name, redlock->nodes[i].name);
            return;
        }
    }
    (void)hf__query_add_finding(query, OK, "independence", "",
                                "no two servers have one name or one run_id");
}

static void look_at_memory(const struct hf__redlock *redlock,
                           struct hf__query *query)
{
    uint32_t forgetful = 0;

    for (uint32_t i = 0; i < redlock->n; i++)
        forgetful += redlock->nodes[i].state >= HF__PEER_UP &&
                     !redlock->nodes[i].durable;
    (void)hf__query_add_finding(
        query, forgetful > 0 ? WARN : OK, "restart",
        forgetful > 0 ? "appendonly yes and appendfsync always, and the same "
                        "longest ttl= for all clients"
                      : "",
        "%u servers forget locks in a restart, and do not vote for %" PRId64
        " ms afterwards",
        forgetful, redlock->longest_ms);
}

/* By how much the clocks of the servers differ, as far as they were read. */
static void look_at_clocks(const struct hf__redlock *redlock,
                           struct hf__query *query)
{
    int64_t low_ns = HF_NEVER;
    int64_t high_ns = INT64_MIN;
    bool apart;

    for (uint32_t i = 0; i < redlock->n; i++) {
        const struct hf__redlock_clock *clock = &redlock->nodes[i].clock;

        if (clock->since_ns == 0)
            continue;
        low_ns = clock->high_ns < low_ns ? clock->high_ns : low_ns;
        high_ns = clock->low_ns > high_ns ? clock->low_ns : high_ns;
    }
    apart = high_ns > low_ns && high_ns - low_ns > HF_SECOND;
    (void)hf__query_add_finding(
        query, apart ? WARN : OK, "clocks",
        apart ? "let all servers follow one time service, by slewing" : "",
        "the servers' clocks are %s apart",
        apart ? "more than a second" : "less than a second");
}

static void look_at_votes(const struct hf__redlock *redlock,
                          struct hf__query *query)
{
    char excuse[80];

    for (uint32_t i = 0; i < redlock->n; i++) {
        const struct hf__redlock_node *node = &redlock->nodes[i];
        bool up = node->state >= HF__PEER_UP;

        if (hf__redlock_node_votes(node)) {
            (void)hf__query_add_finding(query, OK, "vote", "", "%s votes",
                                        node->name);
        } else {
            hf__redlock_node_excuse(node, excuse, sizeof(excuse));
            (void)hf__query_add_finding(
                query, up ? WARN : BAD, "vote", up ? "" : "repair this server",
                "%s does not vote: %s%s%s", node->name, excuse, up ? "" : ": ",
                up ? "" : node->err.text);
        }
    }
}

static void look_at_times(const struct hf__redlock *redlock,
                          struct hf__query *query)
{
    const struct hf__settings *settings = &redlock->settings;
    bool slow = settings->node_timeout_ms > settings->ttl_ms / 10;

    (void)hf__query_add_finding(
        query, slow ? WARN : OK, "node_timeout",
        slow ? "use a longer ttl, or a shorter node_timeout" : "",
        "%" PRId64 " ms for an answer, of a lease of %" PRId64 " ms",
        settings->node_timeout_ms, settings->ttl_ms);
}

/* The next node that can be asked, from @i; the answer if there is none. */
static void ask_from(struct hf__redlock *redlock, struct hf__query *query,
                     uint32_t i)
{
    for (; i < redlock->n; i++) {
        struct hf__engine *engine = &redlock->nodes[i].redis->base;

        if (redlock->nodes[i].state >= HF__PEER_UP &&
            engine->ops->doctor(engine, query, /* err= */ NULL) == 0)
            return;
    }
    hf__up_answer(&redlock->base, query, 0, /* err= */ NULL);
}

void hf__redlock_doctor_answered(struct hf__redlock_node *node,
                                 struct hf__query *query, int rc,
                                 const hf_error *err)
{
    if (rc != 0)
        (void)hf__query_add_finding(query, BAD, "server", "repair this server",
                                    "%s: %s", node->name, err->text);
    ask_from(node->redlock, query, (uint32_t)node->index + 1);
}

int hf__redlock_doctor(struct hf__engine *engine, struct hf__query *query,
                       hf_error *err)
{
    struct hf__redlock *redlock = (struct hf__redlock *)engine;

    (void)err;
    look_at_number(redlock, query);
    look_at_hosts(redlock, query);
    look_at_memory(redlock, query);
    look_at_clocks(redlock, query);
    look_at_times(redlock, query);
    look_at_votes(redlock, query);
    ask_from(redlock, query, 0);
    hf__redlock_count(redlock);
    return 0;
}

/* SPDX-License-Identifier: MIT */
/*
 * doctor.c - is this server fit to keep locks?
 *
 * All questions travel in one write; each answer becomes a finding, and the
 * last one ends the query. What the ACL does not let us ask is a warning: we do
 * not know. The rights that locks need are tried out, on a name of our own.
 */
#include <stdio.h>
#include <stdlib.h>

#include "engines/common/doctor.h"
#include "engines/redis/connection.h"
#include "engines/redis/errors.h"
#include "engines/redis/inspect.h"
#include "engines/redis/redis.h"
#include "engines/redis/redisson.h"
#include "engines/redis/sentinel.h"

enum { OK = HF_FINDING_OK, WARN = HF_FINDING_WARN, BAD = HF_FINDING_FAIL };

const char hf__redis_doctor_name[] = "holdfast-doctor";

void hf__redis_doctor_read_config(struct hf__resp reply, const char *key,
                                  char *to, size_t size)
{
    struct hf__resp_value head = hf__resp_next(&reply);

    to[0] = '\0';
    for (uint32_t i = 0; i + 1 < head.count; i += 2) {
        struct hf__resp_value name = hf__resp_next(&reply);
        struct hf__resp_value value = hf__resp_next(&reply);

        if (hf__resp_is(&name, key) && value.type == HF__RESP_TEXT)
            (void)snprintf(to, size, "%.*s", (int)value.len, value.text);
    }
}

static bool refused(struct hf__query *query, const char *check,
                    const struct hf__resp *reply, const char *right)
{
    struct hf__resp copy;
    struct hf__resp_value value;

    if (!reply)
        return true; /* the last call answers */
    copy = *reply;
    value = hf__resp_next(&copy);
    if (value.type != HF__RESP_ERROR)
        return false;
    (void)hf__query_add_finding(query, WARN, check, right,
                                "cannot be asked: %.*s", (int)value.len,
                                value.text);
    return true;
}

static void on_ping(struct hf__redis *redis, const struct hf__redis_call *call,
                    struct hf__resp *reply)
{
    int64_t trip_us = (hf__now() - call->sent_ns) / 1000;
    int64_t ttl_ms = redis->base.host->settings->ttl_ms;
    bool slow = trip_us > ttl_ms * 1000 / 20;

    if (refused(call->query, "server", reply, "allow ping"))
        return;
    (void)hf__query_add_finding(call->query, OK, "server", "", "%s, version %s",
                                redis->peer, redis->version);
    (void)hf__query_add_finding(call->query, slow ? WARN : OK, "round trip",
                                slow ? "use a longer ttl" : "",
                                "%lld µs, for a lease of %lld ms",
                                (long long)trip_us, (long long)ttl_ms);
}

static void on_time(struct hf__redis *redis, const struct hf__redis_call *call,
                    struct hf__resp *reply)
{
    struct hf__resp_value seconds;
    int64_t apart_s;

    (void)redis;
    if (refused(call->query, "clock", reply, "allow time"))
        return;
    (void)hf__resp_next(reply);
    seconds = hf__resp_next(reply);
    apart_s = hf__resp_number(&seconds, 0) - hf__world->wall_us() / 1000000;
    (void)hf__doctor_add_clock(call->query, "the server's", apart_s,
                               "tokens come from the server's clock: set it "
                               "right, and never back");
}

enum { SETTING = 32 };

/* Two settings of the server; false: it does not tell them. */
static bool read_two(struct hf__query *query, const char *check,
                     const struct hf__resp *reply, const char *const keys[2],
                     char to[2][SETTING])
{
    if (refused(query, check, reply, "allow config|get"))
        return false;
    for (int i = 0; i < 2; i++)
        hf__redis_doctor_read_config(*reply, keys[i], to[i], SETTING);
    return true;
}

static void on_memory(struct hf__redis *redis,
                      const struct hf__redis_call *call, struct hf__resp *reply)
{
    static const char *const keys[2] = {"maxmemory", "maxmemory-policy"};
    char values[2][SETTING];
    const char *most = values[0];
    const char *policy = values[1];
    bool evicts;

    (void)redis;
    if (!read_two(call->query, "eviction", reply, keys, values))
        return;
    evicts = strcmp(policy, "noeviction") != 0;
    if (!evicts || strcmp(most, "0") == 0)
        (void)hf__query_add_finding(call->query, evicts ? WARN : OK, "eviction",
                                    evicts ? "set maxmemory-policy noeviction"
                                           : "",
                                    "maxmemory %s, policy %s", most, policy);
    else
        (void)hf__query_add_finding(
            call->query, BAD, "eviction", "set maxmemory-policy noeviction",
            "policy %s throws locks away when memory is short", policy);
}

static void on_append(struct hf__redis *redis,
                      const struct hf__redis_call *call, struct hf__resp *reply)
{
    static const char *const keys[2] = {"appendonly", "appendfsync"};
    char values[2][SETTING];
    bool safe;

    (void)redis;
    if (!read_two(call->query, "persistence", reply, keys, values))
        return;
    safe = strcmp(values[0], "yes") == 0 && strcmp(values[1], "always") == 0;
    (void)hf__query_add_finding(
        call->query, safe ? OK : WARN, "persistence",
        safe ? "" : "appendonly yes and appendfsync always, or fence by token",
        "appendonly %s, appendfsync %s%s", values[0], values[1],
        safe ? "" : ": a restart may forget who holds a lock");
}

/* How many bytes the slowest replica is behind; -1: none is connected. */
static int64_t farthest_behind(const struct hf__resp_value *info)
{
    char offset[24];
    int64_t written;
    int64_t behind = -1;

    hf__redis_connection_read_info(info, "master_repl_offset", offset,
                                   sizeof(offset));
    written = strtoll(offset, NULL, 10);
    for (int i = 0; i < 64; i++) {
        char key[20];
        char replica[160];
        const char *has;

        (void)snprintf(key, sizeof(key), "slave%d", i);
        hf__redis_connection_read_info(info, key, replica, sizeof(replica));
        if (replica[0] == '\0')
            break;
        has = strstr(replica, "offset=");
        if (has && written - strtoll(has + 7, NULL, 10) > behind)
            behind = written - strtoll(has + 7, NULL, 10);
    }
    return behind;
}

static void on_replication(struct hf__redis *redis,
                           const struct hf__redis_call *call,
                           struct hf__resp *reply)
{
    struct hf__resp_value info;
    char role[16];
    char replicas[16];

    (void)redis;
    if (refused(call->query, "replication", reply, "allow info"))
        return;
    info = hf__resp_next(reply);
    hf__redis_connection_read_info(&info, "role", role, sizeof(role));
    hf__redis_connection_read_info(&info, "connected_slaves", replicas,
                                   sizeof(replicas));
    if (strcmp(role, "master") != 0)
        (void)hf__query_add_finding(call->query, BAD, "replication",
                                    "connect to the master",
                                    "this server is a replica");
    else if (strcmp(replicas, "0") != 0)
        (void)hf__query_add_finding(
            call->query, WARN, "replication",
            "let the resource check tokens (hf_token)",
            "%s replicas, at most %lld bytes behind: a failover may lose the "
            "last locks",
            replicas, (long long)farthest_behind(&info));
    else
        (void)hf__query_add_finding(call->query, OK, "replication", "",
                                    "no replicas, so no failover");
}

/* A master that is cut off from its replicas goes on granting, unless this
 * stops it; the others elect another meanwhile. */
static void on_alone(struct hf__redis *redis, const struct hf__redis_call *call,
                     struct hf__resp *reply)
{
    char least[16];
    bool stops;

    if (!redis->sentinels && !redis->in_cluster)
        return; /* nobody is promoted */
    if (refused(call->query, "cut off", reply, "allow config|get"))
        return;
    hf__redis_doctor_read_config(*reply, "min-replicas-to-write", least,
                                 sizeof(least));
    stops = least[0] != '\0' && strcmp(least, "0") != 0;
    (void)hf__query_add_finding(
        call->query, stops ? OK : WARN, "cut off",
        stops ? "" : "set min-replicas-to-write 1",
        "min-replicas-to-write %s%s", least,
        stops ? ""
              : ": a master that is cut off goes on granting, beside its "
                "successor");
}

/* What the last search found. */
static void tell_sentinels(const struct hf__sentinels *all,
                           struct hf__query *query)
{
    bool enough = all->others + 1 >= 3 && all->quorum > all->others / 2;

    (void)hf__query_add_finding(
        query, enough ? OK : WARN, "sentinels",
        enough ? "" : "three or more, and a quorum of more than half of them",
        "%u of %u answered; %lld know of each other, quorum %lld", all->knew,
        all->n, (long long)all->others + 1, (long long)all->quorum);
}

static void on_cluster(struct hf__redis *redis,
                       const struct hf__redis_call *call,
                       struct hf__resp *reply)
{
    struct hf__resp_value info;
    char state[16];
    char served[16];
    bool whole;

    if (refused(call->query, "cluster", reply, "allow cluster|info"))
        return;
    info = hf__resp_next(reply);
    hf__redis_connection_read_info(&info, "cluster_state", state,
                                   sizeof(state));
    hf__redis_connection_read_info(&info, "cluster_slots_ok", served,
                                   sizeof(served));
    whole = strcmp(state, "ok") == 0 && strtol(served, NULL, 10) == HF__SLOTS;
    (void)hf__query_add_finding(call->query, whole ? OK : BAD, "cluster",
                                whole ? "" : "redis-cli --cluster check",
                                "%s: state %s, %s of %d slots served",
                                redis->peer, state, served, HF__SLOTS);
}

static void on_right(struct hf__redis *redis, const struct hf__redis_call *call,
                     struct hf__resp *reply)
{
    struct hf__resp_value value;
    const char *what = call->data;

    if (!reply)
        goto out;
    value = hf__resp_next(reply);
    if (value.type == HF__RESP_ERROR)
        (void)hf__query_add_finding(
            call->query, BAD, what,
            redis->dialect == &hf__redis_native
                ? "give the ACL user ~hf:* &hf:* and the commands in "
                  "holdfast(7)"
                : "give the ACL user the keys, channels and commands in "
                  "holdfast(7)",
            "refused: %.*s", (int)value.len, value.text);
    else
        (void)hf__query_add_finding(call->query, OK, what, "", "allowed");
out:
    hf__free(call->data);
}

/* The last call of all. */
static void on_last(struct hf__redis *redis, const struct hf__redis_call *call,
                    struct hf__resp *reply)
{
    hf_error err;

    if (reply) {
        hf__up_answer(&redis->base, call->query, 0, /* err= */ NULL);
        return;
    }
    hf__redis_errors_explain_lost(redis, &err);
    hf__up_answer(&redis->base, call->query, err.code, &err);
}

/* ---- asking ------------------------------------------------------------ */

static int ask(struct hf__redis *redis, struct hf__query *query,
               hf__redis_reply_fn *done, const char *words)
{
    struct hf__redis_call call = {.done = done, .query = query};

    return hf__redis_connection_say(redis, words, &call, /* err= */ NULL);
}

/* One script about the lock called hf__redis_doctor_name, as any client would
 * ask; @words are its arguments. */
static int try_out(struct hf__redis *redis, struct hf__query *query,
                   const char *what, int script, uint32_t n,
                   const char *const *words)
{
    struct hf__redis_call call = {.done = on_right, .query = query};
    struct hf__buf *out = &redis->stream.out;
    size_t mark;
    int rc;

    call.data = hf__strdup(what);
    if (!call.data)
        return HF_ENOMEM;
    redis->dialect->key(redis, hf__redis_doctor_name,
                        strlen(hf__redis_doctor_name));
    mark = hf__redis_connection_eval_begin(redis, script, 1, n);
    hf__resp_arg(out, redis->scratch.text, redis->scratch.len);
    for (uint32_t i = 0; i < n; i++)
        hf__resp_arg_text(out, words[i]);
    rc = hf__redis_connection_end(redis, mark, &call, /* err= */ NULL);
    if (rc != 0)
        hf__free(call.data);
    return rc;
}

static int try_native(struct hf__redis *redis, struct hf__query *query)
{
    char record[HF__RECORD_TEXTS + 32];
    char ticket[HF__RECORD_TICKET_WIDTH + 1];
    int rc;

    /* No ticket of ours has the number 0. */
    (void)snprintf(record, sizeof(record),
                   "%s%012dx%05d%013d%07d%03d%013d>%016d%016d?\n0\ndoctor\n",
                   redis->identity, 0, 0, 1000, 0, 1, 0, 0, 0);
    (void)snprintf(ticket, sizeof(ticket), "%.*s", (int)HF__RECORD_TICKET_WIDTH,
                   record);
    rc = try_out(redis, query, "acquire", HF__SCRIPT_NATIVE_ACQUIRE, 3,
                 (const char *[]){record, "0", "0"});
    return rc == 0 ? try_out(redis, query, "release", HF__SCRIPT_NATIVE_RELEASE,
                             2, (const char *[]){ticket, record})
                   : rc;
}

/* A semaphore or a counter that is made for this is taken away again. */
static int try_redisson(struct hf__redis *redis, struct hf__query *query)
{
    const struct hf__redisson_kind *kind = redis->kind;
    const char *mode = kind->permits                      ? "n"
                       : redis->base.caps & HF_CAP_FENCED ? "f"
                                                          : "x";
    const char *owner = kind->permits ? "holdfastdoctor" : redis->uuid;
    int rc = try_out(redis, query, "acquire", kind->try_script, 5,
                     (const char *[]){owner, "1000", "0", mode, "1"});

    if (rc == 0)
        rc = try_out(redis, query, "release", kind->release_script, 2,
                     (const char *[]){owner, "0"});
    return rc == 0 ? try_out(redis, query, "clean up",
                             HF__SCRIPT_REDISSON_FORGET, 0, NULL)
                   : rc;
}

static int try_locks(struct hf__redis *redis, struct hf__query *query)
{
    if (redis->dialect == &hf__redis_native)
        return try_native(redis, query);
    if (redis->kind)
        return try_redisson(redis, query);
    return try_out(redis, query, "compare and delete", HF__SCRIPT_PLAIN_RELEASE,
                   1, (const char *[]){redis->identity});
}

int hf__redis_doctor(struct hf__engine *engine, struct hf__query *query,
                     hf_error *err)
{
    struct hf__redis *redis = (struct hf__redis *)engine;
    char last[64] = "PING";
    bool trial = !redis->no_trial;

    if (!hf__redis_is_up(redis))
        return hf__redis_not_up(redis, err);
    if (trial)
        (void)snprintf(last, sizeof(last), "DEL hf:{%s}:t",
                       hf__redis_doctor_name);
    if (ask(redis, query, on_ping, "PING") != 0 ||
        ask(redis, query, on_time, "TIME") != 0 ||
        ask(redis, query, on_memory, "CONFIG GET maxmemory*") != 0 ||
        ask(redis, query, on_append, "CONFIG GET append*") != 0 ||
        ask(redis, query, on_replication, "INFO replication") != 0 ||
        ask(redis, query, on_alone, "CONFIG GET min-replicas-to-write") != 0 ||
        (redis->in_cluster &&
         ask(redis, query, on_cluster, "CLUSTER INFO") != 0) ||
        (trial && try_locks(redis, query) != 0) ||
        ask(redis, query, on_last, last) != 0) {
        hf_error why;

        /* What was sent refers to the query: no half answers. */
        (void)hf__fail(&why, HF_ENOMEM, "out of memory");
        hf__redis_connection_fail(redis, &why);
        return hf__fail_pass(err, &why);
    }
    if (redis->sentinels)
        tell_sentinels(redis->sentinels, query);
    return 0;
}

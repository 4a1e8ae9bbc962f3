/* SPDX-License-Identifier: MIT */
/*
 * doctor.c - is this server fit to keep locks?
 *
 * One statement asks for everything. Connecting has refused poolers, standbys
 * and old servers already, so they need no question; the rights are tried out by
 * the command, which takes a lock.
 */
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "engines/postgres/postgres.h"

enum { OK = HF_FINDING_OK, WARN = HF_FINDING_WARN };

/* The columns of DOCTOR. */
enum { VERSION, SYNC, REPLICAS, MOST, USED, KEEPALIVE, CLOCK, LIMITS, FSYNC };

/* Is a lock a row, which outlives sessions? */
static bool is_row(const struct hf__pg *postgres)
{
    return postgres->mode == &hf__pg_mode_table || postgres->dialect;
}

static void check_trip(struct hf__pg *postgres, struct hf__query *query,
                       int64_t trip_ns)
{
    int64_t ttl_ms = postgres->base.host->settings->ttl_ms;
    bool slow = trip_ns > hf__ms_to_ns(ttl_ms) / 20;

    (void)hf__query_add_finding(query, slow ? WARN : OK, "round trip",
                                slow ? "raise ttl, or move closer" : "",
                                "%lld us; the lease is %lld ms",
                                (long long)trip_ns / 1000, (long long)ttl_ms);
}

static void check_clock(struct hf__query *query,
                        const struct hf__pg_result *row, bool by_its_clock)
{
    int64_t server_s = hf__pg_answer_number(row, 0, CLOCK, 0);
    int64_t apart_s = server_s - hf__world->wall_us() / 1000000;
    bool bad = apart_s > 5 || apart_s < -5;

    (void)hf__query_add_finding(
        query, bad ? WARN : OK, "clock",
        bad ? "let both machines keep time by NTP" : "",
        "%lld s apart from ours; leases %s", (long long)apart_s,
        by_its_clock ? "are counted by the server's" : "do not depend on it");
}

static void check_durability(struct hf__query *query,
                             const struct hf__pg_result *row, bool table)
{
    const char *sync = hf__pg_answer_text(row, 0, SYNC);
    bool off = strcmp(sync, "off") == 0 ||
               strcmp(hf__pg_answer_text(row, 0, FSYNC), "off") == 0;
    int64_t replicas = hf__pg_answer_number(row, 0, REPLICAS, 0);

    (void)hf__query_add_finding(
        query, off ? WARN : OK, "durability",
        off ? "fsync = on, synchronous_commit = on: a crash could repeat tokens"
            : "",
        "synchronous_commit = %s, fsync = %s", sync,
        hf__pg_answer_text(row, 0, FSYNC));
    (void)hf__query_add_finding(
        query, replicas > 0 ? WARN : OK, "replication",
        replicas == 0 ? ""
        : table       ? "synchronous_standby_names, or a failover may forget "
                        "grants"
                      : "advisory locks are not replicated: a failover frees "
                        "them all; let the resource check tokens",
        "%lld standbys", (long long)replicas);
}

static void check_limits(struct hf__pg *postgres, struct hf__query *query,
                         const struct hf__pg_result *row)
{
    const char *limits = hf__pg_answer_text(row, 0, LIMITS);
    int64_t most = hf__pg_answer_number(row, 0, MOST, 0);
    int64_t used = hf__pg_answer_number(row, 0, USED, 0);
    int64_t wanted = postgres->base.host->settings->pool_max;
    bool tight = used + wanted > most;

    (void)hf__query_add_finding(
        query, tight ? WARN : OK, "connections",
        tight ? "raise max_connections, or lower pool.max" : "",
        "%lld of %lld are used; this client may take %lld more",
        (long long)used, (long long)most, (long long)wanted);
    (void)hf__query_add_finding(
        query, OK, "timeouts of the role", "",
        limits[0] ? "%s; our sessions set their own" : "none%s", limits);
}

static void check_keepalive(struct hf__pg *postgres, struct hf__query *query)
{
    bool leased = (postgres->mode->caps & HF_CAP_LEASED) != 0;

    (void)hf__query_add_finding(
        query, leased ? OK : WARN, "lease",
        leased ? "" : "hf_break(), or holdfast break, when a holder has died",
        !leased            ? "none: a dead holder leaves its row behind"
        : is_row(postgres) ? "the end of it is in the row"
        : postgres->mode == &hf__pg_mode_for_update
            ? "idle_in_transaction_session_timeout ends a silent transaction"
            : "idle_session_timeout ends a silent session; keepalives are not "
              "needed for it");
}

/* Does libpq look at the server's certificate? By itself it does not. */
static bool verifies(PGconn *conn)
{
    PQconninfoOption *options = hf__pq.PQconninfo(conn);
    bool verified = false;

    for (PQconninfoOption *o = options; o && o->keyword; o++) {
        if (strcmp(o->keyword, "sslmode") == 0 && o->val)
            verified = strncmp(o->val, "verify-", strlen("verify-")) == 0;
    }
    hf__pq.PQconninfoFree(options);
    return verified;
}

/* Is the server on this machine? */
static bool is_here(int fd)
{
    union {
        struct sockaddr any;
        struct sockaddr_in in;
        struct sockaddr_in6 in6;
    } peer = {.any.sa_family = AF_UNSPEC};
    socklen_t len = sizeof(peer);

    if (getpeername(fd, &peer.any, &len) != 0)
        return false;
    return peer.any.sa_family == AF_UNIX ||
           (peer.any.sa_family == AF_INET &&
            ntohl(peer.in.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET) ||
           (peer.any.sa_family == AF_INET6 &&
            IN6_IS_ADDR_LOOPBACK(&peer.in6.sin6_addr));
}

static void check_tls(struct hf__pg *postgres, struct hf__query *query)
{
    PGconn *conn = postgres->main.pq;
    bool here = is_here(hf__pq.PQsocket(conn));

    if (!hf__pq.PQsslInUse(conn))
        (void)hf__query_add_finding(
            query, here ? OK : WARN, "encryption",
            here ? "" : "give tls.ca: without it libpq goes on without TLS",
            here ? "none, and none needed: the server is on this machine"
                 : "none");
    else if (verifies(conn))
        (void)hf__query_add_finding(query, OK, "encryption", "",
                                    "TLS, certificate verified");
    else
        (void)hf__query_add_finding(query, WARN, "encryption", "give tls.ca",
                                    "TLS, but nobody looks at the server's "
                                    "certificate");
}

static void finish(struct hf__pg *postgres, struct hf__query *query,
                   const struct hf__pg_answer *answer)
{
    const struct hf__pg_result *row = &answer->results[0];
    bool table = is_row(postgres);
    const char *text = hf__pg_answer_text(row, 0, VERSION);
    size_t product = strcspn(text, " ");

    (void)hf__query_add_finding(
        query, OK, "server", "", "%.*s, %s=%s",
        (int)(product +
              (text[product] ? 1 + strcspn(text + product + 1, " ,") : 0)),
        text, postgres->dialect ? "dialect" : "mode",
        postgres->dialect ? postgres->dialect->name : postgres->mode->name);
    (void)hf__query_add_finding(query, OK, "pooler", "",
                                "none: the session is the server's own");
    check_durability(query, row, table);
    check_clock(query, row, table);
    check_limits(postgres, query, row);
    check_keepalive(postgres, query);
    check_tls(postgres, query);
    if (postgres->dialect)
        return; /* its table is there, or there would be no connection */
    (void)hf__query_add_finding(
        query, postgres->fenced && postgres->tables ? OK : WARN, "tables",
        postgres->fenced && postgres->tables
            ? ""
            : "let the role create them once; see holdfast(7)",
        "%s, %s", postgres->fenced ? "tokens" : "no tokens",
        postgres->tables ? "rows and versions" : "session locks alone");
}

static void on_examined(struct hf__pg_conn *conn,
                        const struct hf__pg_call *call,
                        const struct hf__pg_answer *answer)
{
    struct hf__pg *postgres = conn->engine;
    struct hf__query *query = call->query;
    hf_error err;
    int rc = 0;

    if (!answer) {
        rc = hf__pg_errors_lost(conn, &err);
    } else if (answer->error) {
        (void)hf__pg_errors_explain(conn, answer->error, &err);
        (void)hf__query_add_finding(query, HF_FINDING_FAIL, "rights",
                                    "grant what holdfast(7) lists", "%s",
                                    err.text);
    } else {
        finish(postgres, query, answer);
        check_trip(postgres, query, hf__now() - call->sent_ns);
    }
    hf__up_answer(&postgres->base, query, rc, rc ? &err : NULL);
}

int hf__pg_doctor(struct hf__engine *engine, struct hf__query *query,
                  hf_error *err)
{
    struct hf__pg *postgres = hf__pg_of(engine);
    struct hf__pg_call call = {
        .done = on_examined, .query = query, .sent_ns = hf__now()};

    return hf__pg_calls_send_one(&postgres->main, HF__STMT_DOCTOR, NULL, 0,
                                 &call, err);
}

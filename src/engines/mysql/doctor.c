/* SPDX-License-Identifier: MIT */
/*
 * doctor.c - is this server fit to keep locks?
 *
 * One statement asks for everything that the server says of itself. The rights
 * that locks need are tried out: by the first statement of the mode, on a name
 * of our own, which is freed again.
 */
#include "engines/mysql/mysql.h"

enum { OK = HF_FINDING_OK, WARN = HF_FINDING_WARN, BAD = HF_FINDING_FAIL };

enum {
    VERSION,
    READ_ONLY,
    WSREP,
    REPLICATED,
    FLUSH,
    IDLE_TRANSACTION,
    CLOCK,
    ENGINE,
    SESSIONS,
    IN_USE,
    PREPARED,
    GROUP,
    ONE_PRIMARY,
    COLUMNS
};

/* Is a lock a row, which outlives sessions? */
static bool is_row(const struct hf__mysql *mysql)
{
    return mysql->mode->renew == hf__mysql_renew_rows;
}

static void on_tried_out(struct hf__mysql *mysql, struct hf__mysql_call *call,
                         struct hf__mysql_reply *reply)
{
    hf_error err;

    if (hf__mysql_schema_make(call, reply))
        return;
    if (!reply) {
        (void)hf__mysql_errors_lost(mysql, &err);
        hf__up_answer(&mysql->base, call->query, err.code, &err);
        return;
    }
    if (reply->code != 0)
        (void)hf__query_add_finding(
            call->query, BAD, "rights",
            "grant SELECT, INSERT, UPDATE, DELETE and CREATE on the database",
            "a lock cannot be taken: %s", reply->text);
    else
        (void)hf__query_add_finding(call->query, OK, "rights", "",
                                    "a lock can be taken and freed");
    hf__up_answer(&mysql->base, call->query, 0, /* err= */ NULL);
}

static void find_clock(const struct hf__mysql *mysql, struct hf__query *query,
                       struct hf__mysql_field field, int64_t trip_us)
{
    int64_t off_ms =
        ((int64_t)hf__mysql_answer_number(field) - hf__world->wall_us()) / 1000;
    int64_t ttl_ms = mysql->base.host->settings->ttl_ms;
    bool slow = trip_us > ttl_ms * 1000 / 20;

    (void)hf__query_add_finding(query, slow ? WARN : OK, "trip",
                                slow ? "a longer ttl" : "",
                                "%lld µs there and back, ttl %lld ms",
                                (long long)trip_us, (long long)ttl_ms);
    if (off_ms < -1000 || off_ms > 1000)
        (void)hf__query_add_finding(
            query, WARN, "clock", "keep the clocks together (NTP)",
            "the server's clock differs from ours by %lld ms; only the "
            "server's counts",
            (long long)off_ms);
    else
        (void)hf__query_add_finding(query, OK, "clock", "",
                                    "within a second of ours");
}

static bool is_on(struct hf__mysql_field field)
{
    return field.text && strcmp(field.text, "ON") == 0;
}

static void find_copies(const struct hf__mysql *mysql, struct hf__query *query,
                        const struct hf__mysql_field *row)
{
    bool galera = is_on(row[WSREP]);
    bool table = is_row(mysql);

    if (row[GROUP].len > 0)
        (void)hf__query_add_finding(
            query, table && is_on(row[ONE_PRIMARY]) ? WARN : BAD, "cluster",
            "one primary, which all clients use; check tokens at the resource",
            "group replication: %s",
            table ? "locks of the last moment may be lost with the primary"
                  : "sessions and rows are locked on one member alone");
    else if (galera)
        (void)hf__query_add_finding(
            query, table ? WARN : BAD, "cluster",
            "let all clients use the same node", "Galera: %s",
            table ? "two nodes may take one row at once; one of them fails "
                    "when it commits"
                  : "sessions and rows are locked on one node alone");
    else if (hf__mysql_answer_number(row[REPLICATED]) != 0)
        (void)hf__query_add_finding(
            query, WARN, "replication", "check tokens at the resource",
            "a failover to a replica that lags loses locks");
    else
        (void)hf__query_add_finding(query, OK, "replication", "",
                                    "none: there is nothing to fail over to");
}

/* What the way to lock needs of the server's sessions. */
static void find_sessions(const struct hf__mysql *mysql,
                          struct hf__query *query,
                          const struct hf__mysql_field *row)
{
    const struct hf__settings *settings = mysql->base.host->settings;
    int64_t ttl_ms = settings->ttl_ms;
    uint64_t room = hf__mysql_answer_number(row[SESSIONS]);
    uint64_t used = hf__mysql_answer_number(row[IN_USE]);
    uint64_t pool = (uint64_t)settings->pool_max;
    bool table = is_row(mysql);
    bool leased = (mysql->mode->caps & HF_CAP_LEASED) != 0;

    (void)hf__query_add_finding(
        query, leased ? OK : WARN, "mode",
        leased ? "" : "hf_break(), or holdfast break, when a holder has died",
        !leased ? "%s: a row without a lease, which a dead holder leaves behind"
        : table ? "%s: a row with a lease by the server's clock"
                : "%s: a session of ours holds; a restart of the server frees "
                  "every lock",
        mysql->dialect ? mysql->dialect->name : mysql->mode->name);
    if (!table)
        (void)hf__query_add_finding(
            query, ttl_ms % 1000 != 0 ? WARN : OK, "wait_timeout",
            ttl_ms % 1000 != 0 ? "a ttl in whole seconds" : "",
            "a session that holds is ended after %lld s of silence, ttl %lld "
            "ms",
            (long long)((ttl_ms + 999) / 1000), (long long)ttl_ms);
    if (!table && used + pool > room)
        (void)hf__query_add_finding(
            query, WARN, "connections", "max_connections, or a lower pool.max",
            "%llu of %llu are in use, and pool.max is %llu",
            (unsigned long long)used, (unsigned long long)room,
            (unsigned long long)pool);
    if (hf__mysql_answer_number(row[PREPARED]) == 0)
        (void)hf__query_add_finding(query, BAD, "prepared statements",
                                    "max_prepared_stmt_count",
                                    "the server allows none");
}

static void find(const struct hf__mysql *mysql, struct hf__query *query,
                 const struct hf__mysql_field *row, int64_t trip_us)
{
    uint64_t idle_s = hf__mysql_answer_number(row[IDLE_TRANSACTION]);

    (void)hf__query_add_finding(query, OK, "server", "", "%s, %s%s (%s)",
                                mysql->peer, mysql->is_mariadb ? "" : "MySQL ",
                                row[VERSION].text ? row[VERSION].text : "?",
                                mysql->server_comment);
    if (hf__mysql_answer_number(row[READ_ONLY]) != 0)
        (void)hf__query_add_finding(query, BAD, "writable",
                                    "connect to the primary server",
                                    "the server is read-only");
    find_sessions(mysql, query, row);
    find_copies(mysql, query, row);
    if (is_row(mysql) && hf__mysql_answer_number(row[FLUSH]) != 1)
        (void)hf__query_add_finding(
            query, WARN, "durability", "innodb_flush_log_at_trx_commit=1",
            "a crash of the machine loses the locks of the last second");
    if (mysql->mode == &hf__mysql_for_update_mode && idle_s != 0)
        (void)hf__query_add_finding(
            query, WARN, "idle_transaction_timeout",
            "0, or longer than any hold that is lent",
            "the server ends transactions that are silent for %llu s",
            (unsigned long long)idle_s);
    if (row[ENGINE].text)
        (void)hf__query_add_finding(query, BAD, "tables",
                                    "ALTER TABLE … ENGINE=InnoDB",
                                    "a table of ours is %s", row[ENGINE].text);
    find_clock(mysql, query, row[CLOCK], trip_us);
}

/* Take and free what only a doctor is called. */
static int try_out(struct hf__mysql *mysql, struct hf__query *query,
                   hf_error *err)
{
    struct hf__mysql_values values = {.name = "holdfast-doctor"};
    struct hf__mysql_call *call = hf__mysql_call_new(on_tried_out, err);

    if (!call)
        return HF_ENOMEM;
    call->query = query;
    hf__mysql_statement(mysql, &call->sql,
                        mysql->dialect ? mysql->dialect_texts[HF__MYSQL_DOCTOR]
                        : mysql->own_row ? hf__mysql_sql_own_row_doctor
                                         : hf__mysql_sql_doctor_rights,
                        &values);
    return hf__mysql_call_send(&mysql->main, call, err);
}

static void on_asked(struct hf__mysql *mysql, struct hf__mysql_call *call,
                     struct hf__mysql_reply *reply)
{
    int64_t trip_us = (hf__now() - call->sent_ns) / 1000;
    struct hf__mysql_field row[COLUMNS];
    hf_error err;

    if (!reply) {
        (void)hf__mysql_errors_lost(mysql, &err);
        hf__up_answer(&mysql->base, call->query, err.code, &err);
        return;
    }
    if (hf__mysql_answer_row(reply, COLUMNS, row))
        find(mysql, call->query, row, trip_us);
    else
        (void)hf__query_add_finding(call->query, WARN, "server", "",
                                    "cannot be asked: %s", reply->text);
    if (try_out(mysql, call->query, &err) != 0)
        hf__up_answer(&mysql->base, call->query, err.code, &err);
}

int hf__mysql_doctor(struct hf__engine *engine, struct hf__query *query,
                     hf_error *err)
{
    static const struct hf__mysql_values none = {.name = ""};
    struct hf__mysql *mysql = (struct hf__mysql *)engine;
    struct hf__mysql_call *call;
    int rc = hf__mysql_is_up(mysql, err);

    if (rc != 0)
        return rc;
    call = hf__mysql_call_new(on_asked, err);
    if (!call)
        return HF_ENOMEM;
    call->query = query;
    hf__mysql_statement(mysql, &call->sql, hf__mysql_sql_doctor_server, &none);
    return hf__mysql_call_send(&mysql->main, call, err);
}

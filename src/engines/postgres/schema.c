/* SPDX-License-Identifier: MIT */
/*
 * schema.c - the tables, and every statement there is.
 *
 * Names, owners and notes are parameters of prepared statements: data, whatever
 * is in them. Texts are compared byte by byte (COLLATE "C").
 *
 *   holdfast_token    a sequence: every grant takes one number while it has the
 *                     lock, so it exceeds those of all grants before
 *   holdfast_place    mode=table: one row for each holder and waiter
 *   holdfast_row      mode=for_update: always empty for whoever looks
 *   holdfast_version  hf_version_commit()
 *
 * In mode=table a change of a name's rows is one transaction that begins with
 * ROW_LOCK, so they happen one after the other; each statement after it sees
 * what the one before has committed. There is no row that stays behind.
 *
 * What is done often has a statement or two instead, or it has done nothing and
 * the long way is gone. That rests on three rules:
 *
 *   place 0    who holds a name alone has its place 0. So TAKE, which inserts
 *              there or not at all, needs no look at the others: the index of
 *              places does it, and sees what TAKE cannot see yet. GRANT moves
 *              up who is first.
 *   alone      a row that TAKE has made while nobody was met there, until ASK
 *              adds another. FREE deletes no other row; if ASK is quicker, it
 *              finds none, and it is handed on.
 *   crowded    a row that is not alone goes the long way, or by CEDE, which has
 *              the same lock, and PASS, which puts the first who waits in its
 *              place. Either way a later statement looks for the next. So
 *              whoever keeps the last row of a crowded name from going may
 *              stand behind it (JOIN), without the lock: that statement will
 *              see the newcomer.
 *
 * Numbers of tokens are drawn under the lock, too: drawn before it, one could be
 * smaller than another that was granted meanwhile.
 *
 * PASS finds nobody if nobody waits, or if the first has expired: those behind
 * it are awake then, and take it out. Until they have, somebody who comes may be
 * quicker; never are there two holders.
 */
#include "engines/postgres/postgres.h"

#define ME "name = $1 AND id = $2"
#define ENDS(ms) "clock_timestamp() + " ms " * interval '1 ms'"
#define MY_END ENDS("$3::bigint")
/* Nearly the same, and costs no look at the clock. */
#define NOW "statement_timestamp()"
#define MY_END_SOON NOW " + $3::bigint * interval '1 ms'"
#define MS_UNTIL(instant)                                                      \
    "(extract(epoch FROM " instant " - clock_timestamp()) * 1000)::bigint"
/* Rows that @p has to wait for stand before it: holders, and who came first. */
#define BEFORE                                                                 \
    "r.name = $1 AND r.place <> p.place AND "                                  \
    "(r.token IS NOT NULL OR r.place < p.place)"
/* Tell who has the row: our identity and the ticket are its id. A channel is a
 * half of the identity, and the other half is said there: who only knows the
 * channel can say nothing that is believed. */
#define TELL                                                                   \
    "pg_notify('hf_' || left(id, 16), 'g ' || substr(id, 17) || ' ' || token)"

/* Of a token, or of a place in line: no two are the same. */
#define NUMBER "nextval('holdfast_token')"
/* The numbers of a sequence are logged 32 at a time, and only who logs them waits
 * for the disk. Who may have been given one of a record that is not there yet
 * writes something, and so waits as well when its transaction ends. A number of
 * the transaction alone (pg_current_xact_id) does not make the server wait. */
#define FLUSHED_NUMBER                                                         \
    NUMBER ", CASE WHEN pg_current_wal_flush_lsn() < "                         \
           "pg_current_wal_insert_lsn() THEN "                                 \
           "pg_logical_emit_message(true, 'holdfast', ''::text) END"
#define PLACE                                                                  \
    "INSERT INTO holdfast_place (name, place, alone, id, mode, slots, "        \
    "ttl_ms, record, token, until, since) "
#define WRITER "$2, 0, 0, $3::bigint, $4, "
#define ANYBODY "$2, $6::int, $7::int, $3::bigint, $4, "

static const struct {
    const char *name;
    const char *text;
    const char *unfenced; /* where there is no sequence */
} statements[] = {
    [HF__PG_PING] = {"hf_ping", "SELECT 1", NULL},
    [HF__PG_TIMEOUT] = {"hf_timeout",
                        "SELECT set_config('idle_session_timeout', $1, false), "
                        "set_config('idle_in_transaction_session_timeout', "
                        "$1, false)",
                        NULL},
    [HF__PG_TRY] = {"hf_try",
                    "SELECT " FLUSHED_NUMBER " "
                    "WHERE pg_try_advisory_lock($1::bigint)",
                    "SELECT 0, NULL WHERE pg_try_advisory_lock($1::bigint)"},
    [HF__PG_TRY_SHARED] =
        {"hf_try_shared",
         "SELECT " FLUSHED_NUMBER " "
         "WHERE pg_try_advisory_lock_shared($1::bigint)",
         "SELECT 0, NULL WHERE pg_try_advisory_lock_shared($1::bigint)"},
    [HF__PG_WAIT] = {"hf_wait",
                     "SELECT " FLUSHED_NUMBER " "
                     "FROM pg_advisory_lock($1::bigint)",
                     "SELECT 0, NULL FROM pg_advisory_lock($1::bigint)"},
    [HF__PG_WAIT_SHARED] =
        {"hf_wait_shared",
         "SELECT " FLUSHED_NUMBER " "
         "FROM pg_advisory_lock_shared($1::bigint)",
         "SELECT 0, NULL FROM pg_advisory_lock_shared($1::bigint)"},
    [HF__PG_UNLOCK] = {"hf_unlock", "SELECT pg_advisory_unlock($1::bigint)",
                       NULL},
    [HF__PG_UNLOCK_SHARED] = {"hf_unlock_shared",
                              "SELECT pg_advisory_unlock_shared($1::bigint)",
                              NULL},
    /* In this order there is no instant at which it is free. */
    [HF__PG_DOWNGRADE] = {"hf_downgrade",
                          "SELECT pg_advisory_unlock($1::bigint) "
                          "FROM pg_advisory_lock_shared($1::bigint)",
                          NULL},
    [HF__PG_CANCEL] = {"hf_cancel",
                       "SELECT pg_cancel_backend(pid) FROM pg_stat_activity "
                       "WHERE pid = $1::int AND backend_start::text = $2",
                       NULL},
    [HF__PG_END] = {"hf_end",
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                    "WHERE pid = $1::int AND backend_start::text = $2",
                    NULL},
    [HF__PG_IS_THERE] = {"hf_is_there",
                         "SELECT 1 FROM pg_stat_activity WHERE pid = $1::int "
                         "AND backend_start::text = $2",
                         NULL},
    [HF__PG_END_WAIT] = {"hf_end_wait",
                         "SELECT pg_terminate_backend(pid, 2000) "
                         "FROM pg_stat_activity WHERE pid = $1::int "
                         "AND backend_start::text = $2",
                         NULL},
    [HF__PG_IS_GONE] = {"hf_is_gone",
                        "SELECT pg_terminate_backend(pid) "
                        "FROM pg_stat_activity "
                        "WHERE pid = $1::int AND backend_start::text = $2",
                        NULL},
    [HF__PG_IS_WAITING] = {"hf_is_waiting",
                           "SELECT 1 FROM pg_locks WHERE pid = $1::int "
                           "AND NOT granted",
                           NULL},
    /* Keys of two numbers are others than those of one. */
    [HF__PG_MARK] = {"hf_mark",
                     "SELECT pg_advisory_lock_shared($1::int, $2::int)", NULL},
    [HF__PG_UNMARK] = {"hf_unmark",
                       "SELECT pg_advisory_unlock_shared($1::int, $2::int)",
                       NULL},
    [HF__PG_UNLOCK_ALL] = {"hf_unlock_all", "SELECT pg_advisory_unlock_all()",
                           NULL},
    /* One snapshot, so that key and mark are of one instant. */
    [HF__PG_STRANGER] =
        {"hf_stranger",
         "WITH has AS MATERIALIZED (SELECT pid, objsubid AS kind, "
         "(classid::bigint << 32) | objid::bigint AS bits FROM pg_locks "
         "WHERE locktype = 'advisory' AND granted AND database = (SELECT oid "
         "FROM pg_database WHERE datname = current_database())) "
         "SELECT pid FROM has k WHERE kind = 1 AND bits = $1::bigint "
         "AND NOT EXISTS (SELECT FROM has m WHERE m.pid = k.pid "
         "AND m.kind = 2 AND m.bits = $2::bigint) LIMIT 1",
         NULL},
    [HF__PG_BEGIN] = {"hf_begin", "BEGIN", NULL},
    [HF__PG_PATIENCE] = {"hf_patience",
                         "SELECT set_config('lock_timeout', $1, true)", NULL},
    [HF__PG_INSERT] = {"hf_insert", "INSERT INTO holdfast_row VALUES ($1)",
                       NULL},
    [HF__PG_DELETE] = {"hf_delete", "DELETE FROM holdfast_row WHERE name = $1",
                       NULL},
    [HF__PG_OWN_LOCK] = {"hf_own_lock", NULL, NULL}, /* by_hand.c */
    [HF__PG_WHICH] = {"hf_which", "SELECT pg_current_xact_id()", NULL},
    [HF__PG_SAME] = {"hf_same",
                     "SELECT pg_current_xact_id_if_assigned()::text = $1",
                     NULL},
    [HF__PG_COMMIT] = {"hf_commit", "COMMIT", NULL},
    [HF__PG_ROLLBACK] = {"hf_rollback", "ROLLBACK", NULL},
    [HF__PG_ROW_LOCK] = {"hf_row_lock",
                         "SELECT pg_advisory_xact_lock($1::bigint)", NULL},
    [HF__PG_ROW_PURGE] = {"hf_row_purge",
                          "DELETE FROM holdfast_place WHERE name = $1 "
                          "AND until < clock_timestamp()",
                          NULL},
    [HF__PG_ROW_ASK] =
        {"hf_row_ask",
         "WITH way AS (SELECT count(*) FILTER (WHERE NOT (mode = $6::int "
         "AND $6::int <> 0 AND token IS NOT NULL)) = 0 "
         "AND ($6::int <> 2 OR count(*) < $7::int) AS free, "
         "count(*) = 0 AS empty FROM holdfast_place WHERE name = $1), "
         "again AS (UPDATE holdfast_place SET alone = false, "
         "until = CASE WHEN id = $2 THEN " MY_END " ELSE until END "
         "WHERE name = $1 AND (alone OR id = $2)) " PLACE
         "SELECT $1, CASE WHEN empty THEN 0 ELSE " NUMBER " END, "
         "false, " ANYBODY "CASE WHEN free THEN " NUMBER " END, " MY_END
         ", clock_timestamp() FROM way WHERE (free OR $5::boolean) "
         "AND NOT EXISTS (SELECT FROM holdfast_place WHERE " ME ")",
         NULL},
    /* The lock is had before the number is taken. */
    [HF__PG_ROW_TAKE] =
        {"hf_row_take",
         PLACE "VALUES ($1, 0, $6::boolean, " WRITER
               "CASE WHEN pg_advisory_xact_lock($5::bigint) IS NOT NULL "
               "THEN " NUMBER " END, " MY_END_SOON ", " NOW
               ") ON CONFLICT (name, place) DO NOTHING RETURNING token",
         NULL},
    [HF__PG_ROW_FREE] = {"hf_row_free",
                         "DELETE FROM holdfast_place WHERE " ME
                         " AND place = 0 AND alone",
                         NULL},
    [HF__PG_ROW_JOIN] =
        {"hf_row_join",
         PLACE "SELECT $1, " NUMBER ", false, " WRITER "NULL, " MY_END_SOON
               ", " NOW " FROM (SELECT FROM holdfast_place WHERE name = $1 "
               "AND NOT alone ORDER BY place DESC LIMIT 1 FOR KEY SHARE) l",
         NULL},
    [HF__PG_ROW_CEDE] = {"hf_row_cede",
                         "DELETE FROM holdfast_place WHERE " ME
                         " AND place = 0 AND mode = 0 AND token IS NOT NULL "
                         "AND pg_advisory_xact_lock($3::bigint) IS NOT NULL",
                         NULL},
    /* A beat that came in between may reach further. */
    [HF__PG_ROW_PASS] =
        {"hf_row_pass",
         "UPDATE holdfast_place SET place = 0, token = " NUMBER
         ", until = greatest(until, " NOW " + ttl_ms * interval '1 ms'), "
         "since = " NOW " WHERE name = $1 AND place = (SELECT CASE WHEN "
         "place > 0 THEN place END FROM holdfast_place WHERE name = $1 "
         "ORDER BY place LIMIT 1) AND token IS NULL "
         "AND until >= " NOW " RETURNING " TELL ", mode",
         NULL},
    [HF__PG_ROW_GRANT] =
        {"hf_row_grant",
         "WITH w AS (SELECT p.place, p.place = (SELECT min(place) "
         "FROM holdfast_place WHERE name = $1) AS first, "
         "p.token IS NULL AND NOT EXISTS (SELECT FROM holdfast_place r "
         "WHERE " BEFORE " AND NOT (r.mode = p.mode AND p.mode <> 0)) "
         "AND (p.mode <> 2 OR (SELECT count(*) FROM holdfast_place r "
         "WHERE " BEFORE ") < p.slots) AS now "
         "FROM holdfast_place p WHERE p.name = $1) "
         "UPDATE holdfast_place p "
         "SET place = CASE WHEN first THEN 0 ELSE p.place END, "
         "token = CASE WHEN now THEN " NUMBER " "
         "ELSE p.token END, "
         "until = CASE WHEN now THEN " ENDS(
             "p.ttl_ms") " ELSE p.until END, "
                         "since = CASE WHEN now THEN clock_timestamp() ELSE "
                         "p.since END "
                         "FROM w WHERE p.name = $1 AND p.place = w.place "
                         "AND (now OR first AND p.place <> 0) RETURNING CASE "
                         "WHEN now THEN " TELL " END",
         NULL},
    [HF__PG_ROW_LOOK] =
        {"hf_row_look",
         "SELECT p.token, p.place IS NOT NULL, (SELECT " MS_UNTIL(
             "min(r.until)") " FROM holdfast_place r WHERE " BEFORE "), "
                             "(SELECT r.record FROM holdfast_place r "
                             "WHERE r.name = $1 AND r.token IS NOT NULL "
                             "ORDER BY r.place LIMIT 1) "
                             "FROM (VALUES (1)) AS one LEFT JOIN "
                             "holdfast_place p ON " ME,
         NULL},
    [HF__PG_ROW_LEAVE] = {"hf_row_leave",
                          "DELETE FROM holdfast_place WHERE name = $1 AND "
                          "(id = $2 OR until < clock_timestamp()) "
                          "RETURNING CASE WHEN id = $2 THEN token END",
                          NULL},
    [HF__PG_ROW_BEAT] =
        {"hf_row_beat",
         "UPDATE holdfast_place p SET until = " ENDS(
             "p.ttl_ms") " FROM unnest($2::text[], $3::text[]) AS "
                         "mine(name, ticket) WHERE p.name = mine.name "
                         "AND p.id = $1::text || mine.ticket RETURNING "
                         "mine.ticket, token, (SELECT " MS_UNTIL(
                             "min(r.until)") " FROM "
                                             "holdfast_place r WHERE r.name = "
                                             "p.name AND "
                                             "r.place <> p.place AND p.token "
                                             "IS NULL AND "
                                             "NOT (r.mode = 1 AND p.mode = 1) "
                                             "AND (r.token IS NOT NULL OR "
                                             "r.place < p.place))",
         NULL},
    [HF__PG_ROW_DOWNGRADE] = {"hf_row_downgrade",
                              "UPDATE holdfast_place SET mode = 1 WHERE " ME
                              " AND token IS NOT NULL RETURNING 1",
                              NULL},
    [HF__PG_LIST] =
        {"hf_list",
         "SELECT name, mode, slots, token, record, "
         "-" MS_UNTIL("since") ", " MS_UNTIL(
             "until") " FROM holdfast_place WHERE ($1::text IS NULL OR "
                      "name = $1) AND starts_with(name, $2) "
                      "AND until >= clock_timestamp() "
                      "ORDER BY name, token IS NULL, place LIMIT 100000",
         NULL},
    /* The owner is the third line of a record. */
    [HF__PG_BREAK] = {"hf_break",
                      "DELETE FROM holdfast_place WHERE name = $1 "
                      "AND token IS NOT NULL AND (token = $2::bigint OR "
                      "($2::bigint = 0 AND "
                      "split_part(record, chr(10), 3) = $3)) "
                      "RETURNING pg_notify('hf_' || left(id, 16), "
                      "'b ' || substr(id, 17))",
                      NULL},
    [HF__PG_VERSION_READ] = {"hf_version_read",
                             "SELECT version FROM holdfast_version "
                             "WHERE name = $1",
                             NULL},
    [HF__PG_VERSION_COMMIT] =
        {"hf_version_commit",
         "INSERT INTO holdfast_version AS v SELECT $1, 1 "
         "WHERE $2::bigint = 0 OR EXISTS (SELECT FROM holdfast_version "
         "WHERE name = $1) ON CONFLICT (name) DO UPDATE "
         "SET version = v.version + 1 WHERE v.version = $2::bigint "
         "RETURNING version",
         NULL},
    [HF__PG_DOCTOR] =
        {"hf_doctor",
         "SELECT version(), current_setting('synchronous_commit'), "
         "(SELECT count(*) FROM pg_stat_replication), "
         "(SELECT setting FROM pg_settings WHERE name = "
         "'max_connections'), (SELECT count(*) FROM pg_stat_activity), "
         "current_setting('tcp_keepalives_idle'), "
         "extract(epoch FROM clock_timestamp())::bigint, "
         "(SELECT coalesce(string_agg(c, ', '), '') FROM pg_db_role_setting "
         "s, unnest(s.setconfig) c WHERE (c LIKE 'lock_timeout=%' OR "
         "c LIKE 'statement_timeout=%' OR c LIKE "
         "'idle_session_timeout=%') AND s.setrole IN (0, (SELECT oid FROM "
         "pg_roles WHERE rolname = current_user))), "
         "current_setting('fsync')",
         NULL},
    [HF__PG_TAKE] = {"hf_take", NULL, NULL}, /* by the dialect: below */
    [HF__PG_WHO] = {"hf_who", NULL, NULL},
    [HF__PG_KEEP] = {"hf_keep", NULL, NULL},
    [HF__PG_GIVE] = {"hf_give", NULL, NULL},
    [HF__PG_HELD] = {"hf_held", NULL, NULL},
};

/* answer.h says how to read them. */
static const char *const shapes[HF__PG_STATEMENTS] = {
    [HF__PG_PING] = "1n",
    [HF__PG_TIMEOUT] = "1tt",
    [HF__PG_TRY] = "?nT",
    [HF__PG_TRY_SHARED] = "?nT",
    [HF__PG_WAIT] = "1nT",
    [HF__PG_WAIT_SHARED] = "1nT",
    [HF__PG_UNLOCK] = "1b",
    [HF__PG_UNLOCK_SHARED] = "1b",
    [HF__PG_DOWNGRADE] = "1b",
    [HF__PG_CANCEL] = "?b",
    [HF__PG_END] = "?b",
    [HF__PG_IS_THERE] = "?n",
    [HF__PG_END_WAIT] = "?b",
    [HF__PG_IS_GONE] = "?b",
    [HF__PG_IS_WAITING] = "*n",
    [HF__PG_MARK] = "1v",
    [HF__PG_UNMARK] = "1b",
    [HF__PG_UNLOCK_ALL] = "1v",
    [HF__PG_STRANGER] = "?N",
    [HF__PG_BEGIN] = "-",
    [HF__PG_PATIENCE] = "1t",
    [HF__PG_INSERT] = "-",
    [HF__PG_DELETE] = "-",
    [HF__PG_OWN_LOCK] = "1n",
    [HF__PG_WHICH] = "1t",
    [HF__PG_SAME] = "1B",
    [HF__PG_COMMIT] = "-",
    [HF__PG_ROLLBACK] = "-",
    [HF__PG_ROW_LOCK] = "1v",
    [HF__PG_ROW_PURGE] = "-",
    [HF__PG_ROW_ASK] = "-",
    [HF__PG_ROW_TAKE] = "?n",
    [HF__PG_ROW_FREE] = "-",
    [HF__PG_ROW_JOIN] = "-",
    [HF__PG_ROW_CEDE] = "-",
    [HF__PG_ROW_PASS] = "?vn",
    [HF__PG_ROW_GRANT] = "*V",
    [HF__PG_ROW_LOOK] = "1NbNT",
    [HF__PG_ROW_LEAVE] = "*N",
    [HF__PG_ROW_BEAT] = "*nNN",
    [HF__PG_ROW_DOWNGRADE] = "?n",
    [HF__PG_LIST] = "*tnnNtnn",
    [HF__PG_BREAK] = "*v",
    [HF__PG_VERSION_READ] = "?n",
    [HF__PG_VERSION_COMMIT] = "?n",
    [HF__PG_DOCTOR] = "1ttnnntntt",
    [HF__PG_TAKE] = "?n",
    [HF__PG_WHO] = "?TNN",
    [HF__PG_KEEP] = "?n",
    [HF__PG_GIVE] = "?n",
    [HF__PG_HELD] = "*TNNt",
};

const char hf__pg_greeting_shape[] = "1ntbbt";

const char *hf__pg_statement_shape(enum hf__pg_statement statement)
{
    return shapes[statement];
}

const char *hf__pg_statement(const struct hf__postgres *postgres,
                             enum hf__pg_statement statement)
{
    if (statement >= HF__PG_TAKE)
        return postgres->dialect_texts[statement - HF__PG_TAKE];
    if (statement == HF__PG_OWN_LOCK)
        return postgres->own_lock;
    if (statement == HF__PG_VERSION_READ && postgres->own_read)
        return postgres->own_read;
    if (statement == HF__PG_VERSION_COMMIT && postgres->own_commit)
        return postgres->own_commit;
    return postgres->fenced || !statements[statement].unfenced
               ? statements[statement].text
               : statements[statement].unfenced;
}

const char *hf__pg_statement_name(enum hf__pg_statement statement)
{
    return statements[statement].name;
}

/* Limits that a role or database may set would end a wait as if it had failed.
 * A waiter whose process was killed leaves the server's queue when the server
 * looks at the connection. */
#define WITH(tokens, tables)                                                   \
    "SELECT pg_backend_pid(), backend_start, pg_is_in_recovery(), " tokens     \
    ", " tables " FROM pg_stat_activity WHERE pid = pg_backend_pid()"
#define WHO                                                                    \
    WITH("coalesce(has_sequence_privilege(to_regclass('holdfast_token'), "     \
         "'USAGE'), false)",                                                   \
         "CASE WHEN EXISTS (SELECT FROM pg_attribute WHERE attrelid = "        \
         "to_regclass('holdfast_place') AND attname = 'client') THEN 'old' "   \
         "ELSE coalesce(has_table_privilege(to_regclass('holdfast_place'), "   \
         "'SELECT, INSERT, UPDATE, DELETE') AND "                              \
         "has_table_privilege(to_regclass('holdfast_row'), "                   \
         "'SELECT, INSERT, DELETE'), false)::text END")
#define SET                                                                    \
    "SET lock_timeout = 0; SET statement_timeout = 0; "                        \
    "SET idle_session_timeout = 0; "                                           \
    "SET idle_in_transaction_session_timeout = 0; "                            \
    "SET client_connection_check_interval = 250; "                             \
    "SET default_transaction_isolation = 'read committed'; "

/* A plan that is made while the table is empty would read all of it, and be
 * kept while the rows of thousands who came and went lie there. A session that
 * is lent is not set so. */
#define BY_INDEX                                                               \
    "SET enable_seqscan = off; SET enable_bitmapscan = off; "                  \
    "SET plan_cache_mode = force_generic_plan; "

const char *hf__pg_greeting(const struct hf__postgres *postgres)
{
    if (postgres->dialect)
        return hf__pg_statement(postgres, HF__PG_GREETING);
    return postgres->mode->listens ? SET BY_INDEX WHO : SET WHO;
}

/* One at a time: CREATE … IF NOT EXISTS fails when two do it at once. */
#define ALONE "SELECT pg_advisory_xact_lock(7524410947216830836); "

const char *hf__pg_schema(const struct hf__postgres *postgres)
{
    if (postgres->dialect)
        return hf__pg_statement(postgres, HF__PG_SCHEMA);
    return ALONE
        "CREATE SEQUENCE IF NOT EXISTS holdfast_token; "
        "CREATE UNLOGGED TABLE IF NOT EXISTS holdfast_row ("
        "name text COLLATE \"C\" PRIMARY KEY); "
        "CREATE TABLE IF NOT EXISTS holdfast_place ("
        "name text COLLATE \"C\" NOT NULL, "
        "place bigint NOT NULL, alone boolean NOT NULL, "
        "id text COLLATE \"C\" NOT NULL, mode int NOT NULL, "
        "slots int NOT NULL, ttl_ms bigint NOT NULL, record text NOT NULL, "
        "token bigint, until timestamptz NOT NULL, "
        "since timestamptz NOT NULL, PRIMARY KEY (name, place)); "
        "CREATE TABLE IF NOT EXISTS holdfast_version ("
        "name text COLLATE \"C\" PRIMARY KEY, "
        "version bigint NOT NULL); " WHO;
}

/* ---- the tables of others ------------------------------------------------- */

/* Parameters are the key, its region where it has one, the holder, and how long
 * in ms. Instants are of the server's clock, in UTC and without a zone. A
 * column without fractions loses up to a second. */
#define UTC "timezone('utc', clock_timestamp())"
#define UNTIL(ms) UTC " + (" ms "::bigint + 1000) * interval '1 ms'"
#define IS_THERE "to_regclass('@') IS NOT NULL"

#define MS(from, to) "(extract(epoch FROM " to " - " from ") * 1000)::bigint"

#define SHEDLOCK_WHO                                                           \
    "SELECT locked_by, " MS(UTC, "lock_until") ", greatest(0, " MS(            \
        "locked_at", UTC) ")"
#define SHEDLOCK "name = $1 AND locked_by = $2 AND lock_until > " UTC
static const char *const shedlock[HF__PG_DIALECT_TEXTS] = {
    "INSERT INTO @ AS l (name, lock_until, locked_at, locked_by) "
    "VALUES ($1, " UNTIL(
        "$3") ", " UTC ", $2) ON CONFLICT (name) DO UPDATE "
              "SET lock_until = excluded.lock_until, locked_at = "
              "excluded.locked_at, "
              "locked_by = excluded.locked_by WHERE l.lock_until <= "
              "excluded.locked_at "
              "OR l.locked_by = excluded.locked_by RETURNING 1",
    SHEDLOCK_WHO " FROM @ WHERE name = $1 AND lock_until > " UTC,
    "UPDATE @ SET lock_until = " UNTIL("$3") " WHERE " SHEDLOCK " RETURNING 1",
    "UPDATE @ SET lock_until = " UTC " WHERE " SHEDLOCK " RETURNING 1",
    SHEDLOCK_WHO ", name FROM @ WHERE starts_with(name, $1) "
                 "AND lock_until > " UTC " LIMIT 100000",
    SET WITH(IS_THERE, IS_THERE),
    ALONE "CREATE TABLE IF NOT EXISTS @ (name VARCHAR(64) NOT NULL, "
          "lock_until TIMESTAMP NOT NULL, locked_at TIMESTAMP NOT NULL, "
          "locked_by VARCHAR(255) NOT NULL, PRIMARY KEY (name)); " WITH(
              IS_THERE, IS_THERE),
};

#define SPRING_WHO "SELECT CLIENT_ID, " MS(UTC, "EXPIRED_AFTER") ", -1"
#define SPRING "LOCK_KEY = $1 AND REGION = $2 AND CLIENT_ID = $3"
static const char *const spring[HF__PG_DIALECT_TEXTS] = {
    "INSERT INTO @ AS l (LOCK_KEY, REGION, CLIENT_ID, CREATED_DATE, "
    "EXPIRED_AFTER) VALUES ($1, $2, $3, " UTC
    ", " UNTIL("$4") ") "
                     "ON CONFLICT (LOCK_KEY, REGION) DO UPDATE SET "
                     "CLIENT_ID = excluded.CLIENT_ID, EXPIRED_AFTER = "
                     "excluded.EXPIRED_AFTER "
                     "WHERE l.EXPIRED_AFTER < excluded.CREATED_DATE "
                     "OR l.CLIENT_ID = excluded.CLIENT_ID RETURNING 1",
    SPRING_WHO " FROM @ WHERE LOCK_KEY = $1 AND REGION = $2 AND "
               "EXPIRED_AFTER >= " UTC,
    "UPDATE @ SET EXPIRED_AFTER = " UNTIL("$4") " WHERE " SPRING " RETURNING 1",
    "DELETE FROM @ WHERE " SPRING " RETURNING 1",
    SPRING_WHO ", LOCK_KEY FROM @ WHERE starts_with(LOCK_KEY, $1) "
               "AND REGION = $2 AND EXPIRED_AFTER >= " UTC " LIMIT 100000",
    SET WITH(IS_THERE, IS_THERE),
    ALONE "CREATE TABLE IF NOT EXISTS @ (LOCK_KEY CHAR(36) NOT NULL, "
          "REGION VARCHAR(100) NOT NULL, CLIENT_ID CHAR(36), "
          "CREATED_DATE TIMESTAMP NOT NULL, EXPIRED_AFTER TIMESTAMP NOT NULL, "
          "PRIMARY KEY (LOCK_KEY, REGION)); " WITH(IS_THERE, IS_THERE),
};

/* A table of the application's: @ it, # the key, % who holds. The key comes as
 * the column's type and as a text: a column may take two names for one, and a
 * name that is not the row's divides by 0. It waits for a transaction of
 * another's for a while, and not for ever. */
#define ROW "# = $1 AND #::text = $2::text"
#define ROW_TAKE(columns, values)                                              \
    "INSERT INTO @ (" columns ") VALUES (" values ") ON CONFLICT (#) "         \
    "DO NOTHING RETURNING 1 / (#::text = $2::text)::int"
#define ROW_TEXTS(columns, values, who)                                        \
    {                                                                          \
        ROW_TAKE(columns, values), "SELECT " who ", -1, -1 FROM @ WHERE " ROW, \
            "SELECT 1 FROM @ WHERE " ROW " AND " who " = $3::text",            \
            "DELETE FROM @ WHERE " ROW " AND " who " = $3::text RETURNING 1",  \
            "SELECT " who ", -1, -1, #::text FROM @ "                          \
            "WHERE starts_with(#::text, $1) LIMIT 100000",                     \
            SET "SET lock_timeout = 2000; " WITH("true", "true"), ""           \
    }
static const char *const nameless[HF__PG_DIALECT_TEXTS] =
    ROW_TEXTS("#", "$1", "'unknown'::text");
static const char *const named[HF__PG_DIALECT_TEXTS] =
    ROW_TEXTS("#, %", "$1, $3", "coalesce(%::text, '')");

const char *const *hf__pg_by_hand(bool has_owner)
{
    return has_owner ? named : nameless;
}

const char *const *hf__pg_dialect(const struct hf__sql_dialect *dialect)
{
    return dialect->has_region ? spring : shedlock;
}

/* SPDX-License-Identifier: MIT */
/*
 * raw_postgres.c - what one PostgreSQL server can do at most, for
 * ./dev bench postgres.
 *
 *     raw_postgres SCENARIO SECONDS URL
 *
 *   pair        pg_try_advisory_lock and pg_advisory_unlock, prepared, blocking
 *   rows        INSERT and DELETE of one row, prepared, two commits
 *   handover    two processes pass a turn by pg_advisory_lock
 *   for_update  … by SELECT … FOR UPDATE and COMMIT
 *   notify      … by NOTIFY: who is told inserts the row; who gives deletes it
 *
 * libpq's blocking calls.
 */
#include <libpq-fe.h>
#include <poll.h>

#include "raw_handover.h"

static struct samples *samples;

static void check(PGconn *conn, PGresult *result)
{
    ExecStatusType status = PQresultStatus(result);

    if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK) {
        (void)fprintf(stderr, "%s", PQerrorMessage(conn));
        exit(1);
    }
    PQclear(result);
}

static PGconn *dial(const char *url)
{
    PGconn *conn = PQconnectdb(url);

    if (PQstatus(conn) != CONNECTION_OK) {
        (void)fprintf(stderr, "%s", PQerrorMessage(conn));
        exit(1);
    }
    return conn;
}

static void prepare(PGconn *conn, const char *name, const char *text)
{
    check(conn, PQprepare(conn, name, text, 0, NULL));
}

static void run(PGconn *conn, const char *name)
{
    check(conn, PQexecPrepared(conn, name, 0, NULL, NULL, NULL, 0));
}

static void pairs(const char *scenario, PGconn *conn, double seconds)
{
    uint64_t end = end_of(seconds);

    for (uint64_t now = now_ns(); now < end;) {
        uint64_t before = now;

        run(conn, "take");
        run(conn, "give");
        now = now_ns();
        sample(samples, now - before);
    }
    print(scenario, (double)samples->n / seconds, samples);
}

/* ---- hand-over ---------------------------------------------------------- */

static void *dial_advisory(const char *url, int me)
{
    PGconn *conn = dial(url);

    (void)me;
    prepare(conn, "take", "SELECT pg_advisory_lock(42)");
    prepare(conn, "give", "SELECT pg_advisory_unlock(42)");
    return conn;
}

static void take_it(void *conn)
{
    run(conn, "take");
}

static void give_it(void *conn)
{
    run(conn, "give");
}

/* Without a word of what is there already. */
static void make_table(PGconn *conn)
{
    check(conn, PQexec(conn, "SET client_min_messages = warning"));
    check(conn, PQexec(conn, "SELECT pg_advisory_lock(43)"));
    check(conn, PQexec(conn, "CREATE TABLE IF NOT EXISTS raw_lock (name "
                             "text PRIMARY KEY, owner text)"));
    check(conn, PQexec(conn, "SELECT pg_advisory_unlock(43)"));
}

static void *dial_row(const char *url, int me)
{
    PGconn *conn = dial(url);

    (void)me;
    make_table(conn);
    check(conn, PQexec(conn, "INSERT INTO raw_lock VALUES ('row', 'me') "
                             "ON CONFLICT DO NOTHING"));
    prepare(conn, "take",
            "SELECT 1 FROM raw_lock WHERE name = 'row' FOR UPDATE");
    return conn;
}

static void take_row(void *conn)
{
    check(conn, PQexec(conn, "BEGIN"));
    run(conn, "take");
}

static void give_row(void *conn)
{
    check(conn, PQexec(conn, "COMMIT"));
}

struct listener {
    PGconn *conn;
    int told;
};

/* The first turn is number 0's. */
static void *dial_notify(const char *url, int me)
{
    struct listener *listener = calloc(1, sizeof(*listener));
    PGconn *conn = dial(url);

    if (!listener)
        die("calloc");
    make_table(conn);
    listener->conn = conn;
    listener->told = me == 0;
    check(conn, PQexec(conn, me == 0 ? "LISTEN raw_0" : "LISTEN raw_1"));
    prepare(conn, "take", "INSERT INTO raw_lock VALUES ('turn', 'me')");
    prepare(conn, "give",
            me == 0 ? "WITH gone AS (DELETE FROM raw_lock WHERE name = 'turn') "
                      "SELECT pg_notify('raw_1', '')"
                    : "WITH gone AS (DELETE FROM raw_lock WHERE name = 'turn') "
                      "SELECT pg_notify('raw_0', '')");
    return listener;
}

static void take_told(void *arg)
{
    struct listener *listener = arg;
    struct pollfd fd = {PQsocket(listener->conn), POLLIN, 0};
    PGnotify *notify;

    while (!listener->told) {
        while ((notify = PQnotifies(listener->conn)) != NULL) {
            listener->told = 1;
            PQfreemem(notify);
        }
        if (!listener->told) {
            (void)poll(&fd, 1, -1);
            PQconsumeInput(listener->conn);
        }
    }
    listener->told = 0;
    run(listener->conn, "take");
}

static void give_told(void *arg)
{
    run(((struct listener *)arg)->conn, "give");
}

static const struct {
    const char *scenario;
    struct player player;
} players[] = {{"handover", {dial_advisory, take_it, give_it}},
               {"for_update", {dial_row, take_row, give_row}},
               {"notify", {dial_notify, take_told, give_told}}};

int main(int argc, char **argv)
{
    const char *scenario = argc == 4 ? argv[1] : "";
    double seconds = argc == 4 ? atof(argv[2]) : 0;
    PGconn *conn;

    samples = samples_new();
    for (size_t i = 0; i < sizeof(players) / sizeof(players[0]); i++) {
        if (strcmp(scenario, players[i].scenario) != 0)
            continue;
        handover(scenario, &players[i].player, argv[3], seconds);
        return 0;
    }
    if (strcmp(scenario, "pair") != 0 && strcmp(scenario, "rows") != 0) {
        (void)fprintf(stderr, "raw_postgres pair|rows|handover|for_update|"
                              "notify SECONDS URL\n");
        return 2;
    }
    conn = dial(argv[3]);
    if (strcmp(scenario, "pair") == 0) {
        prepare(conn, "take", "SELECT pg_try_advisory_lock(42)");
        prepare(conn, "give", "SELECT pg_advisory_unlock(42)");
    } else {
        make_table(conn);
        prepare(conn, "take", "INSERT INTO raw_lock VALUES ('jobs', 'me')");
        prepare(conn, "give", "DELETE FROM raw_lock WHERE name = 'jobs'");
    }
    pairs(scenario, conn, seconds);
    PQfinish(conn);
    return 0;
}

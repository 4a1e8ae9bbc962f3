/* SPDX-License-Identifier: MIT */
/*
 * raw_postgres.c - what one PostgreSQL server can do at most, for
 * ./dev bench postgres.
 *
 *     raw_postgres SCENARIO SECONDS URL
 *
 *   pair      pg_try_advisory_lock and pg_advisory_unlock, prepared, blocking
 *   rows      INSERT and DELETE of one row, prepared, two commits
 *   handover  two processes pass a turn by pg_advisory_lock
 *
 * libpq's blocking calls.
 */
#include <libpq-fe.h>
#include <sys/wait.h>

#include "raw.h"

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

/* Each waits for the lock that the other has; the time between a release
 * there and the grant here is what is measured. */
struct turn {
    volatile uint64_t released_ns;
    volatile int stop;
    volatile uint64_t passed;
};

static void pass_turns(PGconn *conn, struct turn *turn)
{
    while (!turn->stop) {
        uint64_t released;

        run(conn, "wait");
        released = turn->released_ns;
        if (released != 0)
            sample(samples, now_ns() - released);
        turn->passed++;
        turn->released_ns = now_ns();
        run(conn, "give");
    }
}

static void handover(const char *url, double seconds)
{
    struct turn *turn = shared_page(sizeof(*turn));
    struct timespec pause = {
        .tv_sec = (time_t)seconds,
        .tv_nsec = (long)((seconds - (double)(long)seconds) * 1e9)};
    pid_t child = fork();
    pid_t clock;
    PGconn *conn = dial(url);

    prepare(conn, "wait", "SELECT pg_advisory_lock(42)");
    prepare(conn, "give", "SELECT pg_advisory_unlock(42)");
    if (child == 0) {
        pass_turns(conn, turn);
        _exit(0);
    }
    clock = fork();
    if (clock == 0) {
        nanosleep(&pause, NULL);
        turn->stop = 1;
        _exit(0);
    }
    pass_turns(conn, turn);
    waitpid(child, NULL, 0);
    waitpid(clock, NULL, 0);
    print("handover", (double)turn->passed / seconds, samples);
}

int main(int argc, char **argv)
{
    const char *scenario = argc == 4 ? argv[1] : "";
    double seconds = argc == 4 ? atof(argv[2]) : 0;
    PGconn *conn;

    samples = samples_new();
    if (strcmp(scenario, "handover") == 0) {
        handover(argv[3], seconds);
        return 0;
    }
    if (strcmp(scenario, "pair") != 0 && strcmp(scenario, "rows") != 0) {
        (void)fprintf(stderr, "raw_postgres pair|rows|handover SECONDS URL\n");
        return 2;
    }
    conn = dial(argv[3]);
    if (strcmp(scenario, "pair") == 0) {
        prepare(conn, "take", "SELECT pg_try_advisory_lock(42)");
        prepare(conn, "give", "SELECT pg_advisory_unlock(42)");
    } else {
        check(conn, PQexec(conn, "CREATE TABLE IF NOT EXISTS raw_lock (name "
                                 "text PRIMARY KEY, owner text)"));
        prepare(conn, "take", "INSERT INTO raw_lock VALUES ('jobs', 'me')");
        prepare(conn, "give", "DELETE FROM raw_lock WHERE name = 'jobs'");
    }
    pairs(scenario, conn, seconds);
    PQfinish(conn);
    return 0;
}

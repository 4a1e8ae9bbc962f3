/* SPDX-License-Identifier: MIT */
/*
 * raw_postgres.c - what one PostgreSQL server can do at most, for
 * bench/postgres.sh.
 *
 *     raw_postgres SCENARIO URL SECONDS
 *
 *   pair      pg_try_advisory_lock and pg_advisory_unlock, prepared, blocking
 *   rows      INSERT and DELETE of one row, prepared, two commits
 *   handover  two processes pass a turn by pg_advisory_lock
 *
 * Prints "SCENARIO rate p50_us". libpq's blocking calls: these are limits, not
 * competitors.
 */
#include <libpq-fe.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { SAMPLES = 1 << 20 };

static double samples[SAMPLES];

static uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

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

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;

    return (x > y) - (x < y);
}

static void print(const char *scenario, size_t n, double seconds)
{
    size_t kept = n < SAMPLES ? n : SAMPLES;

    qsort(samples, kept, sizeof(samples[0]), by_value);
    printf("%s %.1f %.1f\n", scenario, (double)n / seconds, samples[kept / 2]);
}

static void pairs(const char *scenario, PGconn *conn, double seconds)
{
    uint64_t start = now_ns();
    uint64_t end = start + (uint64_t)(seconds * 1e9);
    size_t n = 0;

    for (uint64_t last = start; last < end; n++) {
        uint64_t now;

        run(conn, "take");
        run(conn, "give");
        now = now_ns();
        samples[n % SAMPLES] = (double)(now - last) / 1000;
        last = now;
    }
    print(scenario, n, seconds);
}

/* Each waits for the lock that the other has; the time between a release
 * there and the grant here is what is measured. */
struct turn {
    volatile uint64_t released_ns;
    volatile int stop;
    volatile uint64_t passed;
};

static size_t pass_turns(PGconn *conn, struct turn *turn)
{
    size_t n = 0;

    while (!turn->stop) {
        uint64_t released;

        run(conn, "wait");
        released = turn->released_ns;
        if (released != 0)
            samples[n++ % SAMPLES] = (double)(now_ns() - released) / 1000;
        turn->passed++;
        turn->released_ns = now_ns();
        run(conn, "give");
    }
    return n;
}

static void handover(const char *url, double seconds)
{
    struct turn *turn = mmap(NULL, sizeof(*turn), PROT_READ | PROT_WRITE,
                             MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct timespec pause = {
        .tv_sec = (time_t)seconds,
        .tv_nsec = (long)((seconds - (double)(long)seconds) * 1e9)};
    pid_t child = fork();
    pid_t clock;
    PGconn *conn = dial(url);
    size_t n;

    prepare(conn, "wait", "SELECT pg_advisory_lock(42)");
    prepare(conn, "give", "SELECT pg_advisory_unlock(42)");
    if (child == 0) {
        (void)pass_turns(conn, turn);
        _exit(0);
    }
    clock = fork();
    if (clock == 0) {
        nanosleep(&pause, NULL);
        turn->stop = 1;
        _exit(0);
    }
    n = pass_turns(conn, turn);
    waitpid(child, NULL, 0);
    waitpid(clock, NULL, 0);
    if (n == 0)
        exit(1);
    qsort(samples, n < SAMPLES ? n : SAMPLES, sizeof(samples[0]), by_value);
    printf("handover %.1f %.1f\n", (double)turn->passed / seconds,
           samples[(n < SAMPLES ? n : SAMPLES) / 2]);
}

int main(int argc, char **argv)
{
    const char *scenario = argc == 4 ? argv[1] : "";
    double seconds = argc == 4 ? atof(argv[3]) : 0;
    PGconn *conn;

    if (strcmp(scenario, "handover") == 0) {
        handover(argv[2], seconds);
        return 0;
    }
    if (strcmp(scenario, "pair") != 0 && strcmp(scenario, "rows") != 0) {
        (void)fprintf(stderr, "raw_postgres pair|rows|handover URL SECONDS\n");
        return 2;
    }
    conn = dial(argv[2]);
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

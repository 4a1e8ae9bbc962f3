/* SPDX-License-Identifier: MIT */
/*
 * raw_mysql.c get_lock|table|handover PORT SECONDS - what the server can do,
 * with libmariadb and nothing of ours: prepared pairs of GET_LOCK and
 * RELEASE_LOCK, of INSERT and DELETE; and GET_LOCK handed back and forth
 * between two processes that wait inside the server. Prints the scenario, its
 * rate and the median in µs.
 */
#include <mysql.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { SAMPLES = 1 << 20 };
static double samples[SAMPLES];

static void die(const char *what)
{
    fprintf(stderr, "raw_mysql: %s\n", what);
    exit(1);
}

static double now_us(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static MYSQL *dial(const char *port)
{
    MYSQL *mysql = mysql_init(NULL);

    if (!mysql_real_connect(mysql, "127.0.0.1", "root", "", "locks",
                            (unsigned)atoi(port), NULL, 0))
        die(mysql_error(mysql));
    return mysql;
}

static MYSQL_STMT *prepare(MYSQL *mysql, const char *sql)
{
    MYSQL_STMT *statement = mysql_stmt_init(mysql);

    if (mysql_stmt_prepare(statement, sql, strlen(sql)) != 0)
        die(mysql_stmt_error(statement));
    return statement;
}

static void execute(MYSQL_STMT *statement)
{
    if (mysql_stmt_execute(statement) != 0)
        die(mysql_stmt_error(statement));
    if (mysql_stmt_field_count(statement) > 0 &&
        mysql_stmt_store_result(statement) != 0)
        die(mysql_stmt_error(statement));
    (void)mysql_stmt_free_result(statement);
}

static int by_size(const void *a, const void *b)
{
    const double *left = a;
    const double *right = b;

    return (*left > *right) - (*left < *right);
}

static void report(const char *name, int n, double elapsed_us)
{
    qsort(samples, (size_t)n, sizeof(samples[0]), by_size);
    printf("%s %.0f %.1f\n", name, n / elapsed_us * 1e6, samples[n / 2]);
}

static void pairs(const char *name, MYSQL_STMT *take, MYSQL_STMT *free_it,
                  double seconds)
{
    double start = now_us();
    int n = 0;

    while (n < SAMPLES && now_us() - start < seconds * 1e6) {
        double before = now_us();

        execute(take);
        execute(free_it);
        samples[n++] = now_us() - before;
    }
    report(name, n, now_us() - start);
}

/* Two processes want one lock all the time, and wait for it in the server. */
static void handover(const char *port, double seconds)
{
    pid_t other = fork();
    MYSQL *mysql = dial(port);
    MYSQL_STMT *take = prepare(mysql, "SELECT GET_LOCK('raw',60)");
    MYSQL_STMT *free_it = prepare(mysql, "SELECT RELEASE_LOCK('raw')");
    double start = now_us();
    int n = 0;

    while (other == 0 || (n < SAMPLES && now_us() - start < seconds * 1e6)) {
        double before = now_us();

        execute(take);
        if (other != 0)
            samples[n++] = now_us() - before;
        execute(free_it);
    }
    (void)kill(other, SIGKILL);
    (void)waitpid(other, NULL, 0);
    report("handover", n, (now_us() - start) / 2);
}

int main(int argc, char **argv)
{
    MYSQL *mysql;

    if (argc != 4)
        die("get_lock|table|handover PORT SECONDS");
    if (strcmp(argv[1], "handover") == 0) {
        handover(argv[2], atof(argv[3]));
        return 0;
    }
    mysql = dial(argv[2]);
    if (strcmp(argv[1], "get_lock") == 0) {
        pairs(argv[1], prepare(mysql, "SELECT GET_LOCK('raw',0)"),
              prepare(mysql, "SELECT RELEASE_LOCK('raw')"), atof(argv[3]));
        return 0;
    }
    (void)mysql_query(mysql, "CREATE TABLE IF NOT EXISTS raw(name VARBINARY(64)"
                             " PRIMARY KEY,owner VARBINARY(64)) ENGINE=InnoDB");
    pairs(argv[1], prepare(mysql, "INSERT INTO raw VALUES('jobs','me')"),
          prepare(mysql, "DELETE FROM raw WHERE name='jobs' AND owner='me'"),
          atof(argv[3]));
    return 0;
}

/* SPDX-License-Identifier: MIT */
/*
 * raw_mysql.c get_lock|table|handover SECONDS PORT - what the server can do,
 * with libmariadb and nothing of ours: prepared pairs of GET_LOCK and
 * RELEASE_LOCK, of INSERT and DELETE; and GET_LOCK handed back and forth
 * between two processes that wait inside the server.
 */
#include <mysql.h>
#include <signal.h>
#include <sys/wait.h>

#include "raw.h"

static struct samples *samples;

static _Noreturn void fail(const char *what)
{
    fprintf(stderr, "raw_mysql: %s\n", what);
    exit(1);
}

static MYSQL *dial(const char *port)
{
    MYSQL *mysql = mysql_init(NULL);

    if (!mysql_real_connect(mysql, "127.0.0.1", "root", "", "locks",
                            (unsigned)atoi(port), NULL, 0))
        fail(mysql_error(mysql));
    return mysql;
}

static MYSQL_STMT *prepare(MYSQL *mysql, const char *sql)
{
    MYSQL_STMT *statement = mysql_stmt_init(mysql);

    if (mysql_stmt_prepare(statement, sql, strlen(sql)) != 0)
        fail(mysql_stmt_error(statement));
    return statement;
}

static void execute(MYSQL_STMT *statement)
{
    if (mysql_stmt_execute(statement) != 0)
        fail(mysql_stmt_error(statement));
    if (mysql_stmt_field_count(statement) > 0 &&
        mysql_stmt_store_result(statement) != 0)
        fail(mysql_stmt_error(statement));
    (void)mysql_stmt_free_result(statement);
}

static void pairs(const char *name, MYSQL_STMT *take, MYSQL_STMT *free_it,
                  double seconds)
{
    uint64_t end = end_of(seconds);

    for (uint64_t now = now_ns(); now < end;) {
        uint64_t before = now;

        execute(take);
        execute(free_it);
        now = now_ns();
        sample(samples, now - before);
    }
    print(name, (double)samples->n / seconds, samples);
}

/* Two processes want one lock all the time, and wait for it in the server. */
static void handover(const char *port, double seconds)
{
    pid_t other = fork();
    MYSQL *mysql = dial(port);
    MYSQL_STMT *take = prepare(mysql, "SELECT GET_LOCK('raw',60)");
    MYSQL_STMT *free_it = prepare(mysql, "SELECT RELEASE_LOCK('raw')");
    uint64_t end = end_of(seconds);

    while (other == 0 || now_ns() < end) {
        uint64_t before = now_ns();

        execute(take);
        if (other != 0)
            sample(samples, now_ns() - before);
        execute(free_it);
    }
    (void)kill(other, SIGKILL);
    (void)waitpid(other, NULL, 0);
    print("handover", 2 * (double)samples->n / seconds, samples);
}

int main(int argc, char **argv)
{
    MYSQL *mysql;

    samples = samples_new();
    if (argc != 4)
        fail("get_lock|table|handover SECONDS PORT");
    if (strcmp(argv[1], "handover") == 0) {
        handover(argv[3], atof(argv[2]));
        return 0;
    }
    mysql = dial(argv[3]);
    if (strcmp(argv[1], "get_lock") == 0) {
        pairs(argv[1], prepare(mysql, "SELECT GET_LOCK('raw',0)"),
              prepare(mysql, "SELECT RELEASE_LOCK('raw')"), atof(argv[2]));
        return 0;
    }
    (void)mysql_query(mysql, "CREATE TABLE IF NOT EXISTS raw(name VARBINARY(64)"
                             " PRIMARY KEY,owner VARBINARY(64)) ENGINE=InnoDB");
    pairs(argv[1], prepare(mysql, "INSERT INTO raw VALUES('jobs','me')"),
          prepare(mysql, "DELETE FROM raw WHERE name='jobs' AND owner='me'"),
          atof(argv[2]));
    return 0;
}

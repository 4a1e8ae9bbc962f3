/* SPDX-License-Identifier: MIT */
/*
 * raw_mysql.c - what one MariaDB server can do at most, for ./dev bench mysql.
 *
 *     raw_mysql SCENARIO SECONDS PORT
 *
 *   get_lock    GET_LOCK and RELEASE_LOCK, prepared
 *   table       INSERT and DELETE of one row, prepared, two commits
 *   handover    two processes pass a turn by GET_LOCK, waiting in the server
 *   for_update  … by SELECT … FOR UPDATE and COMMIT
 *
 * libmariadb's blocking calls.
 */
#include <mysql.h>

#include "raw_handover.h"

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

/* The log has room for all, so that nobody waits for the disk. And until the
 * server has removed what deleted and changed rows have left: it does so later,
 * when it would be the time of whoever is measured next. */
static void settle(MYSQL *mysql)
{
    if (mysql_query(mysql, "SET GLOBAL innodb_log_file_size=67108864") != 0 ||
        mysql_query(mysql, "SET GLOBAL innodb_max_purge_lag_wait=0") != 0)
        fail(mysql_error(mysql));
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

/* ---- hand-over ---------------------------------------------------------- */

struct session {
    MYSQL *mysql;
    MYSQL_STMT *take;
    MYSQL_STMT *give;
};

static struct session *new_session(const char *port)
{
    struct session *session = calloc(1, sizeof(*session));

    if (!session)
        die("calloc");
    session->mysql = dial(port);
    return session;
}

static void *dial_get_lock(const char *port, int me)
{
    struct session *session = new_session(port);

    (void)me;
    session->take = prepare(session->mysql, "SELECT GET_LOCK('raw',60)");
    session->give = prepare(session->mysql, "SELECT RELEASE_LOCK('raw')");
    return session;
}

static void *dial_row(const char *port, int me)
{
    struct session *session = new_session(port);

    (void)me;
    if (mysql_query(session->mysql,
                    "CREATE TABLE IF NOT EXISTS raw_row(name VARBINARY(64) "
                    "PRIMARY KEY) ENGINE=InnoDB") != 0 ||
        mysql_query(session->mysql,
                    "INSERT IGNORE INTO raw_row VALUES('jobs')") != 0 ||
        mysql_query(session->mysql, "SET autocommit=0") != 0)
        fail(mysql_error(session->mysql));
    session->take = prepare(
        session->mysql, "SELECT 1 FROM raw_row WHERE name='jobs' FOR UPDATE");
    session->give = prepare(session->mysql, "COMMIT");
    return session;
}

static void take_it(void *session)
{
    execute(((struct session *)session)->take);
}

static void give_it(void *session)
{
    execute(((struct session *)session)->give);
}

int main(int argc, char **argv)
{
    MYSQL *mysql;

    const struct player get_lock = {dial_get_lock, take_it, give_it};
    const struct player for_update = {dial_row, take_it, give_it};

    samples = samples_new();
    if (argc != 4)
        fail("get_lock|table|handover|for_update SECONDS PORT");
    mysql = dial(argv[3]);
    settle(mysql);
    if (strcmp(argv[1], "handover") == 0) {
        handover(argv[1], &get_lock, argv[3], atof(argv[2]));
        return 0;
    }
    if (strcmp(argv[1], "for_update") == 0) {
        handover(argv[1], &for_update, argv[3], atof(argv[2]));
        return 0;
    }
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
    settle(mysql);
    return 0;
}

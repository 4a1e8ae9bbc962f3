/* SPDX-License-Identifier: MIT */
/*
 * mysql_plain.h - a connection of one's own and statements on it, for the
 * examples that show what goes wrong without a lock.
 */
#ifndef MYSQL_PLAIN_H
#define MYSQL_PLAIN_H

#include <mysql.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* mysql://USER:PASSWORD@HOST:PORT/DATABASE */
static inline MYSQL *plain_open(const char *url)
{
    char user[64], password[64], host[64], database[64];
    unsigned port;
    MYSQL *mysql = mysql_init(NULL);

    if (!mysql || sscanf(url, "mysql://%63[^:]:%63[^@]@%63[^:]:%u/%63[^?]",
                         user, password, host, &port, database) != 5) {
        fprintf(stderr, "mysql://USER:PASSWORD@HOST:PORT/DATABASE is wanted\n");
        exit(2);
    }
    if (!mysql_real_connect(mysql, host, user, password, database, port, NULL,
                            0)) {
        fprintf(stderr, "%s\n", mysql_error(mysql));
        exit(2);
    }
    return mysql;
}

/* Carry out a statement; the number in its first field, or rows affected. */
__attribute__((format(printf, 2, 3))) static inline long long plain_do(
    MYSQL *mysql, const char *format, ...)
{
    char sql[512];
    long long answer;
    MYSQL_RES *rows;
    MYSQL_ROW row;
    va_list args;

    va_start(args, format);
    vsnprintf(sql, sizeof(sql), format, args);
    va_end(args);
    if (mysql_query(mysql, sql) != 0) {
        fprintf(stderr, "%s: %s\n", sql, mysql_error(mysql));
        exit(2);
    }
    rows = mysql_store_result(mysql);
    if (!rows)
        return (long long)mysql_affected_rows(mysql);
    row = mysql_fetch_row(rows);
    answer = row && row[0] ? atoll(row[0]) : 0;
    mysql_free_result(rows);
    return answer;
}

#endif

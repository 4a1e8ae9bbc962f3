/* SPDX-License-Identifier: MIT */
/* database.c - MariaDB, for the tests of either database. */
#include "live/sql/database.h"

#include <stdlib.h>

#include "mysql.h"

static int port;

const char database_utc[] = "UTC_TIMESTAMP(3)";
const char database_instant[] = "DATETIME(6)";

const char database_session[] =
    "retry.base=1ms&retry.max_interval=20ms&mode=get_lock";
const char database_sessions[] =
    "SELECT COUNT(*) FROM information_schema.processlist WHERE user='locker'";

/* The shell reads them, in double quotes. */
const char database_lock_table[] =
    "CREATE TABLE \\`database_lock\\` ("
    "\\`id\\` BIGINT NOT NULL AUTO_INCREMENT,"
    "\\`resource\\` int NOT NULL COMMENT '锁定的资源',"
    "PRIMARY KEY (\\`id\\`),"
    "UNIQUE KEY \\`uiq_idx_resource\\` (\\`resource\\`)"
    ") ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COMMENT='数据库分布式锁表'";
const char database_described_table[] =
    "CREATE TABLE \\`database_lock\\` ("
    "\\`id\\` BIGINT NOT NULL AUTO_INCREMENT,"
    "\\`resource\\` int NOT NULL COMMENT '锁定的资源',"
    "\\`description\\` varchar(1024) NOT NULL,"
    "PRIMARY KEY (\\`id\\`),"
    "UNIQUE KEY \\`uiq_idx_resource\\` (\\`resource\\`)"
    ") ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COMMENT='数据库分布式锁表'";
const char database_version_table[] =
    "CREATE TABLE \\`optimistic_lock\\` ("
    "\\`id\\` BIGINT NOT NULL AUTO_INCREMENT,"
    "\\`resource\\` int NOT NULL COMMENT '锁定的资源',"
    "\\`version\\` int NOT NULL COMMENT '版本信息',"
    "PRIMARY KEY (\\`id\\`),"
    "UNIQUE KEY \\`uiq_idx_resource\\` (\\`resource\\`)"
    ") ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COMMENT='数据库分布式锁表'";
const char database_schema[] = "locks";
const char database_lease[] = "mode";
const char database_impatient[] =
    "SET SESSION innodb_lock_wait_timeout=1;SET AUTOCOMMIT=0;";

const char *database_client(void)
{
    return test_text("mariadb --no-defaults -n -N -B -uroot -h127.0.0.1 -P%d "
                     "locks",
                     port);
}

void database_fresh(void)
{
    port = mysql_fresh();
}

const char *database_run(const char *statements)
{
    return mysql_do(port, "%s", statements);
}

const char *database_url(const char *query)
{
    return mysql_url(port, query);
}

void database_forbid_tables(void)
{
    (void)mysql_do(port, "REVOKE CREATE ON locks.* FROM locker@127.0.0.1");
}

/* @which of our sessions; false if there is none. */
static bool end_session(const char *which)
{
    int id = atoi(mysql_do(port,
                           "SELECT COALESCE(MAX(id),0) FROM "
                           "information_schema.processlist "
                           "WHERE user='locker' %s",
                           which));

    if (id != 0)
        (void)mysql_do(port, "KILL %d", id);
    return id != 0;
}

void database_end_newest(void)
{
    ASSERT_TRUE(end_session(""));
}

bool database_end_wait(void)
{
    return end_session("AND state='User lock'") ||
           (mysql_row_waits(port) > 0 &&
            (end_session("AND info LIKE '%FOR UPDATE'") ||
             end_session("AND info LIKE 'INSERT INTO%'")));
}

void database_read_only(bool on)
{
    (void)mysql_do(port, "SET GLOBAL read_only=%d", on);
}

const char *database_jdbc(void)
{
    return test_text("jdbc:mariadb://127.0.0.1:%d/locks?user=locker&"
                     "password=s3cret",
                     port);
}

/* SPDX-License-Identifier: MIT */
/*
 * errors.c - what the server's error numbers mean for a lock.
 *
 * An error that the server has sent is certain: the statement was not carried
 * out. A program can try again after HF_EUNAVAILABLE; after HF_EAUTH
 * and HF_ECONFIG a person has to do something.
 */
#include <errmsg.h>
#include <mysqld_error.h>

#include "engines/mysql/mysql.h"

/* What MySQL 8 alone says. */
enum {
    MY_LOCK_DEADLOCK = 3058, /* of GET_LOCK */
    MY_HOOK = 3100,          /* group replication refuses a commit */
    MY_ROLLED_BACK = 3101,   /* … because of another member's */
    MY_LOCK_NOWAIT = 3572,
};

static const struct {
    unsigned code;
    int ours;
    const char *hint;
} meanings[] = {
    {ER_ACCESS_DENIED_ERROR, HF_EAUTH, ""},
    {ER_DBACCESS_DENIED_ERROR, HF_EAUTH, ""},
    {ER_TABLEACCESS_DENIED_ERROR, HF_EAUTH,
     " (grant SELECT, INSERT, UPDATE, DELETE on the tables, and CREATE or "
     "make them: holdfast(7))"},
    {ER_COLUMNACCESS_DENIED_ERROR, HF_EAUTH, ""},
    {ER_SPECIFIC_ACCESS_DENIED_ERROR, HF_EAUTH, ""},
    {ER_NOT_SUPPORTED_AUTH_MODE, HF_EAUTH, ""},
    {ER_HOST_NOT_PRIVILEGED, HF_EAUTH, ""},
    {CR_AUTH_PLUGIN_CANNOT_LOAD, HF_EAUTH, ""},
    {CR_SSL_CONNECTION_ERROR, HF_EAUTH, ""},
    {ER_BAD_DB_ERROR, HF_ECONFIG, ""},
    {ER_NO_DB_ERROR, HF_ECONFIG,
     " (name it in the URL: mysql://host/database)"},
    {ER_NO_SUCH_TABLE, HF_ECONFIG, ""},
    {ER_BAD_FIELD_ERROR, HF_ECONFIG,
     " (the table holdfast_lock is of an older version of holdfast: drop it "
     "when nobody uses that any more)"},
    {ER_NO_DEFAULT_FOR_FIELD, HF_ECONFIG,
     " (a column that must have a value: owner_column=… gives it one)"},
    {ER_TOO_MANY_ROWS, HF_ECONFIG, " (the column of key=… must be unique)"},
    {ER_TRUNCATED_WRONG_VALUE, HF_EINVAL, ""},
    {ER_TRUNCATED_WRONG_VALUE_FOR_FIELD, HF_EINVAL, ""},
    {ER_WARN_DATA_OUT_OF_RANGE, HF_EINVAL, ""},
    {ER_DATA_TOO_LONG, HF_EINVAL, ""},
    {WARN_DATA_TRUNCATED, HF_EINVAL, ""},
    {ER_OPTION_PREVENTS_STATEMENT, HF_EUNAVAILABLE, ""},
    {ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION, HF_EUNAVAILABLE, ""},
    {ER_OPEN_AS_READONLY, HF_EUNAVAILABLE, ""},
    {ER_DISK_FULL, HF_ENOSPACE, " (its disk is full)"},
    {ER_RECORD_FILE_FULL, HF_ENOSPACE, " (its disk is full)"},
    {ER_ERROR_ON_WRITE, HF_ENOSPACE, " (its disk is full)"},
    {ER_CON_COUNT_ERROR, HF_EUNAVAILABLE, ""},
    {ER_MAX_PREPARED_STMT_COUNT_REACHED, HF_EUNAVAILABLE, ""},
    {ER_NEED_REPREPARE, HF_EUNAVAILABLE, ""},
    {ER_TOO_MANY_USER_CONNECTIONS, HF_EUNAVAILABLE, ""},
    {ER_USER_LIMIT_REACHED, HF_EUNAVAILABLE, ""},
    {ER_UNKNOWN_SYSTEM_VARIABLE, HF_EUNSUPPORTED, ""},
    {ER_PARSE_ERROR, HF_EUNSUPPORTED, ""},
    {ER_NOT_SUPPORTED_YET, HF_EUNSUPPORTED, ""},
    {ER_SP_DOES_NOT_EXIST, HF_EUNSUPPORTED, ""},
    {ER_UNKNOWN_STORAGE_ENGINE, HF_EUNSUPPORTED, ""},
    {ER_UNKNOWN_COLLATION, HF_EUNSUPPORTED, ""},
    {ER_QUERY_INTERRUPTED, HF_EUNAVAILABLE, ""},
    {ER_STATEMENT_TIMEOUT, HF_EUNAVAILABLE, ""},
    {ER_LOCK_WAIT_TIMEOUT, HF_EUNAVAILABLE, ""},
    {ER_LOCK_DEADLOCK, HF_EUNAVAILABLE, ""},
    {MY_LOCK_NOWAIT, HF_EUNAVAILABLE, ""},
    {MY_LOCK_DEADLOCK, HF_EUNAVAILABLE, ""},
    {MY_HOOK, HF_EUNAVAILABLE, " (group replication refuses it)"},
    {MY_ROLLED_BACK, HF_EUNAVAILABLE, ""},
    {ER_OUT_OF_RESOURCES, HF_EUNAVAILABLE, ""},
    {ER_UNKNOWN_COM_ERROR, HF_EUNAVAILABLE, ""}, /* a node out of Galera */
};

int hf__mysql_errors_read(const struct hf__mysql *mysql,
                          const struct hf__mysql_reply *reply, hf_error *err)
{
    int code = reply->code >= CR_MIN_ERROR && reply->code <= CR_MAX_ERROR
                   ? HF_EUNAVAILABLE
                   : HF_EINTERNAL;
    const char *hint = "";

    for (size_t i = 0; i < HF_COUNT_OF(meanings); i++) {
        if (meanings[i].code == reply->code) {
            code = meanings[i].ours;
            hint = meanings[i].hint;
        }
    }
    if (code == HF_EUNSUPPORTED)
        return hf__fail_engine(
            err, code, (int)reply->code,
            "%s: the server is '%s' (%s), which does not know a statement of "
            "ours; MariaDB 10.11 and MySQL 8.0 do: %s",
            mysql->peer, mysql->server, mysql->server_comment, reply->text);
    if (reply->code == ER_BAD_FIELD_ERROR &&
        (mysql->own_row || mysql->own_versions ||
         mysql->mode == &hf__mysql_row_mode))
        hint = "";
    else if (reply->code == ER_BAD_FIELD_ERROR && mysql->dialect)
        hint = " (a table of another make? Spring's is that of 7.0 or later)";
    return hf__fail_engine(err, code, (int)reply->code, "%s: %s%s", mysql->peer,
                           reply->text, hint);
}

int hf__mysql_errors_lost(const struct hf__mysql *mysql, hf_error *err)
{
    return hf__fail(err, HF_EUNAVAILABLE,
                    "%s: the connection was lost before the answer came",
                    mysql->peer);
}

bool hf__mysql_errors_is_collision(const struct hf__mysql_reply *reply)
{
    return reply->code == ER_LOCK_DEADLOCK ||
           reply->code == ER_LOCK_WAIT_TIMEOUT ||
           reply->code == MY_LOCK_NOWAIT || reply->code == MY_LOCK_DEADLOCK ||
           reply->code == MY_ROLLED_BACK ||
           reply->code == ER_NEED_REPREPARE; /* the tables were changed */
}

bool hf__mysql_errors_is_taken(const struct hf__mysql_reply *reply)
{
    return reply->code == ER_DATA_OUT_OF_RANGE;
}

bool hf__mysql_errors_is_no_table(const struct hf__mysql_reply *reply)
{
    return reply->code == ER_NO_SUCH_TABLE;
}

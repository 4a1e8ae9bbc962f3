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

/* What numbers mean; the others are HF_EINTERNAL. */
static const struct {
    int ours;
    uint16_t codes[24]; /* 0 at the end */
} meanings[] = {
    {HF_EAUTH,
     {ER_ACCESS_DENIED_ERROR, ER_DBACCESS_DENIED_ERROR,
      ER_TABLEACCESS_DENIED_ERROR, ER_COLUMNACCESS_DENIED_ERROR,
      ER_SPECIFIC_ACCESS_DENIED_ERROR, ER_NOT_SUPPORTED_AUTH_MODE,
      ER_HOST_NOT_PRIVILEGED, CR_AUTH_PLUGIN_CANNOT_LOAD,
      CR_SSL_CONNECTION_ERROR}},
    {HF_ECONFIG,
     {ER_BAD_DB_ERROR, ER_NO_DB_ERROR, ER_NO_SUCH_TABLE, ER_BAD_FIELD_ERROR,
      ER_NO_DEFAULT_FOR_FIELD, ER_TOO_MANY_ROWS}},
    {HF_EINVAL,
     {ER_TRUNCATED_WRONG_VALUE, ER_TRUNCATED_WRONG_VALUE_FOR_FIELD,
      ER_WARN_DATA_OUT_OF_RANGE, ER_DATA_TOO_LONG, WARN_DATA_TRUNCATED}},
    {HF_EUNAVAILABLE,
     {ER_OPTION_PREVENTS_STATEMENT, ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION,
      ER_OPEN_AS_READONLY, ER_CON_COUNT_ERROR,
      ER_MAX_PREPARED_STMT_COUNT_REACHED, ER_NEED_REPREPARE,
      ER_TOO_MANY_USER_CONNECTIONS, ER_USER_LIMIT_REACHED, ER_QUERY_INTERRUPTED,
      ER_STATEMENT_TIMEOUT, ER_LOCK_WAIT_TIMEOUT, ER_LOCK_DEADLOCK,
      MY_LOCK_NOWAIT, MY_LOCK_DEADLOCK, MY_HOOK, MY_ROLLED_BACK,
      ER_OUT_OF_RESOURCES, ER_UNKNOWN_COM_ERROR /* a node out of Galera */}},
    {HF_ENOSPACE, {ER_DISK_FULL, ER_RECORD_FILE_FULL, ER_ERROR_ON_WRITE}},
    {HF_EUNSUPPORTED,
     {ER_UNKNOWN_SYSTEM_VARIABLE, ER_PARSE_ERROR, ER_NOT_SUPPORTED_YET,
      ER_SP_DOES_NOT_EXIST, ER_UNKNOWN_STORAGE_ENGINE, ER_UNKNOWN_COLLATION}},
};

static const struct {
    unsigned code;
    const char *text;
} hints[] = {
    {ER_TABLEACCESS_DENIED_ERROR,
     " (grant SELECT, INSERT, UPDATE, DELETE on the tables, and CREATE or "
     "make them: holdfast(7))"},
    {ER_NO_DB_ERROR, " (name it in the URL: mysql://host/database)"},
    {ER_BAD_FIELD_ERROR,
     " (the table holdfast_lock is of an older version of holdfast: drop it "
     "when nobody uses that any more)"},
    {ER_NO_DEFAULT_FOR_FIELD,
     " (a column that must have a value: owner_column=… gives it one)"},
    {ER_TOO_MANY_ROWS, " (the column of key=… must be unique)"},
    {ER_DISK_FULL, " (its disk is full)"},
    {ER_RECORD_FILE_FULL, " (its disk is full)"},
    {ER_ERROR_ON_WRITE, " (its disk is full)"},
    {MY_HOOK, " (group replication refuses it)"},
};

static int meaning_of(unsigned code)
{
    for (size_t i = 0; i < HF_COUNT_OF(meanings); i++) {
        for (const uint16_t *known = meanings[i].codes; *known; known++) {
            if (*known == code)
                return meanings[i].ours;
        }
    }
    return code >= CR_MIN_ERROR && code <= CR_MAX_ERROR ? HF_EUNAVAILABLE
                                                        : HF_EINTERNAL;
}

static const char *hint_of(const struct hf__mysql *mysql, unsigned code)
{
    bool bad_field = code == ER_BAD_FIELD_ERROR;

    if (bad_field && (mysql->own_row || mysql->own_versions ||
                      mysql->mode == &hf__mysql_row_mode))
        return "";
    if (bad_field && mysql->dialect)
        return " (a table of another make? Spring's is that of 7.0 or later)";
    for (size_t i = 0; i < HF_COUNT_OF(hints); i++) {
        if (hints[i].code == code)
            return hints[i].text;
    }
    return "";
}

int hf__mysql_errors_read(const struct hf__mysql *mysql,
                          const struct hf__mysql_reply *reply, hf_error *err)
{
    int code = meaning_of(reply->code);

    if (code == HF_EUNSUPPORTED)
        return hf__fail_engine(
            err, code, (int)reply->code,
            "%s: the server is '%s' (%s), which does not know a statement of "
            "ours; MariaDB 10.11 and MySQL 8.0 do: %s",
            mysql->peer, mysql->server, mysql->server_comment, reply->text);
    return hf__fail_engine(err, code, (int)reply->code, "%s: %s%s", mysql->peer,
                           reply->text, hint_of(mysql, reply->code));
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

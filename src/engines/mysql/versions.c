/* SPDX-License-Identifier: MIT */
/*
 * versions.c - optimistic versions, in a table of ours or in a column of the
 * application's.
 *
 * Failure: a commit whose answer was lost may have happened: HF_EUNKNOWN.
 */
#include "engines/mysql/mysql.h"

/* A table of the application's is not ours to make, nor to fill. */
static bool remake(struct hf__mysql_call *call,
                   const struct hf__mysql_reply *reply)
{
    return !call->connection->mysql->own_versions &&
           hf__mysql_schema_make(call, reply);
}

static void answer_no_row(struct hf__mysql *mysql, struct hf__query *query)
{
    hf__mysql_inspect_fail(
        mysql, query, HF_ENOTFOUND,
        "the table that version_table names has no such row");
}

static void on_version(struct hf__mysql *mysql, struct hf__mysql_call *call,
                       struct hf__mysql_reply *reply)
{
    struct hf__query *query = call->query;
    struct hf__mysql_field row[1];
    bool found;

    if (remake(call, reply) || hf__mysql_inspect_failed(mysql, query, reply, 1))
        return;
    found = hf__mysql_answer_row(reply, 1, row);
    query->version = found ? hf__mysql_answer_number(row[0]) : 0;
    if (!found && mysql->own_versions)
        answer_no_row(mysql, query);
    else
        hf__up_answer(&mysql->base, query, 0, /* err= */ NULL);
}

/* A dialect has versions only in a table of the application's. */
static int ask(struct hf__engine *engine, struct hf__query *query,
               const char *ours, const char *own, hf__mysql_done_fn *done,
               hf_error *err)
{
    struct hf__mysql *mysql = (struct hf__mysql *)engine;
    int rc = hf__mysql_is_up(mysql, err);

    if (rc == 0 && mysql->dialect && !mysql->own_versions)
        rc = hf__fail(err, HF_EUNSUPPORTED, "dialect=%s cannot",
                      mysql->dialect->name);
    return rc != 0 ? rc
                   : hf__mysql_inspect_ask(mysql, query,
                                           mysql->own_versions ? own : ours,
                                           done, err);
}

int hf__mysql_versions_read(struct hf__engine *engine, struct hf__query *query,
                            hf_error *err)
{
    return ask(engine, query, hf__mysql_sql_version_read,
               hf__mysql_sql_own_version_read, on_version, err);
}

static void on_committed(struct hf__mysql *mysql, struct hf__mysql_call *call,
                         struct hf__mysql_reply *reply)
{
    struct hf__query *query = call->query;
    struct hf__mysql_field row[2];

    if (remake(call, reply) ||
        hf__mysql_inspect_unknown(mysql, call, reply, 2) ||
        hf__mysql_inspect_failed(mysql, query, reply, 2))
        return;
    if (!hf__mysql_answer_row(reply, 2, row)) {
        hf__mysql_inspect_fail(mysql, query, HF_EUNKNOWN,
                               "the answer makes no sense: it may have "
                               "happened");
        return;
    }
    query->version = hf__mysql_answer_number(row[1]);
    if (hf__mysql_answer_number(row[0]) == 1)
        hf__up_answer(&mysql->base, query, 0, /* err= */ NULL);
    else if (hf__mysql_answer_number(row[0]) == 2)
        answer_no_row(mysql, query);
    else
        hf__mysql_inspect_fail(mysql, query, HF_ECONFLICT,
                               "another version was committed");
}

int hf__mysql_versions_commit(struct hf__engine *engine,
                              struct hf__query *query, hf_error *err)
{
    return ask(engine, query, hf__mysql_sql_version_commit,
               hf__mysql_sql_own_version_commit, on_committed, err);
}

/* SPDX-License-Identifier: MIT */
/*
 * inspect.c - who holds what, is a token current, take a lock away; versions.
 *
 * Each is one statement, or one block that the server carries out without us.
 * A table that is not there yet is an empty one to who only reads.
 */
#include "engines/mysql/mysql.h"
#include "engines/sql/record.h"

static void answer_text(struct hf__mysql *mysql, struct hf__query *query,
                        int code, const char *text)
{
    hf_error err;

    (void)hf__fail(&err, code, "'%s': %s", query->name, text);
    hf__up_answer(&mysql->base, query, code, &err);
}

/* Answers what is no answer of @columns; true if it did. */
static bool answered(struct hf__mysql *mysql, struct hf__query *query,
                     const struct hf__mysql_reply *reply, unsigned columns)
{
    hf_error err;

    if (!reply)
        (void)hf__mysql_explain_lost(mysql, &err);
    else if (reply->code != 0)
        (void)hf__mysql_explain(mysql, reply, &err);
    else if (reply->columns != columns)
        (void)hf__fail(&err, HF_EUNAVAILABLE, "%s: %s", mysql->peer,
                       hf__mysql_strange);
    else
        return false;
    hf__up_answer(&mysql->base, query, err.code, &err);
    return true;
}

static void answer_unknown(struct hf__mysql *mysql, struct hf__query *query)
{
    answer_text(mysql, query, HF_EUNKNOWN,
                "sent, and the answer was lost: it may have happened");
}

/* What changes something was sent, and may have been carried out: the answer
 * was lost, or a statement behind the one that changes has failed. Answers, and
 * says so. */
static bool is_unknown(struct hf__mysql *mysql,
                       const struct hf__mysql_call *call,
                       const struct hf__mysql_reply *reply, unsigned columns)
{
    size_t before = 0; /* the last statement, which only tells */
    bool unknown;

    for (size_t i = 0; i < call->sql.len; i++)
        before += call->sql.text[i] == ';';
    unknown = !reply             ? call->sent_ns != 0
              : reply->code != 0 ? reply->n >= before
                                 : reply->columns != columns;
    if (unknown)
        answer_unknown(mysql, call->query);
    return unknown;
}

static hf__mysql_done_fn on_version;
static hf__mysql_done_fn on_committed;

/* Whether a dialect has an answer: it knows who holds. */
static int is_told(const struct hf__mysql *mysql, const struct hf__query *query,
                   const char *text, hf_error *err)
{
    const struct hf__settings *settings = mysql->base.host->settings;
    char key[HF__SQL_KEY];

    if (text == hf__mysql_own_version_read ||
        text == hf__mysql_own_version_commit)
        return 0;
    if (text == mysql->dialect_texts[HF__MYSQL_LIST])
        return hf__sql_dialect_list(mysql->dialect, settings, query->prefix,
                                    err);
    if (text != mysql->dialect_texts[HF__MYSQL_SHOW] &&
        text != mysql->dialect_texts[HF__MYSQL_BREAK])
        return hf__fail(err, HF_EUNSUPPORTED, "dialect=%s cannot",
                        mysql->dialect->name);
    return hf__sql_dialect_key(mysql->dialect, settings, query->name, key, err);
}

static int ask(struct hf__engine *engine, struct hf__query *query,
               const char *text, hf__mysql_done_fn *done, hf_error *err)
{
    struct hf__mysql *mysql = (struct hf__mysql *)engine;
    struct hf__mysql_values values = {.name = query->name ? query->name
                                                          : query->prefix,
                                      .owner = query->owner ? query->owner : "",
                                      .token = query->token};
    struct hf__mysql_call *call;
    int rc = hf__mysql_is_up(mysql, err);

    if (rc == 0 && mysql->dialect)
        rc = is_told(mysql, query, text, err);
    else if (rc == 0 && done != on_version && done != on_committed &&
             mysql->mode != &hf__mysql_table)
        rc = hf__fail(err, HF_EUNSUPPORTED, "mode=%s keeps no records",
                      mysql->mode->name);
    if (rc != 0)
        return rc;
    call = hf__mysql_call_new(done, err);
    if (!call)
        return HF_ENOMEM;
    call->query = query;
    hf__mysql_statement(mysql, &call->sql, text, &values);
    return hf__mysql_call_send(&mysql->main, call, err);
}

/* ---- list -------------------------------------------------------------- */

enum { NAME, ROLE, MODE, SLOTS, TOKEN, LEFT, SINCE, RECORD, ORDER, COLUMNS };

/* A name as the program knows it; false if it cannot be one of ours. */
static bool read_name(const struct hf__mysql *mysql,
                      const struct hf__query *query,
                      struct hf__mysql_field field, char name[HF_NAME_MAX + 1])
{
    const struct hf__settings *settings = mysql->base.host->settings;
    size_t prefix = strlen(settings->prefix);

    if (query->name) {
        hf__text_copy(name, HF_NAME_MAX + 1, query->name);
        return true;
    }
    if (mysql->dialect)
        return field.text && hf__sql_dialect_name(mysql->dialect, settings,
                                                  field.text, field.len, name);
    if (field.len <= prefix || field.len - prefix > HF_NAME_MAX)
        return false;
    memcpy(name, field.text + prefix, field.len - prefix);
    name[field.len - prefix] = '\0';
    return hf_name_check(name, field.len - prefix, /* err= */ NULL) == 0;
}

static int add_row(struct hf__query *query, const struct hf__mysql_field *row,
                   const char *name, uint32_t place)
{
    char copy[HF__SQL_TEXTS];
    bool holder = hf__mysql_number(row[ROLE]) == 1;
    hf_lock_info info = {
        .role = holder ? HF_HOLDER : HF_WAITER,
        .mode = (int32_t)(hf__mysql_number(row[MODE]) % (HF_SLOT + 1)),
        .slots = (int32_t)(hf__mysql_number(row[SLOTS]) & INT32_MAX),
        .name = name,
        .token = holder ? hf__mysql_number(row[TOKEN]) : 0,
        .lease_ms = holder ? (int64_t)hf__mysql_number(row[LEFT]) / 1000 : -1,
        .since_ms = (int64_t)hf__mysql_number(row[SINCE]) / 1000,
        .place = holder ? 0 : place,
    };

    hf__sql_record_read(row[RECORD].text, row[RECORD].len, copy, &info);
    return hf__query_add_lock(query, &info);
}

static void on_listed(struct hf__mysql *mysql, struct hf__mysql_call *call,
                      struct hf__mysql_reply *reply)
{
    struct hf__mysql_field row[COLUMNS];
    char before[HF_NAME_MAX + 1] = "";
    uint32_t place = 0;
    int rc = 0;

    if (hf__mysql_remake(call, reply) ||
        answered(mysql, call->query, reply, COLUMNS))
        return;
    while (rc == 0 && hf__mysql_row(reply, COLUMNS, row)) {
        char name[HF_NAME_MAX + 1];

        if (!read_name(mysql, call->query, row[NAME], name))
            continue;
        if (strcmp(name, before) != 0)
            place = 0;
        memcpy(before, name, sizeof(before));
        place += hf__mysql_number(row[ROLE]) == 0;
        rc = add_row(call->query, row, name, place);
    }
    hf__up_answer(&mysql->base, call->query, rc, /* err= */ NULL);
}

int hf__mysql_list_locks(struct hf__engine *engine, struct hf__query *query,
                         hf_error *err)
{
    const struct hf__mysql *mysql = (struct hf__mysql *)engine;
    const char *text = query->name ? hf__mysql_show : hf__mysql_list;

    if (mysql->dialect)
        text =
            mysql->dialect_texts[query->name ? HF__MYSQL_SHOW : HF__MYSQL_LIST];
    return ask(engine, query, text, on_listed, err);
}

/* ---- tokens ------------------------------------------------------------ */

static void on_checked(struct hf__mysql *mysql, struct hf__mysql_call *call,
                       struct hf__mysql_reply *reply)
{
    struct hf__query *query = call->query;
    struct hf__mysql_field row[2];

    if (hf__mysql_remake(call, reply) || answered(mysql, query, reply, 2))
        return;
    if (!hf__mysql_row(reply, 2, row) || hf__mysql_number(row[0]) == 0)
        answer_text(mysql, query, HF_ENOTFOUND, "nobody holds it");
    else if (hf__mysql_number(row[1]) == 0)
        answer_text(mysql, query, HF_ECONFLICT, "held under another token");
    else
        hf__up_answer(&mysql->base, query, 0, /* err= */ NULL);
}

int hf__mysql_check_token(struct hf__engine *engine, struct hf__query *query,
                          hf_error *err)
{
    return ask(engine, query, hf__mysql_check, on_checked, err);
}

static void on_broken(struct hf__mysql *mysql, struct hf__mysql_call *call,
                      struct hf__mysql_reply *reply)
{
    struct hf__query *query = call->query;
    struct hf__mysql_field row[2];

    if (hf__mysql_remake(call, reply) || is_unknown(mysql, call, reply, 2) ||
        answered(mysql, query, reply, 2))
        return;
    if (!hf__mysql_row(reply, 2, row) || hf__mysql_number(row[1]) == 0)
        answer_text(mysql, query, HF_ENOTFOUND, "nobody holds it");
    else if (hf__mysql_number(row[0]) == 0)
        answer_text(mysql, query, HF_ECONFLICT,
                    "held under another token or by another owner");
    else
        hf__up_answer(&mysql->base, query, 0, /* err= */ NULL);
}

int hf__mysql_break_lock(struct hf__engine *engine, struct hf__query *query,
                         hf_error *err)
{
    const struct hf__mysql *mysql = (struct hf__mysql *)engine;

    return ask(engine, query,
               mysql->dialect ? mysql->dialect_texts[HF__MYSQL_BREAK]
                              : hf__mysql_break,
               on_broken, err);
}

/* ---- versions ---------------------------------------------------------- */

/* A table of the application's is not ours to make, nor to fill. */
static bool remake(struct hf__mysql_call *call,
                   const struct hf__mysql_reply *reply)
{
    return !call->connection->mysql->own_versions &&
           hf__mysql_remake(call, reply);
}

static void answer_no_row(struct hf__mysql *mysql, struct hf__query *query)
{
    answer_text(mysql, query, HF_ENOTFOUND,
                "the table that version_table names has no such row");
}

static void on_version(struct hf__mysql *mysql, struct hf__mysql_call *call,
                       struct hf__mysql_reply *reply)
{
    struct hf__query *query = call->query;
    struct hf__mysql_field row[1];
    bool found;

    if (remake(call, reply) || answered(mysql, query, reply, 1))
        return;
    found = hf__mysql_row(reply, 1, row);
    query->version = found ? hf__mysql_number(row[0]) : 0;
    if (!found && mysql->own_versions)
        answer_no_row(mysql, query);
    else
        hf__up_answer(&mysql->base, query, 0, /* err= */ NULL);
}

int hf__mysql_version_read_op(struct hf__engine *engine,
                              struct hf__query *query, hf_error *err)
{
    const struct hf__mysql *mysql = (struct hf__mysql *)engine;

    return ask(engine, query,
               mysql->own_versions ? hf__mysql_own_version_read
                                   : hf__mysql_version_read,
               on_version, err);
}

static void on_committed(struct hf__mysql *mysql, struct hf__mysql_call *call,
                         struct hf__mysql_reply *reply)
{
    struct hf__query *query = call->query;
    struct hf__mysql_field row[2];

    if (remake(call, reply) || is_unknown(mysql, call, reply, 2) ||
        answered(mysql, query, reply, 2))
        return;
    if (!hf__mysql_row(reply, 2, row)) {
        answer_unknown(mysql, query);
        return;
    }
    query->version = hf__mysql_number(row[1]);
    if (hf__mysql_number(row[0]) == 1)
        hf__up_answer(&mysql->base, query, 0, /* err= */ NULL);
    else if (hf__mysql_number(row[0]) == 2)
        answer_no_row(mysql, query);
    else
        answer_text(mysql, query, HF_ECONFLICT,
                    "another version was committed");
}

int hf__mysql_version_commit_op(struct hf__engine *engine,
                                struct hf__query *query, hf_error *err)
{
    const struct hf__mysql *mysql = (struct hf__mysql *)engine;

    return ask(engine, query,
               mysql->own_versions ? hf__mysql_own_version_commit
                                   : hf__mysql_version_commit,
               on_committed, err);
}

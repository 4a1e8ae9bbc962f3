/* SPDX-License-Identifier: MIT */
/*
 * inspect.c - list, check, break: who holds what, is a token current, take a
 * lock away.
 *
 * Each is one statement, or one block that the server carries out without us.
 * A table that is not there yet is made, and is empty.
 */
#include "config/name.h"
#include "engines/mysql/mysql.h"
#include "engines/sql/record.h"

void hf__mysql_inspect_fail(struct hf__mysql *mysql, struct hf__query *query,
                            int code, const char *text)
{
    hf_error err;

    (void)hf__fail(&err, code, "'%s': %s", query->name, text);
    hf__up_answer(&mysql->base, query, code, &err);
}

bool hf__mysql_inspect_failed(struct hf__mysql *mysql, struct hf__query *query,
                              const struct hf__mysql_reply *reply,
                              unsigned columns)
{
    hf_error err;

    if (!reply)
        (void)hf__mysql_errors_lost(mysql, &err);
    else if (reply->code != 0)
        (void)hf__mysql_errors_read(mysql, reply, &err);
    else if (reply->columns != columns)
        (void)hf__fail(&err, HF_EUNAVAILABLE, "%s: %s", mysql->peer,
                       hf__mysql_answer_strange);
    else
        return false;
    hf__up_answer(&mysql->base, query, err.code, &err);
    return true;
}

/* The change was sent, and may have been made: the answer was lost, or a
 * statement behind the one that changes has failed. */
bool hf__mysql_inspect_unknown(struct hf__mysql *mysql,
                               const struct hf__mysql_call *call,
                               const struct hf__mysql_reply *reply,
                               unsigned columns)
{
    size_t before = 0; /* the last statement, which only tells */
    bool unknown;

    for (size_t i = 0; i < call->sql.len; i++)
        before += call->sql.text[i] == ';';
    unknown = !reply             ? call->sent_ns != 0
              : reply->code != 0 ? reply->n >= before
                                 : reply->columns != columns;
    if (unknown)
        hf__mysql_inspect_fail(
            mysql, call->query, HF_EUNKNOWN,
            "sent, and the answer was lost: it may have happened");
    return unknown;
}

int hf__mysql_inspect_ask(struct hf__mysql *mysql, struct hf__query *query,
                          const char *text, hf__mysql_done_fn *done,
                          hf_error *err)
{
    struct hf__mysql_values values = {.name = query->name ? query->name
                                                          : query->prefix,
                                      .owner = query->owner ? query->owner : "",
                                      .cond = query->cond,
                                      .token = query->token,
                                      .holder = query->ticket,
                                      .all = query->all};
    struct hf__mysql_call *call = hf__mysql_call_new(done, err);

    if (!call)
        return HF_ENOMEM;
    call->query = query;
    hf__mysql_statement(mysql, &call->sql, text, &values);
    return hf__mysql_call_send(&mysql->main, call, err);
}

/* Only mode=table and the dialects know their holders. */
static int has_records(const struct hf__mysql *mysql, hf_error *err)
{
    int rc = hf__mysql_is_up(mysql, err);

    if (rc == 0 && !mysql->dialect &&
        mysql->mode != &hf__mysql_table_acquire_mode)
        rc = hf__fail(err, HF_EUNSUPPORTED, "mode=%s keeps no records",
                      mysql->mode->name);
    return rc;
}

/* … and a dialect only names that have a key there. */
static int has_key(const struct hf__mysql *mysql, const struct hf__query *query,
                   hf_error *err)
{
    char key[HF__SQL_KEY];
    int rc = has_records(mysql, err);

    if (rc != 0 || !mysql->dialect)
        return rc;
    return hf__sql_dialect_key(mysql->dialect, mysql->base.host->settings,
                               query->name, key, err);
}

/* ---- list -------------------------------------------------------------- */

enum {
    NAME,
    ROLE,
    MODE,
    SLOTS,
    TOKEN,
    LEFT,
    SINCE,
    RECORD,
    ORDER,
    COND,
    COLUMNS
};
/* What the statements call a role. */
enum { WAITS, HOLDS, IS_PARKED };

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

/* The condition of a row, "" if it is not parked; false if it cannot be ours. */
static bool read_cond(struct hf__mysql_field field, char cond[HF_COND_MAX + 1])
{
    if (hf__name_check_text("condition", field.text ? field.text : "",
                            field.len, 0, HF_COND_MAX, /* err= */ NULL) != 0)
        return false;
    hf__text_copy(cond, HF_COND_MAX + 1, field.text ? field.text : "");
    return true;
}

/* A line whose rows are being read: the waiters of a name, or those that are
 * parked for one condition of it. */
struct line {
    char name[HF_NAME_MAX + 1];
    char cond[HF_COND_MAX + 1];
    uint32_t n;
};

static uint32_t place_in(struct line *line, const char *name, const char *cond)
{
    if (strcmp(line->name, name) != 0 || strcmp(line->cond, cond) != 0)
        line->n = 0;
    hf__text_copy(line->name, sizeof(line->name), name);
    hf__text_copy(line->cond, sizeof(line->cond), cond);
    return ++line->n;
}

static int add_row(struct hf__query *query, const struct hf__mysql_field *row,
                   const char *name, const char *cond, struct line *line)
{
    char copy[HF__SQL_TEXTS];
    uint64_t role = hf__mysql_answer_number(row[ROLE]);
    bool holder = role == HOLDS;
    hf_lock_info info = {
        .role = holder              ? HF_HOLDER
                : role == IS_PARKED ? HF_PARKED
                                    : HF_WAITER,
        .mode = (int32_t)(hf__mysql_answer_number(row[MODE]) % (HF_SLOT + 1)),
        .slots = (int32_t)(hf__mysql_answer_number(row[SLOTS]) & INT32_MAX),
        .name = name,
        .token = holder ? hf__mysql_answer_number(row[TOKEN]) : 0,
        .lease_ms =
            holder ? (int64_t)hf__mysql_answer_number(row[LEFT]) / 1000 : -1,
        .since_ms = (int64_t)hf__mysql_answer_number(row[SINCE]) / 1000,
        .place = holder ? 0 : place_in(line, name, cond),
        .cond = cond,
    };

    hf__sql_record_read(row[RECORD].text, row[RECORD].len, copy, &info);
    return hf__query_add_lock(query, &info);
}

static void on_lines(struct hf__mysql *mysql, struct hf__mysql_call *call,
                     struct hf__mysql_reply *reply)
{
    struct hf__mysql_field row[COLUMNS];
    struct line line = {"", "", 0};
    int rc = 0;

    if (hf__mysql_inspect_failed(mysql, call->query, reply, COLUMNS))
        return;
    while (rc == 0 && hf__mysql_answer_row(reply, COLUMNS, row)) {
        char name[HF_NAME_MAX + 1];
        char cond[HF_COND_MAX + 1];

        if (read_name(mysql, call->query, row[NAME], name) &&
            read_cond(row[COND], cond))
            rc = add_row(call->query, row, name, cond, &line);
    }
    hf__up_answer(&mysql->base, call->query, rc, /* err= */ NULL);
}

/* We may not make holdfast_cond, which older versions did not have: then nobody
 * is parked. */
static bool leaves_out_conditions(struct hf__mysql *mysql,
                                  const struct hf__mysql_call *call,
                                  const struct hf__mysql_reply *reply)
{
    struct hf__query *query = call->query;

    return reply && call->tables == HF__TABLES_UNMADE && !mysql->dialect &&
           hf__mysql_inspect_ask(mysql, query,
                                 query->name ? hf__mysql_sql_table_show_lines
                                             : hf__mysql_sql_table_list_lines,
                                 on_lines, /* err= */ NULL) == 0;
}

static void on_listed(struct hf__mysql *mysql, struct hf__mysql_call *call,
                      struct hf__mysql_reply *reply)
{
    if (!hf__mysql_schema_make(call, reply) &&
        !leaves_out_conditions(mysql, call, reply))
        on_lines(mysql, call, reply);
}

int hf__mysql_inspect_list(struct hf__engine *engine, struct hf__query *query,
                           hf_error *err)
{
    struct hf__mysql *mysql = (struct hf__mysql *)engine;
    const char *text =
        query->name ? hf__mysql_sql_table_show : hf__mysql_sql_table_list;
    int rc = query->name ? has_key(mysql, query, err) : has_records(mysql, err);

    if (rc == 0 && mysql->dialect) {
        text =
            mysql->dialect_texts[query->name ? HF__MYSQL_SHOW : HF__MYSQL_LIST];
        if (!query->name)
            rc = hf__sql_dialect_list(
                mysql->dialect, mysql->base.host->settings, query->prefix, err);
    }
    return rc != 0 ? rc
                   : hf__mysql_inspect_ask(mysql, query, text, on_listed, err);
}

/* ---- tokens ------------------------------------------------------------ */

/* A row says how many holders there are, and how many of them are meant. */
static void answer_match(struct hf__mysql *mysql, struct hf__query *query,
                         uint64_t holders, uint64_t meant, const char *conflict)
{
    if (holders == 0)
        hf__mysql_inspect_fail(mysql, query, HF_ENOTFOUND, "nobody holds it");
    else if (meant == 0)
        hf__mysql_inspect_fail(mysql, query, HF_ECONFLICT, conflict);
    else
        hf__up_answer(&mysql->base, query, 0, /* err= */ NULL);
}

static void on_checked(struct hf__mysql *mysql, struct hf__mysql_call *call,
                       struct hf__mysql_reply *reply)
{
    struct hf__mysql_field row[2] = {{0}};

    if (hf__mysql_schema_make(call, reply) ||
        hf__mysql_inspect_failed(mysql, call->query, reply, 2))
        return;
    (void)hf__mysql_answer_row(reply, 2, row);
    answer_match(mysql, call->query, hf__mysql_answer_number(row[0]),
                 hf__mysql_answer_number(row[1]), "held under another token");
}

int hf__mysql_inspect_check(struct hf__engine *engine, struct hf__query *query,
                            hf_error *err)
{
    struct hf__mysql *mysql = (struct hf__mysql *)engine;
    int rc = has_records(mysql, err);

    if (rc == 0 && mysql->dialect)
        rc = hf__fail(err, HF_EUNSUPPORTED, "dialect=%s cannot",
                      mysql->dialect->name);
    return rc != 0
               ? rc
               : hf__mysql_inspect_ask(mysql, query, hf__mysql_sql_table_check,
                                       on_checked, err);
}

static void on_broken(struct hf__mysql *mysql, struct hf__mysql_call *call,
                      struct hf__mysql_reply *reply)
{
    struct hf__mysql_field row[2] = {{0}};

    if (hf__mysql_schema_make(call, reply) ||
        hf__mysql_inspect_unknown(mysql, call, reply, 2) ||
        hf__mysql_inspect_failed(mysql, call->query, reply, 2))
        return;
    (void)hf__mysql_answer_row(reply, 2, row);
    answer_match(mysql, call->query, hf__mysql_answer_number(row[1]),
                 hf__mysql_answer_number(row[0]),
                 "held under another token or by another owner");
}

int hf__mysql_inspect_break(struct hf__engine *engine, struct hf__query *query,
                            hf_error *err)
{
    struct hf__mysql *mysql = (struct hf__mysql *)engine;
    const char *text = mysql->dialect ? mysql->dialect_texts[HF__MYSQL_BREAK]
                                      : hf__mysql_sql_table_break;
    int rc = has_key(mysql, query, err);

    return rc != 0 ? rc
                   : hf__mysql_inspect_ask(mysql, query, text, on_broken, err);
}

/* SPDX-License-Identifier: MIT */
/*
 * table_inspect.c - mode=table: list, check, break.
 *
 * All answers come from the rows, so they are exact: a break compares and
 * deletes in the transaction that grants to the next, and tells the holder.
 */
#include "engines/postgres/row.h"
#include "engines/sql/record.h"

/* The columns of LIST. */
enum { NAME, MODE, SLOTS, TOKEN, RECORD, SINCE, LEASE, TTL, COND };

static bool is_parked(const struct hf__pg_result *rows, int row)
{
    return hf__pg_answer_text(rows, row, COND)[0] != '\0';
}

static int role_of(const struct hf__pg_result *rows, int row)
{
    if (hf__pg_answer_number(rows, row, TOKEN, 0) != 0)
        return HF_HOLDER;
    return is_parked(rows, row) ? HF_PARKED : HF_WAITER;
}

static int add_row(struct hf__pg *postgres, struct hf__query *query,
                   const struct hf__pg_result *rows, int row, uint32_t place)
{
    size_t prefix = strlen(postgres->base.host->settings->prefix);
    hf_lock_info info = {
        .role = role_of(rows, row),
        .mode = (int32_t)hf__pg_answer_number(rows, row, MODE, 0),
        .slots = (int32_t)hf__pg_answer_number(rows, row, SLOTS, 0),
        .name = hf__pg_answer_text(rows, row, NAME) + prefix,
        .token = (uint64_t)hf__pg_answer_number(rows, row, TOKEN, 0),
        .since_ms = hf__pg_answer_number(rows, row, SINCE, -1),
        .lease_ms = hf__pg_answer_number(rows, row, LEASE, -1),
        .ttl_ms = hf__pg_answer_number(rows, row, TTL, 0),
        .place = place,
        .cond = hf__pg_answer_text(rows, row, COND),
    };
    const char *record = hf__pg_answer_text(rows, row, RECORD);
    char copy[HF__SQL_TEXTS];

    hf__sql_record_read(record, strlen(record), copy, &info);
    return hf__query_add_lock(query, &info);
}

static bool same_text(const struct hf__pg_result *rows, int row, int column)
{
    return strcmp(hf__pg_answer_text(rows, row, column),
                  hf__pg_answer_text(rows, row - 1, column)) == 0;
}

/* Is the row in the same line as the one before it? */
static bool goes_on(const struct hf__pg_result *rows, int row)
{
    return row > 0 && role_of(rows, row) == role_of(rows, row - 1) &&
           same_text(rows, row, NAME) && same_text(rows, row, COND);
}

/* Waiters are numbered from 1, name by name; those that are parked, condition by
 * condition. */
static int add_rows(struct hf__pg *postgres, struct hf__query *query,
                    const struct hf__pg_result *rows)
{
    uint32_t place = 0;
    int rc = 0;

    for (int row = 0; row < rows->rows && rc == 0; row++) {
        place = goes_on(rows, row) ? place + 1 : 1;
        rc = add_row(postgres, query, rows, row,
                     role_of(rows, row) == HF_HOLDER ? 0 : place);
    }
    return rc;
}

static void on_listed(struct hf__pg_conn *conn, const struct hf__pg_call *call,
                      const struct hf__pg_answer *answer)
{
    hf__pg_inspect_rows(conn, call->query, answer, add_rows);
}

/* The rows of query->name, or of what begins with query->prefix. */
static void add_list(struct hf__pg *postgres, const struct hf__query *query)
{
    char name[HF__PG_WHOLE];
    char prefix[HF__PG_WHOLE];
    const char *values[] = {query->name ? name : NULL, prefix};

    hf__pg_names_whole(postgres, query->name ? query->name : "", name);
    hf__pg_names_whole(postgres, query->name ? "" : query->prefix, prefix);
    hf__pg_calls_add(&postgres->main,
                     postgres->conditions ? HF__STMT_COND_LIST
                                          : HF__STMT_TABLE_LIST,
                     values, 2);
}

static int ask(struct hf__engine *engine, struct hf__query *query,
               hf__pg_done_fn *done, hf_error *err)
{
    struct hf__pg *postgres = hf__pg_of(engine);
    struct hf__pg_call call = {.done = done, .query = query};

    add_list(postgres, query);
    return hf__pg_calls_send(&postgres->main, &call, err);
}

int hf__pg_table_inspect_list(struct hf__engine *engine,
                              struct hf__query *query, hf_error *err)
{
    return ask(engine, query, on_listed, err);
}

/* 0 if the holder has query->token, HF_ECONFLICT, HF_ENOTFOUND. */
static int compare(const struct hf__query *query,
                   const struct hf__pg_result *rows)
{
    int rc = HF_ENOTFOUND;

    for (int row = 0; row < rows->rows; row++) {
        int64_t token = hf__pg_answer_number(rows, row, TOKEN, 0);

        if (token == 0)
            continue;
        if ((uint64_t)token == query->token)
            return 0;
        rc = HF_ECONFLICT;
    }
    return rc;
}

static void on_checked(struct hf__pg_conn *conn, const struct hf__pg_call *call,
                       const struct hf__pg_answer *answer)
{
    if (hf__pg_inspect_usable(conn, call->query, answer))
        hf__pg_inspect_answer(conn, call->query,
                              compare(call->query, answer->last));
}

int hf__pg_table_inspect_check(struct hf__engine *engine,
                               struct hf__query *query, hf_error *err)
{
    return ask(engine, query, on_checked, err);
}

/* The results of TABLE_LOCK, LIST, BREAK, … */
static void on_broken(struct hf__pg_conn *conn, const struct hf__pg_call *call,
                      const struct hf__pg_answer *answer)
{
    struct hf__query *query = call->query;
    int rc = 0;

    if (!hf__pg_inspect_usable(conn, query, answer))
        return;
    if (answer->results[2].rows == 0) {
        rc = compare(query, &answer->results[1]);
        if (rc == 0) /* cannot be: they are of one transaction */
            rc = HF_ECONFLICT;
    }
    hf__pg_inspect_answer(conn, query, rc);
}

int hf__pg_table_inspect_break(struct hf__engine *engine,
                               struct hf__query *query, hf_error *err)
{
    struct hf__pg *postgres = hf__pg_of(engine);
    struct hf__pg_call call = {.done = on_broken, .query = query};
    char whole[HF__PG_WHOLE];
    char room[HF__PG_DIGITS];
    const char *values[] = {whole,
                            hf__pg_names_decimal((int64_t)query->token, room),
                            query->owner ? query->owner : ""};

    hf__pg_names_whole(postgres, query->name, whole);
    hf__pg_table_acquire_lock(
        postgres, hf__pg_names_key(postgres, query->name, strlen(query->name)));
    add_list(postgres, query);
    hf__pg_calls_add(&postgres->main, HF__STMT_TABLE_BREAK, values, 3);
    if (postgres->conditions) /* the holder may have borne a wake-up */
        hf__pg_calls_add(&postgres->main, HF__STMT_COND_SERVE, values, 1);
    return hf__pg_calls_send_one(&postgres->main, HF__STMT_TABLE_GRANT, values,
                                 1, &call, err);
}

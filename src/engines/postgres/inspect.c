/* SPDX-License-Identifier: MIT */
/*
 * inspect.c - mode=table: who holds, who waits; taking a lock away.
 *
 * All answers come from the rows of schema.c, so they are exact: a break
 * compares and deletes in the transaction that grants to the next, and tells
 * who had it.
 */
#include "engines/postgres/postgres.h"
#include "engines/sql/record.h"

/* The columns of LIST. */
enum { NAME, MODE, SLOTS, TOKEN, RECORD, SINCE, LEASE };

static int add_row(struct hf__postgres *postgres, struct hf__query *query,
                   const struct hf__pg_result *rows, int row, uint32_t place)
{
    size_t prefix = strlen(postgres->base.host->settings->prefix);
    int64_t token = hf__pg_number(rows, row, TOKEN, 0);
    hf_lock_info info = {
        .role = token != 0 ? HF_HOLDER : HF_WAITER,
        .mode = (int32_t)hf__pg_number(rows, row, MODE, 0),
        .slots = (int32_t)hf__pg_number(rows, row, SLOTS, 0),
        .name = hf__pg_text(rows, row, NAME) + prefix,
        .token = (uint64_t)token,
        .since_ms = hf__pg_number(rows, row, SINCE, -1),
        .lease_ms = hf__pg_number(rows, row, LEASE, -1),
        .place = token != 0 ? 0 : place,
    };
    const char *record = hf__pg_text(rows, row, RECORD);
    char copy[HF__SQL_TEXTS];

    hf__sql_record_read(record, strlen(record), copy, &info);
    return hf__query_add_lock(query, &info);
}

/* Waiters are numbered from 1, name by name. */
static int add_rows(struct hf__postgres *postgres, struct hf__query *query,
                    const struct hf__pg_result *rows)
{
    const char *name = "";
    uint32_t place = 0;
    int rc = 0;

    for (int row = 0; row < rows->rows && rc == 0; row++) {
        if (strcmp(name, hf__pg_text(rows, row, NAME)) != 0)
            place = 0;
        name = hf__pg_text(rows, row, NAME);
        place += hf__pg_number(rows, row, TOKEN, 0) == 0;
        rc = add_row(postgres, query, rows, row, place);
    }
    return rc;
}

bool hf__postgres_usable(struct hf__session *session, struct hf__query *query,
                         const struct hf__pg_answer *answer)
{
    hf_error err;

    if (answer && !answer->error)
        return true;
    if (answer)
        (void)hf__session_explain(session, answer->error, &err);
    else
        hf__session_explain_lost(session, &err);
    hf__up_answer(&session->engine->base, query, err.code, &err);
    return false;
}

/* A list that is not whole is none. */
void hf__postgres_too_many(struct hf__session *session, struct hf__query *query)
{
    hf_error err;
    int rc = hf__fail(&err, HF_ENOSPACE,
                      "%s: %d rows and more; ask for those with a prefix",
                      session->engine->peer, HF__PG_ROWS_MAX);

    hf__up_answer(&session->engine->base, query, rc, &err);
}

static void on_listed(struct hf__session *session,
                      const struct hf__session_call *call,
                      const struct hf__pg_answer *answer)
{
    if (!hf__postgres_usable(session, call->query, answer))
        return;
    if (answer->last->rows == HF__PG_ROWS_MAX)
        hf__postgres_too_many(session, call->query);
    else
        hf__postgres_answer(
            session, call->query,
            add_rows(session->engine, call->query, answer->last));
}

/* The rows of query->name, or of what begins with query->prefix. */
static int add_list(struct hf__postgres *postgres,
                    const struct hf__query *query, hf_error *err)
{
    char name[HF__PG_WHOLE];
    char prefix[HF__PG_WHOLE];
    const char *values[] = {query->name ? name : NULL, prefix};

    hf__postgres_whole(postgres, query->name ? query->name : "", name);
    hf__postgres_whole(postgres, query->name ? "" : query->prefix, prefix);
    return hf__session_add(&postgres->main, HF__PG_LIST, values, 2, err);
}

static int ask(struct hf__engine *engine, struct hf__query *query,
               hf__session_done_fn *done, hf_error *err)
{
    struct hf__postgres *postgres = hf__postgres_of(engine);
    struct hf__session_call call = {.done = done, .query = query};
    int rc = add_list(postgres, query, err);

    return rc == 0 ? hf__session_send(&postgres->main, &call, err) : rc;
}

int hf__postgres_row_list(struct hf__engine *engine, struct hf__query *query,
                          hf_error *err)
{
    return ask(engine, query, on_listed, err);
}

/* 0 if the holder has query->token, HF_ECONFLICT, HF_ENOTFOUND. */
static int compare(const struct hf__query *query,
                   const struct hf__pg_result *rows)
{
    int rc = HF_ENOTFOUND;

    for (int row = 0; row < rows->rows; row++) {
        int64_t token = hf__pg_number(rows, row, TOKEN, 0);

        if (token == 0)
            continue;
        if ((uint64_t)token == query->token)
            return 0;
        rc = HF_ECONFLICT;
    }
    return rc;
}

void hf__postgres_answer(struct hf__session *session, struct hf__query *query,
                         int rc)
{
    hf_error err;

    if (rc != 0)
        (void)hf__fail(&err, rc, "%s",
                       rc == HF_ENOTFOUND ? "nobody holds it"
                       : rc == HF_ENOMEM  ? "out of memory"
                                          : "held under another token or by "
                                            "another owner");
    hf__up_answer(&session->engine->base, query, rc, rc ? &err : NULL);
}

static void on_checked(struct hf__session *session,
                       const struct hf__session_call *call,
                       const struct hf__pg_answer *answer)
{
    if (hf__postgres_usable(session, call->query, answer))
        hf__postgres_answer(session, call->query,
                            compare(call->query, answer->last));
}

int hf__postgres_row_check(struct hf__engine *engine, struct hf__query *query,
                           hf_error *err)
{
    return ask(engine, query, on_checked, err);
}

/* The results of ROW_LOCK, LIST, BREAK, ROW_GRANT. */
static void on_broken(struct hf__session *session,
                      const struct hf__session_call *call,
                      const struct hf__pg_answer *answer)
{
    struct hf__query *query = call->query;
    int rc = 0;

    if (!hf__postgres_usable(session, query, answer))
        return;
    if (answer->results[2].rows == 0) {
        rc = compare(query, &answer->results[1]);
        if (rc == 0) /* cannot be: they are of one transaction */
            rc = HF_ECONFLICT;
    }
    hf__postgres_answer(session, query, rc);
}

int hf__postgres_row_break(struct hf__engine *engine, struct hf__query *query,
                           hf_error *err)
{
    struct hf__postgres *postgres = hf__postgres_of(engine);
    struct hf__session_call call = {.done = on_broken, .query = query};
    char whole[HF__PG_WHOLE];
    char room[HF__PG_DIGITS];
    const char *values[] = {whole,
                            hf__postgres_number((int64_t)query->token, room),
                            query->owner ? query->owner : ""};
    int rc = hf__postgres_row_lock(
        postgres, hf__postgres_key(postgres, query->name, strlen(query->name)),
        err);

    hf__postgres_whole(postgres, query->name, whole);
    if (rc == 0)
        rc = add_list(postgres, query, err);
    if (rc == 0)
        rc = hf__session_add(&postgres->main, HF__PG_BREAK, values, 3, err);
    if (rc == 0)
        rc = hf__session_add(&postgres->main, HF__PG_ROW_GRANT, values, 1, err);
    return rc == 0 ? hf__session_send(&postgres->main, &call, err) : rc;
}

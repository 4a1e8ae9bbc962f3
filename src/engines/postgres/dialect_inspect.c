/* SPDX-License-Identifier: MIT */
/*
 * dialect_inspect.c - who holds a lock in the tables of others; breaking one.
 */
#include "engines/postgres/row.h"

/* The columns of WHO and HELD. */
enum { HOLDER, LEASE, SINCE, KEY };

static int add_row(struct hf__query *query, const char *name,
                   const struct hf__pg_result *rows, int row)
{
    hf_lock_info info = {
        .role = HF_HOLDER,
        .mode = HF_EXCLUSIVE,
        .name = name,
        .owner = hf__pg_answer_text(rows, row, HOLDER),
        .host = "",
        .note = "",
        .lease_ms = hf__pg_answer_number(rows, row, LEASE, -1),
        .since_ms = hf__pg_answer_number(rows, row, SINCE, -1),
        .alive = 2,
    };

    return hf__query_add_lock(query, &info);
}

/* Rows whose key no name has are left out. */
static int add_rows(struct hf__pg *postgres, struct hf__query *query,
                    const struct hf__pg_result *rows)
{
    int rc = 0;

    for (int row = 0; row < rows->rows && rc == 0; row++) {
        char name[HF_NAME_MAX + 1];
        const char *key = query->name ? "" : hf__pg_answer_text(rows, row, KEY);

        if (query->name)
            rc = add_row(query, query->name, rows, row);
        else if (hf__sql_dialect_name(postgres->dialect,
                                      postgres->base.host->settings, key,
                                      strlen(key), name))
            rc = add_row(query, name, rows, row);
    }
    return rc;
}

static void on_shown(struct hf__pg_conn *conn, const struct hf__pg_call *call,
                     const struct hf__pg_answer *answer)
{
    hf__pg_inspect_rows(conn, call->query, answer, add_rows);
}

/* A whole prefix stands where a key would. */
static int add_held(struct hf__pg *postgres, const char *prefix, hf_error *err)
{
    const struct hf__settings *settings = postgres->base.host->settings;
    char whole[HF__PG_WHOLE];
    const char *values[] = {whole, settings->region};
    int rc = hf__sql_dialect_list(postgres->dialect, settings, prefix, err);

    hf__pg_names_whole(postgres, prefix, whole);
    if (rc == 0)
        hf__pg_calls_add(&postgres->main, HF__STMT_HELD, values,
                         postgres->dialect->has_region ? 2 : 1);
    return rc;
}

static int add_who(struct hf__pg *postgres, const char *name, hf_error *err)
{
    struct hf__pg_words words;
    int rc = hf__pg_dialect_words_of_name(&words, postgres, name, err);

    if (rc == 0)
        hf__pg_calls_add(&postgres->main, HF__STMT_WHO, words.values,
                         words.key_n);
    return rc;
}

int hf__pg_dialect_inspect_list(struct hf__engine *engine,
                                struct hf__query *query, hf_error *err)
{
    struct hf__pg *postgres = hf__pg_of(engine);
    struct hf__pg_call call = {.done = on_shown, .query = query};
    int rc = query->name ? add_who(postgres, query->name, err)
                         : add_held(postgres, query->prefix, err);

    return rc == 0 ? hf__pg_calls_send(&postgres->main, &call, err) : rc;
}

/* The results of RELEASE and WHO. */
static void on_broken(struct hf__pg_conn *conn, const struct hf__pg_call *call,
                      const struct hf__pg_answer *answer)
{
    if (hf__pg_inspect_usable(conn, call->query, answer))
        hf__pg_inspect_answer(conn, call->query,
                              answer->results[0].rows == 1 ? 0
                              : answer->last->rows == 1    ? HF_ECONFLICT
                                                           : HF_ENOTFOUND);
}

int hf__pg_dialect_inspect_break(struct hf__engine *engine,
                                 struct hf__query *query, hf_error *err)
{
    struct hf__pg *postgres = hf__pg_of(engine);
    struct hf__pg_call call = {.done = on_broken, .query = query};
    struct hf__pg_words words;
    int rc = hf__pg_dialect_words_of_name(&words, postgres, query->name, err);

    if (rc != 0)
        return rc;
    hf__text_copy(words.holder, sizeof(words.holder),
                  query->owner ? query->owner : "");
    hf__pg_calls_add(&postgres->main, HF__STMT_RELEASE, words.values,
                     words.key_n + 1);
    return hf__pg_calls_send_one(&postgres->main, HF__STMT_WHO, words.values,
                                 words.key_n, &call, err);
}

/* SPDX-License-Identifier: MIT */
/*
 * versions.c - compare and bump, in one statement.
 *
 * A commit whose answer is lost may have counted: the query says so
 * (HF_EUNKNOWN), and the next read tells.
 */
#include <stdio.h>

#include "engines/postgres/postgres.h"

/* A table of the application's is not ours to fill. */
static void no_row(struct hf__pg_conn *conn, struct hf__query *query)
{
    const struct hf__settings *settings = conn->engine->base.host->settings;
    hf_error err;

    (void)hf__fail(&err, HF_ENOTFOUND,
                   "'%s': table %s has no row whose %s is the name",
                   query->name, settings->version_table, settings->key);
    hf__up_answer(&conn->engine->base, query, err.code, &err);
}

static void tell(struct hf__pg_conn *conn, struct hf__query *query,
                 const struct hf__pg_result *row)
{
    query->version = (uint64_t)hf__pg_answer_number(row, 0, 0, 0);
    hf__up_answer(&conn->engine->base, query, 0, /* err= */ NULL);
}

static void on_read(struct hf__pg_conn *conn, const struct hf__pg_call *call,
                    const struct hf__pg_answer *answer)
{
    if (!hf__pg_inspect_usable(conn, call->query, answer))
        return;
    if (answer->last->rows == 0 && conn->engine->own_texts[HF__PG_OWN_READ])
        no_row(conn, call->query);
    else
        tell(conn, call->query, answer->last);
}

static void on_commit(struct hf__pg_conn *conn, const struct hf__pg_call *call,
                      const struct hf__pg_answer *answer)
{
    hf_error err;

    if (!hf__pg_inspect_usable(conn, call->query, answer))
        return;
    if (answer->results[0].rows == 1) {
        tell(conn, call->query, &answer->results[0]);
    } else if (conn->engine->own_texts[HF__PG_OWN_READ] &&
               answer->last->rows == 0) {
        no_row(conn, call->query);
    } else {
        (void)hf__fail(&err, HF_ECONFLICT, "the version is another one");
        hf__up_answer(&conn->engine->base, call->query, HF_ECONFLICT, &err);
    }
}

static int send_version(struct hf__engine *engine, struct hf__query *query,
                        enum hf__pg_statement statement, int n,
                        hf__pg_done_fn *done, hf_error *err)
{
    struct hf__pg *postgres = hf__pg_of(engine);
    struct hf__pg_call call = {.done = done, .query = query};
    char whole[HF__PG_WHOLE];
    char expected[24];
    bool own = postgres->own_texts[HF__PG_OWN_COMMIT] !=
               NULL; /* its key comes twice */
    const char *values[] = {whole, own ? whole : expected, expected};

    if (!own && (!postgres->tables || postgres->dialect))
        return hf__fail(err, HF_EUNSUPPORTED,
                        "%s: versions need the tables of holdfast(7)",
                        postgres->peer);
    hf__pg_names_whole(postgres, query->name, whole);
    (void)snprintf(expected, sizeof(expected), "%lld", (long long)query->token);
    hf__pg_calls_add(&postgres->main, statement, values, n + own);
    if (own && statement == HF__STMT_VERSION_COMMIT) /* is there one? */
        hf__pg_calls_add(&postgres->main, HF__STMT_VERSION_READ, values, 2);
    return hf__pg_calls_send(&postgres->main, &call, err);
}

int hf__pg_version_read(struct hf__engine *engine, struct hf__query *query,
                        hf_error *err)
{
    return send_version(engine, query, HF__STMT_VERSION_READ, 1, on_read, err);
}

int hf__pg_version_commit(struct hf__engine *engine, struct hf__query *query,
                          hf_error *err)
{
    return send_version(engine, query, HF__STMT_VERSION_COMMIT, 2, on_commit,
                        err);
}

/* SPDX-License-Identifier: MIT */
/*
 * inspect.c - answers to queries, in every mode.
 */
#include "engines/postgres/postgres.h"

bool hf__pg_inspect_usable(struct hf__pg_conn *conn, struct hf__query *query,
                           const struct hf__pg_answer *answer)
{
    hf_error err;

    if (answer && !answer->error)
        return true;
    if (answer)
        (void)hf__pg_errors_explain(conn, answer->error, &err);
    else
        (void)hf__pg_errors_lost(conn, &err);
    if (!answer && query->changes) /* it may have happened */
        err.code = HF_EUNKNOWN;
    hf__up_answer(&conn->engine->base, query, err.code, &err);
    return false;
}

/* A list that is not whole is none. */
static void too_many(struct hf__pg_conn *conn, struct hf__query *query)
{
    hf_error err;
    int rc = hf__fail(&err, HF_ENOSPACE,
                      "%s: %d rows and more; ask for those with a prefix",
                      conn->engine->peer, HF__PG_ROWS_MAX);

    hf__up_answer(&conn->engine->base, query, rc, &err);
}

void hf__pg_inspect_rows(struct hf__pg_conn *conn, struct hf__query *query,
                         const struct hf__pg_answer *answer,
                         hf__pg_add_rows_fn *add)
{
    if (!hf__pg_inspect_usable(conn, query, answer))
        return;
    if (answer->last->rows == HF__PG_ROWS_MAX)
        too_many(conn, query);
    else
        hf__pg_inspect_answer(conn, query,
                              add(conn->engine, query, answer->last));
}

void hf__pg_inspect_answer(struct hf__pg_conn *conn, struct hf__query *query,
                           int rc)
{
    hf_error err;

    if (rc != 0)
        (void)hf__fail(&err, rc, "%s",
                       rc == HF_ENOTFOUND ? "nobody holds it"
                       : rc == HF_ENOMEM  ? "out of memory"
                                          : "held under another token or by "
                                            "another owner");
    hf__up_answer(&conn->engine->base, query, rc, rc ? &err : NULL);
}

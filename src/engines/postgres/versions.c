/* SPDX-License-Identifier: MIT */
/*
 * versions.c - compare and bump, in one statement.
 *
 * A commit whose answer is lost may have counted: the query says so
 * (HF_EUNKNOWN), and the next read tells.
 */
#include <stdio.h>

#include "engines/postgres/postgres.h"

/* @lost: what it means if there is no answer. */
static void tell(struct hf__session *session, struct hf__query *query,
                 const struct hf__pg_answer *answer, int lost)
{
    hf_error err;
    int rc = 0;

    if (!answer) {
        hf__session_explain_lost(session, &err);
        rc = err.code = lost;
    } else if (answer->error) {
        rc = hf__session_explain(session, answer->error, &err);
    } else {
        query->version = (uint64_t)hf__pg_number(&answer->results[0], 0, 0, 0);
    }
    hf__up_answer(&session->engine->base, query, rc, rc == 0 ? NULL : &err);
}

/* A table of the application's is not ours to fill. */
static void no_row(struct hf__session *session, struct hf__query *query)
{
    const struct hf__settings *settings = session->engine->base.host->settings;
    hf_error err;

    (void)hf__fail(&err, HF_ENOTFOUND,
                   "'%s': table %s has no row whose %s is the name",
                   query->name, settings->version_table, settings->key);
    hf__up_answer(&session->engine->base, query, err.code, &err);
}

static void on_read(struct hf__session *session,
                    const struct hf__session_call *call,
                    const struct hf__pg_answer *answer)
{
    if (answer && !answer->error && answer->last->rows == 0 &&
        session->engine->own_read)
        no_row(session, call->query);
    else
        tell(session, call->query, answer, HF_EUNAVAILABLE);
}

static void on_commit(struct hf__session *session,
                      const struct hf__session_call *call,
                      const struct hf__pg_answer *answer)
{
    hf_error err;

    if (!answer || answer->error || answer->results[0].rows == 1) {
        tell(session, call->query, answer, HF_EUNKNOWN);
        return;
    }
    if (session->engine->own_read && answer->last->rows == 0) {
        no_row(session, call->query);
        return;
    }
    (void)hf__fail(&err, HF_ECONFLICT, "the version is another one");
    hf__up_answer(&session->engine->base, call->query, HF_ECONFLICT, &err);
}

static int send_version(struct hf__engine *engine, struct hf__query *query,
                        enum hf__pg_statement statement, int n,
                        hf__session_done_fn *done, hf_error *err)
{
    struct hf__postgres *postgres = hf__postgres_of(engine);
    struct hf__session_call call = {.done = done, .query = query};
    char whole[HF__PG_WHOLE];
    char expected[24];
    bool own = postgres->own_commit != NULL; /* its key comes twice */
    const char *values[] = {whole, own ? whole : expected, expected};
    int rc;

    if (!own && (!postgres->tables || postgres->dialect))
        return hf__fail(err, HF_EUNSUPPORTED,
                        "%s: versions need the tables of holdfast(7)",
                        postgres->peer);
    hf__postgres_whole(postgres, query->name, whole);
    (void)snprintf(expected, sizeof(expected), "%lld", (long long)query->token);
    rc = hf__session_add(&postgres->main, statement, values, n + own, err);
    if (rc == 0 && own &&
        statement == HF__PG_VERSION_COMMIT) /* is there one? */
        rc = hf__session_add(&postgres->main, HF__PG_VERSION_READ, values, 2,
                             err);
    return rc == 0 ? hf__session_send(&postgres->main, &call, err) : rc;
}

int hf__postgres_version_read(struct hf__engine *engine,
                              struct hf__query *query, hf_error *err)
{
    return send_version(engine, query, HF__PG_VERSION_READ, 1, on_read, err);
}

int hf__postgres_version_commit(struct hf__engine *engine,
                                struct hf__query *query, hf_error *err)
{
    return send_version(engine, query, HF__PG_VERSION_COMMIT, 2, on_commit,
                        err);
}

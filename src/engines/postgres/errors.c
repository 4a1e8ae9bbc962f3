/* SPDX-License-Identifier: MIT */
/*
 * errors.c - the errors of the server in our words.
 */
#include "engines/postgres/postgres.h"

void hf__pg_errors_read(const PGresult *result, struct hf__pg_error *ret_error)
{
    const char *state = hf__pq.PQresultErrorField(result, PG_DIAG_SQLSTATE);
    const char *severity =
        hf__pq.PQresultErrorField(result, PG_DIAG_SEVERITY_NONLOCALIZED);
    const char *text =
        hf__pq.PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
    size_t len;

    *ret_error = (struct hf__pg_error){.state = "XX000"};
    if (state && state[0] != '\0')
        hf__text_copy(ret_error->state, sizeof(ret_error->state), state);
    ret_error->fatal = severity && (strcmp(severity, "FATAL") == 0 ||
                                    strcmp(severity, "PANIC") == 0);
    hf__text_copy(ret_error->text, sizeof(ret_error->text),
                  text ? text : hf__pq.PQresultErrorMessage(result));
    len = strcspn(ret_error->text, "\n"); /* libpq's own texts end in one */
    ret_error->text[len] = '\0';
}

bool hf__pg_errors_is(const struct hf__pg_error *error, const char *state)
{
    return error && strncmp(error->state, state, strlen(state)) == 0;
}

/* How the server's code for an error reads in ours. A code of two letters is a
 * class; the first that matches counts. */
static const struct {
    const char *state;
    int code;
    const char *hint;
} states[] = {
    {"28", HF_EAUTH, "user or password is wrong"},
    {"42501", HF_EAUTH, "the role lacks a right; holdfast(7) lists them"},
    {"3D000", HF_ECONFIG, "there is no such database"},
    {"42P01", HF_ECONFIG, "the tables of holdfast(7) are missing"},
    {"42703", HF_ECONFIG,
     "the table is of another make; Spring's is that of 7.0 or later"},
    {"42P10", HF_ECONFIG, "the table has no unique index on its key"},
    {"23502", HF_ECONFIG,
     "a column must have a value: owner_column=… gives it one"},
    {"22", HF_EINVAL, "the column cannot have this"},
    {"25006", HF_EUNAVAILABLE, "it is read-only: a standby, or set so"},
    {"40P01", HF_EDEADLK, "the server found a deadlock"},
    {"53100", HF_ENOSPACE, "its disk is full"},
    {"53200", HF_ENOSPACE, "it is out of memory or of room for locks"},
    {"53300", HF_EUNAVAILABLE, "it has too many connections"},
    {"53", HF_ENOSPACE, "it is out of something"},
    {"57", HF_EUNAVAILABLE, "it stops, starts, or was told to end this"},
    {"08", HF_EUNAVAILABLE, "the connection failed"},
    {"40", HF_EUNAVAILABLE, "the transaction has to be tried again"},
};

int hf__pg_errors_explain(const struct hf__pg_conn *conn,
                          const struct hf__pg_error *error, hf_error *err)
{
    const struct hf__settings *settings = conn->engine->base.host->settings;
    const char *text = error ? error->text : "no answer";

    if (conn->engine->own_texts[HF__PG_OWN_LOCK] &&
        hf__pg_errors_is(error, "22012"))
        return hf__fail(err, HF_ENOTFOUND,
                        "%s: table %s has no row whose %s is the name",
                        conn->engine->peer, settings->table, settings->key);
    for (size_t i = 0; i < HF_COUNT_OF(states); i++) {
        if (hf__pg_errors_is(error, states[i].state))
            return hf__fail(err, states[i].code, "%s: %s (%s)",
                            conn->engine->peer, states[i].hint, text);
    }
    return hf__fail(err, HF_EINTERNAL, "%s: %s", conn->engine->peer, text);
}

int hf__pg_errors_lost(const struct hf__pg_conn *conn, hf_error *err)
{
    if (conn->fatal.code != 0)
        return hf__fail_pass(err, &conn->fatal);
    return hf__fail(err, HF_EUNAVAILABLE, "%s: the connection was lost",
                    conn->engine->peer);
}

/* SPDX-License-Identifier: MIT */
/*
 * dialect_row.c - dialect=row: the table of programs that lock by hand.
 *
 * INSERT of the name takes the lock and DELETE frees it, as these programs do.
 * There is no lease: the row of a dead holder stays until a user breaks it.
 * While a caller waits, the core asks again by its retry policy.
 *
 * Failure: the answer to an INSERT or DELETE is lost. The main connection is up
 * again only when the old backend has gone, so that what it did is final. With
 * a column for the holder the row tells whose it is. Without one a row that is
 * there may be ours or another's: it is left alone, and the caller hears
 * HF_EUNKNOWN.
 */
#include "engines/postgres/row.h"

static bool has_owner(const struct hf__pg *postgres)
{
    return postgres->base.host->settings->owner_column[0] != '\0';
}

static bool has_row(const struct hf__pg_ticket *mine)
{
    return mine->known == HF__PG_KNOWN_ROW;
}

static void lost(struct hf__pg_ticket *mine)
{
    hf__pg_tickets_lost_answer(mine, &mine->engine->main);
}

/* Ours or another's: the row does not tell. */
static void explain_doubt(const struct hf__pg_ticket *mine, hf_error *err)
{
    (void)hf__fail(err, HF_EUNKNOWN,
                   "%s: an answer was lost, and '%s' has a row, ours or "
                   "another's: look, and break it if it is nobody's "
                   "(owner_column=… would tell)",
                   mine->engine->peer, mine->entry.ticket->name);
}

static int send_one(struct hf__pg_ticket *mine, enum hf__pg_statement statement,
                    hf__pg_done_fn *done, hf_error *err)
{
    bool with_owner = statement != HF__STMT_TAKE || has_owner(mine->engine);

    return hf__pg_dialect_send(mine->engine, mine->entry.ticket, statement,
                               with_owner, done, err);
}

/* ---- release and withdraw ------------------------------------------------ */

static void on_looked(struct hf__pg_conn *conn, const struct hf__pg_call *call,
                      const struct hf__pg_answer *answer)
{
    struct hf__pg_ticket *mine = call->mine;
    hf_error err;

    if (!hf__pg_tickets_leaves(mine))
        return;
    if (!answer || answer->error) {
        lost(mine);
    } else if (answer->last->rows == 0) {
        hf__pg_tickets_left(mine, 0);
    } else {
        explain_doubt(mine, &err);
        hf__engine_log(&conn->engine->base, HF_LOG_WARNING, "%s", err.text);
        hf__pg_tickets_left(mine, HF_EUNKNOWN);
    }
}

static void on_given(struct hf__pg_conn *conn, const struct hf__pg_call *call,
                     const struct hf__pg_answer *answer)
{
    if (!answer)
        call->mine->unsure = true;
    hf__pg_row_left(conn, call, answer, /* at= */ 0);
}

static int send_leave(struct hf__pg_ticket *mine, hf_error *err)
{
    if (has_owner(mine->engine) || (has_row(mine) && !mine->unsure))
        return send_one(mine, HF__STMT_RELEASE, on_given, err);
    if (mine->unsure)
        return send_one(mine, HF__STMT_RENEW, on_looked, err);
    hf__pg_tickets_left(mine, hf__pg_tickets_releases(mine) ? HF_ELOST : 0);
    return 0;
}

static hf__pg_done_fn on_taken;

/* An INSERT under way is waited for: on_taken() goes on. */
int hf__pg_dialect_row_release(struct hf__pg *postgres,
                               struct hf__ticket *ticket, enum hf__pg_owed owed,
                               hf_error *err)
{
    if (!hf__pg_row_leaves(postgres, ticket, owed) ||
        hf__pg_calls_has(&postgres->main, on_taken, ticket->id))
        return 0;
    return send_leave(hf__pg_ticket(postgres, ticket), err);
}

/* ---- acquire ------------------------------------------------------------- */

/* An error is certain: this INSERT did nothing. */
static void refused(struct hf__pg_ticket *mine,
                    const struct hf__pg_error *error)
{
    const struct hf__settings *settings = mine->engine->base.host->settings;
    hf_error err;

    if (hf__pg_errors_is(error, "22012"))
        (void)hf__fail(&err, HF_EINVAL,
                       "dialect=row: the column takes '%s' for another name; "
                       "write it as the column does",
                       mine->entry.ticket->name);
    else if (hf__pg_errors_is(error, "42P10"))
        (void)hf__fail(&err, HF_ECONFIG,
                       "%s: table %s has no UNIQUE index on column %s alone, "
                       "so that two could hold one name: add one",
                       mine->engine->peer, settings->table, settings->key);
    else
        (void)hf__pg_errors_explain(&mine->engine->main, error, &err);
    if (mine->unsure)
        hf__pg_tickets_unknown(mine, &err);
    else if (hf__pg_errors_is(error, "55P03") || hf__pg_errors_is(error, "40"))
        hf__pg_tickets_busy(mine, NULL);
    else
        hf__pg_tickets_failed(mine, &err);
}

/* There is a row already: the result of WHO. */
static void is_taken(struct hf__pg_ticket *mine, int64_t sent_ns,
                     const struct hf__pg_result *who)
{
    bool owned = has_owner(mine->engine);
    const char *holder = hf__pg_answer_text(who, 0, 0);
    struct hf__pg_words words;
    hf_error err;

    if (!owned && mine->unsure) {
        explain_doubt(mine, &err);
        hf__pg_tickets_failed(mine, &err);
    } else if (owned &&
               hf__pg_dialect_words(&words, mine->engine, mine->entry.ticket,
                                    &err) == 0 &&
               strcmp(holder, words.holder) == 0) {
        mine->known = HF__PG_KNOWN_ROW;
        hf__pg_row_granted(mine, /* token= */ 0, sent_ns);
    } else {
        hf__pg_tickets_busy(mine, owned && holder[0] ? holder : NULL);
    }
}

/* The results of TAKE and WHO. */
static void on_taken(struct hf__pg_conn *conn, const struct hf__pg_call *call,
                     const struct hf__pg_answer *answer)
{
    struct hf__pg_ticket *mine = call->mine;

    (void)conn;
    mine->unsure |= !answer;
    mine->known = HF__PG_KNOWN_NOTHING;
    if (answer && !answer->error && answer->results[0].rows == 1) {
        mine->known = HF__PG_KNOWN_ROW;
        mine->unsure = false; /* an earlier one had made none */
    }
    if (!answer) {
        lost(mine);
    } else if (hf__pg_tickets_leaves(mine)) {
        if (send_leave(mine, /* err= */ NULL) != 0)
            lost(mine);
    } else if (answer->error) {
        refused(mine, answer->error);
    } else if (has_row(mine)) {
        hf__pg_row_granted(mine, /* token= */ 0, call->sent_ns);
    } else {
        is_taken(mine, call->sent_ns, answer->last);
    }
}

/* The row was made, and the report of it was lost on its way up. */
static void on_seen(struct hf__pg_conn *conn, const struct hf__pg_call *call,
                    const struct hf__pg_answer *answer)
{
    struct hf__pg_ticket *mine = call->mine;

    (void)conn;
    if (!hf__pg_tickets_asks(mine))
        return;
    if (answer && !answer->error && answer->last->rows == 1)
        hf__pg_row_granted(mine, /* token= */ 0, call->sent_ns);
    else if (!answer || answer->error ||
             send_one(mine, HF__STMT_TAKE, on_taken, /* err= */ NULL) != 0)
        lost(mine);
}

static int send_first(struct hf__pg_ticket *mine, hf_error *err)
{
    return has_row(mine) ? send_one(mine, HF__STMT_RENEW, on_seen, err)
                         : send_one(mine, HF__STMT_TAKE, on_taken, err);
}

int hf__pg_dialect_row_acquire(struct hf__pg *postgres,
                               struct hf__ticket *ticket, hf_error *err)
{
    return hf__pg_row_acquire(postgres, ticket, send_first, err);
}

/* SPDX-License-Identifier: MIT */
/*
 * by_hand.c - dialect=row: the table of programs that lock by hand; and the
 * names of the application's tables in all statements that use one.
 *
 * INSERT of the name takes the lock and DELETE frees it, as these programs do.
 * There is no lease: the row of a dead holder stays until somebody breaks it.
 * While a caller waits, the core asks again by its retry policy.
 *
 * Failure: the answer to an INSERT or DELETE is lost. The main session is up
 * again only when the old backend has gone, so that what it did is final. With
 * a column for the holder the row tells whose it is. Without one a row that is
 * there may be ours or another's: it is left alone, and who asked hears
 * HF_EUNKNOWN.
 */
#include "engines/postgres/postgres.h"

static bool has_owner(const struct hf__postgres *postgres)
{
    return postgres->base.host->settings->owner_column[0] != '\0';
}

/* ---- names --------------------------------------------------------------- */

/* @ table, # key, % owner_column, & version_table, ~ column. */
static char *fill_in(const struct hf__settings *settings, const char *text)
{
    struct hf__buf to = {0};

    for (;; text++) {
        size_t n = strcspn(text, "@#%&~");

        hf__buf_append(&to, text, n);
        text += n;
        if (*text == '\0')
            return hf__buf_steal(&to);
        if (*text == '@' || *text == '&')
            hf__sql_dialect_put_table(
                &to, *text == '@' ? settings->table : settings->version_table,
                '"');
        else
            hf__sql_dialect_put_column(&to,
                                       *text == '#'   ? settings->key
                                       : *text == '%' ? settings->owner_column
                                                      : settings->column,
                                       '"');
    }
}

static int put(char **to, const struct hf__settings *settings, const char *text,
               hf_error *err)
{
    *to = fill_in(settings, text);
    return *to ? 0 : hf__fail(err, HF_ENOMEM, "out of memory");
}

/* Without a row the lock divides by 0. */
int hf__postgres_own_open(struct hf__postgres *postgres, hf_error *err)
{
    const struct hf__settings *settings = postgres->base.host->settings;
    const char *const *texts = hf__pg_by_hand(has_owner(postgres));
    bool by_hand = postgres->dialect && !postgres->dialect->table;
    int rc = 0;

    for (int i = 0; rc == 0 && by_hand && i < HF__PG_DIALECT_TEXTS; i++)
        rc = put(&postgres->dialect_texts[i], settings, texts[i], err);
    if (rc == 0 && hf__sql_dialect_own_row(settings))
        rc = put(&postgres->own_lock, settings,
                 "SELECT 1 / count(*) FROM (SELECT FROM @ WHERE # = $1 AND "
                 "#::text = $2::text FOR UPDATE) r",
                 err);
    if (rc != 0 || !hf__sql_dialect_own_versions(settings))
        return rc;
    rc = put(&postgres->own_read, settings,
             "SELECT ~ FROM & WHERE # = $1 AND #::text = $2::text", err);
    return rc != 0 ? rc
                   : put(&postgres->own_commit, settings,
                         "UPDATE & SET ~ = ~ + 1 WHERE # = $1 AND "
                         "#::text = $2::text AND ~ = $3::bigint RETURNING ~",
                         err);
}

void hf__postgres_own_close(struct hf__postgres *postgres)
{
    hf__free(postgres->own_lock);
    hf__free(postgres->own_read);
    hf__free(postgres->own_commit);
}

/* ---- one statement for a ticket ------------------------------------------- */

static int begin(struct hf__pg_words *words,
                 const struct hf__postgres_ticket *mine, hf_error *err)
{
    int rc = hf__postgres_words(words, mine->engine, mine->ticket, err);

    if (!has_owner(mine->engine))
        hf__text_copy(words->holder, sizeof(words->holder), "unknown");
    return rc;
}

static int say(struct hf__postgres_ticket *mine,
               enum hf__pg_statement statement, hf__session_done_fn *done,
               hf_error *err)
{
    struct hf__session *main = &mine->engine->main;
    struct hf__session_call call = {
        .done = done, .ticket = mine->ticket->id, .sent_ns = hf__now()};
    struct hf__pg_words words;
    int rc = begin(&words, mine, err);

    if (rc == 0)
        rc = hf__session_add(main, statement, words.values, 3, err);
    return rc == 0 ? hf__session_send(main, &call, err) : rc;
}

static void lost(struct hf__postgres_ticket *mine)
{
    hf_error err;

    hf__session_explain_lost(&mine->engine->main, &err);
    hf__postgres_unknown(mine->engine, mine, &err);
}

/* Ours or another's: nobody can tell. */
static void explain_doubt(const struct hf__postgres_ticket *mine, hf_error *err)
{
    (void)hf__fail(err, HF_EUNKNOWN,
                   "%s: an answer was lost, and '%s' has a row, ours or "
                   "another's: look, and break it if it is nobody's "
                   "(owner_column=… would tell)",
                   mine->engine->peer, mine->ticket->name);
}

/* ---- leaving ------------------------------------------------------------- */

static void left(struct hf__postgres_ticket *mine, int rc)
{
    struct hf__postgres *postgres = mine->engine;
    struct hf__ticket *ticket = mine->ticket;

    hf__postgres_forget(mine);
    hf__up_left(&postgres->base, ticket, rc);
}

static void on_looked(struct hf__session *session,
                      const struct hf__session_call *call,
                      const struct hf__pg_answer *answer)
{
    struct hf__postgres_ticket *mine =
        hf__postgres_find(session->engine, call->ticket);
    hf_error err;

    if (!mine || !mine->leaving)
        return;
    if (!answer || answer->error) {
        lost(mine);
    } else if (answer->last->rows == 0) {
        left(mine, 0);
    } else {
        explain_doubt(mine, &err);
        hf__engine_log(&session->engine->base, HF_LOG_WARNING, "%s", err.text);
        left(mine, HF_EUNKNOWN);
    }
}

static void on_given(struct hf__session *session,
                     const struct hf__session_call *call,
                     const struct hf__pg_answer *answer)
{
    struct hf__postgres_ticket *mine =
        hf__postgres_find(session->engine, call->ticket);

    if (mine && !answer)
        mine->unsure = true;
    hf__postgres_row_left(session, call, answer, /* at= */ 0);
}

static int send_leave(struct hf__postgres_ticket *mine, hf_error *err)
{
    if (has_owner(mine->engine) || (mine->has_row && !mine->unsure))
        return say(mine, HF__PG_GIVE, on_given, err);
    if (mine->unsure)
        return say(mine, HF__PG_KEEP, on_looked, err);
    left(mine, mine->releasing ? HF_ELOST : 0);
    return 0;
}

/* The ticket may be gone then. */
static void go_on_leaving(struct hf__postgres_ticket *mine)
{
    if (send_leave(mine, NULL) != 0)
        lost(mine);
}

/* An INSERT under way is waited for: on_taken() goes on. */
static int leave(struct hf__postgres *postgres, struct hf__ticket *ticket,
                 bool releasing, hf_error *err)
{
    struct hf__postgres_ticket *mine = hf__postgres_ticket(postgres, ticket);

    if (!hf__postgres_row_leaves(postgres, ticket, releasing) || mine->trying)
        return 0;
    return send_leave(mine, err);
}

/* ---- asking -------------------------------------------------------------- */

static void busy(struct hf__postgres_ticket *mine, const char *holder)
{
    struct hf__postgres *postgres = mine->engine;
    struct hf__ticket *ticket = mine->ticket;

    mine->asking = false;
    hf__postgres_forget(mine);
    hf__up_busy(&postgres->base, ticket, /* again_ns= */ 0, holder);
}

/* An error is certain: this INSERT did nothing. */
static void refused(struct hf__postgres_ticket *mine,
                    const struct hf__pg_error *error)
{
    const struct hf__settings *settings = mine->engine->base.host->settings;
    hf_error err;

    if (hf__pg_error_is(error, "22012"))
        (void)hf__fail(&err, HF_EINVAL,
                       "dialect=row: the column takes '%s' for another name; "
                       "write it as the column does",
                       mine->ticket->name);
    else if (hf__pg_error_is(error, "42P10"))
        (void)hf__fail(&err, HF_ECONFIG,
                       "%s: table %s has no UNIQUE index on column %s alone, "
                       "so that two could hold one name: add one",
                       mine->engine->peer, settings->table, settings->key);
    else
        (void)hf__session_explain(&mine->engine->main, error, &err);
    if (mine->unsure)
        hf__postgres_unknown(mine->engine, mine, &err);
    else if (hf__pg_error_is(error, "55P03") || hf__pg_error_is(error, "40"))
        busy(mine, NULL);
    else
        hf__postgres_failed(mine->engine, mine, &err);
}

/* There is a row already: the result of WHO. */
static void is_taken(struct hf__postgres_ticket *mine,
                     const struct hf__session_call *call,
                     const struct hf__pg_result *who)
{
    const char *holder = hf__pg_text(who, 0, 0);
    struct hf__pg_words words;
    hf_error err;

    if (!has_owner(mine->engine) && mine->unsure) {
        explain_doubt(mine, &err);
        hf__postgres_failed(mine->engine, mine, &err);
    } else if (has_owner(mine->engine) && begin(&words, mine, &err) == 0 &&
               strcmp(holder, words.holder) == 0) {
        mine->has_row = true;
        hf__postgres_row_granted(mine, /* token= */ 0, call->sent_ns);
    } else {
        busy(mine, has_owner(mine->engine) && holder[0] ? holder : NULL);
    }
}

/* The results of TAKE and WHO. */
static void on_taken(struct hf__session *session,
                     const struct hf__session_call *call,
                     const struct hf__pg_answer *answer)
{
    struct hf__postgres_ticket *mine =
        hf__postgres_find(session->engine, call->ticket);

    if (!mine || !mine->trying)
        return;
    mine->trying = false;
    mine->unsure |= !answer;
    mine->has_row = answer && !answer->error && answer->results[0].rows == 1;
    if (mine->has_row) /* so an earlier one had made none */
        mine->unsure = false;
    if (!answer)
        lost(mine);
    else if (mine->leaving)
        go_on_leaving(mine);
    else if (answer->error)
        refused(mine, answer->error);
    else if (mine->has_row)
        hf__postgres_row_granted(mine, /* token= */ 0, call->sent_ns);
    else
        is_taken(mine, call, answer->last);
}

static int send_take(struct hf__postgres_ticket *mine, hf_error *err)
{
    struct hf__session *main = &mine->engine->main;
    struct hf__session_call call = {
        .done = on_taken, .ticket = mine->ticket->id, .sent_ns = hf__now()};
    struct hf__pg_words words;
    int rc = begin(&words, mine, err);

    if (rc == 0)
        rc = hf__session_add(main, HF__PG_TAKE, words.values,
                             has_owner(mine->engine) ? 3 : 2, err);
    if (rc == 0)
        rc = hf__session_add(main, HF__PG_WHO, words.values, 2, err);
    if (rc == 0)
        rc = hf__session_send(main, &call, err);
    mine->trying = rc == 0;
    return rc;
}

/* The row was made, and the report of it was lost on its way up. */
static void on_seen(struct hf__session *session,
                    const struct hf__session_call *call,
                    const struct hf__pg_answer *answer)
{
    struct hf__postgres_ticket *mine =
        hf__postgres_find(session->engine, call->ticket);

    if (!mine || !mine->asking)
        return;
    if (answer && !answer->error && answer->last->rows == 1)
        hf__postgres_row_granted(mine, /* token= */ 0, call->sent_ns);
    else if (!answer || answer->error || send_take(mine, NULL) != 0)
        lost(mine);
}

static int acquire(struct hf__postgres *postgres, struct hf__ticket *ticket,
                   hf_error *err)
{
    struct hf__postgres_ticket *mine = hf__postgres_ticket(postgres, ticket);
    bool known = mine->known;
    int rc;

    hf__postgres_know(postgres, ticket);
    mine->asking = true;
    rc = mine->has_row ? say(mine, HF__PG_KEEP, on_seen, err)
                       : send_take(mine, err);
    if (rc == 0)
        return 0;
    mine->asking = false;
    if (known)
        hf__up_unknown(&postgres->base, ticket, err);
    else
        hf__postgres_forget(mine);
    return known ? 0 : rc;
}

/* ---- is it still there? --------------------------------------------------- */

static void on_kept(struct hf__session *session,
                    const struct hf__session_call *call,
                    const struct hf__pg_answer *answer)
{
    struct hf__postgres_ticket *mine =
        hf__postgres_find(session->engine, call->ticket);
    struct hf__grant grant = {.tokens = 1, .sent_ns = call->sent_ns};

    if (!answer || answer->error || !mine || mine->asking || mine->leaving)
        return;
    if (answer->last->rows == 0)
        hf__postgres_row_lose(mine, HF__LOST_TAKEN);
    else
        hf__up_renewed(&session->engine->base, mine->ticket, &grant);
}

static int renew(struct hf__postgres *postgres, struct hf__ticket **tickets,
                 size_t n, hf_error *err)
{
    int rc = 0;

    for (size_t i = 0; i < n && rc == 0; i++)
        rc = say(hf__postgres_ticket(postgres, tickets[i]), HF__PG_KEEP,
                 on_kept, err);
    return rc;
}

static int64_t tick(struct hf__postgres *postgres, int64_t now_ns)
{
    (void)postgres;
    (void)now_ns;
    return HF_NEVER; /* nobody stands in line */
}

const struct hf__postgres_mode hf__postgres_by_hand = {
    .name = "row",
    .caps = HF_CAP_DISTRIBUTED | HF_CAP_SURVIVES_RESTART | HF_CAP_BREAK,
    .tables = true,
    .acquire = acquire,
    .leave = leave,
    .renew = renew,
    .up = hf__postgres_row_up,
    .down = hf__postgres_row_down,
    .tick = tick,
    .list = hf__postgres_dialect_list,
    .break_lock = hf__postgres_dialect_break,
};

/* SPDX-License-Identifier: MIT */
/*
 * dialect.c - dialect=shedlock, dialect=spring: the tables of others.
 *
 * A row of theirs is a name, who has it, and until when; dialect.h of sql says
 * what stands for name and holder, schema.c has the statements. Nobody stands
 * in line, nobody is woken, there is no token: while a caller waits, the core
 * asks again by its retry policy. One statement takes a row that is missing or
 * has expired, by the server's clock in UTC; one frees it, if it is ours.
 * ShedLock's rows are never deleted: its clients remember that a row is there,
 * and only update it.
 *
 * Failure: row.c.
 */
#include <inttypes.h>
#include <stdio.h>

#include "engines/postgres/postgres.h"

int hf__postgres_words_of_name(struct hf__pg_words *words,
                               const struct hf__postgres *postgres,
                               const char *name, hf_error *err)
{
    const struct hf__settings *settings = postgres->base.host->settings;
    int n = 0;

    words->values[n++] = words->key;
    if (!postgres->dialect->table)
        words->values[n++] = words->key;
    else if (postgres->dialect->has_region)
        words->values[n++] = settings->region;
    words->key_n = n;
    words->values[n++] = words->holder;
    words->values[n] = words->lease_ms;
    return hf__sql_dialect_key(postgres->dialect, settings, name, words->key,
                               err);
}

int hf__postgres_words(struct hf__pg_words *words,
                       const struct hf__postgres *postgres,
                       const struct hf__ticket *ticket, hf_error *err)
{
    const struct hf__engine_host *host = postgres->base.host;

    postgres->dialect->put_holder(host, ticket->id, words->holder);
    (void)snprintf(words->lease_ms, sizeof(words->lease_ms), "%" PRId64,
                   ticket->ttl_ms + host->settings->lock_delay_ms);
    return hf__postgres_words_of_name(words, postgres, ticket->name, err);
}

/* ---- asking -------------------------------------------------------------- */

/* The results of TAKE and WHO. */
static void on_taken(struct hf__session *session,
                     const struct hf__session_call *call,
                     const struct hf__pg_answer *answer)
{
    struct hf__postgres *postgres = session->engine;
    struct hf__postgres_ticket *mine =
        hf__postgres_find(postgres, call->ticket);
    struct hf__ticket *ticket;
    hf_error err;

    if (!mine || !mine->asking)
        return;
    ticket = mine->ticket;
    if (!answer) {
        mine->unsure = true;
        hf__session_explain_lost(session, &err);
        hf__postgres_unknown(postgres, mine, &err);
    } else if (answer->error) {
        hf__postgres_row_refused(mine, answer->error);
    } else if (answer->results[0].rows == 1) {
        hf__postgres_row_granted(mine, /* token= */ 0, call->sent_ns);
    } else {
        const char *holder = hf__pg_text(answer->last, 0, 0);

        mine->asking = false;
        hf__postgres_forget(mine);
        hf__up_busy(&postgres->base, ticket, /* again_ns= */ 0,
                    holder[0] ? holder : NULL);
    }
}

static int send_take(struct hf__postgres_ticket *mine, hf_error *err)
{
    struct hf__session *main = &mine->engine->main;
    struct hf__session_call call = {
        .done = on_taken, .ticket = mine->ticket->id, .sent_ns = hf__now()};
    struct hf__pg_words words;
    int rc = hf__postgres_words(&words, mine->engine, mine->ticket, err);

    if (rc == 0)
        rc = hf__session_add(main, HF__PG_TAKE, words.values, words.key_n + 2,
                             err);
    if (rc == 0)
        rc = hf__session_add(main, HF__PG_WHO, words.values, words.key_n, err);
    return rc == 0 ? hf__session_send(main, &call, err) : rc;
}

static int acquire(struct hf__postgres *postgres, struct hf__ticket *ticket,
                   hf_error *err)
{
    return hf__postgres_row_acquire(postgres, ticket, send_take, err);
}

/* ---- leaving ------------------------------------------------------------- */

static void on_given(struct hf__session *session,
                     const struct hf__session_call *call,
                     const struct hf__pg_answer *answer)
{
    hf__postgres_row_left(session, call, answer, /* at= */ 0);
}

static int leave(struct hf__postgres *postgres, struct hf__ticket *ticket,
                 bool releasing, hf_error *err)
{
    struct hf__session_call call = {.done = on_given, .ticket = ticket->id};
    struct hf__pg_words words;
    int rc;

    if (!hf__postgres_row_leaves(postgres, ticket, releasing))
        return 0;
    rc = hf__postgres_words(&words, postgres, ticket, err);
    if (rc == 0)
        rc = hf__session_add(&postgres->main, HF__PG_GIVE, words.values,
                             words.key_n + 1, err);
    return rc == 0 ? hf__session_send(&postgres->main, &call, err) : rc;
}

/* ---- renewing ------------------------------------------------------------ */

static void on_kept(struct hf__session *session,
                    const struct hf__session_call *call,
                    const struct hf__pg_answer *answer)
{
    struct hf__postgres_ticket *mine =
        hf__postgres_find(session->engine, call->ticket);
    struct hf__grant grant = {.tokens = 1, .sent_ns = call->sent_ns};

    if (!answer || answer->error)
        return; /* silence: the core counts the time */
    if (!mine || mine->asking || mine->leaving)
        return;
    if (answer->last->rows == 0) {
        hf__postgres_row_lose(mine, HF__LOST_TAKEN);
        return;
    }
    grant.lease_ms = mine->ticket->ttl_ms;
    hf__up_renewed(&session->engine->base, mine->ticket, &grant);
}

/* One call for each, all of them under way at once. */
static int renew(struct hf__postgres *postgres, struct hf__ticket **tickets,
                 size_t n, hf_error *err)
{
    int rc = 0;

    for (size_t i = 0; i < n && rc == 0; i++) {
        struct hf__session_call call = {.done = on_kept,
                                        .ticket = tickets[i]->id};
        struct hf__pg_words words;

        rc = hf__postgres_words(&words, postgres, tickets[i], err);
        if (rc == 0)
            rc = hf__session_add(&postgres->main, HF__PG_KEEP, words.values,
                                 words.key_n + 2, err);
        if (rc == 0)
            rc = hf__session_send(&postgres->main, &call, err);
    }
    return rc;
}

/* ---- looking, breaking --------------------------------------------------- */

/* The columns of WHO and HELD. */
enum { HOLDER, LEASE, SINCE, KEY };

static int add_row(struct hf__query *query, const char *name,
                   const struct hf__pg_result *rows, int row)
{
    hf_lock_info info = {
        .role = HF_HOLDER,
        .mode = HF_EXCLUSIVE,
        .name = name,
        .owner = hf__pg_text(rows, row, HOLDER),
        .host = "",
        .note = "",
        .lease_ms = hf__pg_number(rows, row, LEASE, -1),
        .since_ms = hf__pg_number(rows, row, SINCE, -1),
        .alive = 2,
    };

    return hf__query_add_lock(query, &info);
}

/* Rows by whose key nobody could ask are left out. */
static int add_rows(const struct hf__postgres *postgres,
                    struct hf__query *query, const struct hf__pg_result *rows)
{
    int rc = 0;

    for (int row = 0; row < rows->rows && rc == 0; row++) {
        char name[HF_NAME_MAX + 1];
        const char *key = query->name ? "" : hf__pg_text(rows, row, KEY);

        if (query->name)
            rc = add_row(query, query->name, rows, row);
        else if (hf__sql_dialect_name(postgres->dialect,
                                      postgres->base.host->settings, key,
                                      strlen(key), name))
            rc = add_row(query, name, rows, row);
    }
    return rc;
}

static void on_shown(struct hf__session *session,
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

/* A whole prefix stands where a key would. */
static int add_held(struct hf__postgres *postgres, const char *prefix,
                    hf_error *err)
{
    const struct hf__settings *settings = postgres->base.host->settings;
    char whole[HF__PG_WHOLE];
    const char *values[] = {whole, settings->region};
    int rc = hf__sql_dialect_list(postgres->dialect, settings, prefix, err);

    hf__postgres_whole(postgres, prefix, whole);
    return rc != 0
               ? rc
               : hf__session_add(&postgres->main, HF__PG_HELD, values,
                                 postgres->dialect->has_region ? 2 : 1, err);
}

static int add_who(struct hf__postgres *postgres, const char *name,
                   hf_error *err)
{
    struct hf__pg_words words;
    int rc = hf__postgres_words_of_name(&words, postgres, name, err);

    return rc != 0 ? rc
                   : hf__session_add(&postgres->main, HF__PG_WHO, words.values,
                                     words.key_n, err);
}

int hf__postgres_dialect_list(struct hf__engine *engine,
                              struct hf__query *query, hf_error *err)
{
    struct hf__postgres *postgres = hf__postgres_of(engine);
    struct hf__session_call call = {.done = on_shown, .query = query};
    int rc = query->name ? add_who(postgres, query->name, err)
                         : add_held(postgres, query->prefix, err);

    return rc == 0 ? hf__session_send(&postgres->main, &call, err) : rc;
}

/* The results of GIVE and WHO. */
static void on_broken(struct hf__session *session,
                      const struct hf__session_call *call,
                      const struct hf__pg_answer *answer)
{
    if (hf__postgres_usable(session, call->query, answer))
        hf__postgres_answer(session, call->query,
                            answer->results[0].rows == 1 ? 0
                            : answer->last->rows == 1    ? HF_ECONFLICT
                                                         : HF_ENOTFOUND);
}

int hf__postgres_dialect_break(struct hf__engine *engine,
                               struct hf__query *query, hf_error *err)
{
    struct hf__postgres *postgres = hf__postgres_of(engine);
    struct hf__session_call call = {.done = on_broken, .query = query};
    struct hf__pg_words words;
    int rc = hf__postgres_words_of_name(&words, postgres, query->name, err);

    hf__text_copy(words.holder, sizeof(words.holder),
                  query->owner ? query->owner : "");
    if (rc == 0)
        rc = hf__session_add(&postgres->main, HF__PG_GIVE, words.values,
                             words.key_n + 1, err);
    if (rc == 0)
        rc = hf__session_add(&postgres->main, HF__PG_WHO, words.values,
                             words.key_n, err);
    return rc == 0 ? hf__session_send(&postgres->main, &call, err) : rc;
}

static int64_t tick(struct hf__postgres *postgres, int64_t now_ns)
{
    (void)postgres;
    (void)now_ns;
    return HF_NEVER; /* nobody stands in line */
}

const struct hf__postgres_mode hf__postgres_in_dialect = {
    .name = "table",
    .caps = HF_CAP_LEASED | HF_CAP_SURVIVES_RESTART | HF_CAP_DISTRIBUTED |
            HF_CAP_BREAK | HF_CAP_LOCK_DELAY | HF_CAP_TOLD_BEFORE_REGRANT,
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

/* ---- opening ------------------------------------------------------------- */

int hf__postgres_dialect_open(struct hf__postgres *postgres, hf_error *err)
{
    const char *const *texts = hf__pg_dialect(postgres->dialect);

    postgres->mode = &hf__postgres_in_dialect;
    return hf__sql_dialect_texts(&postgres->base, postgres->dialect, texts,
                                 HF__PG_DIALECT_TEXTS, postgres->dialect_texts,
                                 err);
}

void hf__postgres_dialect_close(struct hf__postgres *postgres)
{
    for (size_t i = 0; i < HF__PG_DIALECT_TEXTS; i++)
        hf__free(postgres->dialect_texts[i]);
}

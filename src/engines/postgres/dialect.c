/* SPDX-License-Identifier: MIT */
/*
 * dialect.c - dialect=shedlock, dialect=spring: the tables of others.
 *
 * A row of theirs is a name, its holder, and until when; dialect.h of sql says
 * what stands for name and holder, sql/ has the statements. There is no line, no
 * wake-up and no token: while a caller waits, the core asks again by its retry
 * policy. One statement takes a row that is missing or has expired, by the
 * server's clock in UTC; one frees it, if it is ours. ShedLock's rows are never
 * deleted: its clients remember that a row is there, and only update it.
 *
 * Failure: row.c.
 */
#include <inttypes.h>
#include <stdio.h>

#include "engines/postgres/row.h"

int hf__pg_dialect_words_of_name(struct hf__pg_words *words,
                                 const struct hf__pg *postgres,
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

int hf__pg_dialect_words(struct hf__pg_words *words,
                         const struct hf__pg *postgres,
                         const struct hf__ticket *ticket, hf_error *err)
{
    const struct hf__engine_host *host = postgres->base.host;

    postgres->dialect->put_holder(host, ticket->id, words->holder);
    if (!postgres->dialect->table && host->settings->owner_column[0] == '\0')
        hf__text_copy(words->holder, sizeof(words->holder), "unknown");
    (void)snprintf(words->lease_ms, sizeof(words->lease_ms), "%" PRId64,
                   ticket->ttl_ms + host->settings->lock_delay_ms);
    return hf__pg_dialect_words_of_name(words, postgres, ticket->name, err);
}

int hf__pg_dialect_send(struct hf__pg *postgres, struct hf__ticket *ticket,
                        enum hf__pg_statement statement, int n,
                        hf__pg_done_fn *done, hf_error *err)
{
    struct hf__pg_call call = {
        .done = done, .ticket = ticket->id, .sent_ns = hf__now()};
    struct hf__pg_words words;
    int rc = hf__pg_dialect_words(&words, postgres, ticket, err);

    if (rc != 0)
        return rc;
    hf__pg_calls_add(&postgres->main, statement, words.values, words.key_n + n);
    if (statement == HF__STMT_TAKE) /* and if another has it, who? */
        hf__pg_calls_add(&postgres->main, HF__STMT_WHO, words.values,
                         words.key_n);
    return hf__pg_calls_send(&postgres->main, &call, err);
}

/* ---- the verbs ----------------------------------------------------------- */

/* The results of TAKE and WHO. */
static void on_taken(struct hf__pg_conn *conn, const struct hf__pg_call *call,
                     const struct hf__pg_answer *answer)
{
    struct hf__pg_ticket *mine = call->mine;

    if (!hf__pg_tickets_asks(mine))
        return;
    if (!answer) {
        mine->unsure = true;
        hf__pg_tickets_lost_answer(mine, conn);
    } else if (answer->error) {
        hf__pg_row_refused(mine, answer->error);
    } else if (answer->results[0].rows == 1) {
        hf__pg_row_granted(mine, /* token= */ 0, call->sent_ns);
    } else {
        const char *holder = hf__pg_answer_text(answer->last, 0, 0);

        hf__pg_tickets_busy(mine, holder[0] ? holder : NULL);
    }
}

static int send_take(struct hf__pg_ticket *mine, hf_error *err)
{
    return hf__pg_dialect_send(mine->engine, mine->entry.ticket, HF__STMT_TAKE,
                               2, on_taken, err);
}

int hf__pg_dialect_acquire(struct hf__pg *postgres, struct hf__ticket *ticket,
                           hf_error *err)
{
    return hf__pg_row_acquire(postgres, ticket, send_take, err);
}

static void on_given(struct hf__pg_conn *conn, const struct hf__pg_call *call,
                     const struct hf__pg_answer *answer)
{
    hf__pg_row_left(conn, call, answer, /* at= */ 0);
}

int hf__pg_dialect_release(struct hf__pg *postgres, struct hf__ticket *ticket,
                           enum hf__pg_owed owed, hf_error *err)
{
    if (!hf__pg_row_leaves(postgres, ticket, owed))
        return 0;
    return hf__pg_dialect_send(postgres, ticket, HF__STMT_RELEASE, 1, on_given,
                               err);
}

/* One call for each, all of them under way at once. dialect=row has no lease to
 * send. */
int hf__pg_dialect_renew(struct hf__pg *postgres, struct hf__ticket **tickets,
                         size_t n, hf_error *err)
{
    int rc = 0;

    for (size_t i = 0; i < n && rc == 0; i++)
        rc = hf__pg_dialect_send(postgres, tickets[i], HF__STMT_RENEW,
                                 postgres->dialect->table ? 2 : 1,
                                 hf__pg_row_renewed, err);
    return rc;
}

int hf__pg_dialect_open(struct hf__pg *postgres, hf_error *err)
{
    const char *const *texts =
        hf__pg_statements_dialect(postgres->dialect, false);

    postgres->mode = &hf__pg_mode_dialect;
    return hf__sql_dialect_texts(&postgres->base, postgres->dialect, texts,
                                 HF__PG_DIALECT_TEXTS, postgres->dialect_texts,
                                 err);
}

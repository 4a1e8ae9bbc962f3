/* SPDX-License-Identifier: MIT */
/*
 * table_renew.c - mode=table: the leases of holders and waiters; downgrade.
 *
 * One statement renews all rows of a client in line, and another, in a transaction
 * of its own, those that are parked: both lock rows, and one transaction that locked
 * rows of both tables could wait for another in a circle.
 */
#include "engines/postgres/row.h"

/* ---- answers ------------------------------------------------------------- */

/* What is left of it on the server goes: a look that is still under way may put
 * it in line once more. */
static void lose_and_leave(struct hf__pg_ticket *mine)
{
    (void)hf__pg_table_release_row(mine, /* err= */ NULL);
    hf__pg_tickets_lost(mine, HF__LOST_TAKEN);
}

/* Its row is gone. The core asks again for a place in line, and a wake-up for the
 * row may still be under way: the answer decides, not that. */
static void lose_row(struct hf__pg_ticket *mine)
{
    struct hf__engine *engine = &mine->engine->base;
    struct hf__ticket *ticket = mine->entry.ticket;

    hf__pg_tickets_forget(mine);
    mine->unsure = true;
    hf__up_lost(engine, ticket, HF__LOST_TAKEN);
}

/* There is no such row any more. A waiter that has asked since has a place
 * again, or will hear that it has not. Of one that was called there may still be
 * the wake-up. */
static void miss_row(struct hf__pg_ticket *mine)
{
    bool waits = mine->state == HF__PG_WAITING;
    bool asked = hf__pg_table_acquire_is_asked(mine);

    if (asked ? !waits : mine->entry.ticket->cond != NULL)
        lose_and_leave(mine);
    else if (!asked)
        lose_row(mine);
}

static bool is_renewable(const struct hf__pg_ticket *mine)
{
    return !hf__pg_tickets_asks(mine) && !hf__pg_tickets_leaves(mine) &&
           mine->state != HF__PG_PARTING;
}

/* A row of TABLE_RENEW: ticket, token, when to look. */
static void renewed(struct hf__pg *postgres, const struct hf__pg_result *result,
                    int row, int64_t sent_ns)
{
    struct hf__pg_ticket *mine = hf__pg_tickets_find(
        postgres, (uint64_t)hf__pg_answer_number(result, row, 0, 0));
    struct hf__grant grant = {.tokens = 1, .sent_ns = sent_ns};
    int64_t token = hf__pg_answer_number(result, row, 1, 0);
    bool waits;

    if (!mine || mine->beat == 0)
        return;
    mine->beat = 0;
    waits = mine->state == HF__PG_WAITING;
    if (!is_renewable(mine))
        return;
    if (token != 0 && waits) {
        hf__pg_row_granted(mine, (uint64_t)token, sent_ns);
        return;
    }
    if (!waits && (uint64_t)token != mine->token) {
        lose_and_leave(mine); /* a place in line is no hold */
        return;
    }
    mine->confirmed_ns = sent_ns;
    if (waits)
        hf__pg_table_wait_watch(mine, hf__pg_answer_number(result, row, 2, -1));
    grant.lease_ms = mine->entry.ticket->ttl_ms;
    hf__up_renewed(&postgres->base, mine->entry.ticket, &grant);
}

/* A ticket that the renewal @number has not found. */
static int64_t look_missed(struct hf__pg_ticket *mine, int64_t number)
{
    if (mine->beat == (uint64_t)number) {
        mine->beat = 0;
        if (is_renewable(mine))
            miss_row(mine);
    }
    return HF_NEVER;
}

typedef void renewed_fn(struct hf__pg *postgres,
                        const struct hf__pg_result *result, int row,
                        int64_t sent_ns);

/* The rows that were found, then the tickets that were not. Silence is no loss:
 * the core counts the time. */
static void each_row(struct hf__pg *postgres, const struct hf__pg_call *call,
                     const struct hf__pg_answer *answer, renewed_fn *found,
                     hf__pg_each_fn *missed)
{
    if (!answer || answer->error)
        return;
    for (int row = 0; row < answer->last->rows; row++)
        found(postgres, answer->last, row, call->sent_ns);
    (void)hf__pg_tickets_due(postgres, missed, (int64_t)call->number);
}

static void on_renewed(struct hf__pg_conn *conn, const struct hf__pg_call *call,
                       const struct hf__pg_answer *answer)
{
    each_row(conn->engine, call, answer, renewed, look_missed);
}

/* A row of COND_RENEW: ticket, was it called, when to look, the timeline. */
static void renewed_parked(struct hf__pg *postgres,
                           const struct hf__pg_result *result, int row,
                           int64_t sent_ns)
{
    struct hf__pg_ticket *mine = hf__pg_tickets_find(
        postgres, (uint64_t)hf__pg_answer_number(result, row, 0, 0));
    struct hf__grant grant = {.tokens = 1, .sent_ns = sent_ns};

    if (!mine || mine->beat == 0)
        return;
    mine->beat = 0;
    if (mine->state != HF__PG_PARKED)
        return;
    if (hf__pg_answer_text(result, row, 1)[0] == 't') {
        hf__pg_table_condition_called(mine, sent_ns);
        return;
    }
    if (strcmp(mine->timeline, hf__pg_answer_text(result, row, 3)) != 0) {
        lose_and_leave(mine); /* a signal may be missing there */
        return;
    }
    mine->confirmed_ns = sent_ns;
    hf__pg_table_wait_watch(mine,
                            hf__pg_answer_number(result, row, 2, INT64_MAX));
    grant.lease_ms = mine->entry.ticket->ttl_ms;
    hf__up_renewed(&postgres->base, mine->entry.ticket, &grant);
}

/* A parked ticket that has no row was taken for dead, and may have missed a
 * signal. */
static int64_t look_missed_parked(struct hf__pg_ticket *mine, int64_t number)
{
    if (mine->beat != (uint64_t)number)
        return HF_NEVER;
    mine->beat = 0;
    if (mine->state == HF__PG_PARKED)
        hf__pg_tickets_lost(mine, HF__LOST_TAKEN);
    return HF_NEVER;
}

static void on_renewed_parked(struct hf__pg_conn *conn,
                              const struct hf__pg_call *call,
                              const struct hf__pg_answer *answer)
{
    each_row(conn->engine, call, answer, renewed_parked, look_missed_parked);
}

/* ---- asking -------------------------------------------------------------- */

/* Two arrays: a name may be anything, a ticket is a number. */
static void add_ticket(const struct hf__pg_ticket *mine, struct hf__buf *names,
                       struct hf__buf *tickets)
{
    char whole[HF__PG_WHOLE];

    hf__pg_names_whole(mine->engine, mine->entry.ticket->name, whole);
    hf__buf_add(names, names->len == 0 ? "{\"" : ",\"");
    for (const char *at = whole; *at; at++) {
        if (*at == '"' || *at == '\\')
            hf__buf_add_char(names, '\\');
        hf__buf_add_char(names, *at);
    }
    hf__buf_add_char(names, '"');
    hf__buf_add_char(tickets, tickets->len == 0 ? '{' : ',');
    hf__buf_add_number(tickets, mine->entry.ticket->id);
}

static int send_renewal(struct hf__pg *postgres, bool parked,
                        struct hf__buf *names, struct hf__buf *tickets,
                        hf_error *err)
{
    struct hf__pg_call call = {.done = parked ? on_renewed_parked : on_renewed,
                               .number = postgres->beats};
    const char *values[3] = {postgres->identity};

    hf__buf_add_char(names, '}');
    hf__buf_add_char(tickets, '}');
    if (hf__buf_failed(names) || hf__buf_failed(tickets))
        return hf__fail(err, HF_ENOMEM, "out of memory");
    values[1] = hf__buf_text(names);
    values[2] = hf__buf_text(tickets);
    return hf__pg_calls_send_one(
        &postgres->main, parked ? HF__STMT_COND_RENEW : HF__STMT_TABLE_RENEW,
        values, 3, &call, err);
}

/* Those of @tickets that are parked, or those that are not. */
static int renew_some(struct hf__pg *postgres, struct hf__ticket **tickets,
                      size_t n, bool parked, hf_error *err)
{
    struct hf__buf names = {0};
    struct hf__buf numbers = {0};
    int rc = 0;

    postgres->beats++;
    for (size_t i = 0; i < n; i++) {
        struct hf__pg_ticket *mine = hf__pg_ticket(postgres, tickets[i]);

        if (!mine->entry.ticket || (mine->state == HF__PG_PARKED) != parked)
            continue;
        mine->beat = postgres->beats;
        add_ticket(mine, &names, &numbers);
    }
    if (numbers.len > 0)
        rc = send_renewal(postgres, parked, &names, &numbers, err);
    hf__buf_release(&names);
    hf__buf_release(&numbers);
    return rc;
}

int hf__pg_table_renew(struct hf__pg *postgres, struct hf__ticket **tickets,
                       size_t n, hf_error *err)
{
    int rc = renew_some(postgres, tickets, n, /* parked= */ false, err);

    return rc == 0 ? renew_some(postgres, tickets, n, /* parked= */ true, err)
                   : rc;
}

/* ---- downgrade ----------------------------------------------------------- */

static void on_downgraded(struct hf__pg_conn *conn,
                          const struct hf__pg_call *call,
                          const struct hf__pg_answer *answer)
{
    struct hf__pg_ticket *mine = call->mine;
    struct hf__ticket *ticket = mine->entry.ticket;
    struct hf__grant grant = {
        .tokens = 1, .lease_ms = ticket->ttl_ms, .sent_ns = mine->confirmed_ns};

    if (hf__pg_tickets_leaves(mine))
        return;
    if (!answer || answer->error) {
        hf__pg_tickets_lost_answer(mine, conn);
    } else if (answer->results[1].rows == 0) {
        hf__pg_tickets_lost(mine, HF__LOST_TAKEN);
    } else {
        ticket->mode = HF_SHARED;
        hf__up_renewed(&conn->engine->base, ticket, &grant);
    }
}

int hf__pg_table_renew_downgrade(struct hf__pg *postgres,
                                 struct hf__ticket *ticket, hf_error *err)
{
    struct hf__pg_ticket *mine = hf__pg_ticket(postgres, ticket);
    struct hf__pg_call call = {.done = on_downgraded, .ticket = ticket->id};
    struct hf__pg_table_words words;

    if (!mine->entry.ticket)
        return hf__fail(err, HF_EUNAVAILABLE, "%s: not held", postgres->peer);
    hf__pg_table_acquire_words(&words, mine);
    hf__pg_table_acquire_lock(postgres, mine->key);
    hf__pg_calls_add(&postgres->main, HF__STMT_TABLE_DOWNGRADE, words.values,
                     2);
    return hf__pg_calls_send_one(&postgres->main, HF__STMT_TABLE_GRANT,
                                 words.values, 1, &call, err);
}

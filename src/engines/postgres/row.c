/* SPDX-License-Identifier: MIT */
/*
 * row.c - what all locks that are a row share: mode=table, and the dialects.
 *
 * What an answer means for a ticket: held, taken by another, not to be had,
 * unknown. Everything of a client goes over the main connection.
 *
 * Failure: after a lost connection the server ends its backend, and has ended
 * it, before we ask anything on the new one: a request still on its way would
 * otherwise come after its withdrawal.
 */
#include "engines/postgres/row.h"

/* ---- acquire ------------------------------------------------------------- */

/* A deadlock or a conflict of transactions: another attempt may do. */
static bool is_passing(const struct hf__pg_error *error)
{
    return hf__pg_errors_is(error, "40") || hf__pg_errors_is(error, "57") ||
           hf__pg_errors_is(error, "55P03");
}

static int64_t lease_of(const struct hf__pg_ticket *mine)
{
    return mine->engine->mode->caps & HF_CAP_LEASED ? mine->entry.ticket->ttl_ms
                                                    : 0;
}

void hf__pg_row_granted(struct hf__pg_ticket *mine, uint64_t token,
                        int64_t sent_ns)
{
    struct hf__grant grant = {.token = token,
                              .tokens = 1,
                              .lease_ms = lease_of(mine),
                              .sent_ns = sent_ns,
                              .woken = mine->known == HF__PG_KNOWN_WOKEN};

    hf__pg_tickets_move(mine, HF__PG_HELD);
    mine->owed = HF__PG_OWES_NOTHING;
    mine->unsure = false;
    mine->watch_ns = 0;
    mine->confirmed_ns = sent_ns;
    mine->token = token;
    hf__pg_names_find(mine->engine, mine->key)->token = token;
    hf__up_granted(&mine->engine->base, mine->entry.ticket, &grant);
}

bool hf__pg_row_is_certain(const struct hf__pg_ticket *mine,
                           const struct hf__pg_error *error)
{
    return !mine->unsure && !is_passing(error);
}

void hf__pg_row_refused(struct hf__pg_ticket *mine,
                        const struct hf__pg_error *error)
{
    hf_error err;

    (void)hf__pg_errors_explain(&mine->engine->main, error, &err);
    if (hf__pg_row_is_certain(mine, error))
        hf__pg_tickets_failed(mine, &err);
    else
        hf__pg_tickets_unknown(mine, &err);
}

int hf__pg_row_acquire(struct hf__pg *postgres, struct hf__ticket *ticket,
                       hf__pg_row_send_fn *send, hf_error *err)
{
    struct hf__pg_ticket *mine = hf__pg_ticket(postgres, ticket);
    bool known = mine->entry.ticket != NULL;
    int rc;

    hf__pg_tickets_know(postgres, ticket);
    hf__pg_tickets_move(mine, HF__PG_ASKING);
    mine->owed = HF__PG_OWES_ANSWER;
    if (known && postgres->mode != &hf__pg_mode_row)
        mine->unsure = true;
    rc = send(mine, err);
    if (rc == 0)
        return 0;
    if (!known) {
        hf__pg_tickets_forget(mine);
        return rc;
    }
    /* The server may know it of an earlier attempt. */
    hf__pg_tickets_unknown(mine, err);
    return 0;
}

/* ---- release and withdraw ------------------------------------------------ */

bool hf__pg_row_leaves(struct hf__pg *postgres, struct hf__ticket *ticket,
                       enum hf__pg_owed owed)
{
    struct hf__pg_ticket *mine = hf__pg_ticket(postgres, ticket);

    if (!mine->entry.ticket) {
        hf__up_left(&postgres->base, ticket,
                    owed == HF__PG_OWES_RELEASE ? HF_ELOST : 0);
        return false;
    }
    hf__pg_tickets_move(mine, HF__PG_RELEASING);
    mine->watch_ns = 0;
    mine->owed = (uint8_t)owed;
    return true;
}

/* Of the rows that were deleted one may be ours: it has a number. */
static bool has_number(const struct hf__pg_result *rows)
{
    for (int row = 0; row < rows->rows; row++) {
        if (hf__pg_answer_number(rows, row, 0, 0) != 0)
            return true;
    }
    return false;
}

void hf__pg_row_left(struct hf__pg_conn *conn, const struct hf__pg_call *call,
                     const struct hf__pg_answer *answer, int at)
{
    struct hf__pg_ticket *mine = call->mine;
    bool was_held;

    if (!hf__pg_tickets_leaves(mine))
        return;
    if (!answer || answer->error) { /* the core tries again */
        hf__pg_tickets_lost_answer(mine, conn);
        return;
    }
    was_held = at < 0 || has_number(&answer->results[at]);
    hf__pg_tickets_left(
        mine, hf__pg_tickets_releases(mine) && !was_held ? HF_ELOST : 0);
}

/* ---- renew --------------------------------------------------------------- */

/* Silence is no loss: the core counts the time. */
void hf__pg_row_renewed(struct hf__pg_conn *conn,
                        const struct hf__pg_call *call,
                        const struct hf__pg_answer *answer)
{
    struct hf__pg_ticket *mine = call->mine;
    struct hf__grant grant = {
        .tokens = 1, .lease_ms = lease_of(mine), .sent_ns = call->sent_ns};

    if (!answer || answer->error || mine->state != HF__PG_HELD)
        return;
    if (answer->last->rows == 0)
        hf__pg_tickets_lost(mine, HF__LOST_TAKEN);
    else
        hf__up_renewed(&conn->engine->base, mine->entry.ticket, &grant);
}

/* ---- the connection ------------------------------------------------------ */

/* Is the backend that we lost there, was it ended? One that we may not end
 * goes by itself. */
static bool has_gone(const struct hf__pg_answer *answer)
{
    if (answer->n > 0 && answer->results[0].rows == 0)
        return true;
    return !answer->error && hf__pg_answer_text(answer->last, 0, 0)[0] == 't';
}

static void on_ended(struct hf__pg_conn *conn, const struct hf__pg_call *call,
                     const struct hf__pg_answer *answer)
{
    struct hf__pg *postgres = conn->engine;

    (void)call;
    if (!answer)
        return;
    if (!has_gone(answer)) { /* the core connects again after a pause */
        hf__pg_connection_refuse(
            conn, HF_EUNAVAILABLE,
            "the server still ends the session that was lost");
        return;
    }
    postgres->orphans[0].pid = 0;
    hf__pg_connected(postgres);
}

void hf__pg_row_up(struct hf__pg_conn *conn)
{
    struct hf__pg *postgres = conn->engine;
    const struct hf__pg_orphan *orphan = &postgres->orphans[0];
    struct hf__pg_call call = {.done = on_ended};
    char pid[HF__PG_DIGITS];
    const char *values[] = {hf__pg_names_decimal(orphan->pid, pid),
                            orphan->started};

    if (orphan->pid == 0) {
        hf__pg_connected(postgres);
        return;
    }
    hf__pg_calls_add(conn, HF__STMT_BACKEND_IS_THERE, values, 2);
    (void)hf__pg_calls_send_one(conn, HF__STMT_BACKEND_END_WAIT, values, 2,
                                &call, NULL);
}

/* While there is an orphan nothing was asked on the new connection. */
void hf__pg_row_down(struct hf__pg_conn *conn, const hf_error *err)
{
    struct hf__pg *postgres = conn->engine;

    if (postgres->orphans[0].pid == 0)
        hf__pg_connection_orphan(conn, &postgres->orphans[0]);
    conn->pid = 0;
    hf__pg_down(postgres, err);
}

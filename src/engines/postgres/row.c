/* SPDX-License-Identifier: MIT */
/*
 * row.c - what all locks that are a row share: mode=table, and the dialects.
 *
 * What an answer means for a ticket: held, taken by another, not to be had,
 * nobody knows. Everything of a client goes over the main session.
 *
 * Failure: after a lost connection its backend is ended, and has gone, before
 * anything is asked on the new one: a request still on its way would otherwise
 * come after its withdrawal.
 */
#include "engines/postgres/postgres.h"

/* ---- asking -------------------------------------------------------------- */

/* A deadlock or a conflict of transactions: another try may do. */
static bool is_passing(const struct hf__pg_error *error)
{
    return hf__pg_error_is(error, "40") || hf__pg_error_is(error, "57") ||
           hf__pg_error_is(error, "55P03");
}

void hf__postgres_row_granted(struct hf__postgres_ticket *mine, uint64_t token,
                              int64_t sent_ns)
{
    struct hf__grant grant = {
        .token = token,
        .tokens = 1,
        .lease_ms =
            mine->engine->mode->caps & HF_CAP_LEASED ? mine->ticket->ttl_ms : 0,
        .sent_ns = sent_ns,
    };

    mine->asking = false;
    mine->waiting = false;
    mine->unsure = false;
    mine->watch_ns = 0;
    mine->confirmed_ns = sent_ns;
    mine->token = token;
    hf__postgres_name(mine->engine, mine->key)->token = token;
    hf__up_granted(&mine->engine->base, mine->ticket, &grant);
}

void hf__postgres_row_refused(struct hf__postgres_ticket *mine,
                              const struct hf__pg_error *error)
{
    hf_error err;

    (void)hf__session_explain(&mine->engine->main, error, &err);
    if (mine->unsure || is_passing(error))
        hf__postgres_unknown(mine->engine, mine, &err);
    else
        hf__postgres_failed(mine->engine, mine, &err);
}

int hf__postgres_row_acquire(
    struct hf__postgres *postgres, struct hf__ticket *ticket,
    int (*send)(struct hf__postgres_ticket *mine, hf_error *err), hf_error *err)
{
    struct hf__postgres_ticket *mine = hf__postgres_ticket(postgres, ticket);
    bool known = mine->known;
    int rc;

    hf__postgres_know(postgres, ticket);
    mine->unsure |= known;
    mine->asking = true;
    mine->waiting = false;
    rc = send(mine, err);
    if (rc == 0)
        return 0;
    mine->asking = false;
    if (known) /* the server may know it of an earlier attempt */
        hf__up_unknown(&postgres->base, ticket, err);
    else
        hf__postgres_forget(mine);
    return known ? 0 : rc;
}

/* ---- leaving ------------------------------------------------------------- */

bool hf__postgres_row_leaves(struct hf__postgres *postgres,
                             struct hf__ticket *ticket, bool releasing)
{
    struct hf__postgres_ticket *mine = hf__postgres_ticket(postgres, ticket);

    if (!mine->known) {
        hf__up_left(&postgres->base, ticket, releasing ? HF_ELOST : 0);
        return false;
    }
    mine->asking = false;
    mine->waiting = false;
    mine->watch_ns = 0;
    mine->leaving = true;
    mine->releasing = releasing;
    return true;
}

/* Of the rows that were deleted one may be ours: it has a number. */
static bool has_number(const struct hf__pg_result *rows)
{
    for (int row = 0; row < rows->rows; row++) {
        if (hf__pg_number(rows, row, 0, 0) != 0)
            return true;
    }
    return false;
}

void hf__postgres_row_left(struct hf__session *session,
                           const struct hf__session_call *call,
                           const struct hf__pg_answer *answer, int at)
{
    struct hf__postgres *postgres = session->engine;
    struct hf__postgres_ticket *mine =
        hf__postgres_find(postgres, call->ticket);
    struct hf__ticket *ticket;
    bool lost;
    hf_error err;

    if (!mine || !mine->leaving)
        return;
    if (!answer || answer->error) {
        hf__session_explain_lost(session, &err);
        hf__postgres_unknown(postgres, mine, &err); /* the core tries again */
        return;
    }
    ticket = mine->ticket;
    lost = mine->releasing && at >= 0 && !has_number(&answer->results[at]);
    hf__postgres_forget(mine);
    hf__up_left(&postgres->base, ticket, lost ? HF_ELOST : 0);
}

void hf__postgres_row_lose(struct hf__postgres_ticket *mine, int reason)
{
    struct hf__postgres *postgres = mine->engine;
    struct hf__ticket *ticket = mine->ticket;

    hf__postgres_forget(mine);
    hf__up_lost(&postgres->base, ticket, reason);
}

/* ---- the session ---------------------------------------------------------- */

/* The backend that we lost: is it there, was it ended? One that we may not end
 * goes by itself. */
static bool has_gone(const struct hf__pg_answer *answer)
{
    if (answer->n > 0 && answer->results[0].rows == 0)
        return true;
    return !answer->error && hf__pg_text(answer->last, 0, 0)[0] == 't';
}

static void on_ended(struct hf__session *session,
                     const struct hf__session_call *call,
                     const struct hf__pg_answer *answer)
{
    struct hf__postgres *postgres = session->engine;

    (void)call;
    if (!answer)
        return;
    if (!has_gone(answer)) { /* the core connects again after a pause */
        hf__session_refuse(session, HF_EUNAVAILABLE,
                           "the server still ends the session that was lost");
        return;
    }
    postgres->ghosts[0].pid = 0;
    hf__postgres_connected(postgres);
}

void hf__postgres_row_up(struct hf__session *session)
{
    struct hf__postgres *postgres = session->engine;
    const struct hf__ghost *ghost = &postgres->ghosts[0];
    struct hf__session_call call = {.done = on_ended};
    char pid[HF__PG_DIGITS];
    const char *values[] = {hf__postgres_number(ghost->pid, pid),
                            ghost->started};

    if (ghost->pid == 0)
        hf__postgres_connected(postgres);
    else if (hf__session_add(session, HF__PG_IS_THERE, values, 2, NULL) == 0 &&
             hf__session_add(session, HF__PG_END_WAIT, values, 2, NULL) == 0)
        (void)hf__session_send(session, &call, NULL);
}

/* While a ghost is there nothing was asked on the new session. */
void hf__postgres_row_down(struct hf__session *session, const hf_error *err)
{
    struct hf__postgres *postgres = session->engine;

    if (postgres->ghosts[0].pid == 0)
        hf__session_ghost(session, &postgres->ghosts[0]);
    session->pid = 0;
    hf__postgres_down(postgres, err);
}

/* SPDX-License-Identifier: MIT */
/*
 * lend.c - mode=for_update: the connection of a lock for the caller's own
 * statements.
 *
 * From then on the lock has no lease: the server is told not to end a silent
 * transaction, and the connection is left alone until the lock is released.
 *
 * Failure: a connection that was lost meanwhile is noticed when it comes back.
 */
#include "engines/postgres/advisory.h"

/* The keeper need not renew what is lent. */
static void last_as_long_as_the_session(struct hf__postgres_ticket *mine)
{
    struct hf__grant forever = {.tokens = 1, .sent_ns = hf__now()};

    hf__up_renewed(&mine->engine->base, mine->ticket, &forever);
}

static int gone(const struct hf__postgres *postgres, hf_error *err)
{
    return hf__fail(err, HF_ELOST, "%s: the transaction is gone",
                    postgres->peer);
}

/* Also those who asked meanwhile: they hang behind @query. */
static void answer(struct hf__session *session, struct hf__query *query, int rc,
                   const hf_error *err)
{
    struct hf__postgres_ticket *mine =
        hf__postgres_find(session->engine, query->ticket);

    if (mine)
        mine->borrower = NULL;
    while (query) {
        struct hf__query *next = query->engine_data;

        query->connection = rc == 0 ? session->conn : NULL;
        hf__up_answer(&session->engine->base, query, rc, err);
        query = next;
    }
}

/* The ticket for which @call was made, if it still holds its session. */
static struct hf__postgres_ticket *find_holder(
    struct hf__session *session, const struct hf__session_call *call,
    const struct hf__pg_answer *what)
{
    struct hf__postgres_ticket *mine =
        hf__postgres_find(session->engine, call->ticket);

    return what && !what->error && mine && !mine->leaving &&
                   mine->state == HF__PG_HOLDING && mine->session == session
               ? mine
               : NULL;
}

static int ask(struct hf__postgres_ticket *mine, struct hf__query *query,
               hf_error *err);

/* It has no lease any more. A renewal may have come in between: then it is
 * asked for once more. */
static void on_ready(struct hf__session *session,
                     const struct hf__session_call *call,
                     const struct hf__pg_answer *what)
{
    struct hf__postgres_ticket *mine = find_holder(session, call, what);
    hf_error err;
    int rc;

    if (!mine) {
        rc = gone(session->engine, &err);
    } else if (session->calls_n > 0) {
        rc = ask(mine, call->query, &err);
    } else {
        mine->lent = true;
        hf__text_copy(mine->transaction, sizeof(mine->transaction),
                      hf__pg_text(what->last, 0, 0));
        last_as_long_as_the_session(mine);
        rc = hf__session_lend(session, &err);
        if (rc == 0)
            answer(session, call->query, 0, /* err= */ NULL);
    }
    if (rc != 0)
        answer(session, call->query, rc, &err);
}

static int ask(struct hf__postgres_ticket *mine, struct hf__query *query,
               hf_error *err)
{
    struct hf__session_call call = {
        .done = on_ready, .ticket = mine->ticket->id, .query = query};
    const char *values[] = {"0"};
    int rc = hf__session_add(mine->session, HF__PG_TIMEOUT, values, 1, err);

    if (rc == 0)
        rc = hf__session_add(mine->session, HF__PG_WHICH, NULL, 0, err);
    if (rc == 0)
        rc = hf__session_send(mine->session, &call, err);
    if (rc == 0)
        mine->session->timeout_ms = 0;
    return rc;
}

int hf__postgres_connection(struct hf__engine *engine, struct hf__query *query,
                            hf_error *err)
{
    struct hf__postgres *postgres = hf__postgres_of(engine);
    struct hf__postgres_ticket *mine =
        hf__postgres_find(postgres, query->ticket);
    int rc;

    if (!hf__advisory_transacts(postgres))
        return hf__fail(err, HF_EUNSUPPORTED,
                        "a lock of mode=%s is no transaction: use "
                        "mode=for_update",
                        postgres->mode->name);
    if (!mine || mine->state != HF__PG_HOLDING || mine->leaving)
        return gone(postgres, err);
    query->engine_data = NULL;
    if (mine->session->state == HF__SESSION_LENT) {
        answer(mine->session, query, 0, /* err= */ NULL);
        return 0;
    }
    if (mine->borrower) {
        query->engine_data = mine->borrower->engine_data;
        mine->borrower->engine_data = query;
        return 0;
    }
    rc = ask(mine, query, err);
    if (rc == 0)
        mine->borrower = query;
    return rc;
}

bool hf__advisory_renews_lent(struct hf__postgres_ticket *mine)
{
    if (mine->session->state != HF__SESSION_LENT)
        return false;
    last_as_long_as_the_session(mine);
    return true;
}

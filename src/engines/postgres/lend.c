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

static int ask(struct hf__postgres_ticket *mine, struct hf__query *query,
               hf_error *err);

static void on_ready(struct hf__session *session,
                     const struct hf__session_call *call,
                     const struct hf__session_answer *answer)
{
    struct hf__postgres *postgres = session->engine;
    struct hf__query *query = call->query;
    struct hf__postgres_ticket *mine =
        hf__postgres_find(postgres, call->ticket);
    hf_error err;
    int rc = 0;

    if (!answer || answer->error || !mine || mine->leaving ||
        mine->state != HF__PG_HOLDING || mine->session != session)
        rc = gone(postgres, &err);
    else if (session->calls_n > 0) /* a renewal came in between */
        rc = ask(mine, query, &err);
    else
        rc = hf__session_lend(session, &err);
    if (rc == 0 && !session->lent)
        return; /* asked once more */
    if (rc == 0) {
        mine->lent = true;
        hf__text_copy(mine->transaction, sizeof(mine->transaction),
                      hf__session_text(answer->last, 0, 0));
        query->connection = session->conn;
        last_as_long_as_the_session(mine);
    }
    hf__up_answer(&postgres->base, query, rc, rc == 0 ? NULL : &err);
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

    if (!hf__advisory_transacts(postgres))
        return hf__fail(err, HF_EUNSUPPORTED,
                        "a lock of mode=%s is no transaction: use "
                        "mode=for_update",
                        postgres->mode->name);
    if (!mine || mine->state != HF__PG_HOLDING || mine->leaving)
        return gone(postgres, err);
    if (!mine->session->lent)
        return ask(mine, query, err);
    query->connection = mine->session->conn;
    hf__up_answer(engine, query, 0, /* err= */ NULL);
    return 0;
}

bool hf__advisory_renews_lent(struct hf__postgres_ticket *mine)
{
    if (!mine->session->lent)
        return false;
    last_as_long_as_the_session(mine);
    return true;
}

/* SPDX-License-Identifier: MIT */
/*
 * advisory_renew.c - the leases of session locks; downgrade.
 *
 * Failure: a ping that is not answered is silence; the core counts the time.
 */
#include "engines/postgres/advisory.h"

/* A ping proves the whole session, but only locks that the core wants to renew
 * are renewed by it. One that was granted after the ping was sent has a younger
 * proof. */
static void renewed(struct hf__pg_ticket *mine, int64_t sent_ns)
{
    struct hf__grant grant = {
        .tokens = 1, .lease_ms = hf__advisory_lease(mine), .sent_ns = sent_ns};

    if (mine->state != HF__PG_HELD || mine->beat == 0 ||
        sent_ns < mine->confirmed_ns)
        return;
    mine->beat = 0;
    mine->confirmed_ns = sent_ns;
    hf__up_renewed(&mine->engine->base, mine->entry.ticket, &grant);
}

static void on_pinged(struct hf__pg_conn *conn, const struct hf__pg_call *call,
                      const struct hf__pg_answer *answer)
{
    struct hf__pg *postgres = conn->engine;

    if (!answer || answer->error)
        return;
    if (conn != &postgres->main) {
        if (conn->user)
            renewed(conn->user, call->sent_ns);
        return;
    }
    for (size_t i = 0; i < HF__PG_BUCKETS; i++) {
        HF_LIST_EACH(&postgres->held[i], link) {
            renewed(HF_CONTAINER_OF(link, struct hf__pg_ticket, link),
                    call->sent_ns);
        }
    }
}

static bool ping(struct hf__pg_conn *conn, hf_error *err)
{
    struct hf__pg_call call = {.done = on_pinged};

    return hf__pg_calls_send_one(conn, HF__STMT_PING, NULL, 0, &call, err) == 0;
}

int hf__advisory_renew(struct hf__pg *postgres, struct hf__ticket **tickets,
                       size_t n, hf_error *err)
{
    bool main_too = false;
    int sent = 0;

    for (size_t i = 0; i < n; i++) {
        struct hf__pg_ticket *mine = hf__pg_ticket(postgres, tickets[i]);

        if (mine->state != HF__PG_HELD)
            continue;
        mine->beat = 1;
        if (mine->conn == &postgres->main)
            main_too = true;
        else
            sent += hf__pg_for_update_renew(mine) || ping(mine->conn, err);
    }
    if (main_too)
        sent += ping(&postgres->main, err);
    return sent > 0 ? 0 : hf__fail(err, HF_EUNAVAILABLE, "nothing to renew");
}

static void on_downgraded(struct hf__pg_conn *conn,
                          const struct hf__pg_call *call,
                          const struct hf__pg_answer *answer)
{
    struct hf__pg_ticket *mine = call->mine;
    hf_error err;

    if (mine->state != HF__PG_HELD || !answer)
        return; /* lost with its session */
    if (answer->error) {
        (void)hf__pg_errors_explain(conn, answer->error, &err);
        hf__up_unknown(&conn->engine->base, mine->entry.ticket, &err);
        return;
    }
    mine->entry.ticket->mode = HF_SHARED;
    mine->beat = 1;
    renewed(mine, call->sent_ns);
}

int hf__advisory_renew_downgrade(struct hf__pg *postgres,
                                 struct hf__ticket *ticket, hf_error *err)
{
    struct hf__pg_ticket *mine = hf__pg_ticket(postgres, ticket);
    struct hf__pg_call call = {.done = on_downgraded, .ticket = ticket->id};
    char key[HF__PG_DIGITS];
    const char *values[] = {hf__pg_names_decimal(mine->key, key)};

    if (!mine->conn)
        return hf__fail(err, HF_EUNAVAILABLE, "%s: not held", postgres->peer);
    return hf__pg_calls_send_one(mine->conn, HF__STMT_ADVISORY_DOWNGRADE,
                                 values, 1, &call, err);
}

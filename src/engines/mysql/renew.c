/* SPDX-License-Identifier: MIT */
/*
 * renew.c - renewals: of rows many in one text, of a session by any statement.
 *
 * Failure: without an answer nothing is reported; the core counts the time.
 */
#include "engines/mysql/mysql.h"

/* ---- rows ---------------------------------------------------------------- */

static void on_rows_renewed(struct hf__mysql *mysql,
                            struct hf__mysql_call *call,
                            struct hf__mysql_reply *reply)
{
    for (size_t i = 0; reply && i < call->n && i < reply->n; i++) {
        struct hf__ticket *ticket =
            hf__mysql_tickets_find(mysql, call->tickets[i]);
        struct hf__grant grant = {.tokens = 1, .sent_ns = call->sent_ns};

        if (!ticket ||
            hf__mysql_tickets_leaves(hf__mysql_ticket(mysql, ticket)))
            continue;
        grant.lease_ms = hf__mysql_lease_ms(mysql, ticket);
        if (reply->affected[i] == 1)
            hf__up_renewed(&mysql->base, ticket, &grant);
        else if (hf__mysql_ticket(mysql, ticket)->state == HF__MYSQL_HELD)
            hf__mysql_tickets_lost(mysql, ticket, HF__LOST_TAKEN);
        /* else it was parked, and its next look finds out */
    }
}

static const char *renewal(const struct hf__mysql *mysql,
                           const struct hf__ticket *ticket)
{
    return mysql->dialect   ? mysql->dialect_texts[HF__MYSQL_RENEW]
           : ticket->parked ? hf__mysql_sql_table_renew_parked
           : ticket->mode == HF_EXCLUSIVE ? hf__mysql_sql_table_renew_exclusive
                                          : hf__mysql_sql_table_renew_shared;
}

static int renew_some(struct hf__mysql *mysql, struct hf__ticket **tickets,
                      size_t n, hf_error *err)
{
    struct hf__mysql_call *call = hf__mysql_call_new(on_rows_renewed, err);

    if (!call)
        return HF_ENOMEM;
    call->n = n;
    call->tickets = hf__malloc(n * sizeof(call->tickets[0]));
    if (!call->tickets) {
        hf__mysql_call_free(call);
        return hf__fail(err, HF_ENOMEM, "out of memory");
    }
    for (size_t i = 0; i < n; i++) {
        struct hf__mysql_values values = {
            .ticket = tickets[i],
            .token = hf__mysql_ticket(mysql, tickets[i])->token};

        call->tickets[i] = tickets[i]->id;
        if (i > 0)
            hf__buf_add_char(&call->sql, ';');
        hf__mysql_statement(mysql, &call->sql, renewal(mysql, tickets[i]),
                            &values);
    }
    return hf__mysql_call_send(&mysql->main, call, err);
}

int hf__mysql_renew_rows(struct hf__mysql *mysql, struct hf__ticket **tickets,
                         size_t n, hf_error *err)
{
    int rc = 0;

    for (size_t i = 0; i < n && rc == 0; i += HF__MYSQL_BATCH)
        rc = renew_some(mysql, tickets + i,
                        n - i < HF__MYSQL_BATCH ? n - i : HF__MYSQL_BATCH, err);
    return rc;
}

/* ---- sessions ------------------------------------------------------------ */

static void on_session_renewed(struct hf__mysql *mysql,
                               struct hf__ticket *ticket,
                               struct hf__mysql_call *call,
                               struct hf__mysql_reply *reply)
{
    const struct hf__mysql_ticket *mine = hf__mysql_ticket(mysql, ticket);
    struct hf__grant grant = {
        .tokens = 1, .lease_ms = ticket->ttl_ms, .sent_ns = call->sent_ns};

    if (reply && reply->code == 0 && !hf__mysql_tickets_leaves(mine) &&
        mine->on == call->connection)
        hf__up_renewed(&mysql->base, ticket, &grant);
}

static int renew_session(struct hf__mysql *mysql, struct hf__ticket *ticket,
                         hf_error *err)
{
    const struct hf__mysql_ticket *mine = hf__mysql_ticket(mysql, ticket);
    struct hf__grant forever = {.tokens = 1, .sent_ns = hf__now()};

    if (mine->on && !mine->on->with_caller)
        return hf__mysql_call_ask(mine->on, ticket, "DO 1", on_session_renewed,
                                  err);
    if (mine->on) {
        hf__up_renewed(&mysql->base, ticket, &forever);
        return 0;
    }
    hf__mysql_session_forget(mysql, ticket, /* clean= */ false);
    hf__up_lost(&mysql->base, ticket, HF__LOST_SESSION);
    return 0;
}

int hf__mysql_renew_sessions(struct hf__mysql *mysql,
                             struct hf__ticket **tickets, size_t n,
                             hf_error *err)
{
    int rc = 0;

    for (size_t i = 0; i < n && rc == 0; i++)
        rc = renew_session(mysql, tickets[i], err);
    return rc;
}

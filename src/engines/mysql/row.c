/* SPDX-License-Identifier: MIT */
/*
 * row.c - what all locks that are a row share: mode=table, and the dialects.
 *
 * What an answer means for a ticket: held, taken by another, not to be had,
 * nobody knows. Renewals, many in one text. Tables that are made when the
 * server first says that they are missing.
 *
 * Failure: a deadlock or a row that was locked for too long is certain, nothing
 * was done: who asks is told that it is busy, who leaves is sent again.
 */
#include "engines/mysql/mysql.h"

static const int64_t collision_pause_ns = 2 * HF_MS;

/* ---- missing tables ---------------------------------------------------- */

static void on_made(struct hf__mysql *mysql, struct hf__mysql_call *call,
                    struct hf__mysql_reply *reply)
{
    struct hf__mysql_call *first = call->then;

    call->then = NULL;
    first->kept = false;
    if (reply && reply->code == 0) {
        (void)hf__mysql_call_send(first->connection, first, NULL);
        return;
    }
    first->done(mysql, first, reply);
    hf__mysql_call_free(first);
}

bool hf__mysql_remake(struct hf__mysql_call *call,
                      const struct hf__mysql_reply *reply)
{
    static const struct hf__mysql_values none = {.name = ""};
    struct hf__mysql *mysql = call->connection->mysql;
    struct hf__mysql_call *make;

    if (!reply || !hf__mysql_is_no_table(reply) || call->again ||
        mysql->own_row || mysql->mode == &hf__mysql_by_hand)
        return false;
    make = hf__mysql_call_new(on_made, NULL);
    if (!make)
        return false;
    hf__mysql_statement(mysql, &make->sql,
                        mysql->dialect ? mysql->dialect_texts[HF__MYSQL_MAKE]
                                       : hf__mysql_make_tables,
                        &none);
    if (hf__mysql_call_send(call->connection, make, NULL) != 0)
        return false;
    make->then = call;
    call->again = true;
    call->kept = true;
    return true;
}

/* ---- asking ------------------------------------------------------------ */

static int64_t lease_ms(const struct hf__mysql *mysql,
                        const struct hf__ticket *ticket)
{
    return mysql->mode->caps & HF_CAP_LEASED ? ticket->ttl_ms : 0;
}

void hf__mysql_row_granted(struct hf__mysql *mysql, struct hf__ticket *ticket,
                           uint64_t token, int64_t sent_ns)
{
    struct hf__mysql_ticket *mine = hf__mysql_ticket(mysql, ticket);
    struct hf__grant grant = {.token = token,
                              .tokens = 1,
                              .lease_ms = lease_ms(mysql, ticket),
                              .sent_ns = sent_ns};

    mine->asking = false;
    mine->waiting = false;
    mine->unsure = false;
    mine->poll_ns = 0;
    mine->in_row = ticket->mode != HF_EXCLUSIVE;
    mine->token = token;
    hf__up_granted(&mysql->base, ticket, &grant);
}

void hf__mysql_row_unknown(struct hf__mysql *mysql, struct hf__ticket *ticket)
{
    hf_error err;

    (void)hf__mysql_explain_lost(mysql, &err);
    hf__mysql_ticket(mysql, ticket)->asking = false;
    hf__up_unknown(&mysql->base, ticket, &err);
}

int hf__mysql_row_not_asked(struct hf__mysql *mysql, struct hf__ticket *ticket,
                            bool known, int rc)
{
    hf__mysql_ticket(mysql, ticket)->asking = false;
    if (!known) {
        hf__mysql_ticket_forget(mysql, ticket);
        return rc;
    }
    hf__mysql_row_unknown(mysql, ticket);
    return 0;
}

void hf__mysql_row_not_granted(struct hf__mysql *mysql,
                               struct hf__ticket *ticket,
                               const struct hf__mysql_reply *reply)
{
    bool unsure = hf__mysql_ticket(mysql, ticket)->unsure;
    hf_error err;

    (void)hf__mysql_explain(mysql, reply, &err);
    if (unsure) { /* what was asked before may have been granted */
        hf__mysql_ticket(mysql, ticket)->asking = false;
        hf__up_unknown(&mysql->base, ticket, &err);
        return;
    }
    hf__mysql_ticket_forget(mysql, ticket);
    if (hf__mysql_is_collision(reply))
        hf__up_busy(&mysql->base, ticket, hf__now() + collision_pause_ns, NULL);
    else
        hf__up_failed(&mysql->base, ticket, &err);
}

void hf__mysql_row_busy(struct hf__mysql *mysql, struct hf__ticket *ticket,
                        const char *holder)
{
    hf__mysql_ticket_forget(mysql, ticket);
    hf__up_busy(&mysql->base, ticket, /* again_ns= */ 0, holder);
}

/* ---- leaving ----------------------------------------------------------- */

void hf__mysql_row_left(struct hf__mysql *mysql, struct hf__ticket *ticket,
                        bool held)
{
    bool releasing = hf__mysql_ticket(mysql, ticket)->releasing;

    hf__mysql_ticket_forget(mysql, ticket);
    hf__up_left(&mysql->base, ticket, releasing && !held ? HF_ELOST : 0);
}

bool hf__mysql_row_not_left(struct hf__mysql *mysql, struct hf__ticket *ticket,
                            const struct hf__mysql_reply *reply)
{
    if (reply && reply->code == 0)
        return false;
    if (reply && hf__mysql_is_no_table(reply))
        hf__mysql_row_left(mysql, ticket, /* held= */ false);
    else if (!reply || !hf__mysql_is_collision(reply) ||
             mysql->mode->leave(mysql, ticket,
                                hf__mysql_ticket(mysql, ticket)->releasing,
                                /* err= */ NULL) != 0)
        hf__mysql_row_unknown(mysql, ticket);
    return true;
}

/* ---- renewing ---------------------------------------------------------- */

static void on_renewed(struct hf__mysql *mysql, struct hf__mysql_call *call,
                       struct hf__mysql_reply *reply)
{
    for (size_t i = 0; reply && i < call->n && i < reply->n; i++) {
        struct hf__ticket *ticket =
            hf__mysql_ticket_find(mysql, call->tickets[i]);
        struct hf__grant grant = {.tokens = 1, .sent_ns = call->sent_ns};

        if (!ticket || hf__mysql_ticket(mysql, ticket)->leaving)
            continue;
        if (reply->affected[i] == 1) {
            grant.lease_ms = lease_ms(mysql, ticket);
            hf__up_renewed(&mysql->base, ticket, &grant);
        } else {
            hf__mysql_ticket_forget(mysql, ticket);
            hf__up_lost(&mysql->base, ticket, HF__LOST_TAKEN);
        }
    }
}

static int renew_some(struct hf__mysql *mysql, struct hf__ticket **tickets,
                      size_t n, hf_error *err)
{
    struct hf__mysql_call *call = hf__mysql_call_new(on_renewed, err);

    if (!call)
        return HF_ENOMEM;
    call->n = n;
    call->tickets = hf__malloc(n * sizeof(call->tickets[0]));
    if (!call->tickets) {
        hf__mysql_call_free(call);
        return hf__fail(err, HF_ENOMEM, "out of memory");
    }
    for (size_t i = 0; i < n; i++) {
        struct hf__mysql_values values = hf__mysql_values_of(mysql, tickets[i]);

        call->tickets[i] = tickets[i]->id;
        if (i > 0)
            hf__buf_add_char(&call->sql, ';');
        hf__mysql_statement(mysql, &call->sql,
                            mysql->mode->renewal(mysql, tickets[i]), &values);
    }
    return hf__mysql_call_send(&mysql->main, call, err);
}

int hf__mysql_row_renew(struct hf__mysql *mysql, struct hf__ticket **tickets,
                        size_t n, hf_error *err)
{
    int rc = 0;

    for (size_t i = 0; i < n && rc == 0; i += HF__MYSQL_BATCH)
        rc = renew_some(mysql, tickets + i,
                        n - i < HF__MYSQL_BATCH ? n - i : HF__MYSQL_BATCH, err);
    return rc;
}

/* ---- the connection ---------------------------------------------------- */

/* Whoever waits looks by his own timer. */
void hf__mysql_row_regained(struct hf__mysql *mysql)
{
    (void)mysql;
}

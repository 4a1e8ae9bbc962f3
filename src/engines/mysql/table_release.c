/* SPDX-License-Identifier: MIT */
/*
 * table_release.c - mode=table: release, withdraw, downgrade; the rows that dead
 * clients have left.
 *
 * Failure: tickets.c.
 */
#include "engines/mysql/mysql.h"

/* ---- the dead ------------------------------------------------------------ */

/* A waiter may be dead: look when that would be certain. */
void hf__mysql_table_release_sweep(struct hf__mysql *mysql)
{
    if (mysql->sweep_ns != 0)
        return;
    mysql->sweep_ns = hf__now() + (int64_t)HF__MYSQL_LIFE_US * 1000;
    hf__link_wake(&mysql->link, mysql->sweep_ns);
}

static void on_swept(struct hf__mysql *mysql, struct hf__mysql_call *call,
                     struct hf__mysql_reply *reply)
{
    struct hf__mysql_field row[1];

    (void)call;
    if (reply && reply->code == 0 && hf__mysql_answer_row(reply, 1, row) &&
        hf__mysql_answer_number(row[0]) == 1) /* there may be more of them */
        (void)hf__mysql_call_say(&mysql->main, hf__mysql_sql_table_sweep,
                                 on_swept);
}

int64_t hf__mysql_table_release_attend(struct hf__mysql *mysql, int64_t now_ns)
{
    if (mysql->sweep_ns == 0)
        return HF_NEVER;
    if (now_ns < mysql->sweep_ns)
        return mysql->sweep_ns;
    mysql->sweep_ns = 0;
    if (hf__mysql_is_up(mysql, NULL) != 0)
        return HF_NEVER;
    (void)hf__mysql_call_say(&mysql->main, hf__mysql_sql_table_sweep, on_swept);
    if (mysql->sweeps_conditions)
        hf__mysql_table_condition_sweep(mysql);
    mysql->sweeps_conditions = false;
    return HF_NEVER;
}

/* ---- releasing ----------------------------------------------------------- */

static void on_released(struct hf__mysql *mysql, struct hf__ticket *ticket,
                        struct hf__mysql_call *call,
                        struct hf__mysql_reply *reply)
{
    struct hf__mysql_field row[1];

    if (ticket->cond && hf__mysql_schema_make(call, reply))
        return;
    if (hf__mysql_tickets_not_left(mysql, ticket, reply))
        return;
    if (hf__mysql_answer_row(reply, 1, row))
        hf__mysql_tickets_left(mysql, ticket,
                               hf__mysql_answer_number(row[0]) == 1);
    else
        hf__mysql_tickets_answer_lost(mysql, ticket);
}

/* A wake-up that a ticket bears is used up by its release, and only by that. */
static const char *release_text(const struct hf__mysql *mysql,
                                struct hf__ticket *ticket)
{
    if (!ticket->cond)
        return hf__mysql_sql_table_release;
    return hf__mysql_ticket(mysql, ticket)->state == HF__MYSQL_RELEASING
               ? hf__mysql_sql_table_condition_release
               : hf__mysql_sql_table_condition_withdraw;
}

static int release(struct hf__mysql *mysql, struct hf__ticket *ticket,
                   hf_error *err)
{
    return hf__mysql_call_ask(&mysql->main, ticket, release_text(mysql, ticket),
                              on_released, err);
}

static void on_freed(struct hf__mysql *mysql, struct hf__ticket *ticket,
                     struct hf__mysql_call *call, struct hf__mysql_reply *reply)
{
    (void)call;
    if (hf__mysql_tickets_not_left(mysql, ticket, reply))
        return;
    if (reply->number != 0)
        hf__mysql_table_release_sweep(mysql);
    if (reply->affected[0] == 2) {
        hf__mysql_tickets_left(mysql, ticket, /* held= */ true);
        return;
    }
    hf__mysql_ticket(mysql, ticket)->stored = HF__MYSQL_HAS_LINE;
    if (release(mysql, ticket, NULL) != 0)
        hf__mysql_tickets_answer_lost(mysql, ticket);
}

int hf__mysql_table_release(struct hf__mysql *mysql, struct hf__ticket *ticket,
                            hf_error *err)
{
    struct hf__mysql_ticket *mine = hf__mysql_ticket(mysql, ticket);

    mine->poll_ns = 0;
    if (mine->stored != HF__MYSQL_HAS_LOCK || ticket->cond)
        return release(mysql, ticket, err);
    return hf__mysql_call_prepared(&mysql->main, ticket,
                                   hf__mysql_sql_table_free, on_freed, 0, err);
}

/* ---- downgrading --------------------------------------------------------- */

static void on_downgraded(struct hf__mysql *mysql, struct hf__ticket *ticket,
                          struct hf__mysql_call *call,
                          struct hf__mysql_reply *reply)
{
    struct hf__grant grant = {
        .tokens = 1, .lease_ms = ticket->ttl_ms, .sent_ns = call->sent_ns};
    struct hf__mysql_field row[1];

    if (hf__mysql_tickets_leaves(hf__mysql_ticket(mysql, ticket)))
        return;
    if (!reply || reply->code != 0 || !hf__mysql_answer_row(reply, 1, row)) {
        hf__mysql_tickets_answer_lost(mysql, ticket);
    } else if (hf__mysql_answer_number(row[0]) == 1) {
        ticket->mode = HF_SHARED;
        hf__up_renewed(&mysql->base, ticket, &grant);
    } else {
        hf__mysql_tickets_lost(mysql, ticket, HF__LOST_TAKEN);
    }
}

int hf__mysql_table_release_downgrade(struct hf__mysql *mysql,
                                      struct hf__ticket *ticket, hf_error *err)
{
    hf__mysql_ticket(mysql, ticket)->stored = HF__MYSQL_HAS_LINE;
    return hf__mysql_call_ask(&mysql->main, ticket,
                              hf__mysql_sql_table_downgrade, on_downgraded,
                              err);
}

/* SPDX-License-Identifier: MIT */
/*
 * table_acquire.c - mode=table: a lock is a row, its lease the server's clock.
 *
 * A name for which nobody waits is taken by one statement and freed by another.
 * Any other ticket gets a row in the line (table_wait.c).
 *
 * Failure: an error of the server is certain, nothing was done. Everything else
 * is an answer or the loss of the connection, after which mysql.c ends the
 * session at the server before anything is withdrawn.
 */
#include "engines/common/caps.h"
#include "engines/mysql/mysql.h"
#include "engines/sql/record.h"

static void busy(struct hf__mysql *mysql, struct hf__ticket *ticket,
                 struct hf__mysql_field record)
{
    char holder[256];

    if (record.len > 0)
        hf__sql_record_holder(record.text, record.len, holder, sizeof(holder));
    hf__mysql_tickets_busy(mysql, ticket, record.len > 0 ? holder : NULL);
}

/* ---- the line ------------------------------------------------------------ */

/* What hf__mysql_sql_table_acquire answers, and of HELD: */
enum { HELD, TOKEN, PLACE, RECORD, COLUMNS };
enum { NOT_HELD, IS_HELD, IS_HELD_WOKEN };

static void queued(struct hf__mysql *mysql, struct hf__ticket *ticket,
                   uint64_t place)
{
    struct hf__mysql_ticket *mine = hf__mysql_ticket(mysql, ticket);
    bool first = mine->state == HF__MYSQL_ASKING;

    hf__mysql_tickets_move(mine, HF__MYSQL_WAITING);
    hf__mysql_table_wait_plan(mysql, ticket, place);
    if (first)
        hf__up_queued(&mysql->base, ticket);
}

static void heard(struct hf__mysql *mysql, struct hf__ticket *ticket,
                  const struct hf__mysql_call *call,
                  const struct hf__mysql_field *row)
{
    uint64_t token = hf__mysql_answer_number(row[TOKEN]);
    uint64_t held = hf__mysql_answer_number(row[HELD]);

    if (held == NOT_HELD && ticket->nowait)
        busy(mysql, ticket, row[RECORD]);
    else if (held == NOT_HELD)
        queued(mysql, ticket, hf__mysql_answer_number(row[PLACE]));
    else if (token == 0) /* a grant has a token */
        hf__mysql_tickets_answer_lost(mysql, ticket);
    else
        hf__mysql_tickets_granted(mysql, ticket, token, held == IS_HELD_WOKEN,
                                  call->sent_ns);
}

static void on_asked(struct hf__mysql *mysql, struct hf__ticket *ticket,
                     struct hf__mysql_call *call, struct hf__mysql_reply *reply)
{
    struct hf__mysql_ticket *mine = hf__mysql_ticket(mysql, ticket);
    struct hf__mysql_field row[COLUMNS];

    if (hf__mysql_tickets_leaves(mine) || hf__mysql_schema_make(call, reply))
        return;
    mine->under_way = false;
    if (mine->state != HF__MYSQL_ASKING && mine->state != HF__MYSQL_WAITING)
        return;
    if (mine->state == HF__MYSQL_WAITING && (!reply || reply->code != 0))
        hf__mysql_table_wait_plan(mysql, ticket, 8); /* as far as we know */
    else if (reply && reply->code != 0)
        hf__mysql_tickets_not_granted(mysql, ticket, reply);
    else if (!reply || !hf__mysql_answer_row(reply, COLUMNS, row))
        hf__mysql_tickets_answer_lost(mysql, ticket);
    else
        heard(mysql, ticket, call, row);
}

int hf__mysql_table_acquire_ask(struct hf__mysql *mysql,
                                struct hf__ticket *ticket, hf_error *err)
{
    hf__mysql_ticket(mysql, ticket)->stored = HF__MYSQL_HAS_LINE;
    return hf__mysql_call_ask(&mysql->main, ticket,
                              ticket->cond ? hf__mysql_sql_table_called
                                           : hf__mysql_sql_table_acquire,
                              on_asked, err);
}

/* ---- a name for which nobody waits --------------------------------------- */

static void on_who(struct hf__mysql *mysql, struct hf__ticket *ticket,
                   struct hf__mysql_call *call, struct hf__mysql_reply *reply)
{
    struct hf__mysql_field row[1];

    (void)call;
    if (hf__mysql_ticket(mysql, ticket)->state != HF__MYSQL_ASKING)
        return;
    if (reply && reply->code != 0)
        hf__mysql_tickets_not_granted(mysql, ticket, reply);
    else if (reply && hf__mysql_answer_row(reply, 1, row))
        busy(mysql, ticket, row[0]);
    else if (!reply || hf__mysql_table_acquire_ask(mysql, ticket, NULL) != 0)
        hf__mysql_tickets_answer_lost(mysql, ticket);
}

/* Another ticket has it, or waits. */
static int not_free(struct hf__mysql *mysql, struct hf__ticket *ticket)
{
    return ticket->nowait
               ? hf__mysql_call_ask(&mysql->main, ticket,
                                    hf__mysql_sql_table_who, on_who, NULL)
               : hf__mysql_table_acquire_ask(mysql, ticket, NULL);
}

static void on_taken(struct hf__mysql *mysql, struct hf__ticket *ticket,
                     struct hf__mysql_call *call, struct hf__mysql_reply *reply)
{
    if (hf__mysql_ticket(mysql, ticket)->state != HF__MYSQL_ASKING ||
        hf__mysql_schema_make(call, reply))
        return;
    if (reply && reply->code == 0 && reply->number != 0)
        hf__mysql_tickets_granted(mysql, ticket, reply->number,
                                  /* woken= */ false, call->sent_ns);
    else if (reply && reply->code != 0 && !hf__mysql_errors_is_taken(reply))
        hf__mysql_tickets_not_granted(mysql, ticket, reply);
    else if (!reply || reply->code == 0 || not_free(mysql, ticket) != 0)
        hf__mysql_tickets_answer_lost(mysql, ticket); /* a grant has a token */
}

static int acquire(struct hf__mysql *mysql, struct hf__ticket *ticket,
                   hf_error *err)
{
    struct hf__mysql_ticket *mine = hf__mysql_ticket(mysql, ticket);
    bool known = hf__mysql_tickets_ask(mysql, ticket);
    int rc;

    mine->unsure |= known;
    mine->poll_ns = 0;
    if (ticket->mode == HF_EXCLUSIVE && !known)
        rc = hf__mysql_call_prepared(
            &mysql->main, ticket, hf__mysql_sql_table_take, on_taken, 0, err);
    else
        rc = hf__mysql_table_acquire_ask(mysql, ticket, err);
    return rc == 0 ? 0 : hf__mysql_tickets_not_asked(mysql, ticket, known, rc);
}

static int64_t attend(struct hf__mysql *mysql, int64_t now_ns)
{
    int64_t wait_ns = hf__mysql_table_wait_attend(mysql, now_ns);
    int64_t sweep_ns = hf__mysql_table_release_attend(mysql, now_ns);

    return wait_ns < sweep_ns ? wait_ns : sweep_ns;
}

static void regained(struct hf__mysql *mysql)
{
    mysql->sweeps_conditions = true;
    hf__mysql_table_release_sweep(mysql);
}

const struct hf__mysql_mode hf__mysql_table_acquire_mode = {
    .name = "table",
    .caps = HF__CAPS_QUEUE | HF_CAP_SURVIVES_RESTART | HF_CAP_CONDITIONS,
    HF__MYSQL_OF_ROWS(acquire, hf__mysql_table_release),
    .downgrade = hf__mysql_table_release_downgrade,
    .attend = attend,
    .lost = hf__mysql_table_wait_lost,
    .regained = regained,
};

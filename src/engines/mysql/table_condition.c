/* SPDX-License-Identifier: MIT */
/*
 * table_condition.c - mode=table: waiting for a condition of a lock, and signals.
 *
 * Who waits for a condition is parked: it has a row in holdfast_cond, made in the
 * step that frees its lock, and none in the line, so that the lock can be taken
 * the quick way meanwhile. A signal puts the first of them at the end of the line
 * and marks its row as called: it bears a wake-up. The row stays until its bearer
 * has got the lock and releases it, or waits again. From then on it is a waiter
 * like any other (table_wait.c).
 *
 * Nobody tells who is parked: it polls, by the retry policy. In the same look it
 * finds a bearer that is neither in line nor the holder any more, because it was
 * killed, its lease has ended or its lock was broken: that one's row goes, and
 * the first that is parked is called in its place. The core renews who is parked.
 *
 * Failure: an answer that is lost is asked for again, by the same ticket. Who was
 * overdue may have missed a signal: it stands in line, and returns without one,
 * which is allowed. So does everybody when the table is gone.
 */
#include "core/retry.h"
#include "engines/mysql/mysql.h"

#include <limits.h>

/* ---- polling ------------------------------------------------------------- */

/* Well within the life of a waiter in line: who is called has to be there soon. */
static const int64_t pause_most_ns = 500 * HF_MS;

static void plan(struct hf__mysql *mysql, struct hf__mysql_ticket *mine)
{
    int64_t pause_ns = hf__retry_poll_ns(mysql->base.host->settings,
                                         mine->polls++, /* taken_ns= */ -1);

    mine->poll_ns =
        hf__now() + (pause_ns < pause_most_ns ? pause_ns : pause_most_ns);
    hf__link_wake(&mysql->link, mine->poll_ns);
}

/* It was called, or nobody knows it any more: it asks for the lock. */
static void stand_in_line(struct hf__mysql *mysql, struct hf__ticket *ticket)
{
    struct hf__mysql_ticket *mine = hf__mysql_ticket(mysql, ticket);

    hf__mysql_tickets_move(mine, HF__MYSQL_WAITING);
    mine->under_way = hf__mysql_table_acquire_ask(mysql, ticket, NULL) == 0;
    if (!mine->under_way)
        hf__mysql_table_wait_plan(mysql, ticket, 8);
    hf__up_queued(&mysql->base, ticket);
}

/* What hf__mysql_sql_table_parked answers. */
enum { STILL_PARKED, BEARER_GONE, COLUMNS };

static void on_looked(struct hf__mysql *mysql, struct hf__ticket *ticket,
                      struct hf__mysql_call *call,
                      struct hf__mysql_reply *reply)
{
    struct hf__mysql_ticket *mine = hf__mysql_ticket(mysql, ticket);
    struct hf__mysql_field row[COLUMNS] = {{0}};
    bool there;

    (void)call;
    if (mine->state != HF__MYSQL_PARKED)
        return;
    mine->under_way = false;
    if (!reply || (reply->code != 0 && !hf__mysql_errors_is_no_table(reply))) {
        plan(mysql, mine);
        return;
    }
    there = hf__mysql_answer_row(reply, COLUMNS, row);
    if (there && hf__mysql_answer_number(row[BEARER_GONE]) == 1)
        hf__mysql_table_condition_sweep(mysql);
    if (there && hf__mysql_answer_number(row[STILL_PARKED]) == 1)
        plan(mysql, mine);
    else
        stand_in_line(mysql, ticket);
}

int hf__mysql_table_condition_look(struct hf__mysql *mysql,
                                   struct hf__ticket *ticket)
{
    return hf__mysql_call_ask(&mysql->main, ticket, hf__mysql_sql_table_parked,
                              on_looked, NULL);
}

/* ---- the dead ------------------------------------------------------------ */

/* One after the other without a pause; the rest, or those that a server makes up,
 * with the next look. */
enum { SWEPT_MOST = 1000 };

static void sweep(struct hf__mysql *mysql);

static void on_swept(struct hf__mysql *mysql, struct hf__mysql_call *call,
                     struct hf__mysql_reply *reply)
{
    struct hf__mysql_field row[1];

    (void)call;
    mysql->sweeping = false;
    if (reply && reply->code == 0 && hf__mysql_answer_row(reply, 1, row) &&
        hf__mysql_answer_number(row[0]) == 1 && mysql->swept < SWEPT_MOST)
        sweep(mysql); /* there may be more of them */
}

static void sweep(struct hf__mysql *mysql)
{
    static const struct hf__mysql_values none = {.name = ""};
    struct hf__mysql_call *call = hf__mysql_call_new(on_swept, NULL);

    if (!call)
        return;
    mysql->swept++;
    hf__mysql_statement(mysql, &call->sql, hf__mysql_sql_table_condition_sweep,
                        &none);
    mysql->sweeping = hf__mysql_call_send(&mysql->main, call, NULL) == 0;
}

void hf__mysql_table_condition_sweep(struct hf__mysql *mysql)
{
    if (mysql->sweeping)
        return;
    mysql->swept = 0;
    sweep(mysql);
}

/* ---- parking ------------------------------------------------------------- */

/* What hf__mysql_sql_table_park answers. */
enum { IS_LOST, IS_PARKED, IS_CALLED };

/* It is certain what became of the park: the lock that it gave up is gone. */
static void forget_old(struct hf__mysql *mysql, struct hf__mysql_ticket *mine)
{
    struct hf__ticket *old = hf__mysql_tickets_find(mysql, mine->old);

    mine->old = 0;
    if (old)
        hf__mysql_tickets_forget(mysql, old);
}

static void parked(struct hf__mysql *mysql, struct hf__ticket *ticket)
{
    struct hf__mysql_ticket *mine = hf__mysql_ticket(mysql, ticket);

    hf__mysql_tickets_move(mine, HF__MYSQL_PARKED);
    mine->polls = 0;
    plan(mysql, mine);
    mysql->sweeps_conditions = true;
    hf__mysql_table_release_sweep(mysql);
    hf__up_parked(&mysql->base, ticket);
}

static void heard(struct hf__mysql *mysql, struct hf__ticket *ticket,
                  uint64_t outcome)
{
    forget_old(mysql, hf__mysql_ticket(mysql, ticket));
    if (outcome == IS_PARKED)
        parked(mysql, ticket);
    else if (outcome == IS_CALLED)
        stand_in_line(mysql, ticket);
    else
        hf__mysql_tickets_lost(mysql, ticket, HF__LOST_TAKEN);
}

/* Nothing was done, and an earlier park may have been. */
static void refused(struct hf__mysql *mysql, struct hf__ticket *ticket,
                    const struct hf__mysql_reply *reply)
{
    hf_error err;

    (void)hf__mysql_errors_read(mysql, reply, &err);
    if (hf__mysql_errors_is_collision(reply))
        hf__mysql_tickets_unknown(mysql, ticket, &err);
    else
        hf__mysql_tickets_refused(mysql, ticket, &err);
}

static void on_parked(struct hf__mysql *mysql, struct hf__ticket *ticket,
                      struct hf__mysql_call *call,
                      struct hf__mysql_reply *reply)
{
    struct hf__mysql_ticket *mine = hf__mysql_ticket(mysql, ticket);
    struct hf__mysql_field row[1];

    if (mine->state != HF__MYSQL_ASKING || hf__mysql_schema_make(call, reply))
        return;
    mine->under_way = false;
    if (reply && reply->code != 0)
        refused(mysql, ticket, reply);
    else if (!reply || !hf__mysql_answer_row(reply, 1, row))
        hf__mysql_tickets_answer_lost(mysql, ticket);
    else
        heard(mysql, ticket, hf__mysql_answer_number(row[0]));
}

int hf__mysql_table_condition_park(struct hf__engine *engine,
                                   struct hf__ticket *ticket,
                                   struct hf__ticket *old, hf_error *err)
{
    struct hf__mysql *mysql = (struct hf__mysql *)engine;
    struct hf__mysql_ticket *mine = hf__mysql_ticket(mysql, ticket);
    int rc = hf__mysql_is_up(mysql, err);
    bool known;

    if (rc != 0)
        return rc;
    known = hf__mysql_tickets_ask(mysql, ticket);
    mine->unsure |= known;
    mine->poll_ns = 0;
    mine->old = old->id;
    rc = hf__mysql_call_ask(&mysql->main, ticket, hf__mysql_sql_table_park,
                            on_parked, err);
    return rc == 0 ? 0 : hf__mysql_tickets_not_asked(mysql, ticket, known, rc);
}

/* It asks for the lock, by which it is parked no longer (table_called.sql). */
int hf__mysql_table_condition_unpark(struct hf__engine *engine,
                                     struct hf__ticket *ticket, hf_error *err)
{
    struct hf__mysql *mysql = (struct hf__mysql *)engine;
    struct hf__mysql_ticket *mine = hf__mysql_ticket(mysql, ticket);
    int rc = hf__mysql_is_up(mysql, err);

    if (rc == 0)
        rc = hf__mysql_table_acquire_ask(mysql, ticket, err);
    if (rc != 0)
        return rc;
    (void)hf__mysql_tickets_ask(mysql, ticket);
    mine->unsure = true; /* an error leaves it parked */
    mine->poll_ns = 0;
    return 0;
}

/* ---- signals ------------------------------------------------------------- */

/* What hf__mysql_sql_table_signal answers. */
enum { HOLDS, CALLED, SIGNAL_COLUMNS };

static void on_signalled(struct hf__mysql *mysql, struct hf__mysql_call *call,
                         struct hf__mysql_reply *reply)
{
    struct hf__mysql_field row[SIGNAL_COLUMNS] = {{0}};
    struct hf__query *query = call->query;
    uint64_t called;

    if (hf__mysql_schema_make(call, reply) ||
        hf__mysql_inspect_unknown(mysql, call, reply, SIGNAL_COLUMNS) ||
        hf__mysql_inspect_failed(mysql, query, reply, SIGNAL_COLUMNS))
        return;
    (void)hf__mysql_answer_row(reply, SIGNAL_COLUMNS, row);
    called = hf__mysql_answer_number(row[CALLED]);
    query->woken = called < INT_MAX ? (uint32_t)called : INT_MAX;
    if (hf__mysql_answer_number(row[HOLDS]) == 1)
        hf__up_answer(&mysql->base, query, 0, /* err= */ NULL);
    else
        hf__mysql_inspect_fail(mysql, query, HF_ELOST, "not held any more");
}

int hf__mysql_table_condition_signal(struct hf__engine *engine,
                                     struct hf__query *query, hf_error *err)
{
    struct hf__mysql *mysql = (struct hf__mysql *)engine;
    int rc = hf__mysql_is_up(mysql, err);

    return rc != 0
               ? rc
               : hf__mysql_inspect_ask(mysql, query, hf__mysql_sql_table_signal,
                                       on_signalled, err);
}

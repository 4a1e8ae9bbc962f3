/* SPDX-License-Identifier: MIT */
/*
 * table_wait.c - mode=table: waiters poll.
 *
 * MariaDB and MySQL cannot call us. The first in line polls every few
 * milliseconds, those behind it less often the farther back they are, so that a
 * long line costs the server little more than a short one. Only the first can
 * take the lock, so no waiter is overtaken. Who waits for a condition polls too
 * (table_condition.c).
 *
 * Failure: without an answer the waiter looks again; it is in line as far as we
 * know.
 */
#include "engines/mysql/mysql.h"

/* How often the first in line looks, and the most that others pause. */
static const int64_t poll_first_ns = 2 * HF_MS;
static const int64_t poll_most_ns = 500 * HF_MS;

void hf__mysql_table_wait_plan(struct hf__mysql *mysql,
                               struct hf__ticket *ticket, uint64_t place)
{
    struct hf__mysql_ticket *mine = hf__mysql_ticket(mysql, ticket);
    int64_t pause_ns =
        place < 64 ? (int64_t)place * poll_first_ns : poll_most_ns;

    mine->poll_ns =
        hf__now() + (pause_ns < poll_most_ns ? pause_ns : poll_most_ns);
    hf__link_wake(&mysql->link, mine->poll_ns);
}

/* What hf__mysql_sql_table_look answers. */
enum { BEFORE, MAY_BE_FREE, LIVES, COLUMNS };

/* Is there nothing to ask for yet? */
static bool is_early(struct hf__mysql_reply *reply, uint64_t *ret_before)
{
    struct hf__mysql_field row[COLUMNS];

    if (!hf__mysql_answer_row(reply, COLUMNS, row))
        return false;
    *ret_before = hf__mysql_answer_number(row[BEFORE]);
    return hf__mysql_answer_number(row[LIVES]) == 1 &&
           (*ret_before > 0 || hf__mysql_answer_number(row[MAY_BE_FREE]) == 0);
}

/* Ask for the lock only if it may be ours, or to stay alive. */
static void on_looked(struct hf__mysql *mysql, struct hf__ticket *ticket,
                      struct hf__mysql_call *call,
                      struct hf__mysql_reply *reply)
{
    struct hf__mysql_ticket *mine = hf__mysql_ticket(mysql, ticket);
    uint64_t before;

    (void)call;
    if (mine->state != HF__MYSQL_WAITING)
        return;
    mine->under_way = false;
    if (reply && is_early(reply, &before)) {
        hf__mysql_table_wait_plan(mysql, ticket, before + 1);
        return;
    }
    mine->under_way =
        reply && hf__mysql_table_acquire_ask(mysql, ticket, NULL) == 0;
    if (!mine->under_way)
        hf__mysql_table_wait_plan(mysql, ticket, 8);
}

static int look(struct hf__mysql *mysql, struct hf__ticket *ticket)
{
    if (hf__mysql_ticket(mysql, ticket)->state == HF__MYSQL_PARKED)
        return hf__mysql_table_condition_look(mysql, ticket);
    return hf__mysql_call_ask(&mysql->main, ticket, hf__mysql_sql_table_look,
                              on_looked, NULL);
}

struct round {
    struct hf__mysql *mysql;
    int64_t now_ns;
    int64_t next_ns; /* when to run again */
};

static void poll_one(struct hf__ticket *ticket, void *ctx)
{
    struct round *round = ctx;
    struct hf__mysql *mysql = round->mysql;
    struct hf__mysql_ticket *mine = hf__mysql_ticket(mysql, ticket);

    if (mine->poll_ns == 0 || mine->under_way)
        return;
    if (mine->poll_ns <= round->now_ns) {
        mine->under_way =
            hf__mysql_is_up(mysql, NULL) == 0 && look(mysql, ticket) == 0;
        if (mine->under_way)
            return;
        mine->poll_ns = round->now_ns + poll_most_ns;
    }
    if (mine->poll_ns < round->next_ns)
        round->next_ns = mine->poll_ns;
}

int64_t hf__mysql_table_wait_attend(struct hf__mysql *mysql, int64_t now_ns)
{
    struct round round = {mysql, now_ns, HF_NEVER};

    hf__ticket_table_each(&mysql->tickets, poll_one, &round);
    return round.next_ns;
}

static void forget_answer(struct hf__ticket *ticket, void *mysql)
{
    hf__mysql_ticket(mysql, ticket)->under_way = false;
}

void hf__mysql_table_wait_lost(struct hf__mysql *mysql)
{
    hf__ticket_table_each(&mysql->tickets, forget_answer, mysql);
}

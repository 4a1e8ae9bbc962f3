/* SPDX-License-Identifier: MIT */
/*
 * table.c - mode=table: a lock is a row, its lease the server's clock.
 *
 * A quiet name is taken by one statement and freed by another (statements.c).
 * Whoever comes second gets a row in the line. MariaDB cannot call us, so who
 * is in line asks: the first every few milliseconds, those behind it the less
 * often the farther back they are, so that a long line costs the server little
 * more than a short one. Only who is first can take the lock, so nobody is
 * overtaken.
 *
 * Failure: an error of the server is certain, nothing was done (row.c).
 * Everything else is an answer or the loss of the connection, after which
 * connection.c ends the session at the server before anything is withdrawn.
 */
#include "engines/mysql/mysql.h"
#include "engines/sql/record.h"

/* How often the first in line looks, and the most that others pause. */
static const int64_t poll_first_ns = 2 * HF_MS;
static const int64_t poll_most_ns = 500 * HF_MS;

/* ---- asking ------------------------------------------------------------ */

static void busy(struct hf__mysql *mysql, struct hf__ticket *ticket,
                 struct hf__mysql_field record)
{
    char holder[256];

    if (record.len > 0)
        hf__sql_record_holder(record.text, record.len, holder, sizeof(holder));
    hf__mysql_row_busy(mysql, ticket, record.len > 0 ? holder : NULL);
}

static void plan_poll(struct hf__mysql *mysql, struct hf__ticket *ticket,
                      uint64_t place)
{
    struct hf__mysql_ticket *mine = hf__mysql_ticket(mysql, ticket);
    int64_t pause_ns =
        place < 64 ? (int64_t)place * poll_first_ns : poll_most_ns;

    mine->poll_ns =
        hf__now() + (pause_ns < poll_most_ns ? pause_ns : poll_most_ns);
    hf__mysql_wake(mysql, mine->poll_ns);
}

/* ---- the slow way: the line -------------------------------------------- */

static void queued(struct hf__mysql *mysql, struct hf__ticket *ticket,
                   uint64_t place)
{
    struct hf__mysql_ticket *mine = hf__mysql_ticket(mysql, ticket);
    bool first = mine->asking;

    mine->asking = false;
    mine->waiting = true;
    plan_poll(mysql, ticket, place);
    if (first)
        hf__up_queued(&mysql->base, ticket);
}

static void on_slow(struct hf__mysql *mysql, struct hf__mysql_call *call,
                    struct hf__mysql_reply *reply)
{
    struct hf__ticket *ticket = hf__mysql_ticket_find(mysql, call->ticket);
    struct hf__mysql_ticket *mine =
        ticket ? hf__mysql_ticket(mysql, ticket) : NULL;
    struct hf__mysql_field row[4];

    if (!mine || mine->leaving || hf__mysql_remake(call, reply))
        return;
    mine->polling = false;
    if (!mine->asking && !mine->waiting)
        return;
    if (mine->waiting && (!reply || reply->code != 0)) {
        /* In line still, as far as we know: look again. */
        plan_poll(mysql, ticket, 8);
    } else if (reply && reply->code != 0) {
        hf__mysql_row_not_granted(mysql, ticket, reply);
    } else if (!reply || !hf__mysql_row(reply, 4, row) ||
               (hf__mysql_number(row[0]) == 1 &&
                hf__mysql_number(row[1]) == 0)) {
        hf__mysql_row_unknown(mysql, ticket); /* a grant has a token */
    } else if (hf__mysql_number(row[0]) == 1) {
        hf__mysql_row_granted(mysql, ticket, hf__mysql_number(row[1]),
                              call->sent_ns);
    } else if (ticket->nowait) {
        busy(mysql, ticket, row[3]);
    } else {
        queued(mysql, ticket, hf__mysql_number(row[2]));
    }
}

static int ask_slow(struct hf__mysql *mysql, struct hf__ticket *ticket,
                    hf_error *err)
{
    hf__mysql_ticket(mysql, ticket)->in_row = true;
    return hf__mysql_ask(&mysql->main, ticket, hf__mysql_acquire_slow, on_slow,
                         0, err);
}

/* Ask for it only if it may be ours, or to be remembered. */
static void on_looked(struct hf__mysql *mysql, struct hf__mysql_call *call,
                      struct hf__mysql_reply *reply)
{
    struct hf__ticket *ticket = hf__mysql_ticket_find(mysql, call->ticket);
    struct hf__mysql_ticket *mine =
        ticket ? hf__mysql_ticket(mysql, ticket) : NULL;
    struct hf__mysql_field row[3];

    if (!mine || mine->leaving || !mine->waiting)
        return;
    mine->polling = false;
    if (reply && hf__mysql_row(reply, 3, row) &&
        hf__mysql_number(row[2]) == 1 &&
        (hf__mysql_number(row[0]) > 0 || hf__mysql_number(row[1]) == 0)) {
        plan_poll(mysql, ticket, hf__mysql_number(row[0]) + 1);
        return;
    }
    mine->polling = reply && ask_slow(mysql, ticket, NULL) == 0;
    if (!mine->polling)
        plan_poll(mysql, ticket, 8);
}

static int64_t poll_line(struct hf__mysql *mysql, int64_t now_ns)
{
    int64_t next_ns = HF_NEVER;

    for (size_t i = 0; i < HF__MYSQL_BUCKETS; i++) {
        struct hf__ticket *ticket = mysql->tickets[i];

        for (; ticket; ticket = hf__mysql_ticket(mysql, ticket)->next) {
            struct hf__mysql_ticket *mine = hf__mysql_ticket(mysql, ticket);

            if (mine->poll_ns == 0 || mine->polling)
                continue;
            if (mine->poll_ns <= now_ns && hf__mysql_is_up(mysql, NULL) == 0 &&
                hf__mysql_ask(&mysql->main, ticket, hf__mysql_look, on_looked,
                              0, NULL) == 0)
                mine->polling = true;
            else if (mine->poll_ns <= now_ns)
                mine->poll_ns = now_ns + poll_most_ns;
            if (!mine->polling && mine->poll_ns < next_ns)
                next_ns = mine->poll_ns;
        }
    }
    return next_ns;
}

/* ---- the fast way ------------------------------------------------------ */

static void on_who(struct hf__mysql *mysql, struct hf__mysql_call *call,
                   struct hf__mysql_reply *reply)
{
    struct hf__ticket *ticket = hf__mysql_ticket_find(mysql, call->ticket);
    struct hf__mysql_field row[1];

    if (!ticket || !hf__mysql_ticket(mysql, ticket)->asking)
        return;
    if (reply && reply->code != 0)
        hf__mysql_row_not_granted(mysql, ticket, reply);
    else if (reply && hf__mysql_row(reply, 1, row))
        busy(mysql, ticket, row[0]);
    else if (!reply || ask_slow(mysql, ticket, NULL) != 0)
        hf__mysql_row_unknown(mysql, ticket);
}

/* Somebody has it, or waits. */
static int not_free(struct hf__mysql *mysql, struct hf__ticket *ticket)
{
    return ticket->nowait ? hf__mysql_ask(&mysql->main, ticket, hf__mysql_who,
                                          on_who, 0, NULL)
                          : ask_slow(mysql, ticket, NULL);
}

static void on_taken(struct hf__mysql *mysql, struct hf__mysql_call *call,
                     struct hf__mysql_reply *reply)
{
    struct hf__ticket *ticket = hf__mysql_ticket_find(mysql, call->ticket);
    const struct hf__mysql_ticket *mine =
        ticket ? hf__mysql_ticket(mysql, ticket) : NULL;

    if (!mine || !mine->asking || hf__mysql_remake(call, reply))
        return;
    if (reply && reply->code == 0 && reply->number != 0) {
        hf__mysql_row_granted(mysql, ticket, reply->number, call->sent_ns);
        return;
    }
    if (reply && reply->code != 0 && !hf__mysql_is_refused(reply)) {
        hf__mysql_row_not_granted(mysql, ticket, reply);
        return;
    }
    if (reply && reply->code != 0 && not_free(mysql, ticket) == 0)
        return;
    hf__mysql_row_unknown(mysql, ticket); /* a grant has a token */
}

static int acquire(struct hf__mysql *mysql, struct hf__ticket *ticket,
                   hf_error *err)
{
    struct hf__mysql_ticket *mine = hf__mysql_ticket(mysql, ticket);
    bool known = mine->known;
    int rc;

    hf__mysql_ticket_know(mysql, ticket);
    mine->unsure |= known;
    mine->asking = true;
    mine->waiting = false;
    mine->poll_ns = 0;
    if (ticket->mode == HF_EXCLUSIVE && !known)
        rc = hf__mysql_ask_prepared(&mysql->main, ticket, hf__mysql_take,
                                    on_taken, 0, err);
    else
        rc = ask_slow(mysql, ticket, err);
    return rc == 0 ? 0 : hf__mysql_row_not_asked(mysql, ticket, known, rc);
}

/* ---- the dead ------------------------------------------------------------ */

/* Somebody was in line, who may be dead: look when that would be certain. */
static void plan_sweep(struct hf__mysql *mysql)
{
    if (mysql->sweep_ns != 0)
        return;
    mysql->sweep_ns = hf__now() + (int64_t)HF__MYSQL_LIFE_US * 1000;
    hf__mysql_wake(mysql, mysql->sweep_ns);
}

static int sweep(struct hf__mysql *mysql);

static void on_swept(struct hf__mysql *mysql, struct hf__mysql_call *call,
                     struct hf__mysql_reply *reply)
{
    struct hf__mysql_field row[1];

    (void)call;
    if (reply && reply->code == 0 && hf__mysql_row(reply, 1, row) &&
        hf__mysql_number(row[0]) == 1)
        (void)sweep(mysql); /* there may be more of them */
}

static int sweep(struct hf__mysql *mysql)
{
    struct hf__mysql_call *call = hf__mysql_call_new(on_swept, NULL);

    if (!call)
        return HF_ENOMEM;
    hf__buf_add(&call->sql, hf__mysql_sweep);
    return hf__mysql_call_send(&mysql->main, call, NULL);
}

static int64_t attend(struct hf__mysql *mysql, int64_t now_ns)
{
    int64_t next_ns = poll_line(mysql, now_ns);

    if (mysql->sweep_ns != 0 && mysql->sweep_ns <= now_ns) {
        mysql->sweep_ns = 0;
        if (hf__mysql_is_up(mysql, NULL) == 0)
            (void)sweep(mysql);
    }
    return mysql->sweep_ns != 0 && mysql->sweep_ns < next_ns ? mysql->sweep_ns
                                                             : next_ns;
}

/* ---- leaving ----------------------------------------------------------- */

static void on_left_slow(struct hf__mysql *mysql, struct hf__mysql_call *call,
                         struct hf__mysql_reply *reply)
{
    struct hf__ticket *ticket = hf__mysql_ticket_find(mysql, call->ticket);
    struct hf__mysql_field row[1];

    if (!ticket || hf__mysql_row_not_left(mysql, ticket, reply))
        return;
    if (hf__mysql_row(reply, 1, row))
        hf__mysql_row_left(mysql, ticket, hf__mysql_number(row[0]) == 1);
    else
        hf__mysql_row_unknown(mysql, ticket);
}

static void on_left_fast(struct hf__mysql *mysql, struct hf__mysql_call *call,
                         struct hf__mysql_reply *reply)
{
    struct hf__ticket *ticket = hf__mysql_ticket_find(mysql, call->ticket);

    if (!ticket || hf__mysql_row_not_left(mysql, ticket, reply))
        return;
    if (reply->number != 0)
        plan_sweep(mysql);
    if (reply->affected[0] == 2) {
        hf__mysql_row_left(mysql, ticket, /* held= */ true);
        return;
    }
    hf__mysql_ticket(mysql, ticket)->in_row = true;
    if (hf__mysql_ask(&mysql->main, ticket, hf__mysql_leave_slow, on_left_slow,
                      0, /* err= */ NULL) != 0)
        hf__mysql_row_unknown(mysql, ticket);
}

static int send_leave(struct hf__mysql *mysql, struct hf__ticket *ticket,
                      hf_error *err)
{
    const struct hf__mysql_ticket *mine = hf__mysql_ticket(mysql, ticket);

    if (mine->in_row || mine->token == 0)
        return hf__mysql_ask(&mysql->main, ticket, hf__mysql_leave_slow,
                             on_left_slow, 0, err);
    return hf__mysql_ask_prepared(&mysql->main, ticket, hf__mysql_leave_fast,
                                  on_left_fast, 0, err);
}

static int leave(struct hf__mysql *mysql, struct hf__ticket *ticket,
                 bool releasing, hf_error *err)
{
    struct hf__mysql_ticket *mine = hf__mysql_ticket(mysql, ticket);

    mine->asking = false;
    mine->waiting = false;
    mine->poll_ns = 0;
    mine->leaving = true;
    mine->releasing = releasing;
    return send_leave(mysql, ticket, err);
}

static const char *renewal(const struct hf__mysql *mysql,
                           const struct hf__ticket *ticket)
{
    (void)mysql;
    return ticket->mode == HF_EXCLUSIVE ? hf__mysql_renew_exclusive
                                        : hf__mysql_renew_row;
}

/* ---- downgrading ------------------------------------------------------- */

static void on_downgraded(struct hf__mysql *mysql, struct hf__mysql_call *call,
                          struct hf__mysql_reply *reply)
{
    struct hf__ticket *ticket = hf__mysql_ticket_find(mysql, call->ticket);
    struct hf__grant grant = {.tokens = 1, .sent_ns = call->sent_ns};
    struct hf__mysql_field row[1];

    if (!ticket || hf__mysql_ticket(mysql, ticket)->leaving)
        return;
    if (!reply || reply->code != 0 || !hf__mysql_row(reply, 1, row)) {
        hf__mysql_row_unknown(mysql, ticket);
    } else if (hf__mysql_number(row[0]) == 1) {
        ticket->mode = HF_SHARED;
        grant.lease_ms = ticket->ttl_ms;
        hf__up_renewed(&mysql->base, ticket, &grant);
    } else {
        hf__mysql_ticket_forget(mysql, ticket);
        hf__up_lost(&mysql->base, ticket, HF__LOST_TAKEN);
    }
}

static int downgrade(struct hf__mysql *mysql, struct hf__ticket *ticket,
                     hf_error *err)
{
    hf__mysql_ticket(mysql, ticket)->in_row = true;
    return hf__mysql_ask(&mysql->main, ticket, hf__mysql_downgrade,
                         on_downgraded, 0, err);
}

/* ---- the connection ---------------------------------------------------- */

static void lost(struct hf__mysql *mysql)
{
    for (size_t i = 0; i < HF__MYSQL_BUCKETS; i++) {
        struct hf__ticket *ticket = mysql->tickets[i];

        for (; ticket; ticket = hf__mysql_ticket(mysql, ticket)->next)
            hf__mysql_ticket(mysql, ticket)->polling = false;
    }
}

const struct hf__mysql_mode hf__mysql_table = {
    .name = "table",
    .caps = HF_CAP_FENCED | HF_CAP_FIFO | HF_CAP_SHARED | HF_CAP_SLOTS |
            HF_CAP_LEASED | HF_CAP_DISTRIBUTED | HF_CAP_SURVIVES_RESTART |
            HF_CAP_DOWNGRADE | HF_CAP_VERSIONS | HF_CAP_LIST | HF_CAP_BREAK |
            HF_CAP_CHECK_TOKEN | HF_CAP_LOCK_DELAY | HF_CAP_TOLD_BEFORE_REGRANT,
    .acquire = acquire,
    .leave = leave,
    .renew = hf__mysql_row_renew,
    .renewal = renewal,
    .downgrade = downgrade,
    .attend = attend,
    .lost = lost,
    .regained = plan_sweep,
};

/* SPDX-License-Identifier: MIT */
/*
 * tickets.c - the tickets that the server may know, their moves, and what an
 * answer means for a lock that is a row.
 *
 * A call under way names its ticket by number and finds it here, or does not:
 * the ticket may be gone before the answer comes.
 *
 * Failure: after a deadlock, or a row that was locked for too long, nothing was
 * done: an acquire reports busy, a release is sent again.
 */
#include "engines/mysql/mysql.h"

#define MAY(state) (1u << HF__MYSQL_##state)

static const uint16_t moves[HF__MYSQL_STATES] = {
    [HF__MYSQL_IDLE] = MAY(ASKING),
    [HF__MYSQL_ASKING] = MAY(ASKING) | MAY(PARKED) | MAY(WAITING) | MAY(HELD) |
                         MAY(UNKNOWN) | MAY(RELEASING) | MAY(WITHDRAWING) |
                         MAY(IDLE),
    [HF__MYSQL_PARKED] = MAY(ASKING) | MAY(WAITING) | MAY(WITHDRAWING),
    [HF__MYSQL_WAITING] = MAY(ASKING) | MAY(WAITING) | MAY(HELD) |
                          MAY(UNKNOWN) | MAY(RELEASING) | MAY(WITHDRAWING) |
                          MAY(IDLE),
    [HF__MYSQL_HELD] =
        MAY(ASKING) | MAY(RELEASING) | MAY(WITHDRAWING) | MAY(IDLE),
    [HF__MYSQL_UNKNOWN] =
        MAY(ASKING) | MAY(RELEASING) | MAY(WITHDRAWING) | MAY(IDLE),
    [HF__MYSQL_RELEASING] = MAY(RELEASING) | MAY(WITHDRAWING) | MAY(IDLE),
    [HF__MYSQL_WITHDRAWING] = MAY(WITHDRAWING) | MAY(IDLE),
};

static const int64_t collision_pause_ns = 2 * HF_MS;

void hf__mysql_tickets_move(struct hf__mysql_ticket *mine,
                            enum hf__mysql_state state)
{
    assert(moves[mine->state] & (1u << state));
    mine->state = (uint8_t)state;
}

bool hf__mysql_tickets_ask(struct hf__mysql *mysql, struct hf__ticket *ticket)
{
    struct hf__mysql_ticket *mine = hf__mysql_ticket(mysql, ticket);

    mine->mysql = mysql;
    hf__mysql_tickets_move(mine, HF__MYSQL_ASKING);
    return !hf__ticket_table_add(&mysql->tickets, &mine->entry, ticket);
}

void hf__mysql_tickets_leave(struct hf__mysql *mysql, struct hf__ticket *ticket,
                             bool releasing)
{
    hf__mysql_tickets_move(hf__mysql_ticket(mysql, ticket),
                           releasing ? HF__MYSQL_RELEASING
                                     : HF__MYSQL_WITHDRAWING);
}

void hf__mysql_tickets_forget(struct hf__mysql *mysql,
                              struct hf__ticket *ticket)
{
    struct hf__mysql_ticket *mine = hf__mysql_ticket(mysql, ticket);

    if (!hf__ticket_table_remove(&mysql->tickets, &mine->entry))
        return;
    hf__mysql_tickets_move(mine, HF__MYSQL_IDLE);
    memset(mine, 0, sizeof(*mine));
}

/* ---- what became of an acquire ------------------------------------------- */

void hf__mysql_tickets_granted(struct hf__mysql *mysql,
                               struct hf__ticket *ticket, uint64_t token,
                               bool woken, int64_t sent_ns)
{
    struct hf__mysql_ticket *mine = hf__mysql_ticket(mysql, ticket);
    struct hf__grant grant = {.token = token,
                              .tokens = 1,
                              .lease_ms = hf__mysql_lease_ms(mysql, ticket),
                              .sent_ns = sent_ns,
                              .woken = woken};

    hf__mysql_tickets_move(mine, HF__MYSQL_HELD);
    mine->stored =
        ticket->mode == HF_EXCLUSIVE ? HF__MYSQL_HAS_LOCK : HF__MYSQL_HAS_LINE;
    mine->unsure = false;
    mine->poll_ns = 0;
    mine->token = token;
    hf__up_granted(&mysql->base, ticket, &grant);
}

void hf__mysql_tickets_busy(struct hf__mysql *mysql, struct hf__ticket *ticket,
                            const char *holder)
{
    hf__mysql_tickets_forget(mysql, ticket);
    hf__up_busy(&mysql->base, ticket, /* again_ns= */ 0, holder);
}

void hf__mysql_tickets_failed(struct hf__mysql *mysql,
                              struct hf__ticket *ticket, const hf_error *err)
{
    hf__mysql_tickets_forget(mysql, ticket);
    hf__up_failed(&mysql->base, ticket, err);
}

void hf__mysql_tickets_refused(struct hf__mysql *mysql,
                               struct hf__ticket *ticket, const hf_error *err)
{
    if (hf__mysql_ticket(mysql, ticket)->unsure)
        hf__mysql_tickets_unknown(mysql, ticket, err);
    else
        hf__mysql_tickets_failed(mysql, ticket, err);
}

void hf__mysql_tickets_not_granted(struct hf__mysql *mysql,
                                   struct hf__ticket *ticket,
                                   const struct hf__mysql_reply *reply)
{
    hf_error err;

    if (!hf__mysql_ticket(mysql, ticket)->unsure &&
        hf__mysql_errors_is_collision(reply)) {
        hf__mysql_tickets_forget(mysql, ticket);
        hf__up_busy(&mysql->base, ticket, hf__now() + collision_pause_ns, NULL);
        return;
    }
    (void)hf__mysql_errors_read(mysql, reply, &err);
    hf__mysql_tickets_refused(mysql, ticket, &err);
}

int hf__mysql_tickets_not_asked(struct hf__mysql *mysql,
                                struct hf__ticket *ticket, bool known, int rc)
{
    if (known) {
        hf__mysql_tickets_answer_lost(mysql, ticket);
        return 0;
    }
    hf__mysql_tickets_forget(mysql, ticket);
    return rc;
}

/* ---- outcomes of any step ------------------------------------------------ */

void hf__mysql_tickets_unknown(struct hf__mysql *mysql,
                               struct hf__ticket *ticket, const hf_error *err)
{
    struct hf__mysql_ticket *mine = hf__mysql_ticket(mysql, ticket);

    if (mine->state == HF__MYSQL_ASKING || mine->state == HF__MYSQL_WAITING)
        hf__mysql_tickets_move(mine, HF__MYSQL_UNKNOWN);
    hf__up_unknown(&mysql->base, ticket, err);
}

void hf__mysql_tickets_answer_lost(struct hf__mysql *mysql,
                                   struct hf__ticket *ticket)
{
    hf_error err;

    (void)hf__mysql_errors_lost(mysql, &err);
    hf__mysql_tickets_unknown(mysql, ticket, &err);
}

void hf__mysql_tickets_lost(struct hf__mysql *mysql, struct hf__ticket *ticket,
                            int reason)
{
    hf__mysql_tickets_forget(mysql, ticket);
    hf__up_lost(&mysql->base, ticket, reason);
}

void hf__mysql_tickets_left(struct hf__mysql *mysql, struct hf__ticket *ticket,
                            bool held)
{
    bool releasing =
        hf__mysql_ticket(mysql, ticket)->state == HF__MYSQL_RELEASING;

    hf__mysql_tickets_forget(mysql, ticket);
    hf__up_left(&mysql->base, ticket, releasing && !held ? HF_ELOST : 0);
}

bool hf__mysql_tickets_not_left(struct hf__mysql *mysql,
                                struct hf__ticket *ticket,
                                const struct hf__mysql_reply *reply)
{
    bool again = reply && hf__mysql_errors_is_collision(reply);

    if (reply && reply->code == 0)
        return false;
    if (reply && hf__mysql_errors_is_no_table(reply))
        hf__mysql_tickets_left(mysql, ticket, /* held= */ false);
    else if (!again || mysql->mode->release(mysql, ticket, NULL) != 0)
        hf__mysql_tickets_answer_lost(mysql, ticket);
    return true;
}

/* SPDX-License-Identifier: MIT */
/*
 * tickets.c - the moves of a ticket, its calls, and outcomes of any call.
 */
#include "engines/memcached/memcached.h"

#define MAY(state) (1u << HF__MEMCACHED_##state)

static const uint8_t moves[HF__MEMCACHED_STATES] = {
    [HF__MEMCACHED_IDLE] = MAY(ASKING),
    [HF__MEMCACHED_ASKING] = MAY(ASKING) | MAY(HELD) | MAY(UNKNOWN) |
                             MAY(RELEASING) | MAY(WITHDRAWING) | MAY(IDLE),
    [HF__MEMCACHED_HELD] =
        MAY(ASKING) | MAY(RELEASING) | MAY(WITHDRAWING) | MAY(IDLE),
    [HF__MEMCACHED_UNKNOWN] =
        MAY(ASKING) | MAY(RELEASING) | MAY(WITHDRAWING) | MAY(IDLE),
    [HF__MEMCACHED_RELEASING] =
        MAY(UNKNOWN) | MAY(RELEASING) | MAY(WITHDRAWING) | MAY(IDLE),
    [HF__MEMCACHED_WITHDRAWING] =
        MAY(UNKNOWN) | MAY(RELEASING) | MAY(WITHDRAWING) | MAY(IDLE),
};

void hf__memcached_tickets_move(struct hf__memcached_ticket *m,
                                enum hf__memcached_state state)
{
    assert(moves[m->state] & (1u << state));
    m->state = (uint8_t)state;
}

int hf__memcached_tickets_send(struct hf__memcached *memcached, size_t mark,
                               hf__memcached_reply_fn *done,
                               enum hf__memcached_answers answers,
                               struct hf__ticket *ticket, hf_error *err)
{
    struct hf__memcached_call call = {
        .done = done, .answers = answers, .ticket = ticket};
    int rc = hf__memcached_connection_sent(memcached, mark, &call, err);

    hf__memcached_ticket(memcached, ticket)->calls += rc == 0;
    return rc;
}

uint64_t hf__memcached_tickets_cas(const struct hf__memcached *memcached,
                                   struct hf__ticket *ticket)
{
    const struct hf__memcached_ticket *m =
        hf__memcached_ticket(memcached, ticket);

    return m->epoch == memcached->epoch ? m->cas : 0;
}

/* ---- outcomes ------------------------------------------------------------ */

void hf__memcached_tickets_forget(struct hf__memcached *memcached,
                                  struct hf__ticket *ticket)
{
    struct hf__memcached_ticket *m = hf__memcached_ticket(memcached, ticket);

    if (m->calls > 0)
        hf__memcached_connection_forget(memcached, ticket);
    hf__memcached_tickets_move(m, HF__MEMCACHED_IDLE);
    memset(m, 0, sizeof(*m));
}

void hf__memcached_tickets_unknown(struct hf__memcached *memcached,
                                   struct hf__ticket *ticket)
{
    hf_error err;

    hf__memcached_connection_explain_lost(memcached, &err);
    hf__memcached_tickets_move(hf__memcached_ticket(memcached, ticket),
                               HF__MEMCACHED_UNKNOWN);
    hf__up_unknown(&memcached->base, ticket, &err);
}

void hf__memcached_tickets_no_answer(struct hf__memcached *memcached,
                                     struct hf__ticket *ticket)
{
    const struct hf__memcached_ticket *m =
        hf__memcached_ticket(memcached, ticket);

    if (m->state == HF__MEMCACHED_ASKING || hf__memcached_tickets_leaves(m))
        hf__memcached_tickets_unknown(memcached, ticket);
}

/* SPDX-License-Identifier: MIT */
/*
 * tickets.c - the tickets that the server may know, their moves, and outcomes
 * that any step may have.
 *
 * A call remembers its ticket by number: the ticket may be gone when the
 * answer comes.
 */
#include "engines/postgres/postgres.h"

#define MAY(state) (1u << HF__PG_##state)

static const uint16_t moves[HF__PG_STATES] = {
    [HF__PG_NOWHERE] =
        MAY(ASKING) | MAY(CHECKING) | MAY(WANTING) | MAY(RESTING),
    [HF__PG_ASKING] = MAY(NOWHERE) | MAY(ASKING) | MAY(WAITING) | MAY(PARKED) |
                      MAY(ACCEPTING) | MAY(HELD) | MAY(RELEASING) | MAY(ORPHAN),
    [HF__PG_CHECKING] = MAY(NOWHERE) | MAY(WANTING) | MAY(ORPHAN),
    [HF__PG_WANTING] = MAY(NOWHERE) | MAY(RESTING) | MAY(WAITING),
    [HF__PG_RESTING] = MAY(NOWHERE),
    [HF__PG_WAITING] = MAY(NOWHERE) | MAY(ASKING) | MAY(WAITING) |
                       MAY(CANCELLING) | MAY(ACCEPTING) | MAY(HELD) |
                       MAY(RELEASING) | MAY(ORPHAN),
    [HF__PG_PARKED] =
        MAY(NOWHERE) | MAY(ASKING) | MAY(WAITING) | MAY(HELD) | MAY(RELEASING),
    [HF__PG_CANCELLING] = MAY(NOWHERE) | MAY(CANCELLING) | MAY(ACCEPTING) |
                          MAY(HELD) | MAY(RELEASING) | MAY(ORPHAN),
    [HF__PG_ACCEPTING] =
        MAY(NOWHERE) | MAY(HELD) | MAY(RELEASING) | MAY(ORPHAN),
    [HF__PG_HELD] = MAY(NOWHERE) | MAY(ASKING) | MAY(ACCEPTING) | MAY(PARTING) |
                    MAY(RELEASING) | MAY(ORPHAN),
    [HF__PG_PARTING] = MAY(NOWHERE) | MAY(HELD) | MAY(RELEASING) | MAY(ORPHAN),
    [HF__PG_RELEASING] =
        MAY(NOWHERE) | MAY(RELEASING) | MAY(STUCK) | MAY(ORPHAN),
    [HF__PG_STUCK] = MAY(NOWHERE) | MAY(RELEASING) | MAY(ORPHAN),
    [HF__PG_ORPHAN] = MAY(NOWHERE),
};

void hf__pg_tickets_move(struct hf__pg_ticket *mine, enum hf__pg_state state)
{
    struct hf__pg *postgres = mine->engine;
    bool was_held = mine->state == HF__PG_HELD;

    assert(moves[mine->state] & (1u << state));
    postgres->cancelling += (state == HF__PG_CANCELLING);
    postgres->cancelling -= (mine->state == HF__PG_CANCELLING);
    mine->state = (uint8_t)state;
    if (postgres->mode->session && was_held != (state == HF__PG_HELD))
        hf__link_hold(&postgres->link, !was_held);
}

/* ---- the table ----------------------------------------------------------- */

void hf__pg_tickets_know(struct hf__pg *postgres, struct hf__ticket *ticket)
{
    struct hf__pg_ticket *mine = hf__pg_ticket(postgres, ticket);

    if (!hf__ticket_table_add(&postgres->tickets, &mine->entry, ticket))
        return;
    mine->engine = postgres;
    mine->key = hf__pg_names_key(postgres, ticket->name, ticket->name_len);
    mine->second_key =
        hf__pg_names_second_key(postgres, ticket->name, ticket->name_len);
    hf__list_init(&mine->link);
}

void hf__pg_tickets_forget(struct hf__pg_ticket *mine)
{
    struct hf__pg *postgres = mine->engine;

    if (!mine->entry.ticket)
        return;
    if (mine->state != HF__PG_NOWHERE)
        hf__pg_tickets_move(mine, HF__PG_NOWHERE);
    (void)hf__ticket_table_remove(&postgres->tickets, &mine->entry);
    hf__free(mine->why);
    hf__list_remove(&mine->link);
    memset(mine, 0, sizeof(*mine));
}

struct hf__pg_ticket *hf__pg_tickets_find(const struct hf__pg *postgres,
                                          uint64_t id)
{
    struct hf__ticket *ticket = hf__ticket_table_find(&postgres->tickets, id);

    return ticket ? hf__pg_ticket(postgres, ticket) : NULL;
}

struct due {
    struct hf__pg *postgres;
    hf__pg_each_fn *each;
    int64_t now_ns;
    int64_t next_ns;
};

static void look_at(struct hf__ticket *ticket, void *ctx)
{
    struct due *due = ctx;
    int64_t next_ns =
        due->each(hf__pg_ticket(due->postgres, ticket), due->now_ns);

    if (next_ns < due->next_ns)
        due->next_ns = next_ns;
}

int64_t hf__pg_tickets_due(struct hf__pg *postgres, hf__pg_each_fn *each,
                           int64_t now_ns)
{
    struct due due = {postgres, each, now_ns, HF_NEVER};

    hf__ticket_table_each(&postgres->tickets, look_at, &due);
    return due.next_ns;
}

/* ---- outcomes ------------------------------------------------------------ */

/* We forget it before the core may. */
static struct hf__ticket *forgotten(struct hf__pg_ticket *mine)
{
    struct hf__ticket *ticket = mine->entry.ticket;

    hf__pg_tickets_forget(mine);
    return ticket;
}

void hf__pg_tickets_failed(struct hf__pg_ticket *mine, const hf_error *err)
{
    struct hf__engine *engine = &mine->engine->base;

    hf__up_failed(engine, forgotten(mine), err);
}

void hf__pg_tickets_unknown(struct hf__pg_ticket *mine, const hf_error *err)
{
    if (hf__pg_tickets_asks(mine))
        mine->owed = HF__PG_OWES_NOTHING;
    hf__up_unknown(&mine->engine->base, mine->entry.ticket, err);
}

void hf__pg_tickets_lost_answer(struct hf__pg_ticket *mine,
                                const struct hf__pg_conn *conn)
{
    hf_error err;

    hf__pg_errors_lost(conn, &err);
    hf__pg_tickets_unknown(mine, &err);
}

void hf__pg_tickets_busy(struct hf__pg_ticket *mine, const char *holder)
{
    struct hf__engine *engine = &mine->engine->base;

    hf__up_busy(engine, forgotten(mine), /* again_ns= */ 0, holder);
}

void hf__pg_tickets_left(struct hf__pg_ticket *mine, int rc)
{
    struct hf__engine *engine = &mine->engine->base;

    hf__up_left(engine, forgotten(mine), rc);
}

void hf__pg_tickets_lost(struct hf__pg_ticket *mine, int reason)
{
    struct hf__engine *engine = &mine->engine->base;

    hf__up_lost(engine, forgotten(mine), reason);
}

/* SPDX-License-Identifier: MIT */
/*
 * advisory_wait.c - how a waiter for a session lock hears that it stands in
 * line.
 *
 * The grant itself is the answer of the statement that waits.
 */
#include "engines/postgres/advisory.h"

void hf__advisory_wait_watch(struct hf__pg_ticket *mine, int64_t pause_ns)
{
    mine->watch_ns = hf__now() + pause_ns;
    hf__pg_wake(mine->engine, mine->watch_ns);
}

static void on_looked(struct hf__pg_conn *conn, const struct hf__pg_call *call,
                      const struct hf__pg_answer *answer)
{
    struct hf__pg_ticket *mine = call->mine;

    (void)conn;
    if (mine->state != HF__PG_WAITING || hf__pg_tickets_leaves(mine) ||
        !answer || answer->error)
        return;
    if (answer->results[0].rows > 0)
        hf__advisory_acquire_queued(mine);
    if (!hf__advisory_transacts(mine->engine))
        hf__advisory_wait_watch(mine, HF__PG_CHECKED_NS);
    if (answer->n > 1)
        hf__advisory_names_add_checked(mine, answer->last, call->sent_ns);
}

/* Does the wait of @mine stand in line, and behind its own name? */
static void send_look(struct hf__pg_ticket *mine)
{
    struct hf__pg_call call = {.done = on_looked,
                               .ticket = mine->entry.ticket->id};
    char pid[HF__PG_DIGITS];
    const char *values[] = {hf__pg_names_decimal(mine->conn->pid, pid)};

    hf__pg_calls_add(hf__pg_main(mine), HF__STMT_BACKEND_IS_WAITING, values, 1);
    if (!hf__advisory_transacts(mine->engine) &&
        !hf__advisory_names_is_checked(mine))
        hf__advisory_names_add_check(mine);
    (void)hf__pg_calls_send(hf__pg_main(mine), &call, /* err= */ NULL);
}

static void look(struct hf__pg_ticket *mine)
{
    mine->watch_ns = 0;
    if (mine->state == HF__PG_RESTING)
        hf__advisory_session_lose(mine);
    else if (hf__pg_tickets_leaves(mine) || mine->state == HF__PG_CANCELLING)
        (void)hf__advisory_release_cancel(mine, /* err= */ NULL);
    else
        send_look(mine);
}

static bool is_watched(const struct hf__pg_ticket *mine)
{
    return mine->watch_ns != 0 &&
           (mine->state == HF__PG_WAITING || mine->state == HF__PG_CANCELLING ||
            mine->state == HF__PG_RESTING);
}

/* When @mine has something due next; what is due is done. */
static int64_t attend(struct hf__pg_ticket *mine, int64_t now_ns)
{
    if (!is_watched(mine))
        return HF_NEVER;
    if (mine->watch_ns > now_ns)
        return mine->watch_ns;
    look(mine);
    return HF_NEVER;
}

int64_t hf__advisory_wait_tick(struct hf__pg *postgres, int64_t now_ns)
{
    int64_t relax_ns = hf__advisory_names_relax(postgres, now_ns);
    int64_t next_ns = hf__pg_tickets_due(postgres, attend, now_ns);

    return relax_ns < next_ns ? relax_ns : next_ns;
}

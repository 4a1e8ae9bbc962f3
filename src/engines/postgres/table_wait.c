/* SPDX-License-Identifier: MIT */
/*
 * table_wait.c - mode=table: how a waiter hears of its grant.
 *
 * By NOTIFY on the channel of its client; or by a look, when the lease of a row
 * before it has ended. Who is parked is told its grant the same way: only a signal
 * can have put it in line.
 */
#include <stdlib.h>

#include "engines/postgres/row.h"

/* A waiter with nobody before it looks again after so long. */
enum { AGAIN_MS = 100 };

/* ---- looks --------------------------------------------------------------- */

void hf__pg_table_wait_watch(struct hf__pg_ticket *mine, int64_t ms)
{
    mine->watch_ns = 0;
    if (ms > HF_DURATION_MAX)
        return;
    mine->watch_ns = hf__now() + (ms < 0 ? AGAIN_MS : ms + 1) * HF_MS;
    hf__pg_wake(mine->engine, mine->watch_ns);
}

static int64_t look(struct hf__pg_ticket *mine, int64_t now_ns)
{
    bool is_parked = mine->state == HF__PG_PARKED;

    if (mine->watch_ns == 0 || !(is_parked || mine->state == HF__PG_WAITING))
        return HF_NEVER;
    if (mine->watch_ns > now_ns)
        return mine->watch_ns;
    mine->watch_ns = 0;
    if (is_parked)
        (void)hf__pg_table_condition_look(mine, /* err= */ NULL);
    else
        (void)hf__pg_table_acquire_ask(mine, /* err= */ NULL);
    return HF_NEVER;
}

/* While the engine is not up, the core asks for all of them anew. */
int64_t hf__pg_table_wait_tick(struct hf__pg *postgres, int64_t now_ns)
{
    return postgres->up ? hf__pg_tickets_due(postgres, look, now_ns) : HF_NEVER;
}

/* ---- wake-ups ------------------------------------------------------------ */

/* The ticket that @text is about: the second half of our identity, and the
 * number. NULL: none of ours, or a forgery. */
static struct hf__pg_ticket *told_about(struct hf__pg *postgres,
                                        const char *text, char **ret_end)
{
    const char *half = postgres->identity + HF__PG_CHANNEL;
    size_t len = strlen(half);

    if (strncmp(text, half, len) != 0 || text[len] < '0' || text[len] > '9')
        return NULL;
    return hf__pg_tickets_find(postgres, strtoull(text + len, ret_end, 10));
}

/* A token that is not above the last is none: the server is asked. */
static void told_grant(struct hf__pg_ticket *mine, const char *text)
{
    uint64_t last = hf__pg_names_find(mine->engine, mine->key)->token;
    uint64_t token = strtoull(text, NULL, 10);
    int64_t sent_ns = HF__PLANTED("push_counts_from_its_arrival")
                          ? hf__now()
                          : mine->confirmed_ns;

    if (token > last && token <= INT64_MAX) {
        if (mine->state == HF__PG_PARKED)
            mine->known = HF__PG_KNOWN_WOKEN;
        hf__pg_row_granted(mine, token, sent_ns);
    } else {
        hf__pg_table_wait_watch(mine, 0);
    }
}

static bool expects_grant(const struct hf__pg_ticket *mine)
{
    return mine->state == HF__PG_WAITING || mine->state == HF__PG_PARKED;
}

/* "g TICKET TOKEN": granted. "b TICKET": a user broke it. */
void hf__pg_table_wait_notified(struct hf__pg *postgres, const char *text)
{
    struct hf__pg_ticket *mine;
    char *end;

    if ((text[0] != 'g' && text[0] != 'b') || text[1] != ' ')
        return;
    mine = told_about(postgres, text + 2, &end);
    if (mine && text[0] == 'g' && expects_grant(mine))
        told_grant(mine, end);
    else if (mine && text[0] == 'b' && mine->state == HF__PG_HELD)
        hf__pg_tickets_lost(mine, HF__LOST_BROKEN);
}

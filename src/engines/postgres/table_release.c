/* SPDX-License-Identifier: MIT */
/*
 * table_release.c - mode=table: releasing and withdrawing.
 *
 * A row that is alone goes by one statement. Otherwise two delete it and grant to
 * the first in line. If they find other rows than they expect, the slow path
 * runs. Who may be parked, or bear a wake-up, always leaves by that: a release uses
 * the wake-up up, a withdrawal passes it on.
 */
#include "engines/postgres/row.h"

/* ---- the slow path ------------------------------------------------------- */

/* The rows of TABLE_LEAVE are ours and those that were overdue. */
static void on_left(struct hf__pg_conn *conn, const struct hf__pg_call *call,
                    const struct hf__pg_answer *answer)
{
    if (answer && !answer->error && answer->results[1].rows > 1)
        hf__pg_table_condition_serve(call->mine);
    hf__pg_row_left(conn, call, answer, /* at= */ 1);
}

int hf__pg_table_release_row(struct hf__pg_ticket *mine, hf_error *err)
{
    struct hf__pg_call call = {.done = on_left,
                               .ticket = mine->entry.ticket->id};
    struct hf__pg_conn *main = &mine->engine->main;
    struct hf__pg_table_words words;

    if (mine->entry.ticket->cond)
        return hf__pg_table_condition_leave(mine, err);
    hf__pg_table_acquire_words(&words, mine);
    hf__pg_table_acquire_lock(mine->engine, mine->key);
    hf__pg_calls_add(main, HF__STMT_TABLE_LEAVE, words.values, 2);
    return hf__pg_calls_send_one(main, HF__STMT_TABLE_GRANT, words.values, 1,
                                 &call, err);
}

/* ---- the fast paths ------------------------------------------------------ */

/* The first in line has it in a mode that others behind it may share. A reader
 * that is not told finds it at its next renewal. */
static void grant_others(struct hf__pg_ticket *mine)
{
    struct hf__pg_call call = {.done = hf__pg_calls_ignore};
    struct hf__pg_table_words words;

    hf__pg_table_acquire_words(&words, mine);
    hf__pg_table_acquire_lock(mine->engine, mine->key);
    (void)hf__pg_calls_send_one(&mine->engine->main, HF__STMT_TABLE_GRANT,
                                words.values, 1, &call, /* err= */ NULL);
}

static int send_free(struct hf__pg_ticket *mine, hf_error *err);

/* No row has gone: others came, or it is not ours any more. */
static int free_again(struct hf__pg_ticket *mine)
{
    if (mine->known != HF__PG_KNOWN_ALONE)
        return hf__pg_table_release_row(mine, /* err= */ NULL);
    mine->known = HF__PG_KNOWN_NOTHING;
    hf__pg_table_acquire_contended(mine);
    return send_free(mine, /* err= */ NULL);
}

static void on_freed(struct hf__pg_conn *conn, const struct hf__pg_call *call,
                     const struct hf__pg_answer *answer)
{
    struct hf__pg_ticket *mine = call->mine;

    if (!hf__pg_tickets_leaves(mine))
        return;
    if (answer && !answer->error && answer->results[0].changed == 0) {
        if (free_again(mine) == 0)
            return;
        answer = NULL;
    }
    if (answer && !answer->error &&
        hf__pg_answer_number(answer->last, 0, 1, 0) != 0)
        grant_others(mine);
    hf__pg_row_left(conn, call, answer, /* at= */ -1);
}

static int send_free(struct hf__pg_ticket *mine, hf_error *err)
{
    struct hf__pg_call call = {.done = on_freed,
                               .ticket = mine->entry.ticket->id};
    struct hf__pg_conn *main = &mine->engine->main;
    char room[HF__PG_DIGITS];
    struct hf__pg_table_words words;

    hf__pg_table_acquire_words(&words, mine);
    if (mine->known == HF__PG_KNOWN_ALONE)
        return hf__pg_calls_send_one(main, HF__STMT_TABLE_FREE, words.values, 2,
                                     &call, err);
    words.values[2] = hf__pg_names_decimal(~mine->key, room);
    hf__pg_calls_add(main, HF__STMT_TABLE_CEDE, words.values, 3);
    return hf__pg_calls_send_one(main, HF__STMT_TABLE_PASS, words.values, 1,
                                 &call, err);
}

int hf__pg_table_release(struct hf__pg *postgres, struct hf__ticket *ticket,
                         enum hf__pg_owed owed, hf_error *err)
{
    struct hf__pg_ticket *mine = hf__pg_ticket(postgres, ticket);

    if (!hf__pg_row_leaves(postgres, ticket, owed))
        return 0;
    return owed == HF__PG_OWES_RELEASE && ticket->mode == HF_EXCLUSIVE &&
                   !ticket->cond
               ? send_free(mine, err)
               : hf__pg_table_release_row(mine, err);
}

/* SPDX-License-Identifier: MIT */
/*
 * table_condition.c - mode=table: waiting for a condition of a lock, and signals.
 *
 * Who waits for a condition is parked: a row of holdfast_cond, beside the line of
 * the lock. Each change is one transaction under the lock of the name
 * (statements.c). Parking makes the row and deletes that of the holder. A signal
 * marks the first row of its condition as called, and puts a place in the line for
 * it; from there on it is granted like any other. The row that is called is the
 * wake-up: it goes with a release of its bearer, or when that parks again.
 *
 * A wake-up without a place in line is a stray: its bearer was overdue, withdrew
 * or was broken. COND_SERVE gives it to the next one that is parked. It runs
 * with every change of a condition, with a break, and after somebody has deleted
 * rows that were overdue. Nobody need be in line behind a bearer that dies, so the
 * first of those that are parked looks when the bearer's lease ends.
 *
 * A parked client is not told that it is called: it hears of the grant, by
 * NOTIFY, or finds out by its next renewal that it stands in line.
 *
 * Failure: an error undoes the whole transaction. A park that is asked again finds
 * what became of it. A standby that was promoted may lack a signal: a parked client
 * gives its row up there, and reports it lost. The caller returns without a signal.
 */
#include "engines/postgres/row.h"

#include <limits.h>

/* Every so many parks of a client, it deletes what the dead have left. */
enum { SWEEP = 64 };

/* ---- calls --------------------------------------------------------------- */

/* Wake-ups without a bearer, and the line, are served. */
static void add_serve(struct hf__pg *postgres,
                      const struct hf__pg_table_words *words)
{
    hf__pg_calls_add(&postgres->main, HF__STMT_COND_SERVE, words->values, 1);
    hf__pg_calls_add(&postgres->main, HF__STMT_TABLE_GRANT, words->values, 1);
}

/* … and what has become of this ticket? answered() reads it. */
static int send_serve(const struct hf__pg_ticket *mine,
                      const struct hf__pg_table_words *words,
                      hf__pg_done_fn *done, hf_error *err)
{
    struct hf__pg_conn *main = &mine->engine->main;
    struct hf__pg_call call = hf__pg_row_call(mine, done);

    add_serve(mine->engine, words);
    hf__pg_calls_add(main, HF__STMT_TABLE_LOOK, words->values, 2);
    return hf__pg_calls_send_one(main, HF__STMT_COND_LOOK, words->values, 2,
                                 &call, err);
}

void hf__pg_table_condition_serve(const struct hf__pg_ticket *mine)
{
    struct hf__pg *postgres = mine->engine;
    struct hf__pg_call call = {.done = hf__pg_calls_ignore};
    struct hf__pg_table_words words;

    if (!postgres->conditions)
        return;
    hf__pg_table_acquire_words(&words, mine);
    hf__pg_table_acquire_lock(postgres, mine->key);
    add_serve(postgres, &words);
    (void)hf__pg_calls_send(&postgres->main, &call, /* err= */ NULL);
}

/* ---- answers ------------------------------------------------------------- */

/* It is certain what became of the park: the lock that it gave up is gone. */
static void forget_old(struct hf__pg_ticket *mine)
{
    struct hf__pg_ticket *old = hf__pg_tickets_find(mine->engine, mine->old);

    mine->old = 0;
    if (old && old->state == HF__PG_PARTING)
        hf__pg_tickets_forget(old);
}

/* The park has changed nothing. */
static void keep_old(struct hf__pg_ticket *mine)
{
    struct hf__pg_ticket *old = hf__pg_tickets_find(mine->engine, mine->old);

    if (old && old->state == HF__PG_PARTING)
        hf__pg_tickets_move(old, HF__PG_HELD);
}

static void parked(struct hf__pg_ticket *mine, const char *timeline,
                   int64_t sent_ns)
{
    mine->confirmed_ns = sent_ns;
    if (mine->state == HF__PG_PARKED)
        return; /* it has only looked */
    hf__text_copy(mine->timeline, sizeof(mine->timeline), timeline);
    hf__pg_tickets_move(mine, HF__PG_PARKED);
    mine->owed = HF__PG_OWES_GRANT;
    mine->unsure = false;
    hf__up_parked(&mine->engine->base, mine->entry.ticket);
}

/* The last two results are those of TABLE_LOOK and COND_LOOK. */
static void answered(struct hf__pg_ticket *mine,
                     const struct hf__pg_answer *answer, int64_t sent_ns)
{
    const struct hf__pg_result *place = answer->last - 1;
    int64_t token = hf__pg_answer_number(place, 0, 0, 0);
    char called = hf__pg_answer_text(answer->last, 0, 0)[0];

    forget_old(mine);
    mine->known = called == 't' ? HF__PG_KNOWN_WOKEN : HF__PG_KNOWN_NOTHING;
    if (token != 0)
        hf__pg_row_granted(mine, (uint64_t)token, sent_ns);
    else if (hf__pg_answer_text(place, 0, 1)[0] == 't')
        hf__pg_table_acquire_queued(mine, hf__pg_answer_number(place, 0, 2, -1),
                                    sent_ns);
    else if (called == 'f')
        parked(mine, hf__pg_answer_text(answer->last, 0, 1), sent_ns);
    else
        hf__pg_tickets_lost(mine, HF__LOST_TAKEN);
}

void hf__pg_table_condition_called(struct hf__pg_ticket *mine, int64_t sent_ns)
{
    mine->known = HF__PG_KNOWN_WOKEN;
    hf__pg_table_acquire_queued(mine, /* look_ms= */ 0, sent_ns);
}

/* ---- parking ------------------------------------------------------------- */

static void on_parked(struct hf__pg_conn *conn, const struct hf__pg_call *call,
                      const struct hf__pg_answer *answer)
{
    struct hf__pg_ticket *mine = call->mine;

    if (!hf__pg_tickets_asks(mine))
        return; /* not wanted any more */
    if (!answer) {
        mine->unsure = true;
        hf__pg_tickets_lost_answer(mine, conn);
    } else if (answer->error) {
        if (hf__pg_row_is_certain(mine, answer->error))
            keep_old(mine);
        hf__pg_row_refused(mine, answer->error);
    } else {
        answered(mine, answer, call->sent_ns);
    }
}

/* The dead are in the way of nobody. */
static void sweep(struct hf__pg *postgres)
{
    struct hf__pg_call call = {.done = hf__pg_calls_ignore};

    if (postgres->parks++ % SWEEP == 0)
        (void)hf__pg_calls_send_one(&postgres->main, HF__STMT_COND_SWEEP, NULL,
                                    0, &call, /* err= */ NULL);
}

static int send_park(struct hf__pg_ticket *mine, hf_error *err)
{
    struct hf__pg *postgres = mine->engine;
    struct hf__pg_table_words words;
    struct hf__pg_table_words old;
    int rc = hf__pg_table_acquire_begin_row(mine, &words, err);

    if (rc != 0)
        return rc;
    hf__pg_table_acquire_words_of(&old, postgres, mine->entry.ticket->name,
                                  mine->old);
    words.values[4] = mine->entry.ticket->cond;
    words.values[5] = old.id;
    hf__pg_table_acquire_lock(postgres, mine->key);
    hf__pg_table_acquire_add_row(mine, HF__STMT_COND_PARK, 6, &words);
    hf__pg_calls_add(&postgres->main, HF__STMT_TABLE_LEAVE, old.values, 2);
    return send_serve(mine, &words, on_parked, err);
}

int hf__pg_table_condition_park(struct hf__pg *postgres,
                                struct hf__ticket *ticket,
                                struct hf__ticket *old, hf_error *err)
{
    struct hf__pg_ticket *held = hf__pg_ticket(postgres, old);
    int rc;

    hf__pg_ticket(postgres, ticket)->old = old->id;
    sweep(postgres);
    rc = hf__pg_row_acquire(postgres, ticket, send_park, err);
    if (rc == 0 && held->state == HF__PG_HELD)
        hf__pg_tickets_move(held, HF__PG_PARTING);
    return rc;
}

/* ---- the wait is over, or a bearer ---------------------------------------- */

static void on_unparked(struct hf__pg_conn *conn,
                        const struct hf__pg_call *call,
                        const struct hf__pg_answer *answer)
{
    struct hf__pg_ticket *mine = call->mine;
    hf_error err;

    if (!hf__pg_tickets_asks(mine))
        return;
    if (!answer) {
        hf__pg_tickets_lost_answer(mine, conn);
    } else if (answer->error) { /* it asks again */
        (void)hf__pg_errors_explain(conn, answer->error, &err);
        hf__pg_tickets_unknown(mine, &err);
    } else {
        answered(mine, answer, call->sent_ns);
    }
}

static void on_looked(struct hf__pg_conn *conn, const struct hf__pg_call *call,
                      const struct hf__pg_answer *answer)
{
    (void)conn;
    if (answer && !answer->error && call->mine->state == HF__PG_PARKED)
        answered(call->mine, answer, call->sent_ns);
}

/* From here on no row of the name is overdue. */
static void begin(const struct hf__pg_ticket *mine,
                  struct hf__pg_table_words *words)
{
    hf__pg_table_acquire_words(words, mine);
    hf__pg_table_acquire_lock(mine->engine, mine->key);
    hf__pg_calls_add(&mine->engine->main, HF__STMT_TABLE_PURGE, words->values,
                     1);
}

int hf__pg_table_condition_unpark(struct hf__pg *postgres,
                                  struct hf__ticket *ticket, hf_error *err)
{
    struct hf__pg_ticket *mine = hf__pg_ticket(postgres, ticket);
    struct hf__pg_table_words words;
    int rc;

    begin(mine, &words);
    hf__pg_calls_add(&postgres->main, HF__STMT_COND_UNPARK, words.values, 2);
    rc = send_serve(mine, &words, on_unparked, err);
    if (rc != 0)
        return rc;
    hf__pg_tickets_move(mine, HF__PG_ASKING);
    mine->owed = HF__PG_OWES_ANSWER;
    mine->watch_ns = 0;
    return 0;
}

int hf__pg_table_condition_look(struct hf__pg_ticket *mine, hf_error *err)
{
    struct hf__pg_table_words words;

    begin(mine, &words);
    return send_serve(mine, &words, on_looked, err);
}

/* ---- leaving ------------------------------------------------------------- */

/* The results of TABLE_LOCK, COND_LEAVE, TABLE_LEAVE, … */
static void on_left(struct hf__pg_conn *conn, const struct hf__pg_call *call,
                    const struct hf__pg_answer *answer)
{
    hf__pg_row_left(conn, call, answer, /* at= */ 2);
}

int hf__pg_table_condition_leave(struct hf__pg_ticket *mine, hf_error *err)
{
    struct hf__pg *postgres = mine->engine;
    struct hf__pg_call call = {.done = on_left,
                               .ticket = mine->entry.ticket->id};
    struct hf__pg_table_words words;

    hf__pg_table_acquire_words(&words, mine);
    words.values[2] = hf__pg_tickets_releases(mine) ? "t" : "f";
    hf__pg_table_acquire_lock(postgres, mine->key);
    hf__pg_calls_add(&postgres->main, HF__STMT_COND_LEAVE, words.values, 3);
    hf__pg_calls_add(&postgres->main, HF__STMT_TABLE_LEAVE, words.values, 2);
    add_serve(postgres, &words);
    return hf__pg_calls_send(&postgres->main, &call, err);
}

/* ---- signals ------------------------------------------------------------- */

/* The results of TABLE_LOCK, TABLE_LOOK and COND_SIGNAL. */
static void on_signalled(struct hf__pg_conn *conn,
                         const struct hf__pg_call *call,
                         const struct hf__pg_answer *answer)
{
    struct hf__pg *postgres = conn->engine;
    struct hf__query *query = call->query;
    hf_error err;

    if (!hf__pg_inspect_usable(conn, query, answer))
        return;
    if (hf__pg_answer_number(&answer->results[1], 0, 0, 0) == 0) {
        (void)hf__fail(&err, HF_ELOST, "not held any more");
        hf__up_answer(&postgres->base, query, HF_ELOST, &err);
        return;
    }
    query->woken = (uint32_t)answer->last->changed;
    if (query->woken > 0 && call->mine &&
        call->mine->known == HF__PG_KNOWN_ALONE)
        call->mine->known = HF__PG_KNOWN_NOTHING; /* others stand behind it */
    hf__pg_inspect_answer(conn, query, /* rc= */ 0);
}

int hf__pg_table_condition_signal(struct hf__engine *engine,
                                  struct hf__query *query, hf_error *err)
{
    struct hf__pg *postgres = hf__pg_of(engine);
    struct hf__pg_call call = {
        .done = on_signalled, .query = query, .ticket = query->ticket};
    char room[HF__PG_DIGITS];
    struct hf__pg_table_words words;

    hf__pg_table_acquire_words_of(&words, postgres, query->name, query->ticket);
    words.values[2] = query->cond;
    words.values[3] = hf__pg_names_decimal(query->all ? INT_MAX : 1, room);
    hf__pg_table_acquire_lock(
        postgres, hf__pg_names_key(postgres, query->name, strlen(query->name)));
    hf__pg_calls_add(&postgres->main, HF__STMT_TABLE_LOOK, words.values, 2);
    return hf__pg_calls_send_one(&postgres->main, HF__STMT_COND_SIGNAL,
                                 words.values, 4, &call, err);
}

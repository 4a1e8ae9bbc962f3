/* SPDX-License-Identifier: MIT */
/*
 * table_acquire.c - mode=table: rows in the order they came, leases, NOTIFY.
 *
 * Each holder and each waiter is a row with the end of its lease by the
 * server's clock. A client changes the rows of a name in one transaction
 * (statements.c): it deletes what has expired, does its own part, and grants to
 * the first in line, whose client hears it by NOTIFY on its channel. So nobody
 * polls, and the cost of a hand-over does not grow with the line. Everything of
 * a client goes over one connection.
 *
 * That is the slow path. One statement takes a name that nobody else wants, and
 * another frees it. Where a client has met others before, a writer stands behind
 * them by one statement, or takes the name if they have just gone, and hands on
 * to the next by two. If the rows are not as these statements expect, they
 * change nothing.
 *
 * A waiter renews its lease as a holder does: that proves its life, and finds a
 * grant whose notification was lost. It also looks when the lease of a row
 * before it ends: a client that died does not release.
 *
 * A grant that is pushed counts from when the last answered request of its
 * ticket was sent.
 *
 * Failure: an error undoes the whole transaction; row.c has the rest.
 */
#include "engines/postgres/row.h"
#include "engines/sql/record.h"

/* After so many grants at once, nobody seems to contend any more. */
enum { QUIET = 8 };

/* A waiter that stands in line for so long looks at the rows before it. */
enum { LOOK_MS = 100 };

void hf__pg_table_acquire_words_of(struct hf__pg_table_words *words,
                                   const struct hf__pg *postgres,
                                   const char *name, uint64_t ticket)
{
    size_t len = sizeof(postgres->identity) - 1;
    char room[HF__PG_DIGITS];

    hf__pg_names_whole(postgres, name, words->whole);
    memcpy(words->id, postgres->identity, len);
    hf__text_copy(words->id + len, sizeof(words->id) - len,
                  hf__pg_names_decimal((int64_t)ticket, room));
    words->values[0] = words->whole;
    words->values[1] = words->id;
}

void hf__pg_table_acquire_words(struct hf__pg_table_words *words,
                                const struct hf__pg_ticket *mine)
{
    const struct hf__ticket *ticket = mine->entry.ticket;

    hf__pg_table_acquire_words_of(words, mine->engine, ticket->name,
                                  ticket->id);
}

void hf__pg_table_acquire_lock(struct hf__pg *postgres, int64_t key)
{
    char room[HF__PG_DIGITS];
    const char *values[] = {hf__pg_names_decimal(~key, room)};

    hf__pg_calls_add(&postgres->main, HF__STMT_TABLE_LOCK, values, 1);
}

void hf__pg_table_acquire_contended(struct hf__pg_ticket *mine)
{
    hf__pg_names_find(mine->engine, mine->key)->contended = QUIET;
}

/* It was to be had at once. */
static void set_free(struct hf__pg_ticket *mine)
{
    struct hf__pg_name *name = hf__pg_names_find(mine->engine, mine->key);

    if (name->contended > 0)
        name->contended--;
}

/* ---- the slow path ------------------------------------------------------- */

void hf__pg_table_acquire_queued(struct hf__pg_ticket *mine, int64_t look_ms,
                                 int64_t sent_ns)
{
    hf__pg_tickets_move(mine, HF__PG_WAITING);
    mine->owed = HF__PG_OWES_GRANT;
    mine->unsure = false;
    mine->confirmed_ns = sent_ns;
    hf__pg_table_wait_watch(mine, look_ms);
    hf__up_queued(&mine->engine->base, mine->entry.ticket);
}

/* A wake-up may still be on its way that was for an earlier row of the ticket. */
static void expect_above(struct hf__pg_ticket *mine, uint64_t place)
{
    struct hf__pg_name *name = hf__pg_names_find(mine->engine, mine->key);

    if (name->token < place)
        name->token = place;
}

/* The row of TABLE_LOOK: token, is there one, when to look, the holder, and the
 * place. */
static void looked(struct hf__pg_ticket *mine, const struct hf__pg_result *row,
                   int64_t sent_ns)
{
    const char *record = hf__pg_answer_text(row, 0, 3);
    int64_t token = hf__pg_answer_number(row, 0, 0, 0);
    char holder[HF__SQL_TEXTS + 64];

    if (token != 0) {
        if (hf__pg_tickets_asks(mine))
            set_free(mine);
        hf__pg_row_granted(mine, (uint64_t)token, sent_ns);
        return;
    }
    hf__pg_table_acquire_contended(mine);
    if (hf__pg_answer_text(row, 0, 1)[0] == 't') {
        expect_above(mine, (uint64_t)hf__pg_answer_number(row, 0, 4, 0));
        hf__pg_table_acquire_queued(mine, hf__pg_answer_number(row, 0, 2, -1),
                                    sent_ns);
        return;
    }
    hf__sql_record_holder(record, strlen(record), holder, sizeof(holder));
    hf__pg_tickets_busy(mine, record[0] ? holder : NULL);
}

/* A failed look of our own is none: renewals go on. */
static void on_asked(struct hf__pg_conn *conn, const struct hf__pg_call *call,
                     const struct hf__pg_answer *answer)
{
    struct hf__pg_ticket *mine = call->mine;

    if (!hf__pg_tickets_asks(mine) && mine->state != HF__PG_WAITING)
        return; /* not wanted any more, or pushed meanwhile */
    if (answer && !answer->error) {
        if (answer->results[1].changed > 0) /* TABLE_PURGE */
            hf__pg_table_condition_serve(mine);
        looked(mine, answer->last, call->sent_ns);
    } else if (hf__pg_tickets_asks(mine) && answer) {
        hf__pg_row_refused(mine, answer->error);
    } else if (hf__pg_tickets_asks(mine)) {
        mine->unsure = true;
        hf__pg_tickets_lost_answer(mine, conn);
    }
}

void hf__pg_table_acquire_add_row(struct hf__pg_ticket *mine,
                                  enum hf__pg_statement statement, int n,
                                  struct hf__pg_table_words *words)
{
    const struct hf__settings *settings = mine->engine->base.host->settings;
    char ttl[HF__PG_DIGITS];

    words->values[2] = hf__pg_names_decimal(
        mine->entry.ticket->ttl_ms + settings->lock_delay_ms, ttl);
    words->values[3] = hf__buf_text(&mine->engine->record);
    hf__pg_calls_add(&mine->engine->main, statement, words->values, n);
}

int hf__pg_table_acquire_begin_row(struct hf__pg_ticket *mine,
                                   struct hf__pg_table_words *words,
                                   hf_error *err)
{
    struct hf__buf *record = &mine->engine->record;

    hf__pg_table_acquire_words(words, mine);
    record->len = 0;
    hf__sql_record_put(record, mine->engine->base.host, mine->entry.ticket);
    if (!hf__buf_failed(record))
        return 0;
    hf__buf_release(record);
    return hf__fail(err, HF_ENOMEM, "out of memory");
}

int hf__pg_table_acquire_ask(struct hf__pg_ticket *mine, hf_error *err)
{
    struct hf__pg_conn *main = &mine->engine->main;
    struct hf__pg_call call = hf__pg_row_call(mine, on_asked);
    char mode[HF__PG_DIGITS];
    char slots[HF__PG_DIGITS];
    struct hf__pg_table_words words;
    int rc = hf__pg_table_acquire_begin_row(mine, &words, err);

    if (rc != 0)
        return rc;
    words.values[4] = mine->entry.ticket->nowait ? "f" : "t";
    words.values[5] = hf__pg_names_decimal(mine->entry.ticket->mode, mode);
    words.values[6] = hf__pg_names_decimal(mine->entry.ticket->slots, slots);
    hf__pg_table_acquire_lock(mine->engine, mine->key);
    hf__pg_calls_add(main, HF__STMT_TABLE_PURGE, words.values, 1);
    hf__pg_table_acquire_add_row(mine, HF__STMT_TABLE_ASK, 7, &words);
    hf__pg_calls_add(main, HF__STMT_TABLE_GRANT, words.values, 1);
    return hf__pg_calls_send_one(main, HF__STMT_TABLE_LOOK, words.values, 2,
                                 &call, err);
}

bool hf__pg_table_acquire_is_asked(const struct hf__pg_ticket *mine)
{
    return hf__pg_calls_has(&mine->engine->main, on_asked,
                            mine->entry.ticket->id);
}

/* ---- the fast paths ------------------------------------------------------ */

/* No row: the name is not quiet. */
static void on_taken(struct hf__pg_conn *conn, const struct hf__pg_call *call,
                     const struct hf__pg_answer *answer)
{
    struct hf__pg_ticket *mine = call->mine;
    uint64_t token = 0;

    if (!hf__pg_tickets_asks(mine))
        return; /* not wanted any more */
    if (answer && !answer->error)
        token = (uint64_t)hf__pg_answer_number(answer->last, 0, 0, 0);
    if (token != 0) {
        set_free(mine);
        hf__pg_row_granted(mine, token, call->sent_ns);
    } else if (!answer || answer->error) {
        on_asked(conn, call, answer);
    } else {
        mine->known = HF__PG_KNOWN_NOTHING;
        hf__pg_table_acquire_contended(mine);
        if (hf__pg_table_acquire_ask(mine, /* err= */ NULL) != 0)
            on_asked(conn, call, /* answer= */ NULL);
    }
}

static int send_take(struct hf__pg_ticket *mine, bool alone, hf_error *err)
{
    struct hf__pg_call call = hf__pg_row_call(mine, on_taken);
    char room[HF__PG_DIGITS];
    struct hf__pg_table_words words;
    int rc = hf__pg_table_acquire_begin_row(mine, &words, err);

    if (rc != 0)
        return rc;
    mine->known = alone ? HF__PG_KNOWN_ALONE : HF__PG_KNOWN_NOTHING;
    words.values[4] = hf__pg_names_decimal(~mine->key, room);
    words.values[5] = alone ? "t" : "f";
    hf__pg_table_acquire_add_row(mine, HF__STMT_TABLE_TAKE, 6, &words);
    return hf__pg_calls_send(&mine->engine->main, &call, err);
}

/* No row: there is no row to stand behind any more. */
static void on_joined(struct hf__pg_conn *conn, const struct hf__pg_call *call,
                      const struct hf__pg_answer *answer)
{
    struct hf__pg_ticket *mine = call->mine;

    if (!hf__pg_tickets_asks(mine))
        return; /* not wanted any more, or pushed meanwhile */
    hf__pg_tickets_move(mine, HF__PG_ASKING);
    if (!answer || answer->error)
        on_asked(conn, call, answer);
    else if (answer->last->changed > 0)
        hf__pg_table_acquire_queued(mine, LOOK_MS, call->sent_ns);
    else if (send_take(mine, /* alone= */ false, /* err= */ NULL) != 0)
        on_asked(conn, call, /* answer= */ NULL);
}

/* The grant may come before the answer. */
static int send_join(struct hf__pg_ticket *mine, hf_error *err)
{
    struct hf__pg_call call = hf__pg_row_call(mine, on_joined);
    struct hf__pg_table_words words;
    int rc = hf__pg_table_acquire_begin_row(mine, &words, err);

    if (rc != 0)
        return rc;
    hf__pg_table_acquire_add_row(mine, HF__STMT_TABLE_JOIN, 4, &words);
    rc = hf__pg_calls_send(&mine->engine->main, &call, err);
    if (rc == 0)
        hf__pg_tickets_move(mine, HF__PG_WAITING);
    mine->confirmed_ns = call.sent_ns;
    return rc;
}

static int send_first(struct hf__pg_ticket *mine, hf_error *err)
{
    const struct hf__ticket *ticket = mine->entry.ticket;
    bool plain = !mine->unsure && ticket->mode == HF_EXCLUSIVE;

    mine->known = HF__PG_KNOWN_NOTHING;
    if (plain && hf__pg_names_find(mine->engine, mine->key)->contended == 0)
        return send_take(mine, /* alone= */ true, err);
    return plain && !ticket->nowait ? send_join(mine, err)
                                    : hf__pg_table_acquire_ask(mine, err);
}

int hf__pg_table_acquire(struct hf__pg *postgres, struct hf__ticket *ticket,
                         hf_error *err)
{
    return hf__pg_row_acquire(postgres, ticket, send_first, err);
}

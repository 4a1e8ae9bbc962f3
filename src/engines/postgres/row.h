/* SPDX-License-Identifier: MIT */
/*
 * row.h - locks that are a row: mode=table, and the dialects.
 *
 *   row.c              what they share
 *   table_acquire.c    table_release.c    table_renew.c (and downgrade)
 *   table_wait.c       how a waiter hears of its grant
 *   table_condition.c  park, unpark, signal
 *   table_inspect.c    list, check, break
 *   dialect.c          dialect=shedlock, dialect=spring
 *   dialect_row.c      dialect=row        dialect_inspect.c
 */
#ifndef HF_POSTGRES_ROW_H
#define HF_POSTGRES_ROW_H

#include "engines/postgres/postgres.h"

/* ---- row.c --------------------------------------------------------------- */

/* A call for the ticket, from now on. */
static inline struct hf__pg_call hf__pg_row_call(
    const struct hf__pg_ticket *mine, hf__pg_done_fn *done)
{
    return (struct hf__pg_call){
        .done = done, .ticket = mine->entry.ticket->id, .sent_ns = hf__now()};
}
void hf__pg_row_granted(struct hf__pg_ticket *mine, uint64_t token,
                        int64_t sent_ns);
/* Does @error say for sure that nothing of the ticket is on the server? */
bool hf__pg_row_is_certain(const struct hf__pg_ticket *mine,
                           const struct hf__pg_error *error);
/* An acquire has ended in an error. */
void hf__pg_row_refused(struct hf__pg_ticket *mine,
                        const struct hf__pg_error *error);
typedef int hf__pg_row_send_fn(struct hf__pg_ticket *mine, hf_error *err);
int hf__pg_row_acquire(struct hf__pg *postgres, struct hf__ticket *ticket,
                       hf__pg_row_send_fn *send, hf_error *err);
/* False: the server has nothing of it, and that is told. */
bool hf__pg_row_leaves(struct hf__pg *postgres, struct hf__ticket *ticket,
                       enum hf__pg_owed owed);
/* A row of result @at has a number that is not 0 if it was held; -1: it was. */
void hf__pg_row_left(struct hf__pg_conn *conn, const struct hf__pg_call *call,
                     const struct hf__pg_answer *answer, int at);
/* A renewal is answered; it has a row if the lock is still held. */
hf__pg_done_fn hf__pg_row_renewed;
void hf__pg_row_up(struct hf__pg_conn *conn);
void hf__pg_row_down(struct hf__pg_conn *conn, const hf_error *err);

/* ---- mode=table ---------------------------------------------------------- */

/* The parameters that most statements begin with: the name, and the id of the
 * ticket's row. */
struct hf__pg_table_words {
    char whole[HF__PG_WHOLE];
    char id[sizeof(((struct hf__pg *)NULL)->identity) + HF__PG_DIGITS];
    const char *values[7];
};

/* table_acquire.c */
int hf__pg_table_acquire(struct hf__pg *postgres, struct hf__ticket *ticket,
                         hf_error *err);
void hf__pg_table_acquire_words(struct hf__pg_table_words *words,
                                const struct hf__pg_ticket *mine);
void hf__pg_table_acquire_words_of(struct hf__pg_table_words *words,
                                   const struct hf__pg *postgres,
                                   const char *name, uint64_t ticket);
/* A row with all that is to be known of a ticket: begin before the first statement
 * of a call is added, which cannot be taken back; then add a statement with the
 * lease, the record, and what else @words has. */
int hf__pg_table_acquire_begin_row(struct hf__pg_ticket *mine,
                                   struct hf__pg_table_words *words,
                                   hf_error *err);
void hf__pg_table_acquire_add_row(struct hf__pg_ticket *mine,
                                  enum hf__pg_statement statement, int n,
                                  struct hf__pg_table_words *words);
/* It stands in line, by a request that was sent at @sent_ns. */
void hf__pg_table_acquire_queued(struct hf__pg_ticket *mine, int64_t look_ms,
                                 int64_t sent_ns);
/* Add to a call: from here on no other client changes the rows of the name. Not
 * the key of mode=advisory, which is held for long. */
void hf__pg_table_acquire_lock(struct hf__pg *postgres, int64_t key);
/* Ask, or look again, by the slow path. */
int hf__pg_table_acquire_ask(struct hf__pg_ticket *mine, hf_error *err);
/* Is such a question under way? */
bool hf__pg_table_acquire_is_asked(const struct hf__pg_ticket *mine);
/* Other clients want it, too: the fast path is not tried for a while. */
void hf__pg_table_acquire_contended(struct hf__pg_ticket *mine);

/* table_release.c */
int hf__pg_table_release(struct hf__pg *postgres, struct hf__ticket *ticket,
                         enum hf__pg_owed owed, hf_error *err);
/* Delete its row by the slow path. */
int hf__pg_table_release_row(struct hf__pg_ticket *mine, hf_error *err);

/* table_renew.c */
int hf__pg_table_renew(struct hf__pg *postgres, struct hf__ticket **tickets,
                       size_t n, hf_error *err);
int hf__pg_table_renew_downgrade(struct hf__pg *postgres,
                                 struct hf__ticket *ticket, hf_error *err);

/* table_wait.c: look again after @ms; less than 0: nobody is before us any
 * more, and the client that has left does not seem to have told. */
void hf__pg_table_wait_watch(struct hf__pg_ticket *mine, int64_t ms);
int64_t hf__pg_table_wait_tick(struct hf__pg *postgres, int64_t now_ns);
void hf__pg_table_wait_notified(struct hf__pg *postgres, const char *text);

/* table_condition.c */
int hf__pg_table_condition_park(struct hf__pg *postgres,
                                struct hf__ticket *ticket,
                                struct hf__ticket *old, hf_error *err);
int hf__pg_table_condition_unpark(struct hf__pg *postgres,
                                  struct hf__ticket *ticket, hf_error *err);
hf__engine_query_fn hf__pg_table_condition_signal;
/* Look at the name of a parked ticket: a bearer may be overdue. */
int hf__pg_table_condition_look(struct hf__pg_ticket *mine, hf_error *err);
/* Release or withdraw one that may be parked, or bear a wake-up. */
int hf__pg_table_condition_leave(struct hf__pg_ticket *mine, hf_error *err);
/* A renewal has found that a parked ticket stands in line. */
void hf__pg_table_condition_called(struct hf__pg_ticket *mine, int64_t sent_ns);
/* Rows of its name were deleted that were overdue: they may have borne wake-ups. */
void hf__pg_table_condition_serve(const struct hf__pg_ticket *mine);

hf__engine_query_fn hf__pg_table_inspect_list;
hf__engine_query_fn hf__pg_table_inspect_check;
hf__engine_query_fn hf__pg_table_inspect_break;

/* ---- dialects ------------------------------------------------------------ */

/* The values of a statement: key, region or the key as a text, holder, lease. */
struct hf__pg_words {
    char key[HF__SQL_KEY];
    char holder[HF__SQL_HOLDER];
    char lease_ms[24];
    const char *values[4];
    int key_n; /* how many of them are the key */
};

/* dialect.c */
int hf__pg_dialect_words_of_name(struct hf__pg_words *words,
                                 const struct hf__pg *postgres,
                                 const char *name, hf_error *err);
int hf__pg_dialect_words(struct hf__pg_words *words,
                         const struct hf__pg *postgres,
                         const struct hf__ticket *ticket, hf_error *err);
/* One statement for a ticket, with the key and @n values more. */
int hf__pg_dialect_send(struct hf__pg *postgres, struct hf__ticket *ticket,
                        enum hf__pg_statement statement, int n,
                        hf__pg_done_fn *done, hf_error *err);
int hf__pg_dialect_acquire(struct hf__pg *postgres, struct hf__ticket *ticket,
                           hf_error *err);
int hf__pg_dialect_release(struct hf__pg *postgres, struct hf__ticket *ticket,
                           enum hf__pg_owed owed, hf_error *err);
int hf__pg_dialect_renew(struct hf__pg *postgres, struct hf__ticket **tickets,
                         size_t n, hf_error *err);
hf__engine_query_fn hf__pg_dialect_inspect_list;
hf__engine_query_fn hf__pg_dialect_inspect_break;
/* dialect_row.c */
int hf__pg_dialect_row_acquire(struct hf__pg *postgres,
                               struct hf__ticket *ticket, hf_error *err);
int hf__pg_dialect_row_release(struct hf__pg *postgres,
                               struct hf__ticket *ticket, enum hf__pg_owed owed,
                               hf_error *err);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * statements.h - how values get into the texts of sql.h.
 */
#ifndef HF_MYSQL_STATEMENTS_H
#define HF_MYSQL_STATEMENTS_H

#include "engines/mysql/calls.h"
#include "engines/mysql/sql.h"

/* A waiter that has not asked for so long is forgotten: $A. */
enum { HF__MYSQL_LIFE_US = 3000000 };

/* What is put in the place of a '$' and a letter:
 *
 *   N name              T number of the ticket   R record   H both
 *   L lease in µs       M mode                   S slots    W may it wait?
 *   F how a row is locked                        D what GET_LOCK calls it
 *   P name as it is in our own tables            Z its length
 *   O owner             K token                  A see above
 *   B condition         Q number of another ticket, which holds the lock
 *   E how many a signal calls at most
 *   G region of the settings    C a collation by bytes
 *   V where the server's variables are
 *
 * Of the application's: 1 table, 2 key, 3 owner_column, 4 version_table,
 * 5 column. */
struct hf__mysql_values {
    const struct hf__ticket *ticket;
    const char *name; /* where there is no ticket */
    const char *owner;
    const char *cond; /* the same */
    uint64_t token;
    uint64_t holder; /* id of the ticket that is $Q */
    bool all;        /* is $E without end? */
};

/* How the lock of a session is tried, waited for and freed. */
struct hf__mysql_lock_texts {
    const char *try;
    const char *wait;
    const char *release;
};

void hf__mysql_statement(struct hf__mysql *mysql, struct hf__buf *to,
                         const char *text,
                         const struct hf__mysql_values *values);
/* @text to be prepared, and the values that go beside it. */
void hf__mysql_statement_template(struct hf__buf *to, const char *text);
void hf__mysql_statement_params(struct hf__mysql *mysql,
                                struct hf__mysql_call *call, const char *text,
                                const struct hf__mysql_values *values);
const struct hf__mysql_lock_texts *hf__mysql_statement_of_lock(
    const struct hf__mysql *mysql, const struct hf__ticket *ticket);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * dialect.c - dialect=shedlock, dialect=spring: the tables of others.
 *
 * A row of theirs is a name, its holder, and until when; engines/sql/dialect.h
 * says what stands for name and holder. There is no line, no wake-up and no
 * token: while a caller waits, the core asks again by its retry policy. One
 * statement takes a row that is missing or has expired, by the server's clock in
 * UTC, and another one in the same text says whose it is; one frees it, if it is
 * ours. ShedLock's rows are never deleted: its clients remember that a row is
 * there, and only update it.
 *
 * The collation of a column may take two names for one. Then the row of the
 * other name is left alone, and the second name refused.
 *
 * A TIMESTAMP of the table is written in the zone of the session. Others leave
 * that at the server's default, and so do our sessions (connection.c).
 *
 * Failure: tickets.c.
 */
#include "engines/common/caps.h"
#include "engines/mysql/mysql.h"

static const char *const shedlock[HF__MYSQL_DIALECT_TEXTS] = {
    [HF__MYSQL_MAKE] = hf__mysql_sql_shedlock_make,
    HF__MYSQL_TEXTS_OF(shedlock),
};

static const char *const spring[HF__MYSQL_DIALECT_TEXTS] = {
    [HF__MYSQL_MAKE] = hf__mysql_sql_spring_make,
    HF__MYSQL_TEXTS_OF(spring),
};

/* What HF__MYSQL_ACQUIRE answers. */
enum { HELD, IS_NAME, WHO, COLUMNS };

static void other_name(struct hf__mysql *mysql, struct hf__ticket *ticket)
{
    hf_error err;

    (void)hf__fail(&err, HF_EINVAL,
                   "dialect=%s: the collation of the table takes this name "
                   "for another one, which has a row",
                   mysql->dialect->name);
    hf__mysql_tickets_failed(mysql, ticket, &err);
}

static void on_taken(struct hf__mysql *mysql, struct hf__ticket *ticket,
                     struct hf__mysql_call *call, struct hf__mysql_reply *reply)
{
    struct hf__mysql_field row[COLUMNS];

    if (hf__mysql_ticket(mysql, ticket)->state != HF__MYSQL_ASKING ||
        hf__mysql_schema_make(call, reply))
        return;
    if (reply && reply->code != 0)
        hf__mysql_tickets_not_granted(mysql, ticket, reply);
    else if (!reply || reply->columns != COLUMNS)
        hf__mysql_tickets_answer_lost(mysql, ticket);
    else if (!hf__mysql_answer_row(reply, COLUMNS, row)) /* freed meanwhile */
        hf__mysql_tickets_busy(mysql, ticket, NULL);
    else if (hf__mysql_answer_number(row[IS_NAME]) != 1)
        other_name(mysql, ticket);
    else if (hf__mysql_answer_number(row[HELD]) == 1)
        hf__mysql_tickets_granted(mysql, ticket, /* token= */ 0,
                                  /* woken= */ false, call->sent_ns);
    else
        hf__mysql_tickets_busy(mysql, ticket, row[WHO].text);
}

static int acquire(struct hf__mysql *mysql, struct hf__ticket *ticket,
                   hf_error *err)
{
    char key[HF__SQL_KEY];
    int rc = hf__sql_dialect_key(mysql->dialect, mysql->base.host->settings,
                                 ticket->name, key, err);
    bool known;

    if (rc != 0)
        return rc;
    known = hf__mysql_tickets_ask(mysql, ticket);
    hf__mysql_ticket(mysql, ticket)->unsure |= known;
    rc = hf__mysql_call_ask(&mysql->main, ticket,
                            mysql->dialect_texts[HF__MYSQL_ACQUIRE], on_taken,
                            err);
    return rc == 0 ? 0 : hf__mysql_tickets_not_asked(mysql, ticket, known, rc);
}

static void on_released(struct hf__mysql *mysql, struct hf__ticket *ticket,
                        struct hf__mysql_call *call,
                        struct hf__mysql_reply *reply)
{
    (void)call;
    if (!hf__mysql_tickets_not_left(mysql, ticket, reply))
        hf__mysql_tickets_left(mysql, ticket, reply->affected[0] == 1);
}

static int release(struct hf__mysql *mysql, struct hf__ticket *ticket,
                   hf_error *err)
{
    return hf__mysql_call_ask(&mysql->main, ticket,
                              mysql->dialect_texts[HF__MYSQL_RELEASE],
                              on_released, err);
}

const struct hf__mysql_mode hf__mysql_dialect_mode = {
    .name = "table",
    .caps = HF__CAPS_ROW,
    HF__MYSQL_OF_ROWS(acquire, release),
};

void hf__mysql_dialect_open(struct hf__mysql *mysql)
{
    bool row = mysql->dialect->table == NULL;

    mysql->mode = row ? &hf__mysql_row_mode : &hf__mysql_dialect_mode;
    mysql->dialect_texts = row ? hf__mysql_row_texts(mysql)
                           : mysql->dialect->has_region ? spring
                                                        : shedlock;
}

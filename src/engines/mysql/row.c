/* SPDX-License-Identifier: MIT */
/*
 * row.c - dialect=row: the table of programs that lock by INSERT and DELETE.
 *
 * INSERT of the name takes the lock and DELETE frees it, as these programs do;
 * the table and its columns are theirs ($1, $2, $3 of statements.h). There is
 * no lease: the row of a dead holder stays until somebody breaks it. While a
 * caller waits, the core asks again by its retry policy.
 *
 * Without a unique index two INSERTs of a name would both succeed: before the
 * first one on a connection we ask the server for the table's indexes.
 *
 * A column of numbers takes "01" for 1, and a collation "A" for "a". The text
 * that inserts deletes a row that has another name than ours.
 *
 * Failure: the answer to an INSERT or DELETE is lost. The main connection is up
 * again only when the old session has ended, so that what it did is final. With
 * a column for the holder the row tells whose it is. Without one a row that is
 * there may be ours or another's: we leave it alone, and report HF_EUNKNOWN.
 */
#include <mysqld_error.h>
#include <strings.h>

#include "engines/mysql/mysql.h"

enum { SET, INSERT, SELECT, DELETE }; /* the statements of HF__MYSQL_ACQUIRE */

static const char *const without_owner[HF__MYSQL_DIALECT_TEXTS] = {
    HF__MYSQL_TEXTS_OF(row)};

static const char *const with_owner[HF__MYSQL_DIALECT_TEXTS] = {
    HF__MYSQL_TEXTS_OF(row_owner)};

static bool has_owner(const struct hf__mysql *mysql)
{
    return mysql->base.host->settings->owner_column[0] != '\0';
}

const char *const *hf__mysql_row_texts(const struct hf__mysql *mysql)
{
    return has_owner(mysql) ? with_owner : without_owner;
}

static int say(struct hf__mysql *mysql, struct hf__ticket *ticket,
               enum hf__mysql_dialect_text text,
               hf__mysql_answered_fn *answered, hf_error *err)
{
    return hf__mysql_call_ask(&mysql->main, ticket, mysql->dialect_texts[text],
                              answered, err);
}

/* The row may be ours or another's. */
static int explain_doubt(const struct hf__mysql *mysql,
                         const struct hf__ticket *ticket, hf_error *err)
{
    return hf__fail(err, HF_EUNKNOWN,
                    "%s: an answer was lost, and '%s' has a row, ours or "
                    "another's: look, and break it if it is nobody's "
                    "(owner_column=… would tell)",
                    mysql->peer, ticket->name);
}

/* ---- releasing ----------------------------------------------------------- */

static void on_looked(struct hf__mysql *mysql, struct hf__ticket *ticket,
                      struct hf__mysql_call *call,
                      struct hf__mysql_reply *reply)
{
    hf_error err;

    (void)call;
    if (hf__mysql_tickets_not_left(mysql, ticket, reply))
        return;
    if (reply->affected[0] == 0) {
        hf__mysql_tickets_left(mysql, ticket, /* held= */ true);
        return;
    }
    (void)explain_doubt(mysql, ticket, &err);
    hf__engine_log(&mysql->base, HF_LOG_WARNING, "%s", err.text);
    hf__mysql_tickets_forget(mysql, ticket);
    hf__up_left(&mysql->base, ticket, HF_EUNKNOWN);
}

static void on_released(struct hf__mysql *mysql, struct hf__ticket *ticket,
                        struct hf__mysql_call *call,
                        struct hf__mysql_reply *reply)
{
    if (!reply) {
        hf__mysql_ticket(mysql, ticket)->unsure |= call->sent_ns != 0;
        hf__mysql_tickets_answer_lost(mysql, ticket);
    } else if (!hf__mysql_tickets_not_left(mysql, ticket, reply)) {
        hf__mysql_tickets_left(mysql, ticket, reply->affected[0] == 1);
    }
}

/* An answer under way is waited for: on_taken() or on_indexes() goes on. The
 * ticket may be gone when this returns. */
static int release(struct hf__mysql *mysql, struct hf__ticket *ticket,
                   hf_error *err)
{
    const struct hf__mysql_ticket *mine = hf__mysql_ticket(mysql, ticket);

    if (mine->under_way)
        return 0;
    if (has_owner(mysql) ||
        (mine->stored == HF__MYSQL_HAS_LOCK && !mine->unsure))
        return say(mysql, ticket, HF__MYSQL_RELEASE, on_released, err);
    if (mine->unsure)
        return say(mysql, ticket, HF__MYSQL_RENEW, on_looked, err);
    hf__mysql_tickets_left(mysql, ticket, /* held= */ false);
    return 0;
}

static void go_on_releasing(struct hf__mysql *mysql, struct hf__ticket *ticket)
{
    if (release(mysql, ticket, NULL) != 0)
        hf__mysql_tickets_answer_lost(mysql, ticket);
}

/* ---- asking -------------------------------------------------------------- */

static void granted(struct hf__mysql *mysql, struct hf__ticket *ticket,
                    const struct hf__mysql_call *call)
{
    hf__mysql_tickets_granted(mysql, ticket, /* token= */ 0, /* woken= */ false,
                              call->sent_ns);
}

static void on_who(struct hf__mysql *mysql, struct hf__ticket *ticket,
                   struct hf__mysql_call *call, struct hf__mysql_reply *reply)
{
    struct hf__mysql_field row[2];

    if (hf__mysql_ticket(mysql, ticket)->state != HF__MYSQL_ASKING)
        return;
    if (reply && reply->code != 0)
        hf__mysql_tickets_not_granted(mysql, ticket, reply);
    else if (!reply || reply->columns != 2)
        hf__mysql_tickets_answer_lost(mysql, ticket);
    else if (!hf__mysql_answer_row(reply, 2, row)) /* freed meanwhile */
        hf__mysql_tickets_busy(mysql, ticket, NULL);
    else if (hf__mysql_answer_number(row[0]) == 1)
        granted(mysql, ticket, call);
    else
        hf__mysql_tickets_busy(mysql, ticket, row[1].text);
}

/* There is a row already. */
static void is_taken(struct hf__mysql *mysql, struct hf__ticket *ticket)
{
    hf_error err;

    if (has_owner(mysql)) {
        if (hf__mysql_call_ask(&mysql->main, ticket,
                               hf__mysql_sql_row_owner_who, on_who, &err) != 0)
            hf__mysql_tickets_answer_lost(mysql, ticket);
    } else if (hf__mysql_ticket(mysql, ticket)->unsure) {
        (void)explain_doubt(mysql, ticket, &err);
        hf__mysql_tickets_failed(mysql, ticket, &err);
    } else {
        hf__mysql_tickets_busy(mysql, ticket, NULL);
    }
}

static void other_name(struct hf__mysql *mysql, struct hf__ticket *ticket)
{
    hf_error err;

    (void)hf__fail(&err, HF_EINVAL,
                   "dialect=row: the column takes '%s' for another name; "
                   "write it as the column does",
                   ticket->name);
    hf__mysql_tickets_failed(mysql, ticket, &err);
}

static void heard(struct hf__mysql *mysql, struct hf__ticket *ticket,
                  const struct hf__mysql_call *call,
                  const struct hf__mysql_reply *reply)
{
    if (reply->code == ER_DUP_ENTRY && reply->n == INSERT)
        is_taken(mysql, ticket);
    else if (reply->code != 0)
        hf__mysql_tickets_not_granted(mysql, ticket, reply);
    else if (hf__mysql_ticket(mysql, ticket)->stored == HF__MYSQL_HAS_LOCK)
        granted(mysql, ticket, call);
    else
        other_name(mysql, ticket);
}

static void on_taken(struct hf__mysql *mysql, struct hf__ticket *ticket,
                     struct hf__mysql_call *call, struct hf__mysql_reply *reply)
{
    struct hf__mysql_ticket *mine = hf__mysql_ticket(mysql, ticket);
    bool ours = reply && reply->code == 0 && reply->affected[DELETE] == 0;

    if (!mine->under_way)
        return;
    mine->under_way = false;
    if (!reply ? call->sent_ns != 0 : reply->code != 0 && reply->n > INSERT)
        mine->unsure = true;
    mine->stored = ours ? HF__MYSQL_HAS_LOCK : HF__MYSQL_HAS_NOTHING;
    if (ours) /* so an earlier one had made none */
        mine->unsure = false;
    if (!reply)
        hf__mysql_tickets_answer_lost(mysql, ticket);
    else if (hf__mysql_tickets_leaves(mine))
        go_on_releasing(mysql, ticket);
    else
        heard(mysql, ticket, call, reply);
}

static int send_take(struct hf__mysql *mysql, struct hf__ticket *ticket,
                     hf_error *err)
{
    int rc = say(mysql, ticket, HF__MYSQL_ACQUIRE, on_taken, err);

    hf__mysql_ticket(mysql, ticket)->under_way = rc == 0;
    return rc;
}

/* ---- is the column unique? ----------------------------------------------- */

/* The columns of SHOW INDEX that we need; later versions have more at the
 * end. */
enum { PLACE = 3, COLUMN, INDEX_COLUMNS = 13 };

/* The rows of an index follow each other. */
static bool is_unique(const struct hf__mysql *mysql,
                      struct hf__mysql_reply *reply)
{
    const char *key = mysql->base.host->settings->key;
    struct hf__mysql_field row[HF__MYSQL_COLUMNS];
    bool found = false; /* an index that begins with the column */

    while (hf__mysql_answer_row(reply, reply->columns, row)) {
        uint64_t place = hf__mysql_answer_number(row[PLACE]);

        if (found && place == 1)
            return true;
        found = place == 1 && row[COLUMN].text &&
                strcasecmp(row[COLUMN].text, key) == 0;
    }
    return found;
}

static void not_unique(struct hf__mysql *mysql, struct hf__ticket *ticket)
{
    const struct hf__settings *settings = mysql->base.host->settings;
    hf_error err;

    (void)hf__fail(&err, HF_ECONFIG,
                   "%s: table %s has no UNIQUE index on column %s alone, so "
                   "that two could hold one name: add one",
                   mysql->peer, settings->table, settings->key);
    hf__mysql_tickets_refused(mysql, ticket, &err);
}

static void on_indexes(struct hf__mysql *mysql, struct hf__ticket *ticket,
                       struct hf__mysql_call *call,
                       struct hf__mysql_reply *reply)
{
    struct hf__mysql_ticket *mine = hf__mysql_ticket(mysql, ticket);

    (void)call;
    if (!mine->under_way)
        return;
    mine->under_way = false;
    if (reply && hf__mysql_tickets_leaves(mine)) {
        go_on_releasing(mysql, ticket);
    } else if (reply && reply->code != 0) {
        hf__mysql_tickets_not_granted(mysql, ticket, reply);
    } else if (!reply || reply->columns < INDEX_COLUMNS) {
        hf__mysql_tickets_answer_lost(mysql, ticket);
    } else if (!is_unique(mysql, reply)) {
        not_unique(mysql, ticket);
    } else {
        mysql->proven = true;
        if (send_take(mysql, ticket, NULL) != 0)
            hf__mysql_tickets_answer_lost(mysql, ticket);
    }
}

static int take(struct hf__mysql *mysql, struct hf__ticket *ticket,
                hf_error *err)
{
    int rc;

    if (mysql->proven)
        return send_take(mysql, ticket, err);
    rc = hf__mysql_call_ask(&mysql->main, ticket, hf__mysql_sql_row_indexes,
                            on_indexes, err);
    hf__mysql_ticket(mysql, ticket)->under_way = rc == 0;
    return rc;
}

/* ---- asking again -------------------------------------------------------- */

/* The row was made, and the report of it was lost on its way up. */
static void on_seen(struct hf__mysql *mysql, struct hf__ticket *ticket,
                    struct hf__mysql_call *call, struct hf__mysql_reply *reply)
{
    if (hf__mysql_ticket(mysql, ticket)->state != HF__MYSQL_ASKING)
        return;
    if (reply && reply->code == 0 && reply->affected[0] == 1)
        granted(mysql, ticket, call);
    else if (!reply || reply->code != 0 || take(mysql, ticket, NULL) != 0)
        hf__mysql_tickets_answer_lost(mysql, ticket);
}

static int acquire(struct hf__mysql *mysql, struct hf__ticket *ticket,
                   hf_error *err)
{
    const struct hf__mysql_ticket *mine = hf__mysql_ticket(mysql, ticket);
    bool known = hf__mysql_tickets_ask(mysql, ticket);
    int rc = mine->stored == HF__MYSQL_HAS_LOCK
                 ? say(mysql, ticket, HF__MYSQL_RENEW, on_seen, err)
                 : take(mysql, ticket, err);

    return rc == 0 ? 0 : hf__mysql_tickets_not_asked(mysql, ticket, known, rc);
}

static void lost(struct hf__mysql *mysql)
{
    mysql->proven = false;
}

const struct hf__mysql_mode hf__mysql_row_mode = {
    .name = "row",
    .caps = HF_CAP_DISTRIBUTED | HF_CAP_SURVIVES_RESTART | HF_CAP_BREAK,
    HF__MYSQL_OF_ROWS(acquire, release),
    .lost = lost,
};

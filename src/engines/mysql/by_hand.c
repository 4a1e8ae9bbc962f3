/* SPDX-License-Identifier: MIT */
/*
 * by_hand.c - dialect=row: the table of programs that lock by hand.
 *
 * INSERT of the name takes the lock and DELETE frees it, as these programs do;
 * the table and its columns are theirs ($1, $2, $3 of statements.c). There is
 * no lease: the row of a dead holder stays until somebody breaks it. While a
 * caller waits, the core asks again by its retry policy.
 *
 * Without a unique index two INSERTs of a name would both succeed: before the
 * first one on a connection the server is asked for the table's indexes.
 *
 * A column of numbers takes "01" for 1, and a collation "A" for "a". A row that
 * is not called as the name is deleted by the text that made it.
 *
 * Failure: the answer to an INSERT or DELETE is lost. The main connection is up
 * again only when the old session has ended, so that what it did is final. With
 * a column for the holder the row tells whose it is. Without one a row that is
 * there may be ours or another's: it is left alone, and who asked hears
 * HF_EUNKNOWN.
 */
#include <mysqld_error.h>
#include <strings.h>

#include "engines/mysql/mysql.h"

#define NAME "_utf8mb4 $N"
#define HOLDER "_utf8mb4 $T"
#define BYTES "CAST(CONVERT($2 USING utf8mb4) AS BINARY)"
#define ROW "$2=" NAME " AND " BYTES "=$N"
#define OUR_ROW ROW " AND $3=" HOLDER
/* No transaction: one that failed would keep the row of the holder locked until
 * we have undone it. What has another name than ours goes at once. */
#define TAKE(columns, values)                                                  \
    "SET @hf_key=NULL;INSERT INTO $1(" columns ") VALUES(" values ");"         \
    "SELECT " BYTES " INTO @hf_key FROM $1 WHERE $2=" NAME " ORDER BY " BYTES  \
    "<>$N LIMIT 1;"                                                            \
    "DELETE FROM $1 WHERE $2=" NAME " AND " BYTES "=@hf_key AND " BYTES "<>$N"
enum { SET, INSERT, SELECT, DELETE }; /* the statements of TAKE */
#define KEEP(where) "SELECT 1 INTO @hf_ok FROM $1 WHERE " where
/* The columns of hf__mysql_list; an owner has its place in the record. */
#define ROWS(who)                                                              \
    "SELECT $2,1,0,0,0,-1000,-1000,CONCAT(x'0A0A',CONVERT(" who                \
    " USING utf8mb4)),0 FROM $1 WHERE "
#define BREAK(who)                                                             \
    "DELETE FROM $1 WHERE " ROW " AND " who "=_utf8mb4 $O;"                    \
    "SELECT ROW_COUNT(),ROW_COUNT()+COUNT(*) FROM $1 WHERE " ROW
#define TRY(columns)                                                           \
    "START TRANSACTION;INSERT INTO $1(" columns ") SELECT " columns            \
    " FROM $1 WHERE 1=0;DELETE FROM $1 WHERE 1=0;ROLLBACK"
/* Who holds, where no column tells. */
#define NOBODY "_utf8mb4'unknown'"
#define SOMEBODY "COALESCE($3,'')"
#define BEGINS "LEFT(" BYTES ",$Z)=$P"

static const char *const nameless[HF__MYSQL_DIALECT_TEXTS] = {
    [HF__MYSQL_TAKE] = TAKE("$2", NAME),
    [HF__MYSQL_KEEP] = KEEP(ROW),
    [HF__MYSQL_LEAVE] = "DELETE FROM $1 WHERE " ROW,
    [HF__MYSQL_SHOW] = ROWS(NOBODY) ROW,
    [HF__MYSQL_LIST] = ROWS(NOBODY) BEGINS,
    [HF__MYSQL_BREAK] = BREAK(NOBODY),
    [HF__MYSQL_TRY] = TRY("$2"),
};

static const char *const named[HF__MYSQL_DIALECT_TEXTS] = {
    [HF__MYSQL_TAKE] = TAKE("$2,$3", NAME "," HOLDER),
    [HF__MYSQL_KEEP] = KEEP(OUR_ROW),
    [HF__MYSQL_LEAVE] = "DELETE FROM $1 WHERE " OUR_ROW,
    [HF__MYSQL_SHOW] = ROWS(SOMEBODY) ROW,
    [HF__MYSQL_LIST] = ROWS(SOMEBODY) BEGINS,
    [HF__MYSQL_BREAK] = BREAK(SOMEBODY),
    [HF__MYSQL_TRY] = TRY("$2,$3"),
};

/* → is it ours, who has it. */
static const char who_has_it[] =
    "SELECT $3=" HOLDER "," SOMEBODY " FROM $1 WHERE " ROW;

/* The server finds the table by its own rules for names. */
static const char indexes[] = "SHOW INDEX FROM $1 WHERE Non_unique=0";
/* The columns of that which we need; later versions have more at the end. */
enum { PLACE = 3, COLUMN, INDEX_COLUMNS = 13 };

static bool has_owner(const struct hf__mysql *mysql)
{
    return mysql->base.host->settings->owner_column[0] != '\0';
}

const char *const *hf__mysql_by_hand_texts(const struct hf__mysql *mysql)
{
    return has_owner(mysql) ? named : nameless;
}

static int say(struct hf__mysql *mysql, struct hf__ticket *ticket,
               enum hf__mysql_dialect_text text, hf__mysql_done_fn *done,
               hf_error *err)
{
    return hf__mysql_ask(&mysql->main, ticket, mysql->dialect_texts[text], done,
                         0, err);
}

/* Ours or another's: nobody can tell. */
static int explain_doubt(const struct hf__mysql *mysql,
                         const struct hf__ticket *ticket, hf_error *err)
{
    return hf__fail(err, HF_EUNKNOWN,
                    "%s: an answer was lost, and '%s' has a row, ours or "
                    "another's: look, and break it if it is nobody's "
                    "(owner_column=… would tell)",
                    mysql->peer, ticket->name);
}

/* ---- leaving ----------------------------------------------------------- */

static void on_looked(struct hf__mysql *mysql, struct hf__mysql_call *call,
                      struct hf__mysql_reply *reply)
{
    struct hf__ticket *ticket = hf__mysql_ticket_find(mysql, call->ticket);
    hf_error err;

    if (!ticket || hf__mysql_row_not_left(mysql, ticket, reply))
        return;
    if (reply->affected[0] == 0) {
        hf__mysql_row_left(mysql, ticket, /* held= */ true);
        return;
    }
    (void)explain_doubt(mysql, ticket, &err);
    hf__engine_log(&mysql->base, HF_LOG_WARNING, "%s", err.text);
    hf__mysql_ticket_forget(mysql, ticket);
    hf__up_left(&mysql->base, ticket, HF_EUNKNOWN);
}

static void on_left(struct hf__mysql *mysql, struct hf__mysql_call *call,
                    struct hf__mysql_reply *reply)
{
    struct hf__ticket *ticket = hf__mysql_ticket_find(mysql, call->ticket);

    if (!ticket)
        return;
    if (!reply) {
        hf__mysql_ticket(mysql, ticket)->unsure |= call->sent_ns != 0;
        hf__mysql_row_unknown(mysql, ticket);
    } else if (!hf__mysql_row_not_left(mysql, ticket, reply)) {
        hf__mysql_row_left(mysql, ticket, reply->affected[0] == 1);
    }
}

static int send_leave(struct hf__mysql *mysql, struct hf__ticket *ticket,
                      hf_error *err)
{
    const struct hf__mysql_ticket *mine = hf__mysql_ticket(mysql, ticket);

    if (has_owner(mysql) || (mine->has_row && !mine->unsure))
        return say(mysql, ticket, HF__MYSQL_LEAVE, on_left, err);
    if (mine->unsure)
        return say(mysql, ticket, HF__MYSQL_KEEP, on_looked, err);
    hf__mysql_row_left(mysql, ticket, /* held= */ false);
    return 0;
}

/* The ticket may be gone then. */
static void go_on_leaving(struct hf__mysql *mysql, struct hf__ticket *ticket)
{
    if (send_leave(mysql, ticket, NULL) != 0)
        hf__mysql_row_unknown(mysql, ticket);
}

/* An answer under way is waited for: on_taken() or on_indexes() goes on. */
static int leave(struct hf__mysql *mysql, struct hf__ticket *ticket,
                 bool releasing, hf_error *err)
{
    struct hf__mysql_ticket *mine = hf__mysql_ticket(mysql, ticket);

    mine->asking = false;
    mine->leaving = true;
    mine->releasing = releasing;
    return mine->trying ? 0 : send_leave(mysql, ticket, err);
}

/* ---- asking ------------------------------------------------------------ */

static void granted(struct hf__mysql *mysql, struct hf__ticket *ticket,
                    int64_t sent_ns)
{
    hf__mysql_ticket(mysql, ticket)->has_row = true;
    hf__mysql_row_granted(mysql, ticket, /* token= */ 0, sent_ns);
}

static void fail(struct hf__mysql *mysql, struct hf__ticket *ticket,
                 const hf_error *err)
{
    hf__mysql_ticket_forget(mysql, ticket);
    hf__up_failed(&mysql->base, ticket, err);
}

static void on_who(struct hf__mysql *mysql, struct hf__mysql_call *call,
                   struct hf__mysql_reply *reply)
{
    struct hf__ticket *ticket = hf__mysql_ticket_find(mysql, call->ticket);
    struct hf__mysql_field row[2];

    if (!ticket || !hf__mysql_ticket(mysql, ticket)->asking)
        return;
    if (reply && reply->code != 0)
        hf__mysql_row_not_granted(mysql, ticket, reply);
    else if (!reply || reply->columns != 2)
        hf__mysql_row_unknown(mysql, ticket);
    else if (!hf__mysql_row(reply, 2, row)) /* freed meanwhile */
        hf__mysql_row_busy(mysql, ticket, NULL);
    else if (hf__mysql_number(row[0]) == 1)
        granted(mysql, ticket, call->sent_ns);
    else
        hf__mysql_row_busy(mysql, ticket, row[1].text);
}

/* There is a row already. */
static void is_taken(struct hf__mysql *mysql, struct hf__ticket *ticket)
{
    hf_error err;

    if (has_owner(mysql)) {
        if (hf__mysql_ask(&mysql->main, ticket, who_has_it, on_who, 0, &err) !=
            0)
            hf__mysql_row_unknown(mysql, ticket);
    } else if (hf__mysql_ticket(mysql, ticket)->unsure) {
        (void)explain_doubt(mysql, ticket, &err);
        fail(mysql, ticket, &err);
    } else {
        hf__mysql_row_busy(mysql, ticket, NULL);
    }
}

static void other_name(struct hf__mysql *mysql, struct hf__ticket *ticket)
{
    hf_error err;

    (void)hf__fail(&err, HF_EINVAL,
                   "dialect=row: the column takes '%s' for another name; "
                   "write it as the column does",
                   ticket->name);
    fail(mysql, ticket, &err);
}

static void not_leaving(struct hf__mysql *mysql, struct hf__ticket *ticket,
                        const struct hf__mysql_call *call,
                        const struct hf__mysql_reply *reply)
{
    if (reply->code == ER_DUP_ENTRY && reply->n == INSERT)
        is_taken(mysql, ticket);
    else if (reply->code != 0)
        hf__mysql_row_not_granted(mysql, ticket, reply);
    else if (hf__mysql_ticket(mysql, ticket)->has_row)
        granted(mysql, ticket, call->sent_ns);
    else
        other_name(mysql, ticket);
}

static void on_taken(struct hf__mysql *mysql, struct hf__mysql_call *call,
                     struct hf__mysql_reply *reply)
{
    struct hf__ticket *ticket = hf__mysql_ticket_find(mysql, call->ticket);
    struct hf__mysql_ticket *mine =
        ticket ? hf__mysql_ticket(mysql, ticket) : NULL;

    if (!mine || !mine->trying)
        return;
    mine->trying = false;
    if (!reply ? call->sent_ns != 0 : reply->code != 0 && reply->n > INSERT)
        mine->unsure = true;
    mine->has_row = reply && reply->code == 0 && reply->affected[DELETE] == 0;
    if (mine->has_row) /* so an earlier one had made none */
        mine->unsure = false;
    if (!reply)
        hf__mysql_row_unknown(mysql, ticket);
    else if (mine->leaving)
        go_on_leaving(mysql, ticket);
    else
        not_leaving(mysql, ticket, call, reply);
}

static int send_take(struct hf__mysql *mysql, struct hf__ticket *ticket,
                     hf_error *err)
{
    int rc = say(mysql, ticket, HF__MYSQL_TAKE, on_taken, err);

    hf__mysql_ticket(mysql, ticket)->trying = rc == 0;
    return rc;
}

/* ---- is the column unique? --------------------------------------------- */

/* The rows of an index follow each other. */
static bool is_unique(const struct hf__mysql *mysql,
                      struct hf__mysql_reply *reply)
{
    const char *key = mysql->base.host->settings->key;
    struct hf__mysql_field row[HF__MYSQL_COLUMNS];
    bool found = false; /* an index that begins with the column */

    while (hf__mysql_row(reply, reply->columns, row)) {
        uint64_t place = hf__mysql_number(row[PLACE]);

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
    if (hf__mysql_ticket(mysql, ticket)->unsure) {
        hf__mysql_ticket(mysql, ticket)->asking = false;
        hf__up_unknown(&mysql->base, ticket, &err);
    } else {
        fail(mysql, ticket, &err);
    }
}

static void on_indexes(struct hf__mysql *mysql, struct hf__mysql_call *call,
                       struct hf__mysql_reply *reply)
{
    struct hf__ticket *ticket = hf__mysql_ticket_find(mysql, call->ticket);
    struct hf__mysql_ticket *mine =
        ticket ? hf__mysql_ticket(mysql, ticket) : NULL;

    if (!mine || !mine->trying)
        return;
    mine->trying = false;
    if (reply && mine->leaving) {
        go_on_leaving(mysql, ticket);
    } else if (reply && reply->code != 0) {
        hf__mysql_row_not_granted(mysql, ticket, reply);
    } else if (!reply || reply->columns < INDEX_COLUMNS) {
        hf__mysql_row_unknown(mysql, ticket);
    } else if (!is_unique(mysql, reply)) {
        not_unique(mysql, ticket);
    } else {
        mysql->proven = true;
        if (send_take(mysql, ticket, NULL) != 0)
            hf__mysql_row_unknown(mysql, ticket);
    }
}

static int take(struct hf__mysql *mysql, struct hf__ticket *ticket,
                hf_error *err)
{
    int rc;

    if (mysql->proven)
        return send_take(mysql, ticket, err);
    rc = hf__mysql_ask(&mysql->main, ticket, indexes, on_indexes, 0, err);
    hf__mysql_ticket(mysql, ticket)->trying = rc == 0;
    return rc;
}

/* ---- asking again ------------------------------------------------------ */

/* The row was made, and the report of it was lost on its way up. */
static void on_seen(struct hf__mysql *mysql, struct hf__mysql_call *call,
                    struct hf__mysql_reply *reply)
{
    struct hf__ticket *ticket = hf__mysql_ticket_find(mysql, call->ticket);

    if (!ticket || !hf__mysql_ticket(mysql, ticket)->asking)
        return;
    if (reply && reply->code == 0 && reply->affected[0] == 1)
        granted(mysql, ticket, call->sent_ns);
    else if (!reply || reply->code != 0 || take(mysql, ticket, NULL) != 0)
        hf__mysql_row_unknown(mysql, ticket);
}

static int acquire(struct hf__mysql *mysql, struct hf__ticket *ticket,
                   hf_error *err)
{
    struct hf__mysql_ticket *mine = hf__mysql_ticket(mysql, ticket);
    bool known = mine->known;
    int rc;

    hf__mysql_ticket_know(mysql, ticket);
    mine->asking = true;
    rc = mine->has_row ? say(mysql, ticket, HF__MYSQL_KEEP, on_seen, err)
                       : take(mysql, ticket, err);
    return rc == 0 ? 0 : hf__mysql_row_not_asked(mysql, ticket, known, rc);
}

/* ---- the mode ---------------------------------------------------------- */

static const char *renewal(const struct hf__mysql *mysql,
                           const struct hf__ticket *ticket)
{
    (void)ticket;
    return mysql->dialect_texts[HF__MYSQL_KEEP];
}

static int64_t attend(struct hf__mysql *mysql, int64_t now_ns)
{
    (void)mysql;
    (void)now_ns;
    return HF_NEVER; /* nobody stands in line */
}

static void lost(struct hf__mysql *mysql)
{
    mysql->proven = false;
}

const struct hf__mysql_mode hf__mysql_by_hand = {
    .name = "row",
    .caps = HF_CAP_DISTRIBUTED | HF_CAP_SURVIVES_RESTART | HF_CAP_BREAK,
    .acquire = acquire,
    .leave = leave,
    .renew = hf__mysql_row_renew,
    .renewal = renewal,
    .attend = attend,
    .lost = lost,
    .regained = hf__mysql_row_regained,
};

/* SPDX-License-Identifier: MIT */
/*
 * dialect.c - dialect=shedlock, dialect=spring: the tables of others.
 *
 * A row of theirs is a name, who has it, and until when; dialect.h of sql says
 * what stands for name and holder. Nobody stands in line, nobody is woken,
 * there is no token: while a caller waits, the core asks again by its retry
 * policy. One statement takes a row that is missing or has expired, by the
 * server's clock in UTC, and another one in the same text says whose it is; one
 * frees it, if it is ours. ShedLock's rows are never
 * deleted: its clients remember that a row is there, and only update it.
 *
 * A column may be of a collation that takes two names for one. Then the row of
 * the other name is left alone, and the second name refused.
 *
 * A TIMESTAMP of the table is written in the zone of the session. Others leave
 * that at the server's standard, and so do our sessions (connection.c).
 *
 * Failure: row.c.
 */
#include "engines/mysql/mysql.h"

#define NAME "_utf8mb4 $N"
#define HOLDER "_utf8mb4 $T"
#define NOW "UTC_TIMESTAMP(6)"
/* A column without fractions loses up to a second. */
#define ENDS NOW "+INTERVAL $L+1000000 MICROSECOND"

/* In a transaction that is undone. */
#define TRY_OUT(changes) "START TRANSACTION;" changes ";ROLLBACK"

/* The columns of hf__mysql_list; the holder stands where an owner would. */
#define LINES(who) "CONCAT(x'0A0A',CONVERT(" who " USING utf8mb4))"
#define LEFT(until) "TIMESTAMPDIFF(MICROSECOND," NOW "," until ")"
#define ROWS(key, until, since, who)                                           \
    "SELECT " key ",1,0,0,0," LEFT(until) "," since                            \
                                          "," LINES(who) ",0 FROM @ WHERE "

/* Compare, free, and was there somebody? */
#define BREAK(where, change)                                                   \
    change ";SELECT ROW_COUNT(),ROW_COUNT()+COUNT(*) FROM @ WHERE " where

/* ---- ShedLock ---------------------------------------------------------- */

/* Assignments happen from left to right, and see those before them; VALUES()
 * is what would have been inserted: locked_at is now. */
#define SAME "CAST(name AS BINARY)=CAST(VALUES(name) AS BINARY)"
#define OURS "locked_by=VALUES(locked_by)"
#define FREE SAME " AND (lock_until<=VALUES(locked_at) OR " OURS ")"
#define LASTS "lock_until>" NOW
#define HELD_ROW "name=" NAME " AND " LASTS
#define ROW HELD_ROW " AND locked_by=" HOLDER
/* Whatever the collation. */
#define BYTES "CAST(CONVERT(name USING utf8mb4) AS BINARY)"
#define HELD_NAME HELD_ROW " AND " BYTES "=$N"
#define SHEDLOCK_ROWS                                                          \
    ROWS("name", "lock_until",                                                 \
         "GREATEST(0,TIMESTAMPDIFF(MICROSECOND,locked_at," NOW "))",           \
         "locked_by")

static const char *const shedlock[HF__MYSQL_DIALECT_TEXTS] = {
    [HF__MYSQL_MAKE] =
        "CREATE TABLE IF NOT EXISTS @("
        "name VARCHAR(64) COLLATE $C NOT NULL,"
        "lock_until TIMESTAMP(3) NOT NULL,"
        "locked_at TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3),"
        "locked_by VARCHAR(255) NOT NULL,"
        "PRIMARY KEY(name)) ENGINE=InnoDB CHARSET=utf8mb4",
    [HF__MYSQL_TAKE] =
        "INSERT INTO @(name,lock_until,locked_at,locked_by) "
        "VALUES(" NAME "," ENDS "," NOW "," HOLDER ") "
        "ON DUPLICATE KEY UPDATE "
        "locked_at=IF(" FREE ",VALUES(locked_at),locked_at),"
        "locked_by=IF(" FREE ",VALUES(locked_by),locked_by),"
        "lock_until=IF(" SAME " AND " OURS ",VALUES(lock_until),lock_until);"
        "SELECT locked_by=" HOLDER "," BYTES "=$N,locked_by FROM @ "
        "WHERE name=" NAME,
    [HF__MYSQL_KEEP] = "UPDATE @ SET lock_until=" ENDS " WHERE " ROW,
    [HF__MYSQL_LEAVE] = "UPDATE @ SET lock_until=UTC_TIMESTAMP(3) WHERE " ROW,
    [HF__MYSQL_SHOW] = SHEDLOCK_ROWS HELD_NAME,
    [HF__MYSQL_LIST] = SHEDLOCK_ROWS LASTS " AND LEFT(" BYTES ",$Z)=$P",
    [HF__MYSQL_BREAK] =
        BREAK(HELD_NAME, "UPDATE @ SET lock_until=UTC_TIMESTAMP(3) "
                         "WHERE " HELD_NAME " AND locked_by=_utf8mb4 $O"),
    [HF__MYSQL_TRY] =
        TRY_OUT("INSERT INTO @(name,lock_until,locked_at,locked_by) "
                "VALUES(" NAME "," NOW "," NOW ",'') "
                "ON DUPLICATE KEY UPDATE locked_by='';"
                "UPDATE @ SET locked_by='' WHERE name=" NAME),
};
#undef ROW
#undef LASTS

/* ---- Spring ------------------------------------------------------------ */

#define HERE "REGION=_utf8mb4 $G"
#define KEY "LOCK_KEY=" NAME " AND " HERE
#define ROW KEY " AND CLIENT_ID=" HOLDER
#define LASTS "EXPIRED_AFTER>=" NOW
#define HELD_KEY KEY " AND " LASTS
#define SPRING_ROWS ROWS("LOCK_KEY", "EXPIRED_AFTER", "-1000", "CLIENT_ID")

static const char *const spring[HF__MYSQL_DIALECT_TEXTS] = {
    [HF__MYSQL_MAKE] =
        "CREATE TABLE IF NOT EXISTS @("
        "LOCK_KEY CHAR(36) NOT NULL,"
        "REGION VARCHAR(100) NOT NULL,"
        "CLIENT_ID CHAR(36),"
        "CREATED_DATE DATETIME(6) NOT NULL,"
        "EXPIRED_AFTER DATETIME(6) NOT NULL,"
        "PRIMARY KEY(LOCK_KEY,REGION)) ENGINE=InnoDB CHARSET=utf8mb4",
    [HF__MYSQL_TAKE] =
        "INSERT INTO @(LOCK_KEY,REGION,CLIENT_ID,CREATED_DATE,EXPIRED_AFTER) "
        "VALUES(" NAME ",_utf8mb4 $G," HOLDER "," NOW "," ENDS ") "
        "ON DUPLICATE KEY UPDATE "
        "CLIENT_ID=IF(EXPIRED_AFTER<VALUES(CREATED_DATE),VALUES(CLIENT_ID),"
        "CLIENT_ID),"
        "EXPIRED_AFTER=IF(CLIENT_ID=VALUES(CLIENT_ID),VALUES(EXPIRED_AFTER),"
        "EXPIRED_AFTER);SELECT CLIENT_ID=" HOLDER ",1,CLIENT_ID FROM @ "
        "WHERE " KEY,
    [HF__MYSQL_KEEP] = "UPDATE @ SET EXPIRED_AFTER=" ENDS " WHERE " ROW,
    [HF__MYSQL_LEAVE] = "DELETE FROM @ WHERE " ROW,
    [HF__MYSQL_SHOW] = SPRING_ROWS HELD_KEY,
    [HF__MYSQL_LIST] = SPRING_ROWS HERE " AND " LASTS,
    [HF__MYSQL_BREAK] = BREAK(HELD_KEY, "DELETE FROM @ WHERE " KEY
                                        " AND CLIENT_ID=_utf8mb4 $O"),
    [HF__MYSQL_TRY] = TRY_OUT(
        "INSERT INTO "
        "@(LOCK_KEY,REGION,CLIENT_ID,CREATED_DATE,EXPIRED_AFTER) "
        "VALUES(" NAME ",_utf8mb4 $G,''," NOW "," NOW ") "
        "ON DUPLICATE KEY UPDATE CLIENT_ID='';"
        "UPDATE @ SET CLIENT_ID='' WHERE " KEY ";DELETE FROM @ WHERE " KEY),
};

/* ---- asking ------------------------------------------------------------ */

/* What TAKE answers. */
enum { HELD, IS_NAME, WHO, TAKE_COLUMNS };

static void other_name(struct hf__mysql *mysql, struct hf__ticket *ticket)
{
    hf_error err;

    (void)hf__fail(&err, HF_EINVAL,
                   "dialect=%s: the collation of the table takes this name "
                   "for another one, which has a row",
                   mysql->dialect->name);
    hf__mysql_ticket_forget(mysql, ticket);
    hf__up_failed(&mysql->base, ticket, &err);
}

static void on_taken(struct hf__mysql *mysql, struct hf__mysql_call *call,
                     struct hf__mysql_reply *reply)
{
    struct hf__ticket *ticket = hf__mysql_ticket_find(mysql, call->ticket);
    struct hf__mysql_ticket *mine =
        ticket ? hf__mysql_ticket(mysql, ticket) : NULL;
    struct hf__mysql_field row[TAKE_COLUMNS];

    if (!mine || !mine->asking || hf__mysql_remake(call, reply))
        return;
    if (reply && reply->code != 0)
        hf__mysql_row_not_granted(mysql, ticket, reply);
    else if (!reply || reply->columns != TAKE_COLUMNS)
        hf__mysql_row_unknown(mysql, ticket);
    else if (!hf__mysql_row(reply, TAKE_COLUMNS, row)) /* freed meanwhile */
        hf__mysql_row_busy(mysql, ticket, NULL);
    else if (hf__mysql_number(row[IS_NAME]) != 1)
        other_name(mysql, ticket);
    else if (hf__mysql_number(row[HELD]) == 1)
        hf__mysql_row_granted(mysql, ticket, /* token= */ 0, call->sent_ns);
    else
        hf__mysql_row_busy(mysql, ticket, row[WHO].text);
}

static int acquire(struct hf__mysql *mysql, struct hf__ticket *ticket,
                   hf_error *err)
{
    struct hf__mysql_ticket *mine = hf__mysql_ticket(mysql, ticket);
    bool known = mine->known;
    char key[HF__SQL_KEY];
    int rc = hf__sql_dialect_key(mysql->dialect, mysql->base.host->settings,
                                 ticket->name, key, err);

    if (rc != 0)
        return rc;
    hf__mysql_ticket_know(mysql, ticket);
    mine->unsure |= known;
    mine->asking = true;
    rc = hf__mysql_ask(&mysql->main, ticket,
                       mysql->dialect_texts[HF__MYSQL_TAKE], on_taken, 0, err);
    return rc == 0 ? 0 : hf__mysql_row_not_asked(mysql, ticket, known, rc);
}

/* ---- leaving, renewing ------------------------------------------------- */

static void on_left(struct hf__mysql *mysql, struct hf__mysql_call *call,
                    struct hf__mysql_reply *reply)
{
    struct hf__ticket *ticket = hf__mysql_ticket_find(mysql, call->ticket);

    if (ticket && !hf__mysql_row_not_left(mysql, ticket, reply))
        hf__mysql_row_left(mysql, ticket, reply->affected[0] == 1);
}

static int leave(struct hf__mysql *mysql, struct hf__ticket *ticket,
                 bool releasing, hf_error *err)
{
    struct hf__mysql_ticket *mine = hf__mysql_ticket(mysql, ticket);

    mine->asking = false;
    mine->leaving = true;
    mine->releasing = releasing;
    return hf__mysql_ask(&mysql->main, ticket,
                         mysql->dialect_texts[HF__MYSQL_LEAVE], on_left, 0,
                         err);
}

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

const struct hf__mysql_mode hf__mysql_in_dialect = {
    .name = "table",
    .caps = HF_CAP_LEASED | HF_CAP_DISTRIBUTED | HF_CAP_SURVIVES_RESTART |
            HF_CAP_BREAK | HF_CAP_LOCK_DELAY | HF_CAP_TOLD_BEFORE_REGRANT,
    .acquire = acquire,
    .leave = leave,
    .renew = hf__mysql_row_renew,
    .renewal = renewal,
    .attend = attend,
    .lost = hf__mysql_row_regained,
    .regained = hf__mysql_row_regained,
};

/* ---- opening ----------------------------------------------------------- */

int hf__mysql_dialect_open(struct hf__mysql *mysql, hf_error *err)
{
    bool by_hand = mysql->dialect->table == NULL;
    const char *const *texts = by_hand ? hf__mysql_by_hand_texts(mysql)
                               : mysql->dialect->has_region ? spring
                                                            : shedlock;

    mysql->mode = by_hand ? &hf__mysql_by_hand : &hf__mysql_in_dialect;
    return hf__sql_dialect_texts(&mysql->base, mysql->dialect, texts,
                                 HF__MYSQL_DIALECT_TEXTS, mysql->dialect_texts,
                                 err);
}

void hf__mysql_dialect_close(struct hf__mysql *mysql)
{
    for (size_t i = 0; i < HF__MYSQL_DIALECT_TEXTS; i++)
        hf__free(mysql->dialect_texts[i]);
}

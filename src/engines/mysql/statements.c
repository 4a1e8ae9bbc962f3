/* SPDX-License-Identifier: MIT */
/*
 * statements.c - the SQL, and how values get into it.
 *
 * Bytes are written as x'…', numbers as digits: nothing that a caller names can
 * end a literal, and nothing is folded, trimmed or converted.
 *
 * The tables of mode=table:
 *
 *   holdfast_lock     one row per name, never deleted, so that tokens go on.
 *                     The exclusive holder is in it: until, and as holder
 *                     ticket and record; if until is 0, that of the last one
 *   holdfast_ticket   a row for each who waits (role 0), or holds with others
 *                     (role 1)
 *   holdfast_row      mode=for_update: the row that a transaction holds
 *   holdfast_version  hf_version_commit()
 *
 * holdfast_lock.gate is 0 while a name has no rows in holdfast_ticket, and else
 * more than any instant. While it is 0 the row of the name is the whole lock,
 * and one statement of one row takes or frees it. Everything else first locks
 * that row, so that changes of one name are one after the other, in one text
 * that the server carries out without us: a client that stops in the middle
 * keeps nobody waiting. Such a text begins a transaction, and what it has done
 * is undone if one of its statements fails (calls.c). Its variables are those of
 * the session, and are set before they are read: @hf_….
 *
 * Whoever waits asks again; who is first of those that are alive takes the lock
 * when it is free. A waiter that has not asked for its life is forgotten.
 *
 * Instants are microseconds of the server's clock. A token is the greater of
 * the last one + 1 and that clock, so it goes on even after the table was lost.
 */
#include <inttypes.h>

#include "engines/mysql/mysql.h"
#include "engines/sql/record.h"

/* At the start of the statement, and at this moment. */
#define NOW "(UNIX_TIMESTAMP()*1000000+MICROSECOND(NOW(6)))"
#define NOW_INSIDE "CAST(UNIX_TIMESTAMP(SYSDATE(6))*1000000 AS UNSIGNED)"

const char hf__mysql_make_tables[] =
    "CREATE TABLE IF NOT EXISTS holdfast_lock("
    "name VARBINARY(400) NOT NULL PRIMARY KEY,"
    "token BIGINT UNSIGNED NOT NULL DEFAULT 0,"
    "until BIGINT UNSIGNED NOT NULL DEFAULT 0,"
    "gate BIGINT UNSIGNED NOT NULL DEFAULT 0,"
    "holder VARBINARY(1048) NOT NULL DEFAULT ''"
    ") ENGINE=InnoDB CHARSET=binary;"
    "CREATE TABLE IF NOT EXISTS holdfast_ticket("
    "name VARBINARY(400) NOT NULL,"
    "ticket VARBINARY(24) NOT NULL,"
    "seq BIGINT UNSIGNED NOT NULL,"
    "role TINYINT UNSIGNED NOT NULL,"
    "mode TINYINT UNSIGNED NOT NULL,"
    "slots INT UNSIGNED NOT NULL,"
    "token BIGINT UNSIGNED NOT NULL,"
    "until BIGINT UNSIGNED NOT NULL,"
    "since BIGINT UNSIGNED NOT NULL,"
    "record VARBINARY(1024) NOT NULL,"
    "PRIMARY KEY(name,ticket)"
    ") ENGINE=InnoDB CHARSET=binary;"
    "CREATE TABLE IF NOT EXISTS holdfast_row("
    "name VARBINARY(400) NOT NULL PRIMARY KEY"
    ") ENGINE=InnoDB CHARSET=binary;"
    "CREATE TABLE IF NOT EXISTS holdfast_version("
    "name VARBINARY(400) NOT NULL PRIMARY KEY,"
    "version BIGINT UNSIGNED NOT NULL"
    ") ENGINE=InnoDB CHARSET=binary";

/* What is prepared has no result, which costs the server more than the rest.
 * If a lock is not free, a number is above or below all that there are: that is
 * an error (hf__mysql_is_refused), and nothing is done. */

/* The row of a name that is new, or free. VALUES() is what would have been
 * inserted: the token is now. It comes back as the number of the insert. */
const char hf__mysql_take[] =
    "INSERT INTO holdfast_lock(name,token,until,holder) "
    "VALUES($N,LAST_INSERT_ID(" NOW "),token+$L,$H) "
    "ON DUPLICATE KEY UPDATE token=LAST_INSERT_ID("
    "GREATEST(token+1,VALUES(token))+0*(VALUES(token)-until-gate)),"
    "until=VALUES(until),holder=VALUES(holder)";
/* Of a holder. */
#define TICKET "LEFT(holder,24)"
#define RECORD "SUBSTR(holder,25)"
/* Who has it, if nobody waits. */
const char hf__mysql_who[] = "SELECT " RECORD " FROM holdfast_lock "
                             "WHERE name=$N AND gate=0 AND until>" NOW;

#define BEGIN "START TRANSACTION;"
#define MAKE_ROW                                                               \
    "INSERT INTO holdfast_lock(name) VALUES($N) "                              \
    "ON DUPLICATE KEY UPDATE name=name;"
#define LOCK_ROW                                                               \
    "SET @hf_token=0,@hf_until=0,@hf_ticket='',@hf_record='',@hf_role=0,"      \
    "@hf_mine=0,@hf_given=0,@hf_ok=0;"                                         \
    "SELECT token,until,IF(until=0,''," TICKET "),IF(until=0,''," RECORD ") "  \
    "INTO @hf_token,@hf_until,@hf_ticket,@hf_record "                          \
    "FROM holdfast_lock WHERE name=$N FOR UPDATE;"                             \
    "SET @hf_now=" NOW_INSIDE ";"
#define GATE(name)                                                             \
    "gate=~0*EXISTS(SELECT 1 FROM holdfast_ticket WHERE name=" name ")"
/* The exclusive holder is $T, and goes. */
#define FREE_ROW                                                               \
    "UPDATE holdfast_lock SET until=IF(@hf_ticket=$T,0,until)," GATE(          \
        "$N") " WHERE name=$N;COMMIT;"

/* @hf_ok: 1 granted now; 2 held already, in the row of the name; 3 held
 * already, in a row of its own: an answer was lost. */
const char hf__mysql_acquire_slow[] = BEGIN MAKE_ROW LOCK_ROW
    /* Who has not been heard of in time is not there. */
    "DELETE FROM holdfast_ticket "
    "WHERE name=$N AND until<=@hf_now AND ticket<>$T;"
    "SELECT seq,1+role,token INTO @hf_mine,@hf_role,@hf_given "
    "FROM holdfast_ticket WHERE name=$N AND ticket=$T;"
    /* In the way: who came before, and holders that do not go with us. */
    "SELECT COALESCE(SUM(role=0 AND ticket<>$T AND "
    "(@hf_role=0 OR seq<@hf_mine) AND NOT (mode=1 AND $M=1)),0),"
    "COALESCE(SUM(role=1 AND (mode<>$M OR $M=0)),0),COALESCE(SUM(role=1),0),"
    "COALESCE(MAX(seq),0)+1 INTO @hf_place,@hf_against,@hf_holders,@hf_next "
    "FROM holdfast_ticket WHERE name=$N;"
    "SET @hf_ok=CASE WHEN @hf_ticket=$T THEN 2 WHEN @hf_role=2 THEN 3 "
    "WHEN @hf_until>@hf_now THEN 0 ELSE @hf_place=0 AND @hf_against=0 AND "
    "($M<>2 OR @hf_holders<$S) END;"
    "SET @hf_given=CASE @hf_ok WHEN 1 THEN GREATEST(@hf_token+1,@hf_now) "
    "WHEN 2 THEN @hf_token ELSE @hf_given END,"
    "@hf_until=CASE WHEN @hf_ok=2 OR (@hf_ok=1 AND $M=0) THEN @hf_now+$L "
    "WHEN @hf_until>@hf_now THEN @hf_until ELSE 0 END;"
    "INSERT INTO holdfast_ticket SELECT $N,$T,"
    "IF(@hf_ok>0,0,IF(@hf_role=1,@hf_mine,@hf_next)),@hf_ok>0,$M,$S,@hf_given,"
    "@hf_now+IF(@hf_ok>0,$L,$A),@hf_now,$R FROM DUAL "
    "WHERE @hf_ok=3 OR (@hf_ok=1 AND $M<>0) OR (@hf_ok=0 AND $W) "
    "ON DUPLICATE KEY UPDATE since=IF(role=VALUES(role),since,VALUES(since)),"
    "seq=VALUES(seq),role=VALUES(role),token=VALUES(token),until=VALUES(until);"
    "DELETE FROM holdfast_ticket "
    "WHERE name=$N AND ticket=$T AND @hf_ok=1 AND $M=0;"
    "UPDATE holdfast_lock SET token=IF(@hf_ok=1,@hf_given,token),"
    "until=@hf_until,holder=IF(@hf_ok=1 AND $M=0,$H,holder)," GATE(
        "$N") " WHERE name=$N;COMMIT;"
              "SELECT @hf_ok>0,@hf_given,@hf_place+1,IF(@hf_until>0,"
              "@hf_record,(SELECT record FROM holdfast_ticket "
              "WHERE name=$N AND role=1 LIMIT 1))";

/* From who is in line, without locking anything: how many are before us, could
 * it be free, how long we count as alive. */
const char hf__mysql_look[] =
    "SELECT (SELECT COUNT(*) FROM holdfast_ticket w WHERE w.name=$N AND "
    "w.role=0 AND w.until>" NOW " AND w.seq<m.seq AND "
    "NOT (w.mode=1 AND m.mode=1)),"
    "l.until<=" NOW ",m.until>" NOW "+$A/2 "
    "FROM holdfast_ticket m JOIN holdfast_lock l ON l.name=m.name "
    "WHERE m.name=$N AND m.ticket=$T";

/* The exclusive holder goes; those who wait see that it is free. What it was
 * stays, and means nothing: what comes next is as long, and is written in its
 * place. Two rows are "changed" if the grant was still ours; the gate comes back
 * as the number of the insert. */
const char hf__mysql_leave_fast[] =
    "INSERT INTO holdfast_lock(name) VALUES($N) "
    "ON DUPLICATE KEY UPDATE until=until*(token<>$K)+0*LAST_INSERT_ID(gate)";

const char hf__mysql_leave_slow[] =
    BEGIN LOCK_ROW "SELECT role INTO @hf_ok FROM holdfast_ticket "
                   "WHERE name=$N AND ticket=$T;"
                   "DELETE FROM holdfast_ticket "
                   "WHERE name=$N AND (ticket=$T OR until<=@hf_now);" FREE_ROW
                   "SELECT @hf_ok=1 OR @hf_ticket=$T";

/* The rows of one name whose owners are dead, and its gate: was there one? */
const char hf__mysql_sweep[] =
    BEGIN "SET @hf_name=NULL;"
          "SELECT name INTO @hf_name FROM holdfast_ticket WHERE until<=" NOW
          " LIMIT 1;"
          "SELECT 1 INTO @hf_ok FROM holdfast_lock "
          "WHERE name=@hf_name FOR UPDATE;"
          "DELETE FROM holdfast_ticket "
          "WHERE name=@hf_name AND until<=" NOW ";"
          "UPDATE holdfast_lock SET " GATE("@hf_name") " WHERE name=@hf_name;"
                                                       "COMMIT;"
                                                       "SELECT @hf_name IS NOT "
                                                       "NULL";

const char hf__mysql_renew_exclusive[] =
    "UPDATE holdfast_lock SET until=" NOW
    "+$L WHERE name=$N AND token=$K AND until>0";
const char hf__mysql_renew_row[] = "UPDATE holdfast_ticket SET until=" NOW
                                   "+$L WHERE name=$N AND ticket=$T AND role=1";

const char hf__mysql_downgrade[] = BEGIN LOCK_ROW
    "INSERT INTO holdfast_ticket SELECT $N,$T,0,1,1,0,@hf_token,@hf_now+$L,"
    "@hf_now,$R FROM DUAL WHERE @hf_ticket=$T;"
    "UPDATE holdfast_ticket SET until=@hf_now+$L "
    "WHERE name=$N AND ticket=$T AND role=1;"
    "SET @hf_ok=ROW_COUNT();" FREE_ROW "SELECT @hf_ok";

/* name, role, mode, slots, token, what is left, how long since, record. A token
 * is the instant of its grant, unless the clock was set back. */
#define SINCE(when) "IF(" when ">" NOW ",0," NOW "-" when ")"
#define LIST(where)                                                            \
    "SELECT name,1,0,0,token,until-" NOW "," SINCE(                            \
        "token") "," RECORD ",0 FROM "                                         \
                 "holdfast_lock WHERE until>" NOW " AND " where                \
                 " UNION ALL SELECT name,role,mode,slots,token,until-" NOW     \
                 "," SINCE("since") ",record,seq FROM holdfast_ticket WHERE "  \
                                    "until>" NOW " AND " where                 \
                                    " ORDER BY 1,2 DESC,9"
const char hf__mysql_list[] = LIST("LEFT(name,$Z)=$N");
const char hf__mysql_show[] = LIST("name=$N");

/* How many holders there are, and how many have the token. */
const char hf__mysql_check[] =
    "SELECT COUNT(*),COALESCE(SUM(token=$K),0) FROM ("
    "SELECT token FROM holdfast_lock WHERE name=$N AND until>" NOW
    " UNION ALL SELECT token FROM holdfast_ticket "
    "WHERE name=$N AND role=1 AND until>" NOW ") h";

/* Is it the one that the caller means: by owner, or by token. */
#define MEANT(record, token)                                                   \
    "IF($K=0,SUBSTRING_INDEX(SUBSTRING_INDEX(" record                          \
    ",x'0A',3),x'0A',-1)=$O," token "=$K)"
const char hf__mysql_break[] = BEGIN LOCK_ROW
    "SELECT COUNT(*)+(@hf_until>@hf_now) INTO @hf_holders FROM holdfast_ticket "
    "WHERE name=$N AND role=1 AND until>@hf_now;"
    "SET @hf_ok=@hf_ticket<>'' AND " MEANT(
        "@hf_record",
        "@hf_token") ";"
                     "DELETE FROM holdfast_ticket WHERE name=$N AND role=1 AND "
                     "NOT @hf_ok "
                     "AND " MEANT(
                         "record",
                         "token") ";"
                                  "SET @hf_given=ROW_COUNT();"
                                  "UPDATE holdfast_lock SET "
                                  "until=IF(@hf_ok,0,until)," GATE(
                                      "$N") " WHERE name=$N;COMMIT;"
                                            "SELECT @hf_holders>0 AND (@hf_ok "
                                            "OR @hf_given>0),@hf_holders";

/* Names of GET_LOCK are the whole server's, 64 characters at most, and with or
 * without regard to case. One that cannot be told plainly is a digest of
 * database and name. */
#define DIGEST                                                                 \
    "CONCAT('holdfast',SHA2(CONCAT(CAST(DATABASE() AS BINARY),x'00',$N),224))"
#define GET_LOCK(name, seconds)                                                \
    "SET @holdfast=1+~0*(GET_LOCK(" name "," seconds ") IS NOT TRUE)"
#define LOCK_TEXTS(name)                                                       \
    {                                                                          \
        GET_LOCK(name, "0"), GET_LOCK(name, "3600"),                           \
            "DO RELEASE_LOCK(" name ")"                                        \
    }
static const struct hf__mysql_lock_texts plain = LOCK_TEXTS("$D");
static const struct hf__mysql_lock_texts digest = LOCK_TEXTS(DIGEST);

/* The session of a row is always in a transaction, so that the statement that
 * locks it is the first one of it. One row is "changed" if it is there. How long
 * it waits is a variable of the session (connection.c). */
#define ROW(lock)                                                              \
    "SELECT 1 INTO @holdfast FROM holdfast_row WHERE name=$N " lock
#define ROW_TEXTS(lock)                                                        \
    {                                                                          \
        ROW(lock) " NOWAIT", ROW(lock), "COMMIT AND CHAIN"                     \
    }
#define FOR_UPDATE "FOR UPDATE"
#define IN_SHARE_MODE "LOCK IN SHARE MODE" /* MariaDB */
#define FOR_SHARE "FOR SHARE"              /* MySQL */
static const struct hf__mysql_lock_texts exclusive = ROW_TEXTS(FOR_UPDATE);
static const struct hf__mysql_lock_texts shared = ROW_TEXTS(IN_SHARE_MODE);
static const struct hf__mysql_lock_texts for_share = ROW_TEXTS(FOR_SHARE);
/* A row that is there is not inserted in vain, which would wait for its lock. */
const char hf__mysql_for_update_make[] =
    "ROLLBACK;SELECT COUNT(*) INTO @holdfast FROM holdfast_row WHERE name=$N;"
    "INSERT IGNORE INTO holdfast_row SELECT $N FROM DUAL WHERE @holdfast=0;"
    "START TRANSACTION;" ROW("$F") " NOWAIT";
const char hf__mysql_for_update_begin[] =
    "START TRANSACTION;" ROW("$F") " NOWAIT";
/* A deadlock or the caller may have ended the transaction, and the lock: the
 * first word tells. */
const char hf__mysql_for_update_leave[] =
    "DO 1;COMMIT AND CHAIN;SET innodb_lock_wait_timeout=3600";
const char hf__mysql_for_update_undo[] =
    "ROLLBACK AND CHAIN;SET innodb_lock_wait_timeout=3600";

/* The same on a table of the application's. A column may be of numbers, or of
 * a collation that takes two names for one. */
#define OWN_NAME                                                               \
    "$2=_utf8mb4 $N AND CAST(CONVERT($2 USING utf8mb4) AS BINARY)=$N"
#define OWN_ROW(lock) "SELECT 1 INTO @holdfast FROM $1 WHERE " OWN_NAME " " lock
#define OWN_TEXTS(lock)                                                        \
    {                                                                          \
        OWN_ROW(lock) " NOWAIT", OWN_ROW(lock), "COMMIT AND CHAIN"             \
    }
static const struct hf__mysql_lock_texts own_exclusive = OWN_TEXTS(FOR_UPDATE);
static const struct hf__mysql_lock_texts own_shared = OWN_TEXTS(IN_SHARE_MODE);
static const struct hf__mysql_lock_texts own_for_share = OWN_TEXTS(FOR_SHARE);
const char hf__mysql_own_begin[] = "START TRANSACTION;" OWN_ROW("$F") " NOWAIT";
const char hf__mysql_own_doctor[] =
    BEGIN "SELECT $2 FROM $1 WHERE 1=0 FOR UPDATE;ROLLBACK";

/* Every right that a lock needs, and nothing stays. */
const char hf__mysql_doctor[] = BEGIN
    "INSERT INTO holdfast_row VALUES($N) ON DUPLICATE KEY UPDATE name=name;"
    "SELECT 1 INTO @hf_ok FROM holdfast_row WHERE name=$N FOR UPDATE;" MAKE_ROW
    "UPDATE holdfast_lock SET until=0 WHERE name=$N;"
    "DELETE FROM holdfast_ticket WHERE name=$N;ROLLBACK;"
    "DO GET_LOCK(" DIGEST ",0),RELEASE_LOCK(" DIGEST ")";

const char hf__mysql_version_read[] =
    "SELECT version FROM holdfast_version WHERE name=$N";
/* The second statement is the commit. */
const char hf__mysql_version_commit[] =
    "INSERT INTO holdfast_version VALUES($N,0) "
    "ON DUPLICATE KEY UPDATE name=name;"
    "UPDATE holdfast_version SET version=LAST_INSERT_ID(GREATEST(version+1," NOW
    ")) WHERE name=$N AND version=$K;"
    "SELECT ROW_COUNT(),LAST_INSERT_ID()";

/* The first answer of the commit: 1 done, 0 another version, 2 no row. */
const char hf__mysql_own_version_read[] = "SELECT $5 FROM $4 WHERE " OWN_NAME;
const char hf__mysql_own_version_commit[] =
    "UPDATE $4 SET $5=LAST_INSERT_ID($5+1) WHERE " OWN_NAME " AND $5=$K;"
    "SELECT IF(ROW_COUNT()=1,1,2*(COUNT(*)=0)),LAST_INSERT_ID() FROM $4 "
    "WHERE " OWN_NAME;

/* ---- values ------------------------------------------------------------ */

enum kind { NUMBER, BYTES, WORDS };

/* The prefix belongs to the name. */
static void put_name(const struct hf__mysql *mysql, struct hf__buf *to,
                     const char *name)
{
    hf__buf_add(to, mysql->base.host->settings->prefix);
    hf__buf_add(to, name);
}

/* Who asks in a dialect has found that the name has a key there. */
static void put_key(const struct hf__mysql *mysql, struct hf__buf *to,
                    const char *name)
{
    char key[HF__SQL_KEY] = "";

    if (!mysql->dialect) {
        put_name(mysql, to, name);
        return;
    }
    (void)hf__sql_dialect_key(mysql->dialect, mysql->base.host->settings, name,
                              key, /* err= */ NULL);
    hf__buf_add(to, key);
}

/* 128 random bits of the client, then the number of the ticket. */
static void put_ticket(const struct hf__mysql *mysql, struct hf__buf *to,
                       const struct hf__ticket *ticket)
{
    char holder[HF__SQL_HOLDER];
    uint8_t bytes[24];

    if (mysql->dialect) {
        mysql->dialect->put_holder(mysql->base.host, ticket->id, holder);
        hf__buf_add(to, holder);
        return;
    }
    memcpy(bytes, mysql->base.host->identity, 16);
    for (size_t i = 0; i < 8; i++)
        bytes[16 + i] = (uint8_t)(ticket->id >> (56 - 8 * i));
    hf__buf_append(to, bytes, sizeof(bytes));
}

/* Nothing in it that a server could fold or trim; how long it is. */
static bool is_plain(const char *text, size_t *len)
{
    for (; *text != '\0'; text++, ++*len) {
        bool letter = *text >= 'a' && *text <= 'z';
        bool digit = *text >= '-' && *text <= ':'; /* and - . / : */

        if (!letter && !digit && *text != '_')
            return false;
    }
    return true;
}

/* "holdfast/DATABASE/NAME": a database has no '/' in its name. */
const struct hf__mysql_lock_texts *hf__mysql_lock_texts(
    const struct hf__mysql *mysql, const struct hf__ticket *ticket)
{
    size_t len = strlen("holdfast//");

    if (mysql->own_row)
        return ticket->mode != HF_SHARED ? &own_exclusive
               : mysql->is_mariadb       ? &own_shared
                                         : &own_for_share;
    if (mysql->mode == &hf__mysql_for_update)
        return ticket->mode != HF_SHARED ? &exclusive
               : mysql->is_mariadb       ? &shared
                                         : &for_share;
    return is_plain(mysql->schema, &len) &&
                   is_plain(mysql->base.host->settings->prefix, &len) &&
                   is_plain(ticket->name, &len) && len <= 64
               ? &plain
               : &digest;
}

static void put_lock_name(const struct hf__mysql *mysql, struct hf__buf *to,
                          const char *name)
{
    hf__buf_add(to, "holdfast/");
    hf__buf_add(to, mysql->schema);
    hf__buf_add_char(to, '/');
    put_name(mysql, to, name);
}

/* What a letter stands for that is something of a ticket. */
static enum kind put_of_ticket(const struct hf__mysql *mysql,
                               struct hf__buf *to, char letter,
                               const struct hf__ticket *ticket,
                               uint64_t *ret_number)
{
    const struct hf__settings *settings = mysql->base.host->settings;

    switch (letter) {
    case 'T':
        put_ticket(mysql, to, ticket);
        return BYTES;
    case 'H':
        put_ticket(mysql, to, ticket);
        hf__sql_record_put(to, mysql->base.host, ticket);
        return BYTES;
    case 'R':
        hf__sql_record_put(to, mysql->base.host, ticket);
        return BYTES;
    case 'F':
        hf__buf_add(to, ticket->mode != HF_SHARED ? FOR_UPDATE
                        : mysql->is_mariadb       ? IN_SHARE_MODE
                                                  : FOR_SHARE);
        return WORDS;
    case 'L':
        *ret_number =
            (uint64_t)(ticket->ttl_ms + settings->lock_delay_ms) * 1000;
        return NUMBER;
    case 'M':
        *ret_number = (uint64_t)ticket->mode;
        return NUMBER;
    case 'S':
        *ret_number = (uint64_t)ticket->slots;
        return NUMBER;
    default: /* W */
        *ret_number = !ticket->nowait;
        return NUMBER;
    }
}

/* What a digit stands for: a table or column of the application's. */
static enum kind put_own(const struct hf__mysql *mysql, struct hf__buf *to,
                         char digit)
{
    const struct hf__settings *settings = mysql->base.host->settings;

    if (digit == '1')
        hf__sql_dialect_put_table(to, settings->table, '`');
    else if (digit == '4')
        hf__sql_dialect_put_table(to, settings->version_table, '`');
    else
        hf__sql_dialect_put_column(to,
                                   digit == '2'   ? settings->key
                                   : digit == '3' ? settings->owner_column
                                                  : settings->column,
                                   '`');
    return WORDS;
}

/* What a letter stands for: bytes or words are appended to @to. */
static enum kind put_value(const struct hf__mysql *mysql, struct hf__buf *to,
                           char letter, const struct hf__mysql_values *values,
                           uint64_t *ret_number)
{
    const char *name = values->ticket ? values->ticket->name : values->name;

    if (letter >= '1' && letter <= '5')
        return put_own(mysql, to, letter);
    switch (letter) {
    case 'N':
        put_key(mysql, to, name);
        return BYTES;
    case 'P':
        put_name(mysql, to, name);
        return BYTES;
    case 'D':
        put_lock_name(mysql, to, name);
        return BYTES;
    case 'O':
        hf__buf_add(to, values->owner);
        return BYTES;
    case 'G':
        hf__buf_add(to, mysql->base.host->settings->region);
        return BYTES;
    case 'Z':
        *ret_number = strlen(mysql->base.host->settings->prefix) + strlen(name);
        return NUMBER;
    case 'C':
        hf__buf_add(to, mysql->is_mariadb ? "utf8mb4_nopad_bin"
                                          : "utf8mb4_0900_bin");
        return WORDS;
    case 'V':
        hf__buf_add(to, mysql->is_mariadb ? "information_schema"
                                          : "performance_schema");
        return WORDS;
    case 'A':
        *ret_number = HF__MYSQL_LIFE_US;
        return NUMBER;
    case 'K':
        *ret_number = values->token;
        return NUMBER;
    default:
        if (values->ticket)
            return put_of_ticket(mysql, to, letter, values->ticket, ret_number);
        return WORDS; /* of a ticket, and there is none */
    }
}

static void put_hex(struct hf__buf *to, const char *bytes, size_t len)
{
    static const char digits[] = "0123456789abcdef";
    char some[128];

    hf__buf_add(to, "x'");
    while (len > 0) {
        size_t n = len < sizeof(some) / 2 ? len : sizeof(some) / 2;

        for (size_t i = 0; i < n; i++) {
            some[2 * i] = digits[(uint8_t)bytes[i] >> 4];
            some[2 * i + 1] = digits[(uint8_t)bytes[i] & 15];
        }
        hf__buf_append(to, some, 2 * n);
        bytes += n;
        len -= n;
    }
    hf__buf_add_char(to, '\'');
}

/* As the text of a statement has it. */
static void put_literal(struct hf__mysql *mysql, struct hf__buf *to,
                        char letter, const struct hf__mysql_values *values)
{
    struct hf__buf *scratch = &mysql->scratch;
    uint64_t number = 0;
    enum kind kind;

    scratch->len = 0;
    kind = put_value(mysql, scratch, letter, values, &number);
    if (hf__buf_failed(scratch)) {
        hf__buf_release(scratch);
        to->failed = true;
    } else if (kind == NUMBER) {
        hf__buf_printf(to, "%" PRIu64, number);
    } else if (kind == BYTES) {
        put_hex(to, scratch->text, scratch->len);
    } else {
        hf__buf_append(to, scratch->text, scratch->len);
    }
}

void hf__mysql_statement(struct hf__mysql *mysql, struct hf__buf *to,
                         const char *text,
                         const struct hf__mysql_values *values)
{
    for (;;) {
        size_t n = strcspn(text, "$");

        hf__buf_append(to, text, n);
        if (text[n] == '\0')
            return;
        put_literal(mysql, to, text[n + 1], values);
        text += n + 2;
    }
}

void hf__mysql_put_template(struct hf__buf *to, const char *text)
{
    for (;;) {
        size_t n = strcspn(text, "$");

        hf__buf_append(to, text, n);
        if (text[n] == '\0')
            return;
        hf__buf_add_char(to, '?');
        text += n + 2;
    }
}

void hf__mysql_put_params(struct hf__mysql *mysql, struct hf__mysql_call *call,
                          const char *text,
                          const struct hf__mysql_values *values)
{
    call->text = text;
    for (const char *at = strchr(text, '$'); at; at = strchr(at + 1, '$')) {
        struct hf__mysql_param *param = &call->params[call->n_params++];

        param->at = call->sql.len;
        param->is_number = put_value(mysql, &call->sql, at[1], values,
                                     &param->number) == NUMBER;
        param->len = call->sql.len - param->at;
    }
}

/* The server's list knows a session until nothing of it is left; its own lock,
 * and those that it held, may go a little earlier. One that is about to go may
 * be nobody's already, and not be ended any more (error 1095). */
void hf__mysql_end_session(const struct hf__mysql *mysql,
                           struct hf__mysql_session *session,
                           struct hf__buf *to)
{
    if (session->looks++ > 0)
        hf__buf_add(to, "DO SLEEP(0.005);");
    hf__buf_printf(to,
                   "SELECT COALESCE(MAX(ID),0) INTO @holdfast "
                   "FROM information_schema.processlist WHERE ID=%llu AND "
                   "(HOST LIKE '%%:%u' OR IS_USED_LOCK('holdfast:%s:%llx')=ID);"
                   "KILL CONNECTION @holdfast",
                   (unsigned long long)session->id, (unsigned)session->port,
                   mysql->base.host->identity_hex,
                   (unsigned long long)session->serial);
}

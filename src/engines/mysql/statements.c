/* SPDX-License-Identifier: MIT */
/*
 * statements.c - the SQL, and how values get into it.
 *
 * Bytes are written as x'…', numbers as digits: nothing that a caller names can
 * end a literal, and nothing is folded, trimmed or converted.
 */
#include <inttypes.h>

#include "engines/mysql/mysql.h"
#include "engines/sql/record.h"

/* How a lock of GET_LOCK is asked for, waited for and freed: by name, or by the
 * digest of one that is not plain. */
static const struct hf__mysql_lock_texts plain = {
    hf__mysql_sql_get_lock_try, hf__mysql_sql_get_lock_wait,
    hf__mysql_sql_get_lock_release};
static const struct hf__mysql_lock_texts digest = {
    hf__mysql_sql_get_lock_digest_try, hf__mysql_sql_get_lock_digest_wait,
    hf__mysql_sql_get_lock_digest_release};

/* The same of a row: MariaDB and MySQL have other words for a shared one. */
static const struct hf__mysql_lock_texts exclusive = {
    hf__mysql_sql_for_update_exclusive_try,
    hf__mysql_sql_for_update_exclusive_wait, hf__mysql_sql_for_update_release};
static const struct hf__mysql_lock_texts shared_mariadb = {
    hf__mysql_sql_for_update_shared_mariadb_try,
    hf__mysql_sql_for_update_shared_mariadb_wait,
    hf__mysql_sql_for_update_release};
static const struct hf__mysql_lock_texts shared_mysql = {
    hf__mysql_sql_for_update_shared_mysql_try,
    hf__mysql_sql_for_update_shared_mysql_wait,
    hf__mysql_sql_for_update_release};

/* … and of a row of the application's, where $F has those words. */
static const struct hf__mysql_lock_texts own = {
    hf__mysql_sql_own_row_try, hf__mysql_sql_own_row_wait,
    hf__mysql_sql_for_update_release};

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
                       uint64_t id)
{
    char holder[HF__SQL_HOLDER];
    uint8_t bytes[24];

    if (mysql->dialect) {
        mysql->dialect->put_holder(mysql->base.host, id, holder);
        hf__buf_add(to, holder);
        return;
    }
    memcpy(bytes, mysql->base.host->identity, 16);
    for (size_t i = 0; i < 8; i++)
        bytes[16 + i] = (uint8_t)(id >> (56 - 8 * i));
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
const struct hf__mysql_lock_texts *hf__mysql_statement_of_lock(
    const struct hf__mysql *mysql, const struct hf__ticket *ticket)
{
    size_t len = strlen("holdfast//");

    if (mysql->own_row)
        return &own;
    if (mysql->mode == &hf__mysql_for_update_mode)
        return ticket->mode != HF_SHARED ? &exclusive
               : mysql->is_mariadb       ? &shared_mariadb
                                         : &shared_mysql;
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
        put_ticket(mysql, to, ticket->id);
        return BYTES;
    case 'H':
        put_ticket(mysql, to, ticket->id);
        hf__sql_record_put(to, mysql->base.host, ticket);
        return BYTES;
    case 'R':
        hf__sql_record_put(to, mysql->base.host, ticket);
        return BYTES;
    case 'F':
        hf__buf_add(to, ticket->mode != HF_SHARED ? "FOR UPDATE"
                        : mysql->is_mariadb       ? "LOCK IN SHARE MODE"
                                                  : "FOR SHARE");
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
        hf__sql_dialect_put_table(to,
                                  settings->table[0] != '\0'
                                      ? settings->table
                                      : mysql->dialect->table,
                                  '`');
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
    case 'B':
        hf__buf_add(to, values->ticket ? values->ticket->cond : values->cond);
        return BYTES;
    case 'Q':
        put_ticket(mysql, to, values->holder);
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
    case 'E':
        *ret_number = values->all ? UINT64_MAX : 1;
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

void hf__mysql_statement_template(struct hf__buf *to, const char *text)
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

void hf__mysql_statement_params(struct hf__mysql *mysql,
                                struct hf__mysql_call *call, const char *text,
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

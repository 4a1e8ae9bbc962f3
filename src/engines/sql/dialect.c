/* SPDX-License-Identifier: MIT */
/*
 * dialect.c - the tables of others: whose they are, and what stands in them.
 *
 * Here is what does not depend on the database: the name of the table, the key
 * that stands for a name, and the text by which a holder knows its row. The
 * latter has 80 random bits or more and the number of the ticket, so that no
 * two holders share it: the host name alone, which ShedLock writes, would let
 * two processes of one machine free each other's locks.
 *
 * The name of a table of ShedLock or Spring becomes part of the SQL as it is,
 * so it can only be what needs no quotes. Tables and columns of the
 * application's are quoted. All else goes beside the SQL.
 *
 * Failure: a name that has no key is refused, before anything is asked.
 */
#include "engines/sql/dialect.h"

#include <inttypes.h>
#include <stdio.h>

#include "engines/sql/md5.h"

/* How many characters. */
static size_t count(const char *text)
{
    size_t n = 0;

    for (; *text != '\0'; text++)
        n += ((unsigned char)*text & 0xc0) != 0x80;
    return n;
}

/* ---- ShedLock: a key is the name ---------------------------------------- */

static int put_name(const char *name, char to[HF__SQL_KEY], hf_error *err)
{
    if (count(name) > 64)
        return hf__fail(err, HF_EINVAL,
                        "dialect=shedlock: a name has 64 characters at most, "
                        "and this one has %zu",
                        count(name));
    hf__text_copy(to, HF__SQL_KEY, name);
    return 0;
}

static void put_host(const struct hf__engine_host *host, uint64_t ticket,
                     char to[HF__SQL_HOLDER])
{
    (void)snprintf(to, HF__SQL_HOLDER, "%.150s:%" PRId64 " %s-%" PRIx64,
                   host->host, host->pid, host->identity_hex, ticket);
}

static const struct hf__sql_dialect shedlock = {
    .name = "shedlock",
    .table = "shedlock",
    .put_key = put_name,
    .put_holder = put_host,
};

/* ---- Spring: a key is a UUID --------------------------------------------- */

static void put_uuid(const uint8_t bytes[16], char to[HF__SQL_UUID])
{
    for (int i = 0; i < 16; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10)
            *to++ = '-';
        (void)snprintf(to, 3, "%02x", bytes[i]);
        to += 2;
    }
}

/* As Java's UUID.nameUUIDFromBytes() has it. */
static void name_uuid(const char *name, size_t len, char to[HF__SQL_UUID])
{
    uint8_t digest[16];

    hf__sql_md5(name, len, digest);
    digest[6] = (digest[6] & 0x0f) | 0x30; /* version 3 */
    digest[8] = (digest[8] & 0x3f) | 0x80;
    put_uuid(digest, to);
}

/* Would Java read it as a UUID? It takes five hexadecimal numbers, in 36
 * characters at most, and digits of every script. */
static bool may_be_uuid(const char *name)
{
    int dashes = 0;
    size_t digits = 0;

    for (const char *at = name; *at != '\0'; at++) {
        bool dash = *at == '-';

        if (dash ? digits == 0
                 : !strchr("0123456789abcdefABCDEF+", *at) &&
                       (unsigned char)*at < 0x80)
            return false;
        dashes += dash;
        digits = dash ? 0 : digits + 1;
    }
    return dashes == 4 && digits > 0 && count(name) <= 36;
}

static bool is_uuid(const char *name, size_t len)
{
    static const char shape[] = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";

    for (size_t i = 0; i < len && i < sizeof(shape); i++) {
        if (shape[i] == 'x' ? !strchr("0123456789abcdef", name[i])
                            : name[i] != shape[i])
            return false;
    }
    return len == sizeof(shape) - 1;
}

static int put_name_uuid(const char *name, char to[HF__SQL_KEY], hf_error *err)
{
    size_t len = strlen(name);

    if (is_uuid(name, len))
        hf__text_copy(to, HF__SQL_KEY, name);
    else if (may_be_uuid(name))
        return hf__fail(err, HF_EINVAL,
                        "dialect=spring: Java takes this name for a UUID; "
                        "write it with all its digits, in lower case");
    else
        name_uuid(name, len, to);
    return 0;
}

/* The client, and the number of the ticket. */
static void put_client(const struct hf__engine_host *host, uint64_t ticket,
                       char to[HF__SQL_HOLDER])
{
    uint8_t bytes[16];

    memcpy(bytes, host->identity, 10);
    for (int i = 0; i < 6; i++)
        bytes[10 + i] = (uint8_t)(ticket >> (40 - 8 * i));
    put_uuid(bytes, to);
}

static const struct hf__sql_dialect spring = {
    .name = "spring",
    .table = "INT_LOCK",
    .has_region = true,
    .has_digests = true,
    .put_key = put_name_uuid,
    .put_holder = put_client,
};

/* ---- row: a key is the name ------------------------------------------------ */

static int put_whole(const char *name, char to[HF__SQL_KEY], hf_error *err)
{
    (void)err;
    hf__text_copy(to, HF__SQL_KEY, name);
    return 0;
}

static const struct hf__sql_dialect row = {
    .name = "row",
    .put_key = put_whole,
    .put_holder = put_host,
};

/* ---- names of the application's -------------------------------------------- */

void hf__sql_dialect_put_column(struct hf__buf *to, const char *name,
                                char quote)
{
    hf__buf_add_char(to, quote);
    for (; *name != '\0'; name++) {
        if (*name == quote)
            hf__buf_add_char(to, quote);
        hf__buf_add_char(to, *name);
    }
    hf__buf_add_char(to, quote);
}

void hf__sql_dialect_put_table(struct hf__buf *to, const char *name, char quote)
{
    char part[129];

    for (;;) {
        size_t n = strcspn(name, ".");

        (void)snprintf(part, sizeof(part), "%.*s", (int)n, name);
        hf__sql_dialect_put_column(to, part, quote);
        if (name[n] == '\0')
            return;
        hf__buf_add_char(to, '.');
        name += n + 1;
    }
}

/* Parts that are not empty. A ';' is what we tell statements apart by. */
static int check_name(const char *key, const char *name, hf_error *err)
{
    size_t len = strlen(name);

    if (strchr(name, ';') || strstr(name, "..") || name[0] == '.' ||
        (len > 0 && name[len - 1] == '.'))
        return hf__fail(err, HF_ECONFIG,
                        "%s=%s: it is a name, without ';' and empty parts", key,
                        name);
    return 0;
}

static int check_names(const struct hf__settings *settings, hf_error *err)
{
    int rc = check_name("table", settings->table, err);

    rc = rc != 0 ? rc : check_name("key", settings->key, err);
    rc = rc != 0 ? rc : check_name("owner_column", settings->owner_column, err);
    rc = rc != 0 ? rc
                 : check_name("version_table", settings->version_table, err);
    return rc != 0 ? rc : check_name("column", settings->column, err);
}

/* Do the keys about tables of the application's belong together? */
static int check_own(const struct hf__engine *engine,
                     const struct hf__sql_dialect *dialect, hf_error *err)
{
    const struct hf__settings *settings = engine->host->settings;
    bool own_row = hf__sql_dialect_own_row(settings);
    bool needs_key =
        dialect == &row || own_row || hf__sql_dialect_own_versions(settings);

    if (own_row && strcmp(settings->mode, "for_update") != 0)
        return hf__fail(err, HF_ECONFIG,
                        "table=%s: only other dialects and mode=for_update "
                        "have such a table",
                        settings->table);
    if (dialect == &row && settings->table[0] == '\0')
        return hf__fail(err, HF_ECONFIG, "dialect=row needs table=…");
    if (needs_key && settings->key[0] == '\0')
        return hf__fail(err, HF_ECONFIG,
                        "key=… must name the column that has the names");
    if (!needs_key && settings->key[0] != '\0')
        return hf__fail(err, HF_ECONFIG,
                        "key=%s: only dialect=row, mode=for_update with a "
                        "table, and version_table have such a column",
                        settings->key);
    if (dialect != &row && settings->owner_column[0] != '\0')
        return hf__fail(err, HF_ECONFIG,
                        "owner_column=%s: only dialect=row has such a column",
                        settings->owner_column);
    return check_names(settings, err);
}

/* ---- all of them ----------------------------------------------------------- */

/* Words of letters, digits and '_' with points between them. */
static bool is_plain(const char *table)
{
    bool begins = true;

    for (; *table != '\0'; table++) {
        bool digit = *table >= '0' && *table <= '9';
        bool letter = (*table >= 'a' && *table <= 'z') ||
                      (*table >= 'A' && *table <= 'Z') || *table == '_';

        if (begins ? !letter : !letter && !digit && *table != '.')
            return false;
        begins = *table == '.';
    }
    return !begins;
}

int hf__sql_dialect_find(const struct hf__engine *engine,
                         const struct hf__sql_dialect **ret_dialect,
                         hf_error *err)
{
    const struct hf__settings *settings = engine->host->settings;
    static const struct hf__sql_dialect *const known[] = {&shedlock, &spring,
                                                          &row};
    const struct hf__sql_dialect *dialect = NULL;

    for (size_t i = 0; i < HF_COUNT_OF(known); i++) {
        if (strcmp(settings->dialect, known[i]->name) == 0)
            dialect = known[i];
    }
    if (!dialect && settings->dialect[0] != '\0' &&
        strcmp(settings->dialect, "native") != 0)
        return hf__fail(err, HF_ECONFIG,
                        "dialect=%s: %s has native, shedlock, spring and row",
                        settings->dialect, engine->ops->name);
    if (dialect && settings->mode[0] != '\0')
        return hf__fail(err, HF_ECONFIG, "mode=%s: dialect=%s has no modes",
                        settings->mode, dialect->name);
    if (dialect && dialect->table && settings->table[0] != '\0' &&
        !is_plain(settings->table))
        return hf__fail(err, HF_ECONFIG,
                        "table=%s: letters, digits, '_' and '.' alone",
                        settings->table);
    *ret_dialect = dialect;
    return check_own(engine, dialect, err);
}

/* Where the dialect has no table of its own the engine names it. */
static char *fill_in(const char *text, const char *table)
{
    struct hf__buf to = {0};

    for (;;) {
        size_t n = table ? strcspn(text, "@") : strlen(text);

        hf__buf_append(&to, text, n);
        if (text[n] == '\0')
            return hf__buf_steal(&to);
        hf__buf_add(&to, table);
        text += n + 1;
    }
}

int hf__sql_dialect_texts(const struct hf__engine *engine,
                          const struct hf__sql_dialect *dialect,
                          const char *const *texts, size_t n, char **to,
                          hf_error *err)
{
    const char *table = engine->host->settings->table;

    if (!dialect->table || table[0] == '\0')
        table = dialect->table;
    for (size_t i = 0; i < n; i++) {
        if (!texts[i])
            continue;
        to[i] = fill_in(texts[i], table);
        if (!to[i])
            return hf__fail(err, HF_ENOMEM, "out of memory");
    }
    return 0;
}

int hf__sql_dialect_key(const struct hf__sql_dialect *dialect,
                        const struct hf__settings *settings, const char *name,
                        char to[HF__SQL_KEY], hf_error *err)
{
    char whole[128 + HF_NAME_MAX + 1];

    (void)snprintf(whole, sizeof(whole), "%s%s", settings->prefix, name);
    return dialect->put_key(whole, to, err);
}

int hf__sql_dialect_list(const struct hf__sql_dialect *dialect,
                         const struct hf__settings *settings,
                         const char *prefix, hf_error *err)
{
    if (!dialect->has_digests ||
        (settings->prefix[0] == '\0' && prefix[0] == '\0'))
        return 0;
    return hf__fail(err, HF_EUNSUPPORTED,
                    "dialect=%s keeps digests, which do not tell what a name "
                    "begins with; list without a prefix",
                    dialect->name);
}

bool hf__sql_dialect_name(const struct hf__sql_dialect *dialect,
                          const struct hf__settings *settings, const char *key,
                          size_t len, char to[HF_NAME_MAX + 1])
{
    size_t prefix = strlen(settings->prefix);
    char again[HF__SQL_KEY];

    if (len <= prefix || len - prefix > HF_NAME_MAX)
        return false;
    memcpy(to, key + prefix, len - prefix);
    to[len - prefix] = '\0';
    return hf_name_check(to, len - prefix, /* err= */ NULL) == 0 &&
           hf__sql_dialect_key(dialect, settings, to, again, NULL) == 0 &&
           strlen(again) == len && memcmp(again, key, len) == 0;
}

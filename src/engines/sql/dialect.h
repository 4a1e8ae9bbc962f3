/* SPDX-License-Identifier: MIT */
/*
 * dialect.h - the tables of others: whose they are, and what stands in them.
 *
 *   shedlock   ShedLock's JDBC providers, with the time of the database
 *   spring     Spring Integration's JdbcLockRegistry, 7.0 and later
 *   row        a table of the application's: a row is a lock, without a lease
 *
 * Tables and columns of the application's are also what mode=for_update and
 * the versions may use. The settings name them, and they go into the SQL in
 * the server's quotes.
 */
#ifndef HF_SQL_DIALECT_H
#define HF_SQL_DIALECT_H

#include "base/buf.h"
#include "engines/engine.h"

enum {
    HF__SQL_UUID = 37,                   /* with its end, as all of these */
    HF__SQL_KEY = 128 + HF_NAME_MAX + 1, /* of a name */
    HF__SQL_HOLDER = 255 + 1,            /* of a ticket */
    HF__SQL_COLUMN_MS = 1000 /* so much later than the lease: a column that
                                   has no fractions loses up to a second */
};

struct hf__sql_dialect {
    const char *name;
    const char *table; /* as they call it; NULL: the settings name it */
    bool has_region;   /* a key is a region and a name */
    bool has_digests;  /* a key does not tell the name */
    int (*put_key)(const char *name, char to[HF__SQL_KEY], hf_error *err);
    void (*put_holder)(const struct hf__engine_host *host, uint64_t ticket,
                       char to[HF__SQL_HOLDER]);
};

/* What the settings name; NULL for our own tables. */
int hf__sql_dialect_find(const struct hf__engine *engine,
                         const struct hf__sql_dialect **ret_dialect,
                         hf_error *err);
/* Copies of @n texts with the name of the table for each '@'; those that were
 * made before a failure are in @to as well. */
int hf__sql_dialect_texts(const struct hf__engine *engine,
                          const struct hf__sql_dialect *dialect,
                          const char *const *texts, size_t n, char **to,
                          hf_error *err);
/* What stands for prefix and name; HF_EINVAL if nothing can. */
int hf__sql_dialect_key(const struct hf__sql_dialect *dialect,
                        const struct hf__settings *settings, const char *name,
                        char to[HF__SQL_KEY], hf_error *err);
/* May what begins with prefix and @prefix be listed? A key that is a digest does
 * not tell. */
int hf__sql_dialect_list(const struct hf__sql_dialect *dialect,
                         const struct hf__settings *settings,
                         const char *prefix, hf_error *err);
/* The name whose row this is; false if nobody could ask for it by one. A key
 * that is a digest is a name of its own. */
bool hf__sql_dialect_name(const struct hf__sql_dialect *dialect,
                          const struct hf__settings *settings, const char *key,
                          size_t len, char to[HF_NAME_MAX + 1]);
/* Does mode=for_update lock rows of a table of the application's? */
static inline bool hf__sql_dialect_own_row(const struct hf__settings *settings)
{
    return settings->table[0] != '\0' &&
           (settings->dialect[0] == '\0' ||
            strcmp(settings->dialect, "native") == 0);
}
/* Are the versions in a table of the application's? */
static inline bool hf__sql_dialect_own_versions(
    const struct hf__settings *settings)
{
    return settings->version_table[0] != '\0';
}
/* A column, and a table with points between its parts, in the quotes of the
 * server. */
void hf__sql_dialect_put_column(struct hf__buf *to, const char *name,
                                char quote);
void hf__sql_dialect_put_table(struct hf__buf *to, const char *name,
                               char quote);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * own_tables.c - the application's own tables: their names in our statements.
 *
 * Table and columns come from the settings, and are quoted. What is put in is
 * not looked at again.
 */
#include "engines/postgres/postgres.h"
#include "engines/postgres/sql.h"

/* @ table, # key, % owner_column, & version_table, ~ column. */
static char *fill_in(const struct hf__settings *settings, const char *text)
{
    struct hf__buf to = {0};

    for (;; text++) {
        size_t n = strcspn(text, "@#%&~");

        hf__buf_append(&to, text, n);
        text += n;
        if (*text == '\0')
            return hf__buf_steal(&to);
        if (*text == '@' || *text == '&')
            hf__sql_dialect_put_table(
                &to, *text == '@' ? settings->table : settings->version_table,
                '"');
        else
            hf__sql_dialect_put_column(&to,
                                       *text == '#'   ? settings->key
                                       : *text == '%' ? settings->owner_column
                                                      : settings->column,
                                       '"');
    }
}

int hf__pg_own_tables_open(struct hf__pg *postgres, hf_error *err)
{
    const struct hf__settings *settings = postgres->base.host->settings;
    bool has_row = hf__sql_dialect_own_row(settings);
    bool has_versions = hf__sql_dialect_own_versions(settings);
    const char *own[HF__PG_OWN_TEXTS] = {
        has_row ? hf__postgres_sql_own_row_lock : NULL,
        has_versions ? hf__postgres_sql_own_version_read : NULL,
        has_versions ? hf__postgres_sql_own_version_commit : NULL};
    bool failed = false;

    for (int i = 0; i < HF__PG_OWN_TEXTS; i++) {
        if (own[i])
            postgres->own_texts[i] = fill_in(settings, own[i]);
        failed |= own[i] && !postgres->own_texts[i];
    }
    for (int i = 0; i < HF__PG_DIALECT_TEXTS && postgres->dialect &&
                    !postgres->dialect->table;
         i++) {
        postgres->dialect_texts[i] = fill_in(
            settings,
            hf__pg_statements_dialect(postgres->dialect,
                                      settings->owner_column[0] != '\0')[i]);
        failed |= !postgres->dialect_texts[i];
    }
    return failed ? hf__fail(err, HF_ENOMEM, "out of memory") : 0;
}

void hf__pg_own_tables_close(struct hf__pg *postgres)
{
    for (size_t i = 0; i < HF__PG_DIALECT_TEXTS; i++)
        hf__free(postgres->dialect_texts[i]);
    for (size_t i = 0; i < HF__PG_OWN_TEXTS; i++)
        hf__free(postgres->own_texts[i]);
}

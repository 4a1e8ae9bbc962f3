/* SPDX-License-Identifier: MIT */
/*
 * statements.c - which text a statement has.
 *
 * Names, owners and notes are parameters of prepared statements: data, whatever
 * is in them. Texts are compared byte by byte (COLLATE "C").
 *
 *   holdfast_token    a sequence: every grant takes one number while it has the
 *                     lock, so it exceeds those of all grants before
 *   holdfast_place    mode=table: one row for each holder and waiter
 *   holdfast_row      mode=for_update: always empty for other transactions
 *   holdfast_version  hf_version_commit()
 *   holdfast_cond     mode=table: one row for each that is parked, and for each
 *                     wake-up
 *
 * In mode=table a change of a name's rows is one transaction that begins with
 * TABLE_LOCK, so changes happen one after the other; each statement after it
 * sees what the one before has committed. No row stays behind.
 *
 * The common cases have a statement or two instead. If these affect no row, the
 * slow path runs. That rests on three rules:
 *
 *   place 0    A row that holds a name alone has place 0. So TAKE, which inserts
 *              there or not at all, needs no look at the others: the index of
 *              places does it, and sees what TAKE cannot see yet. GRANT moves
 *              up the first row.
 *   alone      A row that TAKE has made in an empty name is alone until ASK
 *              adds another. FREE deletes no other row; if ASK is quicker, FREE
 *              finds none, and the lock is handed on.
 *   crowded    A row that is not alone goes by the slow path, or by CEDE, which
 *              takes the same lock, and PASS, which puts the first waiter in its
 *              place. Either way a later statement looks for the next. So a
 *              client that keeps the last row of a crowded name from going may
 *              stand behind it (JOIN), without the lock: that statement will
 *              see the newcomer.
 *
 * Numbers of tokens are drawn under the lock, too: drawn before it, one could be
 * smaller than another that was granted meanwhile.
 *
 * PASS finds nothing if nobody waits, or if the first waiter has expired: those
 * behind it are awake then, and delete it. Until they have, a newcomer may be
 * quicker; there are never two holders.
 */
#include "engines/postgres/postgres.h"
#include "engines/postgres/sql.h"

#define NAME(NAME, name, shape) [HF__STMT_##NAME] = "hf_" #name,
static const char *const names[HF__STMT_COUNT] = {HF__PG_STATEMENTS(NAME)
                                                      HF__PG_DIALECT(NAME)};

#define SHAPE(NAME, name, shape) [HF__STMT_##NAME] = shape,
static const char *const shapes[HF__STMT_COUNT] = {HF__PG_STATEMENTS(SHAPE)
                                                       HF__PG_DIALECT(SHAPE)};

#define TEXT(NAME, name, shape) [HF__STMT_##NAME] = hf__postgres_sql_##name,
static const char *const texts[HF__STMT_COUNT] = {HF__PG_STATEMENTS(TEXT)};

/* Where there is no sequence. */
static const char *const unfenced[HF__STMT_COUNT] = {
    [HF__STMT_ADVISORY_TRY] = hf__postgres_sql_unfenced_try,
    [HF__STMT_ADVISORY_TRY_SHARED] = hf__postgres_sql_unfenced_try_shared,
    [HF__STMT_ADVISORY_WAIT] = hf__postgres_sql_unfenced_wait,
    [HF__STMT_ADVISORY_WAIT_SHARED] = hf__postgres_sql_unfenced_wait_shared,
};

/* A mistake on purpose: see planted.h. */
#define UNFLUSHED "SELECT nextval('holdfast_token'), NULL::pg_lsn "
static const char *const unflushed[HF__STMT_COUNT] = {
    [HF__STMT_ADVISORY_TRY] =
        UNFLUSHED "WHERE pg_try_advisory_lock($1::bigint)",
    [HF__STMT_ADVISORY_TRY_SHARED] =
        UNFLUSHED "WHERE pg_try_advisory_lock_shared($1::bigint)",
    [HF__STMT_ADVISORY_WAIT] = UNFLUSHED "FROM pg_advisory_lock($1::bigint)",
    [HF__STMT_ADVISORY_WAIT_SHARED] =
        UNFLUSHED "FROM pg_advisory_lock_shared($1::bigint)",
};

const char hf__pg_statements_first_shape[] = "1ntbbt";

const char *hf__pg_statement_shape(enum hf__pg_statement statement)
{
    return shapes[statement];
}

const char *hf__pg_statement(const struct hf__pg *postgres,
                             enum hf__pg_statement statement)
{
    const char *own;

    if (statement >= HF__STMT_TAKE)
        return postgres->dialect_texts[statement - HF__STMT_TAKE];
    if (HF__PLANTED("token_not_flushed") && unflushed[statement])
        return unflushed[statement];
    own = statement >= HF__STMT_OWN_ROW_LOCK
              ? postgres->own_texts[statement - HF__STMT_OWN_ROW_LOCK]
              : NULL;
    if (own)
        return own;
    return postgres->fenced || !unfenced[statement] ? texts[statement]
                                                    : unfenced[statement];
}

const char *hf__pg_statement_name(enum hf__pg_statement statement)
{
    return names[statement];
}

const char *hf__pg_statements_first(const struct hf__pg *postgres)
{
    if (postgres->dialect)
        return hf__pg_statement(postgres, HF__STMT_FIRST);
    return postgres->mode->listens ? hf__postgres_sql_table_first
                                   : hf__postgres_sql_first;
}

const char *hf__pg_statements_make(const struct hf__pg *postgres)
{
    return postgres->dialect ? hf__pg_statement(postgres, HF__STMT_MAKE)
                             : hf__postgres_sql_make;
}

/* ---- dialects ------------------------------------------------------------ */

#define DIALECT(dialect, first, make)                                          \
    {                                                                          \
        hf__postgres_sql_##dialect##_take, hf__postgres_sql_##dialect##_who,   \
            hf__postgres_sql_##dialect##_renew,                                \
            hf__postgres_sql_##dialect##_release,                              \
            hf__postgres_sql_##dialect##_held, first, make                     \
    }

static const char *const shedlock[HF__PG_DIALECT_TEXTS] = DIALECT(
    shedlock, hf__postgres_sql_dialect_first, hf__postgres_sql_shedlock_make);
static const char *const spring[HF__PG_DIALECT_TEXTS] = DIALECT(
    spring, hf__postgres_sql_dialect_first, hf__postgres_sql_spring_make);
static const char *const row[HF__PG_DIALECT_TEXTS] =
    DIALECT(row, hf__postgres_sql_row_first, "");
static const char *const row_owner[HF__PG_DIALECT_TEXTS] =
    DIALECT(row_owner, hf__postgres_sql_row_first, "");

const char *const *hf__pg_statements_dialect(
    const struct hf__sql_dialect *dialect, bool has_owner)
{
    if (!dialect->table)
        return has_owner ? row_owner : row;
    return dialect->has_region ? spring : shedlock;
}

/* SPDX-License-Identifier: MIT */
/*
 * statements.h - the statements that are prepared: sql/ has the texts.
 *
 * X(NAME, name, shape): HF__STMT_NAME is sql/name.sql, prepared as hf_name;
 * answer.h says how to read the shape of its answer.
 */
#ifndef HF_POSTGRES_STATEMENTS_H
#define HF_POSTGRES_STATEMENTS_H

#include "base/base.h"

struct hf__pg;
struct hf__sql_dialect;

#define HF__PG_STATEMENTS(X)                                                   \
    X(PING, ping, "1n")                                                        \
    X(SESSION_TIMEOUT, session_timeout, "1tt")                                 \
    X(ADVISORY_TRY, advisory_try, "?nT")                                       \
    X(ADVISORY_TRY_SHARED, advisory_try_shared, "?nT")                         \
    X(ADVISORY_WAIT, advisory_wait, "1nT")                                     \
    X(ADVISORY_WAIT_SHARED, advisory_wait_shared, "1nT")                       \
    X(ADVISORY_UNLOCK, advisory_unlock, "1b")                                  \
    X(ADVISORY_UNLOCK_SHARED, advisory_unlock_shared, "1b")                    \
    X(ADVISORY_UNLOCK_ALL, advisory_unlock_all, "1v")                          \
    X(ADVISORY_DOWNGRADE, advisory_downgrade, "1b")                            \
    X(ADVISORY_SECOND_LOCK, advisory_second_lock, "1v")                        \
    X(ADVISORY_SECOND_UNLOCK, advisory_second_unlock, "1b")                    \
    X(ADVISORY_OTHER_NAME, advisory_other_name, "?N")                          \
    X(BACKEND_CANCEL, backend_cancel, "?b")                                    \
    X(BACKEND_END, backend_end, "?b")                                          \
    X(BACKEND_IS_THERE, backend_is_there, "?n")                                \
    X(BACKEND_END_WAIT, backend_end_wait, "?b")                                \
    X(BACKEND_IS_WAITING, backend_is_waiting, "*n")                            \
    X(FOR_UPDATE_BEGIN, for_update_begin, "-")                                 \
    X(FOR_UPDATE_LOCK_TIMEOUT, for_update_lock_timeout, "1t")                  \
    X(FOR_UPDATE_INSERT, for_update_insert, "-")                               \
    X(FOR_UPDATE_DELETE, for_update_delete, "-")                               \
    X(FOR_UPDATE_TRANSACTION, for_update_transaction, "1t")                    \
    X(FOR_UPDATE_SAME, for_update_same, "1B")                                  \
    X(FOR_UPDATE_COMMIT, for_update_commit, "-")                               \
    X(FOR_UPDATE_ROLLBACK, for_update_rollback, "-")                           \
    X(TABLE_LOCK, table_lock, "1v")                                            \
    X(TABLE_PURGE, table_purge, "-")                                           \
    X(TABLE_ASK, table_ask, "-")                                               \
    X(TABLE_TAKE, table_take, "?n")                                            \
    X(TABLE_FREE, table_free, "-")                                             \
    X(TABLE_JOIN, table_join, "-")                                             \
    X(TABLE_CEDE, table_cede, "-")                                             \
    X(TABLE_PASS, table_pass, "?vn")                                           \
    X(TABLE_GRANT, table_grant, "*V")                                          \
    X(TABLE_LOOK, table_look, "1NbNTN")                                        \
    X(TABLE_LEAVE, table_leave, "*N")                                          \
    X(TABLE_RENEW, table_renew, "*nNN")                                        \
    X(TABLE_DOWNGRADE, table_downgrade, "?n")                                  \
    X(TABLE_LIST, table_list, "*tnnNtnnnT")                                    \
    X(TABLE_BREAK, table_break, "*v")                                          \
    X(COND_PARK, cond_park, "-")                                               \
    X(COND_UNPARK, cond_unpark, "-")                                           \
    X(COND_SIGNAL, cond_signal, "-")                                           \
    X(COND_SERVE, cond_serve, "-")                                             \
    X(COND_LOOK, cond_look, "?bt")                                             \
    X(COND_LEAVE, cond_leave, "-")                                             \
    X(COND_RENEW, cond_renew, "*nbNt")                                         \
    X(COND_LIST, cond_list, "*tnnNtnnnT")                                      \
    X(COND_SWEEP, cond_sweep, "-")                                             \
    X(BOARD_NUMBER, board_number, "-")                                         \
    X(BOARD_POST, board_post, "-")                                             \
    X(BOARD_DROP, board_drop, "-")                                             \
    X(BOARD_READ, board_read, "*tt")                                           \
    X(DOCTOR, doctor, "1ttnnntntt")                                            \
    /* Of the application's own tables, where it has any. */                   \
    X(OWN_ROW_LOCK, own_row_lock, "1n")                                        \
    X(VERSION_READ, version_read, "?n")                                        \
    X(VERSION_COMMIT, version_commit, "?n")

/* Those of a dialect: shedlock_take.sql, … */
#define HF__PG_DIALECT(X)                                                      \
    X(TAKE, take, "?n")                                                        \
    X(WHO, who, "?TNN") /* has it, for how long still, since when: ms */       \
    X(RENEW, renew, "?n")                                                      \
    X(RELEASE, release, "?n")                                                  \
    X(HELD, held, "*TNNt") /* all that is: as WHO, and the key */

#define HF__PG_STATEMENT_ENUM(NAME, name, shape) HF__STMT_##NAME,
enum hf__pg_statement {
    HF__PG_STATEMENTS(HF__PG_STATEMENT_ENUM)
        HF__PG_DIALECT(HF__PG_STATEMENT_ENUM) HF__STMT_COUNT,
    HF__STMT_FIRST = HF__STMT_COUNT, /* not prepared */
    HF__STMT_MAKE,
    HF__STMT_TEXTS
};
_Static_assert(HF__STMT_TEXTS <= UINT8_MAX,
               "a step of a call has a byte for it");
enum { HF__PG_DIALECT_TEXTS = HF__STMT_TEXTS - HF__STMT_TAKE };

/* The text of @statement; without tokens where there is no sequence. */
const char *hf__pg_statement(const struct hf__pg *postgres,
                             enum hf__pg_statement statement);
const char *hf__pg_statement_name(enum hf__pg_statement statement);
/* What it answers: answer.h. */
const char *hf__pg_statement_shape(enum hf__pg_statement statement);
/* The first on a connection: settings, and what we want to know of it. */
const char *hf__pg_statements_first(const struct hf__pg *postgres);
extern const char hf__pg_statements_first_shape[]; /* of the last of them */
/* The tables and the sequence, if they are not there. */
const char *hf__pg_statements_make(const struct hf__pg *postgres);
/* Those of @dialect, from HF__STMT_TAKE on, with '@' for its table; in
 * dialect=row also # for the key, % for the holder. */
const char *const *hf__pg_statements_dialect(
    const struct hf__sql_dialect *dialect, bool has_owner);

#endif

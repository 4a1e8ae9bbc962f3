/* SPDX-License-Identifier: MIT */
/*
 * modes.c - what each mode can, and which functions do it.
 */
#include "engines/common/caps.h"
#include "engines/postgres/advisory.h"
#include "engines/postgres/row.h"

#define VERBS(acquire_, release_, renew_)                                      \
    .acquire = (acquire_), .release = (release_), .renew = (renew_)

/* What a lock of a session is made of. */
#define OF_A_SESSION                                                           \
    .session = true, .up = hf__advisory_session_up,                            \
    .down = hf__advisory_session_down, .tick = hf__advisory_wait_tick,         \
    VERBS(hf__advisory_acquire, hf__advisory_release, hf__advisory_renew)
/* And one of a row in a table that another library, or the application, made. */
#define OF_ANOTHERS_ROW(acquire, release)                                      \
    .up = hf__pg_row_up, .down = hf__pg_row_down,                              \
    .list = hf__pg_dialect_inspect_list,                                       \
    .break_lock = hf__pg_dialect_inspect_break,                                \
    VERBS(acquire, release, hf__pg_dialect_renew)

const struct hf__pg_mode hf__pg_mode_advisory = {
    .name = "advisory",
    .caps = HF__CAPS_SESSION | HF_CAP_FENCED | HF_CAP_SHARED | HF_CAP_DOWNGRADE,
    .downgrade = hf__advisory_renew_downgrade,
    OF_A_SESSION,
};

const struct hf__pg_mode hf__pg_mode_for_update = {
    .name = "for_update",
    /* A number that is taken from a sequence is on disk with the commit. */
    .caps = HF__CAPS_SESSION,
    .tables = true,
    OF_A_SESSION,
};

const struct hf__pg_mode hf__pg_mode_table = {
    .name = "table",
    .caps = HF__CAPS_QUEUE | HF_CAP_PUSH | HF_CAP_SURVIVES_RESTART |
            HF_CAP_CONDITIONS,
    .tables = true,
    .listens = true,
    VERBS(hf__pg_table_acquire, hf__pg_table_release, hf__pg_table_renew),
    .downgrade = hf__pg_table_renew_downgrade,
    .park = hf__pg_table_condition_park,
    .unpark = hf__pg_table_condition_unpark,
    .signal = hf__pg_table_condition_signal,
    .up = hf__pg_row_up,
    .down = hf__pg_row_down,
    .tick = hf__pg_table_wait_tick,
    .notified = hf__pg_table_wait_notified,
    .list = hf__pg_table_inspect_list,
    .check_token = hf__pg_table_inspect_check,
    .break_lock = hf__pg_table_inspect_break,
};

/* dialect=shedlock, dialect=spring */
const struct hf__pg_mode hf__pg_mode_dialect = {
    .name = "table",
    .caps = HF__CAPS_ROW,
    .tables = true,
    OF_ANOTHERS_ROW(hf__pg_dialect_acquire, hf__pg_dialect_release),
};

/* dialect=row */
const struct hf__pg_mode hf__pg_mode_row = {
    .name = "row",
    .caps = HF_CAP_DISTRIBUTED | HF_CAP_SURVIVES_RESTART | HF_CAP_BREAK,
    .tables = true,
    OF_ANOTHERS_ROW(hf__pg_dialect_row_acquire, hf__pg_dialect_row_release),
};

/* SPDX-License-Identifier: MIT */
/*
 * sql.h - the statements: hf__mysql_sql_NAME is sql/NAME.sql.
 *
 * engines/sql/embed.cmake makes C of them. statements.h says what stands for a
 * '$' and a letter.
 */
#ifndef HF_MYSQL_SQL_H
#define HF_MYSQL_SQL_H

extern const char hf__mysql_sql_doctor_rights[];
extern const char hf__mysql_sql_doctor_server[];
extern const char hf__mysql_sql_for_update_begin[];
extern const char hf__mysql_sql_for_update_commit[];
extern const char hf__mysql_sql_for_update_exclusive_try[];
extern const char hf__mysql_sql_for_update_exclusive_wait[];
extern const char hf__mysql_sql_for_update_make[];
extern const char hf__mysql_sql_for_update_release[];
extern const char hf__mysql_sql_for_update_shared_mariadb_try[];
extern const char hf__mysql_sql_for_update_shared_mariadb_wait[];
extern const char hf__mysql_sql_for_update_shared_mysql_try[];
extern const char hf__mysql_sql_for_update_shared_mysql_wait[];
extern const char hf__mysql_sql_for_update_undo[];
extern const char hf__mysql_sql_get_lock_digest_release[];
extern const char hf__mysql_sql_get_lock_digest_try[];
extern const char hf__mysql_sql_get_lock_digest_wait[];
extern const char hf__mysql_sql_get_lock_release[];
extern const char hf__mysql_sql_get_lock_try[];
extern const char hf__mysql_sql_get_lock_wait[];
extern const char hf__mysql_sql_own_row_begin[];
extern const char hf__mysql_sql_own_row_doctor[];
extern const char hf__mysql_sql_own_row_try[];
extern const char hf__mysql_sql_own_row_wait[];
extern const char hf__mysql_sql_own_version_commit[];
extern const char hf__mysql_sql_own_version_read[];
extern const char hf__mysql_sql_row_acquire[];
extern const char hf__mysql_sql_row_break[];
extern const char hf__mysql_sql_row_doctor[];
extern const char hf__mysql_sql_row_indexes[];
extern const char hf__mysql_sql_row_list[];
extern const char hf__mysql_sql_row_owner_acquire[];
extern const char hf__mysql_sql_row_owner_break[];
extern const char hf__mysql_sql_row_owner_doctor[];
extern const char hf__mysql_sql_row_owner_list[];
extern const char hf__mysql_sql_row_owner_release[];
extern const char hf__mysql_sql_row_owner_renew[];
extern const char hf__mysql_sql_row_owner_show[];
extern const char hf__mysql_sql_row_owner_who[];
extern const char hf__mysql_sql_row_release[];
extern const char hf__mysql_sql_row_renew[];
extern const char hf__mysql_sql_row_show[];
extern const char hf__mysql_sql_schema_make[];
extern const char hf__mysql_sql_shedlock_acquire[];
extern const char hf__mysql_sql_shedlock_break[];
extern const char hf__mysql_sql_shedlock_doctor[];
extern const char hf__mysql_sql_shedlock_list[];
extern const char hf__mysql_sql_shedlock_make[];
extern const char hf__mysql_sql_shedlock_release[];
extern const char hf__mysql_sql_shedlock_renew[];
extern const char hf__mysql_sql_shedlock_show[];
extern const char hf__mysql_sql_spring_acquire[];
extern const char hf__mysql_sql_spring_break[];
extern const char hf__mysql_sql_spring_doctor[];
extern const char hf__mysql_sql_spring_list[];
extern const char hf__mysql_sql_spring_make[];
extern const char hf__mysql_sql_spring_release[];
extern const char hf__mysql_sql_spring_renew[];
extern const char hf__mysql_sql_spring_show[];
extern const char hf__mysql_sql_table_acquire[];
extern const char hf__mysql_sql_table_break[];
extern const char hf__mysql_sql_table_called[];
extern const char hf__mysql_sql_table_check[];
extern const char hf__mysql_sql_table_condition_release[];
extern const char hf__mysql_sql_table_condition_sweep[];
extern const char hf__mysql_sql_table_condition_withdraw[];
extern const char hf__mysql_sql_table_downgrade[];
extern const char hf__mysql_sql_table_free[];
extern const char hf__mysql_sql_table_list[];
extern const char hf__mysql_sql_table_list_lines[];
extern const char hf__mysql_sql_table_look[];
extern const char hf__mysql_sql_table_park[];
extern const char hf__mysql_sql_table_parked[];
extern const char hf__mysql_sql_table_release[];
extern const char hf__mysql_sql_table_renew_exclusive[];
extern const char hf__mysql_sql_table_renew_parked[];
extern const char hf__mysql_sql_table_renew_shared[];
extern const char hf__mysql_sql_table_show[];
extern const char hf__mysql_sql_table_show_lines[];
extern const char hf__mysql_sql_table_signal[];
extern const char hf__mysql_sql_table_sweep[];
extern const char hf__mysql_sql_table_take[];
extern const char hf__mysql_sql_table_who[];
extern const char hf__mysql_sql_version_commit[];
extern const char hf__mysql_sql_version_read[];

/* The texts of a dialect but for MAKE (enum hf__mysql_dialect_text). */
#define HF__MYSQL_TEXTS_OF(dialect)                                            \
    [HF__MYSQL_ACQUIRE] = hf__mysql_sql_##dialect##_acquire,                   \
    [HF__MYSQL_RENEW] = hf__mysql_sql_##dialect##_renew,                       \
    [HF__MYSQL_RELEASE] = hf__mysql_sql_##dialect##_release,                   \
    [HF__MYSQL_SHOW] = hf__mysql_sql_##dialect##_show,                         \
    [HF__MYSQL_LIST] = hf__mysql_sql_##dialect##_list,                         \
    [HF__MYSQL_BREAK] = hf__mysql_sql_##dialect##_break,                       \
    [HF__MYSQL_DOCTOR] = hf__mysql_sql_##dialect##_doctor

#endif

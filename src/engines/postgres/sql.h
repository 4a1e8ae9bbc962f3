/* SPDX-License-Identifier: MIT */
/*
 * sql.h - the statements: hf__postgres_sql_NAME is sql/NAME.sql.
 *
 * engines/sql/embed.cmake makes C of them.
 */
#ifndef HF_POSTGRES_SQL_H
#define HF_POSTGRES_SQL_H

extern const char hf__postgres_sql_advisory_downgrade[];
extern const char hf__postgres_sql_advisory_other_name[];
extern const char hf__postgres_sql_advisory_second_lock[];
extern const char hf__postgres_sql_advisory_second_unlock[];
extern const char hf__postgres_sql_advisory_try[];
extern const char hf__postgres_sql_advisory_try_shared[];
extern const char hf__postgres_sql_advisory_unlock[];
extern const char hf__postgres_sql_advisory_unlock_all[];
extern const char hf__postgres_sql_advisory_unlock_shared[];
extern const char hf__postgres_sql_advisory_wait[];
extern const char hf__postgres_sql_advisory_wait_shared[];
extern const char hf__postgres_sql_backend_cancel[];
extern const char hf__postgres_sql_backend_end[];
extern const char hf__postgres_sql_backend_end_wait[];
extern const char hf__postgres_sql_backend_is_there[];
extern const char hf__postgres_sql_backend_is_waiting[];
extern const char hf__postgres_sql_board_drop[];
extern const char hf__postgres_sql_board_number[];
extern const char hf__postgres_sql_board_post[];
extern const char hf__postgres_sql_board_read[];
extern const char hf__postgres_sql_cond_leave[];
extern const char hf__postgres_sql_cond_list[];
extern const char hf__postgres_sql_cond_look[];
extern const char hf__postgres_sql_cond_park[];
extern const char hf__postgres_sql_cond_renew[];
extern const char hf__postgres_sql_cond_serve[];
extern const char hf__postgres_sql_cond_signal[];
extern const char hf__postgres_sql_cond_sweep[];
extern const char hf__postgres_sql_cond_unpark[];
extern const char hf__postgres_sql_dialect_first[];
extern const char hf__postgres_sql_doctor[];
extern const char hf__postgres_sql_first[];
extern const char hf__postgres_sql_for_update_begin[];
extern const char hf__postgres_sql_for_update_commit[];
extern const char hf__postgres_sql_for_update_delete[];
extern const char hf__postgres_sql_for_update_insert[];
extern const char hf__postgres_sql_for_update_lock_timeout[];
extern const char hf__postgres_sql_for_update_rollback[];
extern const char hf__postgres_sql_for_update_same[];
extern const char hf__postgres_sql_for_update_transaction[];
extern const char hf__postgres_sql_make[];
extern const char hf__postgres_sql_own_row_lock[];
extern const char hf__postgres_sql_own_version_commit[];
extern const char hf__postgres_sql_own_version_read[];
extern const char hf__postgres_sql_ping[];
extern const char hf__postgres_sql_row_first[];
extern const char hf__postgres_sql_row_held[];
extern const char hf__postgres_sql_row_owner_held[];
extern const char hf__postgres_sql_row_owner_release[];
extern const char hf__postgres_sql_row_owner_renew[];
extern const char hf__postgres_sql_row_owner_take[];
extern const char hf__postgres_sql_row_owner_who[];
extern const char hf__postgres_sql_row_release[];
extern const char hf__postgres_sql_row_renew[];
extern const char hf__postgres_sql_row_take[];
extern const char hf__postgres_sql_row_who[];
extern const char hf__postgres_sql_session_timeout[];
extern const char hf__postgres_sql_shedlock_held[];
extern const char hf__postgres_sql_shedlock_make[];
extern const char hf__postgres_sql_shedlock_release[];
extern const char hf__postgres_sql_shedlock_renew[];
extern const char hf__postgres_sql_shedlock_take[];
extern const char hf__postgres_sql_shedlock_who[];
extern const char hf__postgres_sql_spring_held[];
extern const char hf__postgres_sql_spring_make[];
extern const char hf__postgres_sql_spring_release[];
extern const char hf__postgres_sql_spring_renew[];
extern const char hf__postgres_sql_spring_take[];
extern const char hf__postgres_sql_spring_who[];
extern const char hf__postgres_sql_table_ask[];
extern const char hf__postgres_sql_table_break[];
extern const char hf__postgres_sql_table_cede[];
extern const char hf__postgres_sql_table_downgrade[];
extern const char hf__postgres_sql_table_first[];
extern const char hf__postgres_sql_table_free[];
extern const char hf__postgres_sql_table_grant[];
extern const char hf__postgres_sql_table_join[];
extern const char hf__postgres_sql_table_leave[];
extern const char hf__postgres_sql_table_list[];
extern const char hf__postgres_sql_table_lock[];
extern const char hf__postgres_sql_table_look[];
extern const char hf__postgres_sql_table_pass[];
extern const char hf__postgres_sql_table_purge[];
extern const char hf__postgres_sql_table_renew[];
extern const char hf__postgres_sql_table_take[];
extern const char hf__postgres_sql_unfenced_try[];
extern const char hf__postgres_sql_unfenced_try_shared[];
extern const char hf__postgres_sql_unfenced_wait[];
extern const char hf__postgres_sql_unfenced_wait_shared[];
extern const char hf__postgres_sql_version_commit[];
extern const char hf__postgres_sql_version_read[];

#endif

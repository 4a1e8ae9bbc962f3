-- What the server says of itself; the columns are an enum of doctor.c.
SELECT VERSION(),@@read_only,{variable:wsrep_on | OFF},@@log_bin,
@@innodb_flush_log_at_trx_commit,{variable:idle_transaction_timeout | 0},{now_inside},
(SELECT MAX(ENGINE) FROM information_schema.tables
WHERE TABLE_SCHEMA=DATABASE() AND TABLE_NAME LIKE 'holdfast\_%' AND ENGINE<>'InnoDB'),
@@max_connections,
(SELECT MAX(VARIABLE_VALUE) FROM $V.global_status WHERE VARIABLE_NAME='Threads_connected'),
@@max_prepared_stmt_count,{variable:group_replication_group_name | },
{variable:group_replication_single_primary_mode | OFF}

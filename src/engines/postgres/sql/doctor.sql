SELECT version(), current_setting('synchronous_commit'),
(SELECT count(*) FROM pg_stat_replication),
(SELECT setting FROM pg_settings WHERE name = 'max_connections'),
(SELECT count(*) FROM pg_stat_activity),
current_setting('tcp_keepalives_idle'),
extract(epoch FROM clock_timestamp())::bigint,
(SELECT coalesce(string_agg(c, ', '), '')
FROM pg_db_role_setting s, unnest(s.setconfig) c
WHERE (c LIKE 'lock_timeout=%' OR c LIKE 'statement_timeout=%' OR c LIKE 'idle_session_timeout=%')
AND s.setrole IN (0, (SELECT oid FROM pg_roles WHERE rolname = current_user))),
current_setting('fsync')

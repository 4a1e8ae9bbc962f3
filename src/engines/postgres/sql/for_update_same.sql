-- Is it still this transaction?
SELECT pg_current_xact_id_if_assigned()::text = $1

SELECT 0, NULL WHERE pg_try_advisory_lock_shared($1::bigint)

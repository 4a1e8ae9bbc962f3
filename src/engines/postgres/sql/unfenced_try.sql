SELECT 0, NULL WHERE pg_try_advisory_lock($1::bigint)

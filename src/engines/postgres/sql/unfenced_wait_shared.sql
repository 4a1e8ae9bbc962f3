SELECT 0, NULL FROM pg_advisory_lock_shared($1::bigint)

SELECT 0, NULL FROM pg_advisory_lock($1::bigint)

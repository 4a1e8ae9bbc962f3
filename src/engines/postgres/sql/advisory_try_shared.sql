-- Key → token, or no row.
SELECT {flushed_number} WHERE pg_try_advisory_lock_shared($1::bigint)

-- Key → token, or no row.
SELECT {flushed_number} WHERE pg_try_advisory_lock($1::bigint)

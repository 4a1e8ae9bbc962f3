-- Key → token, when it is granted.
SELECT {flushed_number} FROM pg_advisory_lock_shared($1::bigint)

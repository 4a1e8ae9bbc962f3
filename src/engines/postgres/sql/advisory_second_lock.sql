-- Keys of two numbers are others than those of one.
SELECT pg_advisory_lock_shared($1::int, $2::int)

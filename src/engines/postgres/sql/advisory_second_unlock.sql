SELECT pg_advisory_unlock_shared($1::int, $2::int)

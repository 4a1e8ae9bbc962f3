-- In this order there is no instant at which it is free.
SELECT pg_advisory_unlock($1::bigint) FROM pg_advisory_lock_shared($1::bigint)

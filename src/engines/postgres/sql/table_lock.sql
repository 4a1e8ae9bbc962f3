-- One change of a name at a time.
SELECT pg_advisory_xact_lock($1::bigint)

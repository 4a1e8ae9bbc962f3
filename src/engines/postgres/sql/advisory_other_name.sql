-- Which process has the key, and not the second key? One snapshot, so that both are of one
-- instant.
WITH has AS MATERIALIZED (
SELECT pid, objsubid AS kind, (classid::bigint << 32) | objid::bigint AS bits
FROM pg_locks WHERE locktype = 'advisory' AND granted
AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))
SELECT pid FROM has k WHERE kind = 1 AND bits = $1::bigint
AND NOT EXISTS (SELECT FROM has m WHERE m.pid = k.pid AND m.kind = 2 AND m.bits = $2::bigint)
LIMIT 1

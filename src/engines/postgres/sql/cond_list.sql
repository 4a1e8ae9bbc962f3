-- As table_list.sql, and those that are parked behind the others of their name.
SELECT name, mode, slots, token, record, since, lease, ttl_ms, cond FROM (
SELECT {list_columns}, NULL::text AS cond, place AS number FROM holdfast_place WHERE {listed}
UNION ALL
SELECT {list_columns}, cond, number FROM (SELECT *, 0 AS mode, 0 AS slots, NULL::bigint AS token
FROM holdfast_cond WHERE NOT called) c WHERE {listed}) l
ORDER BY name, cond NULLS FIRST, token IS NULL, number LIMIT 100000

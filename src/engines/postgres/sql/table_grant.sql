-- Grant to all that may have it now; the first row moves to place 0.
WITH w AS (SELECT p.place,
p.place = (SELECT min(place) FROM holdfast_place WHERE name = $1) AS first,
p.token IS NULL AND NOT EXISTS (SELECT FROM holdfast_place r
WHERE {before} AND NOT (r.mode = p.mode AND p.mode <> 0))
AND (p.mode <> 2 OR (SELECT count(*) FROM holdfast_place r WHERE {before}) < p.slots) AS now
FROM holdfast_place p WHERE p.name = $1)
UPDATE holdfast_place p SET
place = CASE WHEN first THEN 0 ELSE p.place END,
token = CASE WHEN now THEN {number} ELSE p.token END,
until = CASE WHEN now THEN {ends:p.ttl_ms} ELSE p.until END,
since = CASE WHEN now THEN clock_timestamp() ELSE p.since END
FROM w WHERE p.name = $1 AND p.place = w.place AND (now OR first AND p.place <> 0)
RETURNING CASE WHEN now THEN {tell} END

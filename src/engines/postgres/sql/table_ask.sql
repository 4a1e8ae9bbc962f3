-- Renew our row, or add it, with a token if nothing is in the way. $5: or wait.
WITH way AS (SELECT
count(*) FILTER (WHERE NOT (mode = $6::int AND $6::int <> 0 AND token IS NOT NULL)) = 0
AND ($6::int <> 2 OR count(*) < $7::int) AS free,
count(*) = 0 AS empty FROM holdfast_place WHERE name = $1),
again AS (UPDATE holdfast_place SET alone = false,
until = CASE WHEN id = $2 THEN {my_end} ELSE until END
WHERE name = $1 AND (alone OR id = $2))
{place}
SELECT $1, CASE WHEN empty THEN 0 ELSE {number} END, false,
$2, $6::int, $7::int, $3::bigint, $4,
CASE WHEN free THEN {number} END, {my_end}, clock_timestamp()
FROM way WHERE (free OR $5::boolean)
AND NOT EXISTS (SELECT FROM holdfast_place WHERE {me})

-- A wake-up whose bearer has gone, other than by a release, is the next one's.
WITH stray AS MATERIALIZED (SELECT id, cond FROM holdfast_cond WHERE name = $1 AND called
AND id NOT IN (SELECT id FROM holdfast_place WHERE name = $1)),
swept AS (DELETE FROM holdfast_cond WHERE name = $1 AND id IN (SELECT id FROM stray)),
{call:SELECT id FROM (SELECT id, cond,
row_number() OVER (PARTITION BY cond ORDER BY number) AS nth
FROM holdfast_cond WHERE name = $1 AND NOT called AND until >= {now}) w
JOIN (SELECT cond, count(*) AS n FROM stray GROUP BY cond) s USING (cond) WHERE nth <= n}

INSERT INTO holdfast_version AS v
SELECT $1, 1 WHERE $2::bigint = 0 OR EXISTS (SELECT FROM holdfast_version WHERE name = $1)
ON CONFLICT (name) DO UPDATE SET version = v.version + 1 WHERE v.version = $2::bigint
RETURNING version

-- A quiet name: → token, or no row. The lock is had before the number is drawn.
{place}
VALUES ($1, 0, $6::boolean, {writer}
CASE WHEN pg_advisory_xact_lock($5::bigint) IS NOT NULL THEN {number} END, {my_end_soon}, {now})
ON CONFLICT (name, place) DO NOTHING RETURNING token

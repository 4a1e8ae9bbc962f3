DELETE FROM holdfast_place WHERE name = $1 AND (id = $2 OR until < clock_timestamp())
RETURNING CASE WHEN id = $2 THEN token END

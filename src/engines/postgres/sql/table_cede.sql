-- A crowded name: our row goes.
DELETE FROM holdfast_place WHERE {me} AND place = 0 AND mode = 0 AND token IS NOT NULL
AND pg_advisory_xact_lock($3::bigint) IS NOT NULL

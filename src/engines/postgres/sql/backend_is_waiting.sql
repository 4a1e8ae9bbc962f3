-- Does a backend stand in line?
SELECT 1 FROM pg_locks WHERE pid = $1::int AND NOT granted

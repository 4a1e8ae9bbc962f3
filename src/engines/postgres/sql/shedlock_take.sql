INSERT INTO @ AS l (name, lock_until, locked_at, locked_by)
VALUES ($1, {until:$3}, {utc}, $2)
ON CONFLICT (name) DO UPDATE SET lock_until = excluded.lock_until,
locked_at = excluded.locked_at, locked_by = excluded.locked_by
WHERE l.lock_until <= excluded.locked_at OR l.locked_by = excluded.locked_by
RETURNING 1

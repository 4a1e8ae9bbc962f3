-- Who holds a lock parks: $5 the condition, $6 the ticket that holds. A wake-up that
-- this one bore is used up. Asked again, it finds no holder, and changes nothing.
WITH held AS (SELECT FROM holdfast_place
WHERE name = $1 AND id = $6 AND token IS NOT NULL AND mode = 0),
used AS (DELETE FROM holdfast_cond WHERE name = $1 AND id = $6 AND EXISTS (SELECT FROM held))
INSERT INTO holdfast_cond (name, id, number, cond, called, ttl_ms, record, until, since)
SELECT $1, $2, {number}, $5, false, $3::bigint, $4, {my_end}, clock_timestamp() FROM held

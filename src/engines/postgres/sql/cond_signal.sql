-- If $2 holds the lock: call $4 of those that are parked for the condition $3.
WITH {call:SELECT id FROM holdfast_cond
WHERE name = $1 AND cond = $3 AND NOT called AND until >= {now}
AND EXISTS (SELECT FROM holdfast_place WHERE {me} AND token IS NOT NULL)
ORDER BY number LIMIT $4::bigint}

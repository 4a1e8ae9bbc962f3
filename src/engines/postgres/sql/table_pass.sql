-- … and the first in line is granted, in which mode? A renewal that came in
-- between may reach further.
UPDATE holdfast_place SET place = 0, token = {number},
until = greatest(until, {now} + ttl_ms * interval '1 ms'), since = {now}
WHERE name = $1 AND place = (SELECT CASE WHEN place > 0 THEN place END
FROM holdfast_place WHERE name = $1 ORDER BY place LIMIT 1)
AND token IS NULL AND until >= {now} RETURNING {tell}, mode

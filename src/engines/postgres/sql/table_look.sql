-- Our token, is our row there, how long does the lease before it last, the record
-- of the holder, and our place: whatever is granted to this row has a larger token.
SELECT p.token, p.place IS NOT NULL,
(SELECT {ms_until:min(r.until)} FROM holdfast_place r WHERE {before}),
(SELECT r.record FROM holdfast_place r
WHERE r.name = $1 AND r.token IS NOT NULL ORDER BY r.place LIMIT 1),
p.place
FROM (VALUES (1)) AS one LEFT JOIN holdfast_place p ON {me}

-- Names and tickets of a client; each row → ticket, token, when to look.
UPDATE holdfast_place p SET until = {ends:p.ttl_ms}
FROM unnest($2::text[], $3::text[]) AS mine(name, ticket)
WHERE p.name = mine.name AND p.id = $1::text || mine.ticket
RETURNING mine.ticket, token,
(SELECT {ms_until:min(r.until)} FROM holdfast_place r
WHERE r.name = p.name AND r.place <> p.place AND p.token IS NULL
AND NOT (r.mode = 1 AND p.mode = 1) AND (r.token IS NOT NULL OR r.place < p.place))

-- Names and tickets of a client, parked → ticket, was it called, when to look, and the
-- timeline. The first of a name looks when the lease of a bearer ends. A row that another client is just
-- changing is renewed the next time; so nobody waits for another in a circle.
WITH mine AS MATERIALIZED (SELECT c.name, c.id, m.ticket, c.called
FROM unnest($2::text[], $3::text[]) AS m(name, ticket)
JOIN holdfast_cond c ON c.name = m.name AND c.id = $1::text || m.ticket),
beat AS (UPDATE holdfast_cond c SET until = {ends:c.ttl_ms}
FROM (SELECT h.name, h.id FROM holdfast_cond h JOIN mine USING (name, id)
FOR UPDATE OF h SKIP LOCKED) AS free WHERE c.name = free.name AND c.id = free.id),
heads AS (SELECT DISTINCT ON (name) name, id FROM holdfast_cond
WHERE name IN (SELECT name FROM mine) AND NOT called AND until >= {now} ORDER BY name, number)
SELECT ticket, called, CASE WHEN heads.id IS NOT NULL THEN
(SELECT {ms_until:min(coalesce(p.until, {now}))} FROM holdfast_cond b
LEFT JOIN holdfast_place p ON p.name = b.name AND p.id = b.id
WHERE b.name = mine.name AND b.called) END, {timeline}
FROM mine LEFT JOIN heads USING (name, id)

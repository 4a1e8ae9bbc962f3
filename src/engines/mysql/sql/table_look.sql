-- A waiter looks, without locking anything: how many are before it, could the
-- lock be free, does it count as alive for long enough?
SELECT (SELECT COUNT(*) FROM holdfast_ticket w
WHERE w.name=$N AND w.role=0 AND w.until>{now} AND w.seq<m.seq AND NOT (w.mode=1 AND m.mode=1)),
l.until<={now},m.until>{now}+$A/2
FROM holdfast_ticket m JOIN holdfast_lock l ON l.name=m.name
WHERE m.name=$N AND m.ticket=$T

-- What the dead have left at any name: parked, or called while nobody else is parked.
-- Not what a signal may just be calling, which has seen it alive. All rows by the
-- index, as in board_drop.sql.
DELETE FROM holdfast_cond WHERE (name, id) IN (SELECT name, id FROM holdfast_cond c
WHERE name > '' AND until < {now} - interval '1 minute' AND (NOT called OR
NOT EXISTS (SELECT FROM holdfast_place p WHERE p.name = c.name AND p.id = c.id AND p.until >= {now})
AND NOT EXISTS (SELECT FROM holdfast_cond w WHERE w.name = c.name AND w.cond = c.cond AND NOT w.called))
FOR UPDATE SKIP LOCKED)

-- Who is parked looks, without locking anything: is it still there, and is there a
-- wake-up whose bearer is gone?
SELECT m.called=0 AND m.until>{now},
EXISTS(SELECT 1 FROM holdfast_cond c WHERE c.name=m.name AND c.cond=m.cond AND c.called>0 AND {bearer_gone})
FROM holdfast_cond m WHERE m.name=$N AND m.ticket=$T

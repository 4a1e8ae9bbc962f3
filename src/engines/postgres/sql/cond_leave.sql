-- Not parked any more. A wake-up is used up by a release ($3) of the lock.
DELETE FROM holdfast_cond WHERE {me} AND (NOT called OR $3::boolean
AND EXISTS (SELECT FROM holdfast_place WHERE {me} AND token IS NOT NULL))

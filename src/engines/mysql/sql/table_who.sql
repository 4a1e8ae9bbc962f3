-- The record of the holder, if nobody waits.
SELECT {record} FROM holdfast_lock WHERE name=$N AND gate=0 AND until>{now}

-- The exclusive holder goes; waiters see that the lock is free. The record of the
-- holder stays, and means nothing: the next one is as long, and is written in its
-- place. Two rows are "changed" if the grant was still ours; the gate comes back
-- as the number of the insert.
INSERT INTO holdfast_lock(name) VALUES($N)
ON DUPLICATE KEY UPDATE until=until*(token<>$K)+0*LAST_INSERT_ID(gate)

-- Use every right that a lock needs, and leave nothing behind.
START TRANSACTION;
INSERT INTO holdfast_row VALUES($N) ON DUPLICATE KEY UPDATE name=name;
SELECT 1 INTO @hf_ok FROM holdfast_row WHERE name=$N FOR UPDATE;
{make_row}
UPDATE holdfast_lock SET until=0 WHERE name=$N;
DELETE FROM holdfast_ticket WHERE name=$N;
ROLLBACK;
DO GET_LOCK({digest},0),RELEASE_LOCK({digest})

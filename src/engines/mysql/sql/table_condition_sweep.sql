-- Delete one row that is dead, and pass on the wake-up that it bears. Was there
-- one?
START TRANSACTION;
SET @hf_name=NULL,@hf_ticket=NULL,@hf_cond=NULL,@hf_stamp=0;
SELECT c.name INTO @hf_name FROM holdfast_cond c WHERE {dead} LIMIT 1;
COMMIT;
START TRANSACTION;
SELECT 1 INTO @hf_ok FROM holdfast_lock WHERE name=@hf_name FOR UPDATE;
SET @hf_now={now_inside};
SELECT c.ticket,c.cond,c.called INTO @hf_ticket,@hf_cond,@hf_stamp
FROM holdfast_cond c WHERE c.name=@hf_name AND {dead} ORDER BY c.called,c.seq LIMIT 1;
DELETE FROM holdfast_cond WHERE name=@hf_name AND ticket=@hf_ticket;
{call:@hf_name | 1}
UPDATE holdfast_lock SET {gate:@hf_name} WHERE name=@hf_name;
COMMIT;
SELECT @hf_name IS NOT NULL

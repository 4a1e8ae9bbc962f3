-- Call the first that are parked, $E at most. Does $Q hold the lock, and how many
-- were called?
START TRANSACTION;
{lock_row}
{next_stamp}
SET @hf_ok=@hf_ticket=$Q,@hf_cond=$B,@hf_stamp=IF(@hf_ticket=$Q,@hf_next,0);
{call:$N | $E}
UPDATE holdfast_lock SET {gate:$N} WHERE name=$N;
COMMIT;
SELECT @hf_ok,@hf_given

-- Free the lock of $Q, and park. 1: parked; 2: known already, and in line or
-- holding, because an answer was lost; 0: $Q does not hold it. A wake-up that $Q
-- bears is used up.
START TRANSACTION;
{lock_row}
SELECT 1+(called>0) INTO @hf_role FROM holdfast_cond WHERE name=$N AND ticket=$T;
SELECT 2 INTO @hf_role FROM holdfast_ticket WHERE name=$N AND ticket=$T;
{next_stamp}
SET @hf_ok=@hf_role=0 AND @hf_ticket=$Q,
@hf_role=CASE WHEN @hf_ticket=$T THEN 2 WHEN @hf_role=0 AND @hf_ticket=$Q THEN 1 ELSE @hf_role END;
DELETE FROM holdfast_cond WHERE name=$N AND ticket=$Q AND @hf_ok;
INSERT INTO holdfast_cond SELECT $N,$T,$B,@hf_next,0,@hf_now+$L,@hf_now,$R FROM DUAL WHERE @hf_ok;
UPDATE holdfast_lock SET until=IF(@hf_ok,0,until) WHERE name=$N;
COMMIT;
SELECT @hf_role

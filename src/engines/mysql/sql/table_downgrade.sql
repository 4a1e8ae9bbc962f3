START TRANSACTION;
{lock_row}
INSERT INTO holdfast_ticket SELECT $N,$T,0,1,1,0,@hf_token,@hf_now+$L,@hf_now,$R
FROM DUAL WHERE @hf_ticket=$T;
UPDATE holdfast_ticket SET until=@hf_now+$L WHERE name=$N AND ticket=$T AND role=1;
SET @hf_ok=ROW_COUNT();
{free_row}
SELECT @hf_ok

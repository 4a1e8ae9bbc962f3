-- Was the holder that the caller means there, and how many were there?
START TRANSACTION;
{lock_row}
SELECT COUNT(*)+(@hf_until>@hf_now) INTO @hf_holders
FROM holdfast_ticket WHERE name=$N AND role=1 AND until>@hf_now;
SET @hf_ok=@hf_ticket<>'' AND {meant:@hf_record | @hf_token};
DELETE FROM holdfast_ticket WHERE name=$N AND role=1 AND NOT @hf_ok AND {meant:record | token};
SET @hf_given=ROW_COUNT();
UPDATE holdfast_lock SET until=IF(@hf_ok,0,until),{gate:$N} WHERE name=$N;
COMMIT;
SELECT @hf_holders>0 AND (@hf_ok OR @hf_given>0),@hf_holders

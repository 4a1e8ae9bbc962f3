-- Take the lock, or stand in line for it. @hf_ok: 1 granted now; 2 held already,
-- in the row of the name; 3 held already, in a row of its own: an answer was lost.
START TRANSACTION;
{make_row}
{lock_row}
-- A waiter or holder that was not heard of in time is not there.
DELETE FROM holdfast_ticket WHERE name=$N AND until<=@hf_now AND ticket<>$T;
SELECT seq,1+role,token INTO @hf_mine,@hf_role,@hf_given
FROM holdfast_ticket WHERE name=$N AND ticket=$T;
-- In the way: waiters that came before, and holders that exclude us.
SELECT COALESCE(SUM(role=0 AND ticket<>$T AND
(@hf_role=0 OR seq<@hf_mine) AND NOT (mode=1 AND $M=1)),0),
COALESCE(SUM(role=1 AND (mode<>$M OR $M=0)),0),
COALESCE(SUM(role=1),0),COALESCE(MAX(seq),0)+1
INTO @hf_place,@hf_against,@hf_holders,@hf_next
FROM holdfast_ticket WHERE name=$N;
SET @hf_ok=CASE WHEN @hf_ticket=$T THEN 2 WHEN @hf_role=2 THEN 3
WHEN @hf_until>@hf_now THEN 0
ELSE @hf_place=0 AND @hf_against=0 AND ($M<>2 OR @hf_holders<$S) END;
SET @hf_given=CASE @hf_ok WHEN 1 THEN GREATEST(@hf_token+1,@hf_now)
WHEN 2 THEN @hf_token ELSE @hf_given END,
@hf_until=CASE WHEN @hf_ok=2 OR (@hf_ok=1 AND $M=0) THEN @hf_now+$L
WHEN @hf_until>@hf_now THEN @hf_until ELSE 0 END;
INSERT INTO holdfast_ticket SELECT $N,$T,
IF(@hf_ok>0,0,IF(@hf_role=1,@hf_mine,@hf_next)),@hf_ok>0,$M,$S,@hf_given,
@hf_now+IF(@hf_ok>0,$L,$A),@hf_now,$R
FROM DUAL WHERE @hf_ok=3 OR (@hf_ok=1 AND $M<>0) OR (@hf_ok=0 AND $W)
ON DUPLICATE KEY UPDATE since=IF(role=VALUES(role),since,VALUES(since)),
seq=VALUES(seq),role=VALUES(role),token=VALUES(token),until=VALUES(until);
DELETE FROM holdfast_ticket WHERE name=$N AND ticket=$T AND @hf_ok=1 AND $M=0;
UPDATE holdfast_lock SET token=IF(@hf_ok=1,@hf_given,token),
until=@hf_until,holder=IF(@hf_ok=1 AND $M=0,$H,holder),{gate:$N}
WHERE name=$N;
COMMIT;
SELECT @hf_ok>0,@hf_given,@hf_place+1,
IF(@hf_until>0,@hf_record,(SELECT record FROM holdfast_ticket WHERE name=$N AND role=1 LIMIT 1))

-- What several statements share; engines/sql/embed.cmake puts it in.

-- ---- instants: microseconds of the server's clock ----

-- At the start of the statement.
--fragment now
(UNIX_TIMESTAMP()*1000000+MICROSECOND(NOW(6)))
-- At this moment.
--fragment now_inside
CAST(UNIX_TIMESTAMP(SYSDATE(6))*1000000 AS UNSIGNED)
-- How long ago; 0 if the clock was set back meanwhile.
--fragment since
IF({1}>{now},0,{now}-{1})

-- ---- holdfast_lock ----

-- Of the column holder.
--fragment ticket
LEFT(holder,24)
--fragment record
SUBSTR(holder,25)
--fragment make_row
INSERT INTO holdfast_lock(name) VALUES($N) ON DUPLICATE KEY UPDATE name=name;
-- Lock the row of the name, and read it.
--fragment lock_row
SET @hf_token=0,@hf_until=0,@hf_ticket='',@hf_record='',@hf_role=0,@hf_mine=0,@hf_given=0,@hf_ok=0;
SELECT token,until,IF(until=0,'',{ticket}),IF(until=0,'',{record})
INTO @hf_token,@hf_until,@hf_ticket,@hf_record
FROM holdfast_lock WHERE name=$N FOR UPDATE;
SET @hf_now={now_inside};
--fragment gate
gate=~0*EXISTS(SELECT 1 FROM holdfast_ticket WHERE name={1})
-- If the exclusive holder is $T, it goes.
--fragment free_row
UPDATE holdfast_lock SET until=IF(@hf_ticket=$T,0,until),{gate:$N} WHERE name=$N;
COMMIT;
-- Take the lock, or stand in line for it, once the row is locked. @hf_ok: 1
-- granted now; 2 held already, in the row of the name; 3 held already, in a row of
-- its own: an answer was lost.
--fragment take_or_wait
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
-- Who holds it.
--fragment holder_of
IF(@hf_until>0,@hf_record,(SELECT record FROM holdfast_ticket WHERE name=$N AND role=1 LIMIT 1))
-- Name, role, mode, slots, token, what is left of the lease, how long it is held,
-- record, order, condition. A token is the instant of its grant, unless the clock
-- was set back.
--fragment lines
SELECT name,1,0,0,token,until-{now},{since:token},{record},0,''
FROM holdfast_lock WHERE until>{now} AND {1}
UNION ALL
SELECT name,role,mode,slots,token,until-{now},{since:since},record,seq,''
FROM holdfast_ticket WHERE until>{now} AND {1}
-- … with those that are parked.
--fragment list
{lines:{1}}
UNION ALL
SELECT name,2,0,0,0,0,{since:since},record,seq,cond
FROM holdfast_cond WHERE called=0 AND until>{now} AND {1}
ORDER BY 1,10,9
-- Is this record, or token, the one that the caller means?
--fragment meant
IF($K=0,SUBSTRING_INDEX(SUBSTRING_INDEX({1},x'0A',3),x'0A',-1)=$O,{2}=$K)

-- ---- holdfast_cond ----

-- Those that the wake-up with the number @hf_stamp is for.
--fragment callable
name={1} AND cond=@hf_cond AND called=0 AND until>@hf_now AND seq<@hf_stamp
-- The first {2} of them stand at the end of the line of {1}, and bear it. Both
-- statements find the same rows: the first one locks them, and who is overdue at
-- @hf_now stays so (table_renew_parked.sql).
--fragment call
SELECT COALESCE(MAX(seq),0) INTO @hf_last FROM holdfast_ticket WHERE name={1};
INSERT INTO holdfast_ticket SELECT name,ticket,@hf_last+seq,0,0,0,0,@hf_now+$A,@hf_now,record
FROM holdfast_cond WHERE {callable:{1}} ORDER BY seq LIMIT {2} FOR UPDATE;
SET @hf_given=ROW_COUNT();
UPDATE holdfast_cond SET called=@hf_stamp WHERE {callable:{1}} ORDER BY seq LIMIT {2};
-- The next number of a row, or of a wake-up.
--fragment next_stamp
SELECT COALESCE(MAX(GREATEST(seq,called)),0)+1 INTO @hf_next FROM holdfast_cond WHERE name=$N;
-- Of a row c that was called: its bearer is neither in line nor the holder.
--fragment bearer_gone
NOT EXISTS(SELECT 1 FROM holdfast_ticket t WHERE t.name=c.name AND t.ticket=c.ticket AND t.until>{now})
AND NOT EXISTS(SELECT 1 FROM holdfast_lock l WHERE l.name=c.name AND LEFT(l.holder,24)=c.ticket AND l.until>{now})
--fragment dead
((c.called=0 AND c.until<={now}) OR (c.called>0 AND {bearer_gone}))
-- Release or withdraw, wherever the ticket is: its wake-up goes to the next one
-- if {1}, and is used up if not.
--fragment leave_condition
START TRANSACTION;
{lock_row}
SET @hf_cond=$B,@hf_stamp=0;
SELECT role INTO @hf_ok FROM holdfast_ticket WHERE name=$N AND ticket=$T;
SELECT called INTO @hf_stamp FROM holdfast_cond WHERE name=$N AND ticket=$T AND {1};
DELETE FROM holdfast_ticket WHERE name=$N AND (ticket=$T OR until<=@hf_now);
DELETE FROM holdfast_cond WHERE name=$N AND ticket=$T;
{call:$N | 1}
{free_row}
SELECT @hf_ok=1 OR @hf_ticket=$T

-- ---- sessions ----

-- A name of GET_LOCK belongs to the whole server, has 64 characters at most, and
-- the server may ignore its case. A name that does not fit is a digest of
-- database and name.
--fragment digest
CONCAT('holdfast',SHA2(CONCAT(CAST(DATABASE() AS BINARY),x'00',$N),224))
-- Out of range, which is an error, unless the lock is ours.
--fragment get_lock
SET @holdfast=1+~0*(GET_LOCK({1},{2}) IS NOT TRUE)
--fragment lock_our_row
SELECT 1 INTO @holdfast FROM holdfast_row WHERE name=$N {1}

-- ---- tables of the application: $1 table, $2 key, $3 owner_column ----

-- A column may be of numbers, or of a collation for which two names are one.
--fragment bytes
CAST(CONVERT($2 USING utf8mb4) AS BINARY)
--fragment own_name
$2=_utf8mb4 $N AND {bytes}=$N
--fragment lock_own_row
SELECT 1 INTO @holdfast FROM $1 WHERE {own_name} $F
-- The columns of {list}. The holder stands where a record has its owner.
--fragment record_of
CONCAT(x'0A0A',CONVERT({1} USING utf8mb4))

-- dialect=row: {1} columns, {2} values. There is no transaction: one that failed
-- would keep the row of the holder locked until we have undone it. A row that has
-- another name than ours is deleted at once.
--fragment row_acquire
SET @hf_key=NULL;
INSERT INTO $1({1}) VALUES({2});
SELECT {bytes} INTO @hf_key FROM $1 WHERE $2=_utf8mb4 $N ORDER BY {bytes}<>$N LIMIT 1;
DELETE FROM $1 WHERE $2=_utf8mb4 $N AND {bytes}=@hf_key AND {bytes}<>$N
--fragment row_list
SELECT $2,1,0,0,0,-1000,-1000,{record_of:{1}},0,'' FROM $1 WHERE {2}
--fragment row_begins
LEFT({bytes},$Z)=$P
-- The holder's name, where a column tells it.
--fragment row_owner
COALESCE($3,'')
--fragment row_break
DELETE FROM $1 WHERE {own_name} AND {1}=_utf8mb4 $O;
{broken:{own_name}}
--fragment row_doctor
START TRANSACTION;
INSERT INTO $1({1}) SELECT {1} FROM $1 WHERE 1=0;
DELETE FROM $1 WHERE 1=0;
ROLLBACK
-- Was it freed, and was there a holder?
--fragment broken
SELECT ROW_COUNT(),ROW_COUNT()+COUNT(*) FROM $1 WHERE {1}

-- ---- ShedLock and Spring ----

--fragment utc
UTC_TIMESTAMP(6)
-- A column without fractions loses up to a second.
--fragment ends
{utc}+INTERVAL $L+1000000 MICROSECOND
-- {1} key, {2} until, {3} since, {4} holder
--fragment dialect_list
SELECT {1},1,0,0,0,TIMESTAMPDIFF(MICROSECOND,{utc},{2}),{3},{record_of:{4}},0,'' FROM $1 WHERE
-- Assignments are made from left to right, and see those before them; VALUES() is
-- what would have been inserted: locked_at is now.
--fragment shedlock_same
CAST(name AS BINARY)=CAST(VALUES(name) AS BINARY)
--fragment shedlock_free
{shedlock_same} AND (lock_until<=VALUES(locked_at) OR locked_by=VALUES(locked_by))
--fragment shedlock_held
name=_utf8mb4 $N AND lock_until>{utc}
--fragment shedlock_ours
{shedlock_held} AND locked_by=_utf8mb4 $T
-- Whatever the collation of the column.
--fragment shedlock_bytes
CAST(CONVERT(name USING utf8mb4) AS BINARY)
--fragment shedlock_named
{shedlock_held} AND {shedlock_bytes}=$N
--fragment shedlock_list
{dialect_list:name | lock_until | GREATEST(0,TIMESTAMPDIFF(MICROSECOND,locked_at,{utc})) | locked_by}
--fragment spring_key
LOCK_KEY=_utf8mb4 $N AND REGION=_utf8mb4 $G
--fragment spring_ours
{spring_key} AND CLIENT_ID=_utf8mb4 $T
--fragment spring_held
{spring_key} AND EXPIRED_AFTER>={utc}
--fragment spring_list
{dialect_list:LOCK_KEY | EXPIRED_AFTER | -1000 | CLIENT_ID}
--fragment spring_columns
LOCK_KEY,REGION,CLIENT_ID,CREATED_DATE,EXPIRED_AFTER

-- ---- doctor ----

-- A variable that not every server has: {1} its name, {2} its default.
--fragment variable
(SELECT COALESCE(MAX(VARIABLE_VALUE),'{2}') FROM $V.global_variables WHERE VARIABLE_NAME='{1}')

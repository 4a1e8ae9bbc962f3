-- table_acquire.sql for who was called, or waits for a condition no longer: it is
-- not parked any more. 2: the lock is granted, and a wake-up came with it.
START TRANSACTION;
{make_row}
{lock_row}
DELETE FROM holdfast_cond WHERE name=$N AND ticket=$T AND called=0;
{take_or_wait}
SELECT IF(@hf_ok>0,1+EXISTS(SELECT 1 FROM holdfast_cond WHERE name=$N AND ticket=$T),0),
@hf_given,@hf_place+1,{holder_of}

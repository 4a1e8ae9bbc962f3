START TRANSACTION;
{make_row}
{lock_row}
{take_or_wait}
SELECT @hf_ok>0,@hf_given,@hf_place+1,{holder_of}

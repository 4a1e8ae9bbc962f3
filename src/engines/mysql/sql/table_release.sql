-- Release or withdraw, wherever the ticket is.
START TRANSACTION;
{lock_row}
SELECT role INTO @hf_ok FROM holdfast_ticket WHERE name=$N AND ticket=$T;
DELETE FROM holdfast_ticket WHERE name=$N AND (ticket=$T OR until<=@hf_now);
{free_row}
SELECT @hf_ok=1 OR @hf_ticket=$T

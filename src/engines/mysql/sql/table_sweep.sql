-- Delete the rows of one name whose owners are dead, and open its gate. Was there
-- one?
START TRANSACTION;
SET @hf_name=NULL;
SELECT name INTO @hf_name FROM holdfast_ticket WHERE until<={now} LIMIT 1;
SELECT 1 INTO @hf_ok FROM holdfast_lock WHERE name=@hf_name FOR UPDATE;
DELETE FROM holdfast_ticket WHERE name=@hf_name AND until<={now};
UPDATE holdfast_lock SET {gate:@hf_name} WHERE name=@hf_name;
COMMIT;
SELECT @hf_name IS NOT NULL

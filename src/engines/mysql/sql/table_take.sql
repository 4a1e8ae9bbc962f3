-- Take the row of a name that is new, or free. Prepared, so without a result,
-- which would cost the server more than the rest: if the lock is not free, a
-- number is out of range, which is an error, and nothing is done. VALUES() is
-- what would have been inserted: the token is now. It comes back as the number
-- of the insert.
INSERT INTO holdfast_lock(name,token,until,holder)
VALUES($N,LAST_INSERT_ID({now}),token+$L,$H)
ON DUPLICATE KEY UPDATE
token=LAST_INSERT_ID(GREATEST(token+1,VALUES(token))+0*(VALUES(token)-until-gate)),
until=VALUES(until),holder=VALUES(holder)

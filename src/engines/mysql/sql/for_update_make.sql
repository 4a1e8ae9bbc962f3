-- A row that is there is not inserted in vain, which would wait for its lock.
ROLLBACK;
SELECT COUNT(*) INTO @holdfast FROM holdfast_row WHERE name=$N;
INSERT IGNORE INTO holdfast_row SELECT $N FROM DUAL WHERE @holdfast=0;
START TRANSACTION;
{lock_our_row:$F} NOWAIT

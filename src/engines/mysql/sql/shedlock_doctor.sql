START TRANSACTION;
INSERT INTO $1(name,lock_until,locked_at,locked_by) VALUES(_utf8mb4 $N,{utc},{utc},'')
ON DUPLICATE KEY UPDATE locked_by='';
UPDATE $1 SET locked_by='' WHERE name=_utf8mb4 $N;
ROLLBACK

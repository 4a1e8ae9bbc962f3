START TRANSACTION;
INSERT INTO $1({spring_columns}) VALUES(_utf8mb4 $N,_utf8mb4 $G,'',{utc},{utc})
ON DUPLICATE KEY UPDATE CLIENT_ID='';
UPDATE $1 SET CLIENT_ID='' WHERE {spring_key};
DELETE FROM $1 WHERE {spring_key};
ROLLBACK

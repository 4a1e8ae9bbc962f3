INSERT INTO $1(name,lock_until,locked_at,locked_by)
VALUES(_utf8mb4 $N,{ends},{utc},_utf8mb4 $T)
ON DUPLICATE KEY UPDATE
locked_at=IF({shedlock_free},VALUES(locked_at),locked_at),
locked_by=IF({shedlock_free},VALUES(locked_by),locked_by),
lock_until=IF({shedlock_same} AND locked_by=VALUES(locked_by),VALUES(lock_until),lock_until);
SELECT locked_by=_utf8mb4 $T,{shedlock_bytes}=$N,locked_by FROM $1 WHERE name=_utf8mb4 $N

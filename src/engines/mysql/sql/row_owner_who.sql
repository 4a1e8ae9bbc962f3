-- Is it ours, and who has it?
SELECT $3=_utf8mb4 $T,{row_owner} FROM $1 WHERE {own_name}

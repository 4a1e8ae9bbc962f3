SELECT 1 INTO @hf_ok FROM $1 WHERE {own_name} AND $3=_utf8mb4 $T

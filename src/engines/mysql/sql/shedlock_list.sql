{shedlock_list} lock_until>{utc} AND LEFT({shedlock_bytes},$Z)=$P

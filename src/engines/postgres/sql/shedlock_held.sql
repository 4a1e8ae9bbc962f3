{shedlock_who}, name FROM @ WHERE starts_with(name, $1) AND lock_until > {utc} LIMIT 100000

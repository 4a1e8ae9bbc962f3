{shedlock_who} FROM @ WHERE name = $1 AND lock_until > {utc}

UPDATE @ SET lock_until = {utc} WHERE {shedlock_ours} RETURNING 1

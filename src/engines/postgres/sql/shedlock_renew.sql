UPDATE @ SET lock_until = {until:$3} WHERE {shedlock_ours} RETURNING 1

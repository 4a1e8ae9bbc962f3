UPDATE $1 SET lock_until={ends} WHERE {shedlock_ours}

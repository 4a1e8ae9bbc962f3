UPDATE $1 SET lock_until=UTC_TIMESTAMP(3) WHERE {shedlock_ours}

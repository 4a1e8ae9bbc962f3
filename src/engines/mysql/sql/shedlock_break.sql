UPDATE $1 SET lock_until=UTC_TIMESTAMP(3) WHERE {shedlock_named} AND locked_by=_utf8mb4 $O;
{broken:{shedlock_named}}

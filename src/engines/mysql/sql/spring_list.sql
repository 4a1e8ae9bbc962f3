{spring_list} REGION=_utf8mb4 $G AND EXPIRED_AFTER>={utc}

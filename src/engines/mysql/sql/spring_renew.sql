UPDATE $1 SET EXPIRED_AFTER={ends} WHERE {spring_ours}

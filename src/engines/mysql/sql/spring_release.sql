DELETE FROM $1 WHERE {spring_ours}

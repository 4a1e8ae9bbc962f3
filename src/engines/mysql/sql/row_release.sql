DELETE FROM $1 WHERE {own_name}

SELECT $5 FROM $4 WHERE {own_name}

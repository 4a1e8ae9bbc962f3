-- The server finds the table by its own rules for names.
SHOW INDEX FROM $1 WHERE Non_unique=0
